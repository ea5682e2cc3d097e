"""Kernels of steps and stages, with their arguments."""
