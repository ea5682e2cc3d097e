"""The tables of a scenario, one file each."""
