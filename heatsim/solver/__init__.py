"""Advance the field."""
