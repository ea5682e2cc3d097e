"""The operator of merged cells on the CPU, compiled by numba; see :mod:`heatsim.kernels.multigrid.operator`."""

from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types

from heatsim.kernels.cpu import lines, linked_functions
from heatsim.kernels.cpu.compiling import Code, compile_all, last_default
from heatsim.kernels.cpu.lines import larger, smaller
from heatsim.kernels.multigrid import cpu_sweeps
from heatsim.kernels.multigrid.cpu_sweeps import LevelArrays, compiled, inlined
from heatsim.kernels.source_key import source_key

_OTHER_SOURCES = source_key((cpu_sweeps, linked_functions, lines))


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
def _parts(level: LevelArrays, along: Any, first: int, second: int) -> Any:
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
    return smaller(of_second / (total * inside), most), smaller(of_first / (total * inside), most)


@inlined
def _tube(level: LevelArrays, along: Any, axis: int, factor: int, here: int, row: int, column: int) -> Any:
    """The link from the pair before to the pair of a cell; of an axis that is not coarsened the cell's own."""
    i, n = _number(level, axis, here, row, column), _length(level, axis)
    between = along[i]
    if factor == 1:
        return between
    if not between > 0 or n <= 2:
        return between - between
    one = along.dtype.type(1.0)
    resistance = one / between
    before = here - 2 if here > 0 else (n - 1) // 2 * 2
    if here + 1 < n:
        resistance += _parts(level, along, i, _number(level, axis, here + 1, row, column))[0]
    if before + 1 < n:
        first, second = (_number(level, axis, before, row, column), _number(level, axis, before + 1, row, column))
        resistance += _parts(level, along, first, second)[1]
    return one / resistance


@inlined
def _end(level: LevelArrays, along: Any, axis: int, factor: int, here: int, row: int, column: int) -> Any:
    """Whether a cell ends its body along an axis, and what lies between it and the place of its pair then."""
    i, n = _number(level, axis, here, row, column), _length(level, axis)
    is_first = not along[i] > 0
    is_last = not along[_number(level, axis, here + 1 if here + 1 < n else 0, row, column)] > 0
    resistance = along[i] - along[i]
    if factor == 2 and here % 2 == 0 and is_first and here + 1 < n:
        resistance = _parts(level, along, i, _number(level, axis, here + 1, row, column))[0]
    if factor == 2 and here % 2 == 1 and is_last:
        resistance = _parts(level, along, _number(level, axis, here - 1, row, column), i)[1]
    return is_first or is_last, resistance


@inlined
def _ground(level: LevelArrays, fx: int, fy: int, fz: int, x: int, y: int, z: int) -> Any:
    """The ground of a cell as its coarse cell sees it."""
    ground = level.ground[(z * level.ny + y) * level.nx + x]
    if not ground > 0:
        return ground
    along_x, ohms_x = _end(level, level.x, 0, fx, x, z, y)
    along_y, ohms_y = _end(level, level.y, 1, fy, y, z, x)
    along_z, ohms_z = _end(level, level.z, 2, fz, z, y, x)
    number = level.ground.dtype.type
    ends = larger(int(along_x) + int(along_y) + int(along_z), 1)
    return ground / ((ohms_x + ohms_y + ohms_z) / number(ends * ends) * ground + number(1.0))


@compiled
def coarsen(
    level: LevelArrays,
    out: LevelArrays,
    fx: int,
    fy: int,
    fz: int,
    first: int,
    last: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """The operator of the coarse cells in rows ``first`` to below ``last``.

    ``other_sources`` is part of numba's cache key; do not pass it.
    """
    zero = level.ground[0] - level.ground[0]
    for row in range(first, last):
        coarse_z = row // out.ny
        first_y, first_z = (row - coarse_z * out.ny) * fy, coarse_z * fz
        for coarse_x in range(out.nx):
            first_x = coarse_x * fx
            link_x = link_y = link_z = ground = zero
            for z in range(first_z, smaller(first_z + fz, level.nz)):
                for y in range(first_y, smaller(first_y + fy, level.ny)):
                    link_x += _tube(level, level.x, 0, fx, first_x, z, y)
                    for x in range(first_x, smaller(first_x + fx, level.nx)):
                        if y == first_y:
                            link_y += _tube(level, level.y, 1, fy, first_y, z, x)
                        if z == first_z:
                            link_z += _tube(level, level.z, 2, fz, first_z, y, x)
                        ground += _ground(level, fx, fy, fz, x, y, z)
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
    factors, share = (long, long, long), (long, long)
    return [
        Code(coarsen, (level, level, *factors, *share, last_default(coarsen))),
        Code(cpu_sweeps.residual, (level, exact, run, run, *share)),
        Code(cpu_sweeps.smooth, (level, run, run, run, number, *share)),
        Code(cpu_sweeps.start, (level, run, run, number, *share)),
        Code(cpu_sweeps.restrict, (level, run, run, run, *factors, *share)),
        Code(cpu_sweeps.apply, (level, run, run, exact, *share)),
        Code(cpu_sweeps.prolong, (level, run, run, *factors, *share)),
        Code(cpu_sweeps.inner, (run, run, long, exact, exact, *share)),
        Code(cpu_sweeps.advance, (exact, run, run, run, real, *share)),
        Code(cpu_sweeps.direct, (run, run, real, *share)),
    ]
