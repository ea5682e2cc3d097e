"""Exact fields of the cases with one material: differences from 300 K at x, y, z (m) and t (s)."""

from math import cos, exp, pi, sqrt

import numpy as np

from heatsim.verification.case import Array, Temperature
from heatsim.verification.exact import complementary_error, held_series, slab_eigenvalues, slab_series


def half_space_held(x: Array, y: Array, z: Array, t: float) -> Array:
    """A step of the surface temperature: Carslaw & Jaeger §2.4, α = 1e-4 m²/s."""
    return 100.0 * complementary_error(x / (2.0 * sqrt(1e-4 * t)))


def half_space_periodic(x: Array, y: Array, z: Array, t: float) -> Array:
    """Carslaw & Jaeger §2.6, eq. 7, for a period of a day."""
    frequency, alpha = 2.0 * pi / 86400.0, 1.5 / (1600.0 * 1000.0)
    depth = x * sqrt(frequency / (2.0 * alpha))
    return 20.0 * np.exp(-depth) * np.cos(frequency * t - depth)


def spreading_gaussian(x: Array, y: Array, z: Array, t: float) -> Array:
    """σ0 = 1 m, α = 1 m²/s: Carslaw & Jaeger §10.3."""
    widened = 1.0 + 2.0 * t
    return 100.0 / (widened * sqrt(widened)) * np.exp(-(x**2 + y**2 + z**2) / (2.0 * widened))


def discrete_cosine(x: Array, y: Array, z: Array, t: float) -> Array:
    """Each sixth of a second multiplies the mode (1, 1, 1) of 64 insulated cells per axis by cos(π/64)."""
    decayed: float = cos(pi / 64.0) ** (6.0 * t)
    return 100.0 * decayed * np.cos(pi * x / 64.0) * np.cos(pi * y / 64.0) * np.cos(pi * z / 64.0)


def held_cube(x: Array, y: Array, z: Array, t: float) -> Array:
    """The product of three plates: Carslaw & Jaeger §1.15."""
    fourier = 1e-5 * t / 0.1**2
    return 100.0 * held_series(x / 0.1, fourier) * held_series(y / 0.1, fourier) * held_series(z / 0.1, fourier)


def convection_corner(x: Array, y: Array, z: Array, t: float) -> Array:
    """The product of two plane walls with Bi = 4 and 0.6: Carslaw & Jaeger §1.15."""
    along_x = slab_series(4.0, x / 0.04, 5e-6 * t / 0.04**2)
    return 100.0 * along_x * slab_series(0.6, y / 0.03, 5e-6 * t / 0.03**2)


def anisotropic_block(x: Array, y: Array, z: Array, t: float) -> Array:
    """The product of three plane walls of half an edge each: Carslaw & Jaeger §1.15."""
    product = np.full((), 100.0)
    for coordinate, edge, k in ((x, 0.1, 20.0), (y, 0.08, 10.0), (z, 0.05, 5.0)):
        half = edge / 2.0
        product = product * slab_series(400.0 * half / k, np.abs(coordinate - half) / half, k / 2e6 * t / half**2)
    return product


def wave(wavenumber: float, phase: float) -> Temperature:
    """A cosine along x, α = 0.5 m²/s."""

    def field(x: Array, y: Array, z: Array, t: float) -> Array:
        return 50.0 * np.cos(wavenumber * x + phase) * exp(-0.5 * wavenumber**2 * t)

    return field


def plane_wave(x: Array, y: Array, z: Array, t: float) -> Array:
    """A product of cosines along x and y, α = 0.5 m²/s."""
    return 50.0 * np.cos(2.3 * x + 0.4) * np.cos(1.7 * y + 0.3) * exp(-0.5 * (2.3**2 + 1.7**2) * t)


def mixed_wave(x: Array, y: Array, z: Array, t: float) -> Array:
    """Periodic along x, even about the middle of y, zero at both ends of z; α = 1 m²/s."""
    mode = np.cos(2.0 * pi * x + 0.3) * np.cos(1.8 * (y - 0.5)) * np.sin(pi * z)
    return 100.0 * mode * exp(-((2.0 * pi) ** 2 + 1.8**2 + pi**2) * t)


def ambient_from_file(x: Array, y: Array, z: Array, t: float) -> Array:
    """Bi = 1, L = 0.1 m, α = 1e-6 m²/s; the air of ambient_from_file.csv. Differences from 20 °C."""
    minutes, rises = np.array([0.0, 30.0, 60.0, 60.0, 100.0, 120.0]), np.array([0.0, 40.0, 40.0, 80.0, 80.0, 20.0])
    times = 60.0 * minutes
    behind = np.zeros_like(x)
    for zeta in slab_eigenvalues(1.0):
        rate = 1e-6 * (zeta / 0.1) ** 2
        left = np.exp(-rate * (t - times))
        # What is left of a change of the air: of a jump, and of a straight line by integration.
        lengths = np.diff(times)
        spread = np.where(lengths > 0.0, np.diff(left) / (rate * np.where(lengths > 0.0, lengths, 1.0)), left[1:])
        weight = 4.0 * np.sin(zeta) / (2.0 * zeta + np.sin(2.0 * zeta))
        behind = behind + weight * float(np.diff(rises) @ spread) * np.cos(zeta * x / 0.1)
    return np.asarray(rises[-1] - behind)
