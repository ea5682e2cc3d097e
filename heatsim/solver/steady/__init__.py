"""Steady states: Newton's method, conjugate gradients and multigrid."""
