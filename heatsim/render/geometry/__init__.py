"""A picture of a scenario before it runs."""
