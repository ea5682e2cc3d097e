"""Correct several steps a sweep where a composite body makes them wrong."""
