"""Boundary conditions: their terms and numbers, laws, and the balance of heat at a surface."""
