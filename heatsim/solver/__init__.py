"""Advance the field, or solve for its steady state."""
