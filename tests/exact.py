"""Problems with exact or published answers: a scenario and the temperature that it must lead to.

Series and eigenvalues: Carslaw & Jaeger, *Conduction of Heat in Solids*, 2nd ed.; Incropera, *Fundamentals of Heat and
Mass Transfer*, ch. 5. Every solution is evaluated at cell centres; times in s, lengths in m, temperatures in K.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.verification.exact import complementary_error, slab_series

Array = NDArray[np.float64]
Temperature = Callable[[Array, Array, Array, float], Array]

CELSIUS = 273.15


@dataclass(frozen=True)
class ExactSolution:
    """A problem whose temperature is known everywhere.

    Attributes:
        name: of the problem.
        scenario: the text of its file.
        T: the temperature in K at x, y, z (broadcastable arrays) and time t.
        range: the difference in K that tolerances are fractions of.
    """

    name: str
    scenario: str
    T: Temperature
    range: float


@dataclass(frozen=True)
class PublishedValues:
    """A problem of which values at points and times are published.

    Attributes:
        name: of the problem.
        source: who published them.
        scenario: the text of its file; its probes are the points, in the order of ``values``.
        values: for each time in s the temperatures in K at the probes.
        digits: half a unit of the last digit published, in K.
        range: the difference in K that tolerances are fractions of.
    """

    name: str
    source: str
    scenario: str
    values: dict[float, tuple[float, ...]]
    digits: float
    range: float


def scenario(
    size: Sequence[float],
    cells: Sequence[int],
    *,
    initial: float | str,
    end: float,
    boundaries: str = "",
    k: float | Sequence[float] = 1.0,
    rho: float = 1.0,
    cp: float = 1.0,
    dt: float | str = "auto",
    safety: float = 0.9,
    precision: str = "float64",
    every: float | None = None,
    probes: Sequence[tuple[float, float, float]] = (),
) -> str:
    """The text of a scenario file; a probe's name is its number. ``every`` is for the rows of its tables."""
    quoted = f'"{initial}"' if isinstance(initial, str) else repr(initial)
    step = (
        f'dt = "auto", safety = {safety!r}'
        if dt == "auto"
        else f"dt = {dt!r}"
        if not isinstance(dt, str)
        else f'dt = "{dt}"'
    )
    lines = [
        f"domain = {{ size = {list(size)!r}, cells = {list(cells)!r} }}",
        f"material = {{ conductivity = {k if isinstance(k, float) else list(k)!r}, "
        f"density = {rho!r}, specific_heat = {cp!r} }}",
        f"initial = {{ temperature = {quoted} }}",
        f"time = {{ end = {end!r}, {step} }}",
        f'solver = {{ precision = "{precision}" }}',
        f"output = {{ figures = false{'' if every is None else f', probe_every = {every!r}'} }}",
        f"[boundaries]\n{boundaries}",
        *(f'[[probes]]\nname = "{number}"\npoint = {list(point)!r}' for number, point in enumerate(probes)),
    ]
    return "\n".join(lines) + "\n"


def held(value: float | str) -> str:
    """A face held at a temperature in K, or at an expression in t."""
    return f'{{ type = "temperature", value = {_toml(value)} }}'


def flux(value: float | str) -> str:
    """A face with a flux in W/m² into the body."""
    return f'{{ type = "flux", value = {_toml(value)} }}'


def convection(coefficient: float | str, ambient: float | str) -> str:
    """A face with a film coefficient in W/(m² K) towards an ambient in K."""
    return f'{{ type = "convection", coefficient = {_toml(coefficient)}, ambient = {_toml(ambient)} }}'


PERIODIC = '{ type = "periodic" }'
INSULATED = '{ type = "insulated" }'


def _toml(value: float | str) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


# Depths 0, 2, … 10 cm; 0 is the insulated side. Verification case heat_conduction of FDS.
_SLAB_DEPTHS = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)
_SLABS = (
    (100.0, 0.1, 100.0, 100.0, 1000.0, (24.79, 27.70, 37.43, 55.97, 83.88, 118.22)),
    (10.0, 0.1, 100.0, 10.0, 1200.0, (25.44, 28.00, 36.32, 51.76, 74.94, 104.32)),
    (1.0, 1.0, 1000.0, 10.0, 10000.0, (66.61, 67.40, 69.74, 73.57, 78.77, 85.18)),
)


def _slab(k: float, rho: float, h: float, end: float, probes: Sequence[tuple[float, float, float]] = ()) -> str:
    return scenario(
        (0.1, 0.1, 0.1),
        (50, 1, 1),
        initial=CELSIUS + 20.0,
        end=end,
        boundaries=f"x_max = {convection(h, CELSIUS + 120.0)}",
        k=k,
        rho=rho,
        cp=1000.0,
        probes=probes,
    )


def _slab_temperature(biot: float, alpha: float) -> Temperature:
    def T(x: Array, y: Array, z: Array, t: float) -> Array:
        return CELSIUS + 120.0 - 100.0 * slab_series(biot, x / 0.1, alpha * t / 0.1**2)

    return T


SLABS = tuple(
    ExactSolution(f"slab, Bi = {biot:g}", _slab(k, rho, h, end), _slab_temperature(biot, k / (rho * 1000.0)), 100.0)
    for biot, k, rho, h, end, _ in _SLABS
)

PUBLISHED = (
    *(
        PublishedValues(
            f"slab, Bi = {biot:g}",
            "FDS verification, heat_conduction",
            _slab(k, rho, h, end, [(x, 0.05, 0.05) for x in _SLAB_DEPTHS]),
            {end: tuple(CELSIUS + value for value in values)},
            0.005,
            100.0,
        )
        for biot, k, rho, h, end, values in _SLABS
    ),
    PublishedValues(
        "NAFEMS T3",
        "NAFEMS, The Standard NAFEMS Benchmarks, test T3",
        scenario(
            (0.1, 0.01, 0.01),
            (50, 1, 1),
            initial=CELSIUS,
            end=32.0,
            boundaries=f"x_min = {held(CELSIUS)}\nx_max = {held(f'{CELSIUS} + 100*sin(pi*t/40)')}",
            k=35.0,
            rho=7200.0,
            cp=440.5,
            probes=[(0.08, 0.005, 0.005)],
        ),
        {32.0: (CELSIUS + 36.60,)},
        0.005,
        100.0,
    ),
    PublishedValues(
        "semi-infinite body, convection",
        "TMAP8 verification, ver-1fd",
        scenario(
            (2.0, 0.1, 0.1),
            (400, 1, 1),
            initial=100.0,
            end=1800.0,
            boundaries=f"x_min = {convection(200.0, 500.0)}",
            k=401.0,
            rho=3439.0,
            cp=1000.0,
            every=100.0,
            probes=[(0.05, 0.05, 0.05)],
        ),
        {100.0: (114.981,), 500.0: (140.765,), 1000.0: (158.598,), 1800.0: (177.723,)},
        0.0005,
        400.0,
    ),
)


def _step_into_semi_infinite(x: Array, y: Array, z: Array, t: float) -> Array:
    """Carslaw & Jaeger §2.4: θ = erfc(x / 2√(αt)), α = 1e-4 m²/s."""
    return 300.0 + 100.0 * complementary_error(x / (2.0 * sqrt(1e-4 * t)))


HELD_STEP = ExactSolution(
    "semi-infinite body, face held",
    scenario(
        (1.0, 0.1, 0.1),
        (200, 1, 1),
        initial=300.0,
        end=100.0,
        boundaries=f"x_min = {held(400.0)}",
        k=100.0,
        rho=1000.0,
        cp=1000.0,
    ),
    _step_into_semi_infinite,
    100.0,
)


def _spreading_gaussian(x: Array, y: Array, z: Array, t: float) -> Array:
    """Carslaw & Jaeger §10.3: σ² = σ0² + 2αt, the peak falls with (σ0/σ)³; σ0 = 1, α = 1."""
    widened = 1.0 + 2.0 * t
    return 300.0 + 100.0 * widened**-1.5 * np.exp(-(x**2 + y**2 + z**2) / (2.0 * widened))


GAUSSIAN = ExactSolution(
    "Gaussian spreading in three dimensions",
    scenario(
        (12.3, 12.3, 12.3),
        (41, 41, 41),
        initial="300 + 100*exp(-(x^2 + y^2 + z^2)/2)",
        end=0.5,
        safety=0.6,
    ).replace("cells = [41, 41, 41]", "cells = [41, 41, 41], origin = [-6.15, -6.15, -6.15]"),
    _spreading_gaussian,
    100.0,
)


def _quenched_block(x: Array, y: Array, z: Array, t: float) -> Array:
    """The product of three slabs, each half an edge deep (Incropera §5.8; Carslaw & Jaeger §1.15)."""
    product = np.ones(())
    for coordinate, edge, k in ((x, 0.1, 20.0), (y, 0.08, 10.0), (z, 0.05, 5.0)):
        half = edge / 2.0
        product = product * slab_series(400.0 * half / k, np.abs(coordinate - half) / half, k / 2e6 * t / half**2)
    return 300.0 + 100.0 * product


QUENCHED_BLOCK = ExactSolution(
    "anisotropic block quenched on all faces",
    scenario(
        (0.1, 0.08, 0.05),
        (30, 24, 20),
        initial=400.0,
        end=60.0,
        boundaries=f"default = {convection(400.0, 300.0)}",
        k=(20.0, 10.0, 5.0),
        rho=2000.0,
        cp=1000.0,
    ),
    _quenched_block,
    100.0,
)
