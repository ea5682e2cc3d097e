"""Estimates before a run: temperatures, work, costs, the method in time."""
