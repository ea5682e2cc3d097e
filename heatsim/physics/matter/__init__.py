"""Materials as numbers: enthalpies and coefficients."""
