"""Kernels that run on the CPU."""
