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
    """A solid that melts from a hot face; both phases have the same properties."""
    return _phase_front(x, t, (340.0, 310.0, 300.0), 1000.0 * 1.5e5, (0.5, 1000.0 * 2000.0), (0.5, 1000.0 * 2000.0))


def freezing_front(x: Array, y: Array, z: Array, t: float) -> Array:
    """Water that freezes from a cold face."""
    return _phase_front(
        x, t, (253.15, 273.15, 278.15), 1000.0 * 3.34e5, (2.22, 1000.0 * 2050.0), (0.57, 1000.0 * 4190.0)
    )


def _phase_front(
    x: Array,
    t: float,
    temperatures: tuple[float, float, float],
    latent: float,
    near: tuple[float, float],
    far: tuple[float, float],
) -> Array:
    """Neumann's solution: Carslaw & Jaeger §11.2, eqs. 5 to 14, with the phases named by their place.

    Args:
        x: distance from the face, m.
        t: time, s.
        temperatures: of the face, of the change of phase, and at the start, K.
        latent: latent heat, J/m³.
        near: conductivity and heat capacity, W/(m K) and J/(m³ K), of the phase at the face.
        far: those of the other phase.
    """
    face, change, start = temperatures
    (k_near, alpha_near), (k_far, alpha_far) = ((k, k / capacity) for k, capacity in (near, far))
    slower = sqrt(alpha_near / alpha_far)

    def deficit(front: float) -> float:
        arriving = k_near * abs(face - change) / sqrt(pi * alpha_near) * exp(-(front**2)) / erf(front)
        beyond = front * slower
        leaving = k_far * abs(change - start) / sqrt(pi * alpha_far) * exp(-(beyond**2)) / erfc(beyond)
        return front * sqrt(alpha_near) * latent - arriving + leaving

    front = root(deficit, 1e-6, 4.0)
    depth = x / (2.0 * sqrt(alpha_near * t))
    behind = face + (change - face) * (1.0 - complementary_error(depth)) / erf(front)
    ahead = start + (change - start) * complementary_error(depth * slower) / erfc(front * slower)
    return np.where(depth < front, behind, ahead)
