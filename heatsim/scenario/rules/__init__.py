"""Rules between tables, and hints."""
