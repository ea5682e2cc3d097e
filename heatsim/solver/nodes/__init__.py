"""Nodes in time and in steady states: their exchange with the surfaces of a body, and their steps."""
