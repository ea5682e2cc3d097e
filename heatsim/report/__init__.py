"""Report what a run found."""
