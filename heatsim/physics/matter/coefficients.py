"""The seven stencil coefficients c0…c6.

Finite volumes (Patankar, *Numerical Heat Transfer and Fluid Flow*, §4.4), explicit in time:

    T' = c0·T + c1·T(x−) + c2·T(x+) + c3·T(y−) + c4·T(y+) + c5·T(z−) + c6·T(z+)
    c1 = c2 = αx·dt/dx²,  c3 = c4 = αy·dt/dy²,  c5 = c6 = αz·dt/dz²,  c0 = 1 − Σ,  α = k/(ρ·cp)

On axes with cells of several widths these are the coefficients of cells of the mean widths; kernels multiply them with
the factors of the planes (:class:`heatsim.grid.Axis`) and sum increments.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid

Precision = Literal["float32", "float64"]
Scheme = Literal["seven_term", "increments"]

Array = NDArray[np.float64]

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


@dataclass(frozen=True, eq=False)
class StageCoefficients:
    """c0…c6 of n stages of different lengths.

    Attributes:
        c: c0, c1 = c2, c3 = c4, c5 = c6; shape (n, 4), each exactly representable in the run's precision.
        exchange: α·size/d² of the three axes, as in :class:`Coefficients`; shape (n, 3).
    """

    c: Array
    exchange: Array


def choose_scheme(grid: Grid, rates: tuple[float, float, float], smallest_dt: float, precision: Precision) -> Scheme:
    """How a run sums its steps; see stencil.cuh.

    The seven-term sum is the fastest. Increments are used if rounding a coefficient would change the diffusivity: with
    flat cells, or with a time step far below the limit.
    """
    if not grid.uniform:
        return "increments"  # the coefficients of one plane differ from those of the next one
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


def choose_stage_scheme(grid: Grid, rates: tuple[float, float, float], sizes: Array, precision: Precision) -> Scheme:
    """How the stages of a step are summed: as in :func:`choose_scheme`, by the rounding of all stages together.

    Args:
        grid: the cells.
        rates: α/d² of the axes in 1/s.
        sizes: of the stages in s.
        precision: of the run.
    """
    if not grid.uniform:
        return "increments"
    inside = [axis for axis in range(3) if grid.cells[axis] > 1]
    exchange = _inner_exchange(grid, rates, sizes)
    allowed = _TOLERANCE[precision] * exchange[:, inside].sum(axis=0).min(initial=inf)
    return "seven_term" if _stage_quanta(exchange, precision).sum() / 2.0 <= allowed else "increments"


def stage_coefficients(
    grid: Grid, rates: tuple[float, float, float], sizes: Array, precision: Precision, scheme: Scheme
) -> StageCoefficients:
    """c0…c6 for stages of ``sizes`` seconds; for the seven-term sum rounded so that c0 = 1 − Σ is exact.

    The coefficients of a stage are multiples of a quantum. c0 may be far below 0: the quantum is 2ᵏ times that of steps
    below the stability limit, where 2ᵏ ≥ |c0| and 2ᵏ ≥ 2·c1 …, so that all of them are exact.

    Args:
        grid: the cells.
        rates: α/d² of the axes in 1/s.
        sizes: of the stages in s, shape (n,).
        precision: of the run.
        scheme: how the stages are summed.
    """
    exchange = np.asarray(sizes)[:, None] * np.asarray(rates)
    if scheme == "seven_term":
        inner = _inner_exchange(grid, rates, sizes)
        quanta = _stage_quanta(inner, precision)[:, None]
        multiples = np.rint(inner / quanta)
        # Multiples of the quantum whose sum has at most 55 bits: exact in 64-bit integers.
        own = np.rint(1.0 / quanta[:, 0]).astype(np.int64) - 2 * multiples.astype(np.int64).sum(axis=1)
        inside = np.array(grid.cells) > 1
        exchange = np.where(inside, multiples * quanta, exchange).astype(precision).astype(np.float64)
        c0 = own * quanta[:, 0]
    else:
        exchange = exchange.astype(precision).astype(np.float64)
        c0 = 1.0 - 2.0 * (exchange * (np.array(grid.cells) > 1)).sum(axis=1)
    inner = np.where(np.array(grid.cells) > 1, exchange, 0.0)
    return StageCoefficients(np.column_stack((c0, inner)).astype(precision).astype(np.float64), exchange)


def _inner_exchange(grid: Grid, rates: tuple[float, float, float], sizes: Array) -> Array:
    """α·size/d² of the axes with several cells, 0 for the others; shape (stages, 3)."""
    return np.asarray(sizes)[:, None] * np.where(np.array(grid.cells) > 1, rates, 0.0)


def _stage_quanta(exchange: Array, precision: Precision) -> Array:
    """The quantum of each stage, of whose multiples pairs of its coefficients are made."""
    largest = np.maximum(2.0 * exchange.sum(axis=1) - 1.0, 2.0 * exchange.max(axis=1))  # −c0 and twice the others
    # Rounding must not carry a coefficient beyond a power of two: it moves them by less than 4 quanta.
    fraction, exponent = np.frexp(largest * (1.0 + 8.0 * _QUANTUM[precision]))
    return np.asarray(_QUANTUM[precision] * np.exp2(np.maximum(exponent - (fraction == 0.5), 0)))
