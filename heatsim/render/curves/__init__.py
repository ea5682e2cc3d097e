"""Curves over time and along lines."""
