"""Nodes beside a field in explicit stages on a GPU."""
