"""Nodes beside the grid: temperatures without shape that surfaces exchange heat with."""
