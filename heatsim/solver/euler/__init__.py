"""Steppers of whole steps."""
