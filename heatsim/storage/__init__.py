"""File layouts: what a run writes, how it is read back, and what survives a crash."""
