"""Reports of the results of a run."""
