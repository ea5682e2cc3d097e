"""The seven stencil coefficients c0…c6.

Finite volumes on a uniform grid (Patankar, *Numerical Heat Transfer and Fluid Flow*, §4.4), explicit in time:

    T' = c0·T + c1·T(x−) + c2·T(x+) + c3·T(y−) + c4·T(y+) + c5·T(z−) + c6·T(z+)
    c1 = c2 = αx·dt/dx²,  c3 = c4 = αy·dt/dy²,  c5 = c6 = αz·dt/dz²,  c0 = 1 − Σ,  α = k/(ρ·cp)
"""

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

import numpy as np

from heatsim.grid import Grid

Precision = Literal["float32", "float64"]
Rounding = Literal["nearest", "stochastic"]
Scheme = Literal["seven_term", "increments", "stochastic"]

SCHEMES: tuple[Scheme, ...] = get_args(Scheme)  # numbered as in stencil.cuh

# If coefficients are multiples of the quantum, c0 = 1 − Σ is exact, so a uniform field stays uniform and no heat is
# created. If that changes a coefficient by more than the relative tolerance, the diffusivity would be wrong, and
# increments are summed instead.
_QUANTUM = {"float32": 2.0**-25, "float64": 2.0**-54}
_TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


@dataclass(frozen=True)
class Coefficients:
    """c0…c6 for one time step length.

    Attributes:
        dt: the time step in s.
        c: (c0, …, c6), each exactly representable in the run's precision.
        exchange: α·dt/d² along x, y, z, for the terms of faces. On an axis of several cells these are c1, c3, c5. On an
            axis of one cell c1, c3 or c5 is 0, because there is no neighbour, but its faces may exchange heat.
    """

    dt: float
    c: tuple[float, float, float, float, float, float, float]
    exchange: tuple[float, float, float]


def choose_scheme(
    grid: Grid, rates: tuple[float, float, float], smallest_dt: float, precision: Precision, rounding: Rounding
) -> Scheme:
    """How a run sums its steps; see stencil.cuh.

    The seven-term sum is the fastest. Increments are used if rounding a coefficient would change the diffusivity: with
    flat cells, or with a time step far below the limit.
    """
    if rounding == "stochastic" and precision == "float32":
        return "stochastic"  # float64 does not need it
    smallest = min((rate * smallest_dt for rate, n in zip(rates, grid.cells, strict=True) if n > 1), default=inf)
    return "seven_term" if smallest * _TOLERANCE[precision] >= _QUANTUM[precision] / 2.0 else "increments"


def derive(
    grid: Grid, rates: tuple[float, float, float], dt: float, precision: Precision, scheme: Scheme
) -> Coefficients:
    """c0…c6 for a time step of ``dt`` seconds; for the seven-term sum rounded so that c0 = 1 − Σ is exact."""
    number = np.dtype(precision).type
    exchange = [rate * dt for rate in rates]
    if scheme == "seven_term":
        quantum = _QUANTUM[precision]
        inside = [n > 1 for n in grid.cells]
        multiples = [round(c / quantum) if inner else 0 for c, inner in zip(exchange, inside, strict=True)]
        excess = 2 * sum(multiples) - round(1.0 / quantum)
        if 0 < excess <= 6:  # at the stability limit, by rounding up: c0 must not become negative
            multiples[multiples.index(max(multiples))] -= (excess + 1) // 2
        exchange = [m * quantum if inner else c for m, c, inner in zip(multiples, exchange, inside, strict=True)]
    exchange = [float(number(c)) for c in exchange]
    cx, cy, cz = (c if n > 1 else 0.0 for c, n in zip(exchange, grid.cells, strict=True))
    c0 = float(number(1.0 - 2.0 * (cx + cy + cz)))
    return Coefficients(dt, (c0, cx, cx, cy, cy, cz, cz), (exchange[0], exchange[1], exchange[2]))
