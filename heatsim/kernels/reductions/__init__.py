"""Statistics of a whole field: the fused pass, and the ladder of textbook sums that leads to it."""
