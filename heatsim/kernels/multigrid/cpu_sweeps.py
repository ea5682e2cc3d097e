"""Sweeps over the rows of a level on the CPU, compiled by numba; see :mod:`heatsim.kernels.multigrid.sweeps`.

Arrays are runs of cells. A function does rows ``first`` to below ``last``, so that several threads can share a level;
sums are left for each row, so that they do not depend on the number of threads. Numbers have the types of the arrays:
T may be float64 where the rest is float32. Neighbours beyond an end are those of the other end, whose link is 0 where
the axis does not wrap.
"""

from typing import Any, NamedTuple

import numpy as np

from heatsim.kernels.cpu.linked_functions import linked
from heatsim.numba_cache import kept

# Unlike in steps, whose bits are compared, sums may be contracted and put into another order.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "fastmath": {"contract", "reassoc"}}
compiled: Any = kept(**_OPTIONS)
inlined: Any = linked(forceinline=True, **_OPTIONS)


class LevelArrays(NamedTuple):
    """A level as compiled functions see it.

    Attributes:
        nz, ny, nx: cells.
        x, y, z: links to the cell before along each axis.
        ground: conductance to known temperatures.
    """

    nz: int
    ny: int
    nx: int
    x: Any
    y: Any
    z: Any
    ground: Any


@inlined
def _beside(level: LevelArrays, row: int) -> Any:
    """The rows before and after along y and z, by their first cells."""
    nz, ny, nx = level.nz, level.ny, level.nx
    z = row // ny
    y = row - z * ny
    south = z * ny + (y - 1 if y > 0 else ny - 1)
    north = z * ny + (y + 1 if y < ny - 1 else 0)
    below = (z - 1 if z > 0 else nz - 1) * ny + y
    above = (z + 1 if z < nz - 1 else 0) * ny + y
    return np.uint64(south * nx), np.uint64(north * nx), np.uint64(below * nx), np.uint64(above * nx)


@inlined
def _gain(
    level: LevelArrays, T: Any, i: Any, west: Any, east: Any, south: Any, north: Any, below: Any, above: Any
) -> Any:
    """What a cell gains: −A·T."""
    t = T[i]
    return (
        level.x[i] * (T[west] - t)
        + level.x[east] * (T[east] - t)
        + level.y[i] * (T[south] - t)
        + level.y[north] * (T[north] - t)
        + level.z[i] * (T[below] - t)
        + level.z[above] * (T[above] - t)
        - level.ground[i] * t
    )


@inlined
def _diagonal(level: LevelArrays, i: Any, east: Any, north: Any, above: Any) -> Any:
    links = level.x[i] + level.x[east] + level.y[i] + level.y[north] + level.z[i] + level.z[above]
    return links + level.ground[i]


@inlined
def _relax(
    level: LevelArrays, T: Any, b: Any, out: Any, tau: Any, i: Any, w: Any, e: Any, s: Any, n: Any, u: Any, o: Any
) -> None:
    """A cell of :func:`smooth`; one without any conductance, such as void, gets 0."""
    diagonal = _diagonal(level, i, e, n, o)
    gain = b[i] + _gain(level, T, i, w, e, s, n, u, o)
    out[i] = T[i] + tau * gain / diagonal if diagonal > 0 else gain - gain


@compiled
def start(level: LevelArrays, b: Any, out: Any, tau: Any, first: int, last: int) -> None:
    """A step of Jacobi from 0: τ·b/diagonal."""
    nx = np.uint64(level.nx)
    for row in range(first, last):
        here = np.uint64(row) * nx
        _, north, _, above = _beside(level, row)
        for x in range(nx):
            east = x + np.uint64(1) if x + np.uint64(1) < nx else np.uint64(0)
            diagonal = _diagonal(level, here + x, here + east, north + x, above + x)
            out[here + x] = tau * b[here + x] / diagonal if diagonal > 0 else b[here + x] - b[here + x]


@compiled
def smooth(level: LevelArrays, T: Any, b: Any, out: Any, tau: Any, first: int, last: int) -> None:
    """A step of Jacobi: T + τ·(b − A·T)/diagonal."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    end = nx - one
    for row in range(first, last):
        here = np.uint64(row) * nx
        south, north, below, above = _beside(level, row)
        second = here + (one if end else np.uint64(0))
        _relax(level, T, b, out, tau, here, here + end, second, south, north, below, above)
        for x in range(one, end):
            i = here + x
            _relax(level, T, b, out, tau, i, i - one, i + one, south + x, north + x, below + x, above + x)
        if end:
            i = here + end
            _relax(level, T, b, out, tau, i, i - one, here, south + end, north + end, below + end, above + end)


@compiled
def residual(level: LevelArrays, T: Any, b: Any, out: Any, first: int, last: int) -> None:
    """Residual b − A·T."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    end = nx - one
    for row in range(first, last):
        here = np.uint64(row) * nx
        south, north, below, above = _beside(level, row)
        for x in range(nx):
            i = here + x
            west, east = here + (x - one if x else end), here + (x + one if x < end else np.uint64(0))
            out[i] = b[i] + _gain(level, T, i, west, east, south + x, north + x, below + x, above + x)


@compiled
def apply(level: LevelArrays, T: Any, out: Any, sums: Any, first: int, last: int) -> None:
    """A·T, and Σ T·(A·T) of each row in float64."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    end = nx - one
    for row in range(first, last):
        here = np.uint64(row) * nx
        south, north, below, above = _beside(level, row)
        for x in range(nx):
            i = here + x
            west, east = here + (x - one if x else end), here + (x + one if x < end else np.uint64(0))
            out[i] = -_gain(level, T, i, west, east, south + x, north + x, below + x, above + x)
        total = 0.0
        for j in range(here, here + nx):
            total += np.float64(T[j]) * np.float64(out[j])
        sums[row] = total


@compiled
def restrict(level: LevelArrays, T: Any, b: Any, out: Any, fx: int, fy: int, fz: int, first: int, last: int) -> None:
    """Residual b − A·T, summed over the cells of each coarse cell; rows are those of the coarse level."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    end = nx - one
    coarse_ny, coarse_nx = (level.ny + fy - 1) // fy, np.uint64((level.nx + fx - 1) // fx)
    half = np.uint64(fx - 1)
    for row in range(first, last):
        z = row // coarse_ny
        y = row - z * coarse_ny
        there = np.uint64(row) * coarse_nx
        for j in range(there, there + coarse_nx):
            out[j] = 0
        for fine_z in range(z * fz, min((z + 1) * fz, level.nz)):
            for fine_y in range(y * fy, min((y + 1) * fy, level.ny)):
                fine = fine_z * level.ny + fine_y
                here = np.uint64(fine) * nx
                south, north, below, above = _beside(level, fine)
                for x in range(nx):
                    i = here + x
                    west, east = here + (x - one if x else end), here + (x + one if x < end else np.uint64(0))
                    gain = _gain(level, T, i, west, east, south + x, north + x, below + x, above + x)
                    out[there + (x >> half)] += b[i] + gain


@compiled
def prolong(level: LevelArrays, T: Any, correction: Any, fx: int, fy: int, fz: int, first: int, last: int) -> None:
    """Add to every cell what its coarse cell has."""
    nx, half = np.uint64(level.nx), np.uint64(fx - 1)
    coarse_ny, coarse_nx = (level.ny + fy - 1) // fy, (level.nx + fx - 1) // fx
    for row in range(first, last):
        here = np.uint64(row) * nx
        z = row // level.ny
        y = row - z * level.ny
        there = np.uint64(((z // fz) * coarse_ny + y // fy) * coarse_nx)
        for x in range(nx):
            T[here + x] += correction[there + (x >> half)]


@compiled
def advance(x: Any, p: Any, r: Any, Ap: Any, alpha: float, first: int, last: int) -> None:
    """Steps x + α·p and r − α·A·p of cells ``first`` to below ``last``."""
    for i in range(np.uint64(first), np.uint64(last)):
        x[i] += alpha * p[i]
        r[i] -= alpha * Ap[i]


@compiled
def direct(p: Any, z: Any, beta: float, first: int, last: int) -> None:
    """The next direction z + β·p, of cells ``first`` to below ``last``."""
    for i in range(np.uint64(first), np.uint64(last)):
        p[i] = z[i] + beta * p[i]


@compiled
def inner(r: Any, z: Any, nx: int, sums: Any, largest: Any, first: int, last: int) -> None:
    """Σ r·z in float64 and max |z| of each row."""
    for row in range(first, last):
        total, most = 0.0, z[0] - z[0]
        for i in range(np.uint64(row * nx), np.uint64((row + 1) * nx)):
            total += np.float64(r[i]) * np.float64(z[i])
        for i in range(np.uint64(row * nx), np.uint64((row + 1) * nx)):
            most = max(most, abs(z[i]))
        sums[row], largest[row] = total, most


@compiled
def extremes(level: LevelArrays, x: Any, lowest: Any, largest: Any, first: int, last: int) -> None:
    """The lowest and largest x of each row among cells that have some conductance."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    for row in range(first, last):
        here = np.uint64(row) * nx
        _, north, _, above = _beside(level, row)
        low, high = np.inf, -np.inf
        for i in range(nx):
            east = here + (i + one if i + one < nx else np.uint64(0))
            if _diagonal(level, here + i, east, north + i, above + i) > 0:
                low, high = min(low, x[here + i]), max(high, x[here + i])
        lowest[row], largest[row] = low, high
