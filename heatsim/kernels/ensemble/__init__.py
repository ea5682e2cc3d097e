"""Step the equal grids of an ensemble together."""
