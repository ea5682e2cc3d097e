"""Stability polynomials in factors, and the file of tables that is made of them.

heatsim/physics/README.md, "Stabilized steps", has the formulas: the polynomial R(z), its substeps δ, its pair a and b,
and the interval −β ≤ z ≤ −ε on which it is bounded.

    python -m heatsim.solver.stabilized.polynomials     writes tables.json
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Numbers = NDArray[np.floating[Any]]

# Raise it with every change of the tables or of the smoothing: a run cannot be resumed to the same bits with others.
VERSION = 3
# The largest |R| outside the modes that are resolved: each step halves them at least.
DAMPING = 0.5
# Euler substeps of each polynomial. Kernels that do four steps a sweep need multiples of 4; neighbours differ by at
# most an eighth from 32 on.
SUBSTEPS = (*range(4, 65, 4), *range(72, 129, 8), *range(144, 257, 16), *range(288, 513, 32))
FILE = Path(__file__).with_name("tables.json")

_EXCHANGES = 50
_BISECTIONS = 70


@dataclass(frozen=True)
class Polynomial:
    """A stability polynomial of degree s.

    Attributes:
        beta: |R| ≤ ``DAMPING`` holds down to z = −β.
        deltas: lengths of the s − 2 Euler substeps as fractions of the step, the longest first.
    """

    beta: float
    deltas: tuple[float, ...]


def pair(deltas: Sequence[float]) -> tuple[float, float]:
    """The numbers a and b that make the order 2."""
    a = 1.0 - fsum(deltas)
    return a, (a * a + fsum(delta * delta for delta in deltas)) / 2


def optimal(degree: int) -> Polynomial:
    """The polynomial of a degree ≥ 4 with the longest interval, by Remez exchange.

    R is a Chebyshev series in x = 1 + 2z/β. It has s − 1 extremes of alternating sign and the size ``DAMPING``, the
    last at x = −1. Each exchange solves for the series that has these values at the present points, and moves the
    points to its extremes.

    Raises:
        ArithmeticError: the exchange does not converge.
    """
    points = _first_points(degree)
    values = np.where(np.arange(degree - 1) % 2, -DAMPING, DAMPING)
    beta = 0.65 * degree**2
    for _ in range(_EXCHANGES):
        previous, (beta, series) = beta, _through(points, values, beta)
        points = _extremes(series)
        missed = np.abs(_at(np.arccos(points), series) - values).max()
        if missed < 1e-10 and abs(beta - previous) < 1e-9 * beta:
            angles = np.arccos(points)
            roots = np.cos(_bisect(series, angles[:-1], angles[1:]))
            return Polynomial(beta, tuple((2 / (beta * (1 - roots))).tolist()))
    raise ArithmeticError(f"the polynomial of degree {degree} is not found in {_EXCHANGES} exchanges")


def lebedev_order(count: int) -> list[int]:
    """In which order to do substeps, by index from the longest to the shortest, so that products stay bounded.

    For a power of two it is the order of Lebedev & Finogenov (1976): each index i of half as many is followed by its
    mirror image. For other counts the places of the next power of two are scaled.
    """
    order = [0]
    while len(order) < count:
        order = [index for i in order for index in (i, 2 * len(order) - 1 - i)]
    places = [(2 * i + 1) * count // (2 * len(order)) for i in order]
    return list(dict.fromkeys(places))


def substeps_before_pair(count: int) -> int:
    """How many substeps come before the pair: the multiple of 4 that follows an eighth of them.

    In Lebedev's order each eighth of the substeps covers the whole interval. The pair multiplies fast modes by up to
    0.1·s⁴, so it comes when one eighth has damped them, and the others damp what it amplified.

    If the pair comes first, stages leave the physical range by far; if it comes last, rounding grows with s⁴.
    """
    return 4 * (count // 32 + 1)


def write(file: Path = FILE) -> None:
    """Calculate all tables and write them."""
    tables = []
    for count in SUBSTEPS:
        polynomial = optimal(count + 2)
        deltas = [polynomial.deltas[i] for i in lebedev_order(count)]
        # A little less than calculated: |R| stays below the damping in spite of rounding.
        beta = polynomial.beta * (1 - 1e-9)
        tables.append({"substeps": count, "beta": beta, "before_pair": substeps_before_pair(count), "deltas": deltas})
    lines = ",\n".join(json.dumps(table) for table in tables)
    file.write_text(f'{{"version": {VERSION}, "damping": {DAMPING}, "tables": [\n{lines}\n]}}\n', encoding="utf-8")


def _first_points(degree: int) -> Numbers:
    """Extremes of a Chebyshev polynomial of a degree less, moved away from x = 1."""
    points = np.cos(np.pi * np.arange(1, degree) / (degree - 1))
    return (points + 1) * (1 - 4 / degree**2) - 1


def _through(points: Numbers, values: Numbers, guess: float) -> tuple[float, Numbers]:
    """The interval's length β near ``guess`` and the series R with R = ``values`` at the points and order 2.

    R' = β/2 and R'' = β²/4 at x = 1. The other conditions fix a series that is linear in β, so the last one is a
    quadratic equation.
    """
    degree = len(points) + 1
    n = np.arange(degree + 1.0)
    slopes, curvatures = n**2, n**2 * (n**2 - 1) / 3
    rows = np.vstack([np.ones(degree + 1), slopes, chebyshev.chebvander(points, degree)])
    constant, linear = np.concatenate([[1.0, 0.0], values]), np.zeros(degree + 1)
    linear[1] = 0.5
    scale = np.abs(rows).max(axis=1)
    fixed, growing = np.linalg.solve(rows / scale[:, None], np.stack([constant / scale, linear / scale], axis=1)).T
    roots = np.roots([0.25, -(curvatures @ growing), -(curvatures @ fixed)])
    # Complex ones occur in the first exchanges only.
    beta = float(roots[np.argmin(np.abs(roots - guess))].real)
    return beta, fixed + beta * growing


def _extremes(series: Numbers) -> Numbers:
    """The last s − 1 extremes of a series of degree s, x = −1 included. One more near x = 1 does not alternate."""
    degree = len(series) - 1
    slope = chebyshev.chebder(series)
    angles = np.linspace(0.0, np.pi, 40 * degree + 1)
    values = _at(angles, slope)
    changes = np.flatnonzero(values[:-1] * values[1:] < 0)
    extremes = np.append(np.cos(_bisect(slope, angles[changes], angles[changes + 1])), -1.0)
    if len(extremes) < degree - 1:
        raise ArithmeticError(f"a polynomial of degree {degree} has {len(extremes)} extremes instead of {degree - 1}")
    return extremes[1 - degree :]


def _bisect(series: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """The angle of a root of the series in each interval, at whose ends its signs differ."""
    at_low = _at(low, series)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        same = at_low * _at(middle, series) > 0
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    root: Numbers = (low + high) / 2
    return root


def _at(angles: Numbers, series: Numbers) -> Numbers:
    """Values of a Chebyshev series at x = cos(angle)."""
    found: Numbers = chebyshev.chebval(np.cos(angles), series)
    return found


if __name__ == "__main__":
    write()
