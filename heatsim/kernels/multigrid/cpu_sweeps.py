"""Sweeps over the rows of a level, and its merged cells, on the CPU: compiled by numba (sweeps.py, operator.py).

Arrays are runs of cells. A function does rows ``first`` to below ``last``, so that several threads can share a level;
sums are left for each row, so that they do not depend on the number of threads. Numbers have the types of the arrays:
T may be float64 where the rest is float32. Neighbours beyond an end are those of the other end, whose link is 0 where
the axis does not wrap.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types

from heatsim.kernels.cpu import lines, linked_functions
from heatsim.kernels.cpu.compiling import Code, compile_all, last_default
from heatsim.kernels.cpu.lines import larger, smaller
from heatsim.kernels.cpu.linked_functions import linked
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept

# Unlike in steps, whose bits are compared, sums may be contracted and put into another order.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "fastmath": {"contract", "reassoc"}}
compiled: Any = kept(**_OPTIONS)
inlined: Any = linked(forceinline=True, **_OPTIONS)
_OTHER_SOURCES = source_key((linked_functions, lines))


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


class Merged(NamedTuple):
    """How the planes of a level merge, as compiled functions see it.

    Attributes:
        first_x, first_y, first_z: the first plane of each coarse plane along each axis, and the number of planes.
        x, y, z: the coarse plane of each plane.
        shift: the bits of x to leave out for its coarse plane where whole axes merge; −1 for pairs.
        soft: see pairs.py.
    """

    first_x: Any
    first_y: Any
    first_z: Any
    x: Any
    y: Any
    z: Any
    shift: int
    soft: float


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


@inlined
def _left(
    level: LevelArrays, T: Any, b: Any, here: Any, x: Any, end: Any, south: Any, north: Any, below: Any, above: Any
) -> Any:
    """The residual b − A·T of cell ``x`` of a row that begins at ``here``; the other rows as of :func:`_beside`."""
    one, i = np.uint64(1), here + x
    west, east = here + (x - one if x else end), here + (x + one if x < end else np.uint64(0))
    return b[i] + _gain(level, T, i, west, east, south + x, north + x, below + x, above + x)


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
    nx = np.uint64(level.nx)
    end = nx - np.uint64(1)
    for row in range(first, last):
        here = np.uint64(row) * nx
        south, north, below, above = _beside(level, row)
        for x in range(nx):
            out[here + x] = _left(level, T, b, here, x, end, south, north, below, above)


@compiled
def remainder(level: LevelArrays, T: Any, b: Any, out: Any, first: int, last: int) -> None:
    """Residual b − A·T in the precision of T."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    end = nx - one
    for row in range(first, last):
        here = np.uint64(row) * nx
        south, north, below, above = _beside(level, row)
        out[here] = _left(level, T, b, here, np.uint64(0), end, south, north, below, above)
        for x in range(one, end):
            i = here + x
            out[i] = b[i] + _gain(level, T, i, i - one, i + one, south + x, north + x, below + x, above + x)
        out[here + end] = _left(level, T, b, here, end, end, south, north, below, above)


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
def restrict(level: LevelArrays, T: Any, b: Any, out: Any, merged: Merged, first: int, last: int) -> None:
    """Residual b − A·T, summed over the cells of each coarse cell; rows are those of the coarse level."""
    nx = np.uint64(level.nx)
    end = nx - np.uint64(1)
    coarse_ny, coarse_nx = len(merged.first_y) - 1, np.uint64(len(merged.first_x) - 1)
    for row in range(first, last):
        z = row // coarse_ny
        y = row - z * coarse_ny
        there = np.uint64(row) * coarse_nx
        for j in range(there, there + coarse_nx):
            out[j] = 0
        for fine_z in range(merged.first_z[z], merged.first_z[z + 1]):
            for fine_y in range(merged.first_y[y], merged.first_y[y + 1]):
                fine = fine_z * level.ny + fine_y
                here = np.uint64(fine) * nx
                south, north, below, above = _beside(level, fine)
                if merged.shift >= 0:
                    for x in range(nx):
                        left = _left(level, T, b, here, x, end, south, north, below, above)
                        out[there + (x >> np.uint64(merged.shift))] += left
                else:
                    for x in range(nx):
                        left = _left(level, T, b, here, x, end, south, north, below, above)
                        out[there + np.uint64(merged.x[x])] += left


@compiled
def prolong(level: LevelArrays, T: Any, correction: Any, merged: Merged, first: int, last: int) -> None:
    """Add to every cell what its coarse cell has."""
    nx = np.uint64(level.nx)
    coarse_ny, coarse_nx = len(merged.first_y) - 1, len(merged.first_x) - 1
    for row in range(first, last):
        here = np.uint64(row) * nx
        z = row // level.ny
        y = row - z * level.ny
        there = np.uint64((merged.z[z] * coarse_ny + merged.y[y]) * coarse_nx)
        if merged.shift >= 0:
            for x in range(nx):
                T[here + x] += correction[there + (x >> np.uint64(merged.shift))]
        else:
            for x in range(nx):
                T[here + x] += correction[there + np.uint64(merged.x[x])]


@compiled
def clear(level: LevelArrays, T: Any, first: int, last: int) -> None:
    """Cells without any conductance get 0."""
    one, nx = np.uint64(1), np.uint64(level.nx)
    for row in range(first, last):
        here = np.uint64(row) * nx
        _, north, _, above = _beside(level, row)
        for x in range(nx):
            east = here + (x + one if x + one < nx else np.uint64(0))
            if not _diagonal(level, here + x, east, north + x, above + x) > 0:
                T[here + x] = 0


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


@inlined
def _number(level: LevelArrays, axis: int, at: int, row: int, column: int) -> Any:
    """A cell by its place along an axis and its places along the two others, the one that changes fastest last."""
    if axis == 0:
        return (row * level.ny + column) * level.nx + at
    if axis == 1:
        return (row * level.ny + at) * level.nx + column
    return (at * level.ny + row) * level.nx + column


@inlined
def _length(level: LevelArrays, axis: int) -> Any:
    return level.nx if axis == 0 else level.ny if axis == 1 else level.nz


@inlined
def _strength(level: LevelArrays, i: int) -> Any:
    """The diagonal of A: the sum of a cell's links and ground."""
    nx, plane = level.nx, level.nx * level.ny
    x, row = i % nx, i // nx
    y, z = row % level.ny, row // level.ny
    east = i + 1 if x + 1 < nx else i - x
    north = i + nx if y + 1 < level.ny else i - y * nx
    above = i + plane if z + 1 < level.nz else i - z * plane
    links = level.x[i] + level.x[east] + level.y[i] + level.y[north] + level.z[i] + level.z[above]
    return links + level.ground[i]


@inlined
def _parts(level: LevelArrays, soft: float, along: Any, first: int, second: int) -> Any:
    """Resistances from the place that a pair stands for to its first and to its second cell."""
    inside = along[second]
    zero = inside - inside
    # Two cells that nothing joins, of which one is void for instance, meet other pairs by their own links alone.
    if not inside > zero:
        return zero, zero
    of_first = larger(_strength(level, first) - inside, zero)
    of_second = larger(_strength(level, second) - inside, zero)
    total = of_first + of_second
    if not total > zero:
        return zero, zero
    most = along.dtype.type(0.5) / inside
    before, after = smaller(of_second / (total * inside), most), smaller(of_first / (total * inside), most)
    if along.dtype.type(soft) * inside < total:
        counts = along.dtype.type(soft) * inside / total
        return counts * before, counts * after
    return before, after


@inlined
def _planes(starts: Any, coarse: int) -> Any:
    """The first plane of a coarse plane and the one after its last, and the same of the coarse plane before."""
    last = len(starts) - 1
    before, end_before = (starts[coarse - 1], starts[coarse]) if coarse > 0 else (starts[last - 1], starts[last])
    return starts[coarse], starts[coarse + 1], before, end_before


@inlined
def _tube(level: LevelArrays, soft: float, along: Any, axis: int, planes: Any, row: int, column: int) -> Any:
    """The link from the coarse plane before to a coarse plane, through one tube; between single cells their own."""
    here, end, before, end_before = planes
    i = _number(level, axis, here, row, column)
    between = along[i]
    if end == here + 1 and end_before == before + 1:
        return between
    # The plane before the only one is itself.
    if not between > 0 or here == before:
        return between - between
    one = along.dtype.type(1.0)
    resistance = one / between
    if here + 1 < end:
        resistance += _parts(level, soft, along, i, _number(level, axis, here + 1, row, column))[0]
    if before + 1 < end_before:
        first, second = (_number(level, axis, before, row, column), _number(level, axis, before + 1, row, column))
        resistance += _parts(level, soft, along, first, second)[1]
    return one / resistance


@inlined
def _end(level: LevelArrays, soft: float, along: Any, axis: int, planes: Any, here: int, row: int, column: int) -> Any:
    """Whether a cell ends its body along an axis, and what lies between it and the place of its pair then."""
    i, n = _number(level, axis, here, row, column), _length(level, axis)
    is_first = not along[i] > 0
    is_last = not along[_number(level, axis, here + 1 if here + 1 < n else 0, row, column)] > 0
    resistance = along[i] - along[i]
    if is_first and here == planes[0] and here + 1 < planes[1]:
        resistance = _parts(level, soft, along, i, _number(level, axis, here + 1, row, column))[0]
    if is_last and here > planes[0]:
        resistance = _parts(level, soft, along, _number(level, axis, here - 1, row, column), i)[1]
    return is_first or is_last, resistance


@inlined
def _ground(level: LevelArrays, soft: float, of_x: Any, of_y: Any, of_z: Any, x: int, y: int, z: int) -> Any:
    """The ground of a cell as its coarse cell sees it."""
    ground = level.ground[(z * level.ny + y) * level.nx + x]
    if not ground > 0:
        return ground
    along_x, ohms_x = _end(level, soft, level.x, 0, of_x, x, z, y)
    along_y, ohms_y = _end(level, soft, level.y, 1, of_y, y, z, x)
    along_z, ohms_z = _end(level, soft, level.z, 2, of_z, z, y, x)
    number = level.ground.dtype.type
    ends = larger(int(along_x) + int(along_y) + int(along_z), 1)
    return ground / ((ohms_x + ohms_y + ohms_z) / number(ends * ends) * ground + number(1.0))


@compiled
def coarsen(
    level: LevelArrays,
    out: LevelArrays,
    merged: Merged,
    first: int,
    last: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """The operator of the coarse cells in rows ``first`` to below ``last``.

    ``other_sources`` is part of numba's cache key; do not pass it.
    """
    zero, soft = level.ground[0] - level.ground[0], merged.soft
    for row in range(first, last):
        coarse_z = row // out.ny
        of_y, of_z = _planes(merged.first_y, row - coarse_z * out.ny), _planes(merged.first_z, coarse_z)
        for coarse_x in range(out.nx):
            of_x = _planes(merged.first_x, coarse_x)
            link_x = link_y = link_z = ground = zero
            for z in range(of_z[0], of_z[1]):
                for y in range(of_y[0], of_y[1]):
                    link_x += _tube(level, soft, level.x, 0, of_x, z, y)
                    for x in range(of_x[0], of_x[1]):
                        if y == of_y[0]:
                            link_y += _tube(level, soft, level.y, 1, of_y, z, x)
                        if z == of_z[0]:
                            link_z += _tube(level, soft, level.z, 2, of_z, y, x)
                        ground += _ground(level, soft, of_x, of_y, of_z, x, y, z)
            i = row * out.nx + coarse_x
            out.x[i], out.y[i], out.z[i], out.ground[i] = link_x, link_y, link_z, ground


@cache
def compile_cycle(dtype: np.dtype[Any]) -> None:
    """Compile what conjugate gradients with V-cycles need for arrays of a type, on several cores."""
    compile_all(codes(dtype))


def codes(dtype: np.dtype[Any]) -> list[Code]:
    """The functions of :func:`compile_cycle`; the one that takes longest is first."""
    number, long, real = from_dtype(dtype), types.int64, types.float64
    run, exact = types.Array(number, 1, "C"), types.Array(real, 1, "C")
    named: Any = types.NamedTuple
    level = named([long] * 3 + [run] * 4, LevelArrays)
    merged = named([*[types.Array(long, 1, "C")] * 6, long, real], Merged)
    share = (long, long)
    return [
        Code(coarsen, (level, level, merged, *share, last_default(coarsen))),
        Code(residual, (level, exact, run, run, *share)),
        Code(smooth, (level, run, run, run, number, *share)),
        Code(start, (level, run, run, number, *share)),
        Code(restrict, (level, run, run, run, merged, *share)),
        Code(apply, (level, run, run, exact, *share)),
        Code(prolong, (level, run, run, merged, *share)),
        Code(inner, (run, run, long, exact, exact, *share)),
        Code(advance, (exact, run, run, run, real, *share)),
        Code(direct, (run, run, real, *share)),
    ]
