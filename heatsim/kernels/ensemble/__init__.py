"""Launches that step all grids of an ensemble."""
