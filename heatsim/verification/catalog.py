"""The cases: published answers, then exact ones. Each scenario file says what is compared, and where it is from."""

from math import cos, exp, pi, sqrt

import numpy as np

from heatsim.verification.case import Array, Case, Quantity, Temperature, everywhere, probes
from heatsim.verification.exact import complementary_error, held_series, slab_series

_CELSIUS = 273.15


def _celsius(time: float, *degrees: float) -> Quantity:
    """Published temperatures of all probes at one time."""
    return probes({time: tuple(_CELSIUS + value for value in degrees)})


def _above_300(field: Temperature) -> Quantity:
    """A field that is given as its difference from 300 K."""
    return everywhere(lambda x, y, z, t: 300.0 + field(x, y, z, t))


def _semi_infinite_held(x: Array, y: Array, z: Array, t: float) -> Array:
    return 100.0 * complementary_error(x / (2.0 * sqrt(1e-4 * t)))


def _spreading_gaussian(x: Array, y: Array, z: Array, t: float) -> Array:
    widened = 1.0 + 2.0 * t
    return 100.0 / (widened * sqrt(widened)) * np.exp(-(x**2 + y**2 + z**2) / (2.0 * widened))


def _discrete_cosine(x: Array, y: Array, z: Array, t: float) -> Array:
    decayed: float = cos(pi / 64.0) ** (6.0 * t)
    return 100.0 * decayed * np.cos(pi * x / 64.0) * np.cos(pi * y / 64.0) * np.cos(pi * z / 64.0)


def _held_cube(x: Array, y: Array, z: Array, t: float) -> Array:
    fourier = 1e-5 * t / 0.1**2
    return 100.0 * held_series(x / 0.1, fourier) * held_series(y / 0.1, fourier) * held_series(z / 0.1, fourier)


def _convection_corner(x: Array, y: Array, z: Array, t: float) -> Array:
    along_x = slab_series(4.0, x / 0.04, 5e-6 * t / 0.04**2)
    return 100.0 * along_x * slab_series(0.6, y / 0.03, 5e-6 * t / 0.03**2)


def _anisotropic_block(x: Array, y: Array, z: Array, t: float) -> Array:
    product = np.full((), 100.0)
    for coordinate, edge, k in ((x, 0.1, 20.0), (y, 0.08, 10.0), (z, 0.05, 5.0)):
        half = edge / 2.0
        product = product * slab_series(400.0 * half / k, np.abs(coordinate - half) / half, k / 2e6 * t / half**2)
    return product


def _wave(wavenumber: float, phase: float) -> Temperature:
    def field(x: Array, y: Array, z: Array, t: float) -> Array:
        return 50.0 * np.cos(wavenumber * x + phase) * exp(-0.5 * wavenumber**2 * t)

    return field


def _mixed_wave(x: Array, y: Array, z: Array, t: float) -> Array:
    mode = np.cos(2.0 * pi * x + 0.3) * np.cos(1.8 * (y - 0.5)) * np.sin(pi * z)
    return 100.0 * mode * exp(-((2.0 * pi) ** 2 + 1.8**2 + pi**2) * t)


_FDS = "FDS, heat_conduction"

CASES = (
    Case("slab_bi_100", _FDS, _celsius(1000.0, 24.79, 27.70, 37.43, 55.97, 83.88, 118.22), 100.0, 1e-3),
    Case("slab_bi_10", _FDS, _celsius(1200.0, 25.44, 28.00, 36.32, 51.76, 74.94, 104.32), 100.0, 1e-3),
    Case("slab_bi_1", _FDS, _celsius(10000.0, 66.61, 67.40, 69.74, 73.57, 78.77, 85.18), 100.0, 1e-3),
    Case("nafems_t3", "NAFEMS T3", _celsius(32.0, 36.60), 100.0, 1e-3),
    Case("nafems_t4", "NAFEMS T4", _celsius(1.0, 18.25), 100.0, 2e-3),
    Case(
        "semi_infinite_convection",
        "TMAP8, ver-1fd",
        probes({100.0: (114.981,), 500.0: (140.765,), 1000.0: (158.598,), 1800.0: (177.723,)}),
        400.0,
        5e-4,
    ),
    Case("semi_infinite_held", "Carslaw & Jaeger §2.4", _above_300(_semi_infinite_held), 100.0, 1e-3),
    Case("spreading_gaussian", "Carslaw & Jaeger §10.3", _above_300(_spreading_gaussian), 100.0, 1e-3, order=True),
    Case(
        "discrete_cosine",
        "the stencil's eigenvector",
        _above_300(_discrete_cosine),
        100.0,
        tolerance=1e-13,
        float32=1e-5,
    ),
    Case("held_cube", "Carslaw & Jaeger §6.2", _above_300(_held_cube), 100.0, 5e-4, order=True),
    Case("convection_corner", "Incropera §5.8", _above_300(_convection_corner), 100.0, 5e-4, order=True),
    Case("anisotropic_block", "Incropera §5.8", _above_300(_anisotropic_block), 100.0, 1e-3),
    Case("order_held", "exact wave", _above_300(_wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("order_flux", "exact wave", _above_300(_wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("order_convection", "exact wave", _above_300(_wave(2.3, 0.4)), 100.0, 5e-4, order=True),
    Case("order_insulated", "exact wave", _above_300(_wave(pi, 0.0)), 100.0, 5e-4, order=True),
    Case("order_periodic", "exact wave", _above_300(_wave(2.0 * pi, 0.4)), 100.0, 5e-4, order=True),
    Case("order_mixed", "exact wave", _above_300(_mixed_wave), 200.0, 5e-4, order=True),
)
