"""Kernels for several materials and general conditions."""
