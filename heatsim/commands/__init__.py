"""What each command does: arguments in, exit code out."""
