"""The fast CPU kernel for bodies of one material: tiles that march along z, several steps at a time (march.py).

Results have the same bits as the NumPy oracle, for all tiles, threads and numbers of steps per call: no fastmath, no
fma, and the tile that owns a cell adds its heat to the ledger once per step, in the order of steps.
"""

from typing import Any

from heatsim.kernels.cpu import graded_lines, lines, linked_functions, march, plan, subnormals
from heatsim.kernels.cpu.graded_lines import GRADED, links_across, links_along, step_graded, sum_graded
from heatsim.kernels.cpu.lines import (
    OPTIONS,
    SEVEN_TERM,
    add_face_column,
    add_face_row,
    add_increments,
    compiled,
    sum_increments,
    sum_seven_term,
    wrap,
)
from heatsim.kernels.cpu.march import MarchTile, RowBlock, sweeping
from heatsim.kernels.cpu.plan import MARCH, behind, doubles_at, reals_at
from heatsim.kernels.cpu.subnormals import flush_subnormals, set_mode
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept

_OTHER_SOURCES = source_key((graded_lines, linked_functions, march, plan, lines, subnormals))


# Fields of a plan besides those of march.py: an index of SCHEMES, c0…c6 and the faces' terms of each step, of shapes
# (steps, 7) and (steps, 6), the ledger's sums; for cells of several widths GRADED, and the place of
# two rows of heat of faces in a worker's memory.
PLAN = (*MARCH, "scheme", "c", "f", "g", "x_min", "x_max", "y_min", "y_max", "z_min", "z_max", *GRADED, "heat")


@compiled
def _advance_rows(plan: Any, tile: MarchTile, step: int, rows: RowBlock, ring: Any, T_new: Any) -> None:
    """Do a step of some rows."""
    nx, stride = plan.nx, plan.stride
    if plan.links_x:
        _advance_graded(plan, tile, step, rows, ring, T_new)
        return
    c = behind(reals_at(plan.c, T_new), 7 * step)
    around = (rows.below, rows.here - stride, rows.here, rows.here + stride, rows.above)
    # In the ring, all rows are one run; the padding between them is written but not read.
    runs = (1, (rows.size - 1) * stride + nx) if rows.new_stride == stride else (rows.size, nx)
    if plan.scheme == SEVEN_TERM:
        sum_seven_term(c, ring, around, stride, T_new, rows.new, rows.new_stride, runs)
    else:
        sum_increments(c, ring, around, stride, T_new, rows.new, rows.new_stride, runs)
    _finish_rows(plan, tile, step, rows, ring, T_new)


@compiled
def _complete_plane(plan: Any, ring: Any, start: int, z: int, from_y: int, to_y: int) -> None:
    """Nothing besides temperatures is kept."""


@compiled
def _finish_rows(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, T_new: Any) -> None:
    """Make new values from the sums of some rows. The heat of rows that the tile owns is added to the ledger."""
    nz, ny, nx, stride = plan.nz, plan.ny, plan.nx, plan.stride
    f, g = behind(reals_at(plan.f, T), 6 * step), behind(reals_at(plan.g, T), 6 * step)
    z, y, count, _, here, _, new, new_stride = rows
    first_owned, end_owned = (tile.first_y, tile.end_y) if tile.first_z <= z < tile.end_z else (0, 0)
    z = wrap(z, nz)
    # Faces in the order of stencil.cuh, so that edges and corners have the same bits.
    add_face_column(f[0], g[0], T, here, stride, T_new, new, new_stride, count)
    add_face_column(f[1], g[1], T, here + nx - 1, stride, T_new, new + nx - 1, new_stride, count)
    inside = 0 < z < nz - 1 and y > 0 and y + count < ny
    if inside and plan.scheme == SEVEN_TERM and plan.x_min == 0 and plan.x_max == 0:
        return
    for row in range(count):
        i, out, y_here = here + row * stride, new + row * new_stride, wrap(y + row, ny)
        owned = first_owned <= y + row < end_owned
        if owned and plan.x_min:
            doubles_at(plan.x_min)[z * ny + y_here] += f[0] - g[0] * T[i]
        if owned and plan.x_max:
            doubles_at(plan.x_max)[z * ny + y_here] += f[1] - g[1] * T[i + nx - 1]
        if y_here == 0:
            sums, recorded = doubles_at(plan.y_min), owned and plan.y_min != 0
            add_face_row(f[2], g[2], T, i, T_new, out, nx, sums, z * nx, recorded)
        if y_here == ny - 1:
            sums, recorded = doubles_at(plan.y_max), owned and plan.y_max != 0
            add_face_row(f[3], g[3], T, i, T_new, out, nx, sums, z * nx, recorded)
        if z == 0:
            sums, recorded = doubles_at(plan.z_min), owned and plan.z_min != 0
            add_face_row(f[4], g[4], T, i, T_new, out, nx, sums, y_here * nx, recorded)
        if z == nz - 1:
            sums, recorded = doubles_at(plan.z_max), owned and plan.z_max != 0
            add_face_row(f[5], g[5], T, i, T_new, out, nx, sums, y_here * nx, recorded)
        if plan.scheme != SEVEN_TERM:
            add_increments(T, i, T_new, out, nx)


@compiled
def _advance_graded(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, T_new: Any) -> None:
    """Do a step of some rows of cells of several widths."""
    nz, ny, nx, stride = plan.nz, plan.ny, plan.nx, plan.stride
    c, along, z = behind(reals_at(plan.c, T), 7 * step), links_along(plan, step, 0, T), wrap(rows.z, nz)
    f, g = behind(reals_at(plan.f, T), 6 * step), behind(reals_at(plan.g, T), 6 * step)
    for x in range(2 * plan.links_width):
        T[plan.heat + x] = -type(T[plan.heat])(0.0)  # changes no bit of any sum
    for row in range(rows.size):
        by, of_row, new = row * stride, rows.y + row, rows.new + row * rows.new_stride
        y, here = wrap(of_row, ny), rows.here + by
        around, across = (
            (rows.below + by, here - stride, here, here + stride, rows.above + by),
            links_across(plan, c, y, z, T),
        )
        if 0 < z < nz - 1 and 0 < y < ny - 1 and nx > 1:
            # Two rows of heat in turn, so that no row waits for what is written for it.
            heat = plan.heat + row % 2 * plan.links_width
            T[heat], T[heat + nx - 1] = f[0] - g[0] * T[here], f[1] - g[1] * T[here + nx - 1]
            step_graded(along, across, heat, T, around, T_new, new, nx)
            if tile.first_z <= rows.z < tile.end_z and tile.first_y <= of_row < tile.end_y:
                if plan.x_min:
                    doubles_at(plan.x_min)[z * ny + y] += T[heat]
                if plan.x_max:
                    doubles_at(plan.x_max)[z * ny + y] += T[heat + nx - 1]
        else:
            sum_graded(along, across, T, around, T_new, new, nx)
            alone = RowBlock(rows.z, of_row, 1, rows.below + by, here, rows.above + by, new, rows.new_stride)
            _finish_rows(plan, tile, step, alone, T, T_new)


_sweep_tiles = sweeping(PLAN, _advance_rows, _complete_plane)


@kept(**OPTIONS)
def advance(
    numbers: Any,
    field: Any,
    other: Any,
    first_sweep: int,
    end_sweep: int,
    memory: Any,
    worker: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """Do one worker's share of some sweeps; see :func:`heatsim.kernels.cpu.march.sweeping`.

    ``other_sources`` is part of numba's cache key; do not pass it.
    """
    mode = flush_subnormals()
    _sweep_tiles(numbers, field, other, first_sweep, end_sweep, memory, worker)
    set_mode(mode)
