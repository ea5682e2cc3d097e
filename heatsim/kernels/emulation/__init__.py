"""CUDA kernels on a computer without a GPU: compiled by g++, executed one thread after the other."""
