"""Exact temperatures as series, integrals and roots; lengths in m, times in s, temperatures in K.

Carslaw & Jaeger is *Conduction of Heat in Solids*, 2nd ed.; Incropera is *Fundamentals of Heat and Mass Transfer*.
"""

from collections.abc import Callable
from functools import cache
from math import erfc, exp, pi, tan

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEFAN_BOLTZMANN = 5.670374419e-8  # W/(m² K⁴), CODATA 2018


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of an increasing function between two arguments, by bisection to the last digit."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


@cache
def slab_eigenvalues(biot: float, count: int = 60) -> tuple[float, ...]:
    """The roots of ζ tan ζ = Bi, one in each (nπ, nπ + π/2) (Incropera, eq. 5.42c)."""
    return tuple(root(lambda zeta: zeta * tan(zeta) - biot, n * pi, n * pi + pi / 2.0 - 1e-15) for n in range(count))


def slab_series(biot: float, depth: Array, fourier: float) -> Array:
    """(T − T∞)/(T0 − T∞) in a slab with convection at depth 1, insulated at depth 0 (Incropera, eq. 5.42a)."""
    total = np.zeros_like(depth)
    for zeta in slab_eigenvalues(biot):
        weight = 4.0 * np.sin(zeta) / (2.0 * zeta + np.sin(2.0 * zeta))
        total = total + weight * exp(-(zeta**2) * fourier) * np.cos(zeta * depth)
    return total


def held_series(depth: Array, fourier: float, terms: int = 200) -> Array:
    """(T − T1)/(T0 − T1) in a slab between depths 0 and 1, both faces held at T1 (Carslaw & Jaeger §3.3)."""
    total = np.zeros_like(depth)
    for n in range(1, 2 * terms, 2):
        total = total + 4.0 / (n * pi) * exp(-((n * pi) ** 2) * fourier) * np.sin(n * pi * depth)
    return total


def complementary_error(values: Array) -> Array:
    """1 − erf of each value."""
    return np.array([erfc(value) for value in values.flat], dtype=np.float64).reshape(values.shape)


def sphere_series(biot: float, depth: Array, fourier: float, count: int = 40) -> Array:
    """(T − T∞)/(T0 − T∞) in a sphere with convection at radius 1 (Incropera, eq. 5.51: 1 − ζ·cot ζ = Bi)."""
    total = np.zeros_like(depth)
    for n in range(count):
        zeta = root(lambda zeta: 1.0 - zeta / tan(zeta) - biot, n * pi + 1e-12, (n + 1) * pi - 1e-12)
        weight = 4.0 * (np.sin(zeta) - zeta * np.cos(zeta)) / (2.0 * zeta - np.sin(2.0 * zeta))
        total = total + weight * exp(-(zeta**2) * fourier) * np.sinc(zeta * depth / pi)
    return total


def bessel(order: int, values: Array) -> Array:
    """J of a whole order, from Bessel's integral; exact to rounding for values up to 300."""
    angles = (np.arange(256.0) + 0.5) * pi / 256.0
    return np.asarray(np.cos(order * angles - values[..., None] * np.sin(angles)).mean(axis=-1))


@cache
def cylinder_eigenvalues(biot: float, count: int = 40) -> tuple[float, ...]:
    """The roots of ζ·J₁(ζ) = Bi·J₀(ζ): one between each zero of J₁ and the next one of J₀ (Incropera, eq. 5.49c)."""

    def crossing(function: Callable[[float], float], low: float, high: float) -> float:
        sign = 1.0 if function(low) < 0.0 else -1.0
        return root(lambda value: sign * function(value), low, high)

    def of_order(order: int) -> Callable[[float], float]:
        return lambda value: float(bessel(order, np.array(value)))

    found = []
    for n in range(count):
        low = crossing(of_order(1), n * pi, (n + 0.5) * pi) if n else 0.0
        high = crossing(of_order(0), (n + 0.5) * pi, (n + 1) * pi)
        found.append(crossing(lambda zeta: zeta * of_order(1)(zeta) - biot * of_order(0)(zeta), low, high))
    return tuple(found)


def cylinder_series(biot: float, depth: Array, fourier: float) -> Array:
    """(T − T∞)/(T0 − T∞) in a long cylinder with convection at radius 1 (Incropera, eq. 5.49a)."""
    total = np.zeros_like(depth)
    for zeta in cylinder_eigenvalues(biot):
        even, odd = (float(bessel(order, np.array(zeta))) for order in (0, 1))
        weight = 2.0 / zeta * odd / (even**2 + odd**2)
        total = total + weight * exp(-(zeta**2) * fourier) * bessel(0, zeta * depth)
    return total
