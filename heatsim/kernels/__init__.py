"""Kernels: one time step of the whole field, in CUDA and on the CPU. README.md in this folder describes the ladder."""
