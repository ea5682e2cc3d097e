"""Exact answers of the cases with materials that vary with temperature; m, s, K."""

from math import erf, erfc, exp, pi, sqrt

import numpy as np

from heatsim.verification.case import Array
from heatsim.verification.exact import complementary_error, root


def _risen(integral: Array) -> Array:
    """The rise u above 300 K, from u + 0.001·u² = integral."""
    return np.asarray((np.sqrt(1.0 + 0.004 * integral) - 1.0) / 0.002)


def kirchhoff_slab(x: Array, y: Array, z: Array, t: float) -> Array:
    """Steady between 300 and 800 K; k doubles, so the integral of k is linear in x; differences from 300 K."""
    return _risen((500.0 + 0.001 * 500.0**2) * x / 0.1)


def orthotropic_plate(x: Array, y: Array, z: Array, t: float) -> Array:
    """A quadratic integral of k that satisfies 8·∂²θ/∂x² + 2·∂²θ/∂y² = 0; differences from 300 K."""
    return _risen(150.0 + 2e4 * (x**2 / 8.0 - y**2 / 2.0) + 500.0 * x - 300.0 * y)


def warming_block(t: float) -> float:
    """The temperature after t seconds of 5e6 W/m³."""
    return 300.0 + float(_risen(np.array(5e6 * t / (1000.0 * 500.0))))


def growing_parabola(x: Array, y: Array, z: Array, t: float) -> Array:
    """A·x² with a conductivity of 1e-4·T and a heat capacity of 1 J/(m³ K)."""
    return 200.0 / (1.0 - 6.0 * 1e-4 * 200.0 * t) * x**2


def melting_front(x: Array, y: Array, z: Array, t: float) -> Array:
    """Neumann's solution with equal properties of both phases: Carslaw & Jaeger §11.2, eqs. 5 to 14."""
    wall, melting, start, alpha = 340.0, 310.0, 300.0, 0.5 / (1000.0 * 2000.0)
    stefan = 2000.0 * (wall - melting) / 1.5e5

    def deficit(front: float) -> float:
        arriving = exp(-(front**2)) / erf(front)
        leaving = (melting - start) / (wall - melting) * exp(-(front**2)) / erfc(front)
        return front * sqrt(pi) / stefan - arriving + leaving

    front = root(deficit, 1e-6, 4.0)
    depth = x / (2.0 * sqrt(alpha * t))
    liquid = wall - (wall - melting) * (1.0 - complementary_error(depth)) / erf(front)
    solid = start + (melting - start) * complementary_error(depth) / erfc(front)
    return np.where(depth < front, liquid, solid)
