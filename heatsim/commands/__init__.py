"""The commands: each takes its arguments and returns an exit code."""
