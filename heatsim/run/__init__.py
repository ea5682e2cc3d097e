"""Drive runs: one run, an ensemble, what they plan, summarise and resume."""
