"""The method "stabilized": explicit steps far beyond the limit of Euler's method, by factored stability polynomials."""
