"""Thin layers, which have no cells."""
