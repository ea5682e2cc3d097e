"""The temperature field, its sums and extremes."""
