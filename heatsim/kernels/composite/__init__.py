"""Kernels of bodies of several materials, with general conditions."""
