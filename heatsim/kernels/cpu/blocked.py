"""The fast CPU kernel: tiles of rows march along z, several steps at a time, inside the cache of a core.

A tile owns rows in y and planes in z, and is whole in x. Level s holds the tile after s steps, as a ring of three
planes. In the iteration in which plane p arrives from memory at level 0,

        stage 0    advances plane p - 1 from 0 to 1 steps; the plane above it has just arrived
        stage 1    advances plane p - 2 from 1 to 2 steps; the plane above it has just left stage 0
        ...
        stage S-1  advances plane p - S from S-1 to S steps and writes it to memory

        y   h h h h h h h h h h h h h h h h     halo rows: each stage needs one fewer; they are computed here and by the
            +-------------------------------+   adjacent tile, so that threads do not wait for each other
            |  rows that the tile writes    |
            +-------------------------------+
            h h h h h h h h h h h h h h h h     at an end of the box: one row, a copy of the outermost cells

A row in the ring has one more cell at each end, the neighbour of its first or last cell, and is padded to whole cache
lines. So a plane is one contiguous run of cells, which the compiler vectorises without special cases at row ends.

Memory is read once and written once for S steps. Results have the same bits as the NumPy oracle, for all tiles, threads
and numbers of steps per call: no fastmath, no fma, and the tile that owns a cell adds its heat to the ledger once per
step, in the order of steps.
"""

from typing import Any, NamedTuple

from numba import njit

from heatsim.kernels.cpu import rows
from heatsim.kernels.cpu.rows import (
    INCREMENTS,
    OPTIONS,
    SEVEN_TERM,
    STOCHASTIC,
    add_face_column,
    add_face_row,
    add_increments,
    compiled,
    copy_row,
    round_increments,
    sum_increments,
    sum_seven_term,
    wrap,
)
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept

_OTHER_SOURCES = source_key((rows,))


class BlockPlan(NamedTuple):
    """Data that all sweeps of a call share.

    Attributes:
        nz, ny, nx: number of cells.
        periodic_x, periodic_y, periodic_z: which axes wrap.
        scheme: an index of :data:`heatsim.physics.coefficients.SCHEMES`.
        first_step: the number of the call's first step.
        c: c0…c6, shape (steps, 7).
        f, g: the faces' terms, shape (steps, 6).
        x_min, x_max, y_min, y_max, z_min, z_max: the ledger's sums; empty if not recorded.
        sweeps: number of sweeps that share the steps.
        workers: number of threads that share the tiles.
        tile_y, tile_z: rows and planes that a tile writes.
        rows: rows that are summed, then finished while they are still in the first-level cache.
        stride: cells from one row to the next in the ring.
        margin: cells before the first row of the ring.
    """

    nz: int
    ny: int
    nx: int
    periodic_x: bool
    periodic_y: bool
    periodic_z: bool
    scheme: int
    first_step: int
    c: Any
    f: Any
    g: Any
    x_min: Any
    x_max: Any
    y_min: Any
    y_max: Any
    z_min: Any
    z_max: Any
    sweeps: int
    workers: int
    tile_y: int
    tile_z: int
    rows: int
    stride: int
    margin: int


class BlockTile(NamedTuple):
    """The rows and planes that a tile writes, and the steps of the call that the sweep does."""

    first_y: int
    end_y: int
    first_z: int
    end_z: int
    first_step: int
    end_step: int


@kept(**OPTIONS)
def advance(
    plan: BlockPlan,
    T: Any,
    T_new: Any,
    first_sweep: int,
    end_sweep: int,
    ring: Any,
    worker: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """Do one worker's share of some sweeps. With several workers, all must finish a sweep before the next begins.

    Args:
        plan: the data of the call.
        T: the field before the call's first sweep, a 1-d array. Even sweeps read it, odd ones write it.
        T_new: an array of the same size. Even sweeps write it, odd ones read it.
        first_sweep: the first sweep.
        end_sweep: one after the last sweep.
        ring: memory for a tile's levels, initially zero.
        worker: the worker's number.
        other_sources: part of numba's cache key; do not pass it.
    """
    steps, tiles_y, tiles_z = len(plan.f), -(-plan.ny // plan.tile_y), -(-plan.nz // plan.tile_z)
    for sweep in range(first_sweep, end_sweep):
        for number in range(worker, tiles_y * tiles_z, plan.workers):
            y, z = number % tiles_y * plan.tile_y, number // tiles_y * plan.tile_z
            ends = (min(y + plan.tile_y, plan.ny), min(z + plan.tile_z, plan.nz))
            tile = BlockTile(y, ends[0], z, ends[1], steps * sweep // plan.sweeps, steps * (sweep + 1) // plan.sweeps)
            if sweep % 2 == 0:
                _march(plan, tile, T, T_new, ring)
            else:
                _march(plan, tile, T_new, T, ring)


@compiled
def _march(plan: BlockPlan, tile: BlockTile, T: Any, T_new: Any, ring: Any) -> None:
    """Move one tile through all planes."""
    nz, ny, nx, periodic_y, periodic_z = plan.nz, plan.ny, plan.nx, plan.periodic_y, plan.periodic_z
    first_y, end_y, first_z, end_z, first_step, end_step = tile
    stride, steps = plan.stride, end_step - first_step
    # A level has three planes; row y of a plane begins at origin + y * stride.
    plane = (end_y - first_y + 2 * steps + 2) * stride
    origin = plan.margin - (first_y - steps - 1) * stride

    for p in range(first_z - steps, end_z + steps):
        # 1. Load plane p to level 0, with the whole halo.
        if periodic_z or 0 <= p < nz:
            from_y, to_y = _rows(first_y, end_y, steps, ny, periodic_y)
            _load_rows(plan, T, wrap(p, nz), ring, origin + p % 3 * plane, from_y, to_y)

        # 2. Each stage advances one plane by one step: the plane below that of the previous stage.
        for stage in range(steps):
            z, halo = p - 1 - stage, steps - 1 - stage
            if z < first_z - halo or z >= end_z + halo or not (periodic_z or 0 <= z < nz):
                continue
            step, level = first_step + stage, origin + 3 * stage * plane
            here = level + z % 3 * plane
            below = level + (z - 1) % 3 * plane if periodic_z or z > 0 else here
            above = level + (z + 1) % 3 * plane if periodic_z or z < nz - 1 else here
            from_y, to_y = _rows(first_y, end_y, halo, ny, periodic_y)
            for y in range(from_y, to_y, plan.rows):
                rows, at = min(plan.rows, to_y - y), y * stride
                planes = (below + at, here + at, above + at)
                if halo == 0:
                    # 3. The last stage writes to memory, row by row.
                    new = (z * ny + y) * nx
                    _sum_rows(plan, step, ring, planes, T_new, new, nx, (rows, nx))
                    _finish_rows(plan, tile, step, ring, here + at, T_new, new, nx, z, y, rows)
                else:
                    # 4. The others write to the next level in one run; the padding between rows is written but not
                    # read.
                    new = here + 3 * plane + at
                    _sum_rows(plan, step, ring, planes, ring, new, stride, (1, (rows - 1) * stride + nx))
                    _finish_rows(plan, tile, step, ring, here + at, ring, new, stride, z, y, rows)
                    _set_row_ends(plan, ring, new, rows)
            if halo > 0:
                _set_end_rows(plan, ring, here + 3 * plane, from_y, to_y)


@njit(inline="always")
def _rows(first: int, end: int, halo: int, n: int, periodic: bool) -> Any:
    """The rows of a tile with ``halo`` more at both sides, clipped to the grid if it is not periodic."""
    if periodic:
        return first - halo, end + halo
    return max(first - halo, 0), min(end + halo, n)


@compiled
def _load_rows(plan: BlockPlan, T: Any, z: int, ring: Any, plane: int, from_y: int, to_y: int) -> None:
    """Copy rows of a plane of the field to level 0."""
    for y in range(from_y, to_y):
        copy_row(T, (z * plan.ny + wrap(y, plan.ny)) * plan.nx, ring, plane + y * plan.stride, plan.nx)
    _set_row_ends(plan, ring, plane + from_y * plan.stride, to_y - from_y)
    _set_end_rows(plan, ring, plane, from_y, to_y)


@compiled
def _set_row_ends(plan: BlockPlan, ring: Any, start: int, rows: int) -> None:
    """Set the cells before and after each row: the neighbours of its first and last cell."""
    nx, stride, periodic = plan.nx, plan.stride, plan.periodic_x
    for row in range(start, start + rows * stride, stride):
        first, last = ring[row], ring[row + nx - 1]
        ring[row - 1] = last if periodic else first
        ring[row + nx] = first if periodic else last


@compiled
def _set_end_rows(plan: BlockPlan, ring: Any, plane: int, from_y: int, to_y: int) -> None:
    """Copy the outermost rows beyond the ends in y, unless y is periodic."""
    nx, stride, first, last = plan.nx, plan.stride, plane, plane + (plan.ny - 1) * plan.stride
    if not plan.periodic_y and from_y == 0:
        copy_row(ring, first, ring, first - stride, nx)
    if not plan.periodic_y and to_y == plan.ny:
        copy_row(ring, last, ring, last + stride, nx)


@compiled
def _sum_rows(
    plan: BlockPlan, step: int, ring: Any, planes: Any, T_new: Any, new: int, new_stride: int, runs: Any
) -> None:
    """Sum over neighbours; ``planes`` are the starts of the rows in the planes below, here and above."""
    below, here, above = planes
    around = (below, here - plan.stride, here, here + plan.stride, above)
    if plan.scheme == SEVEN_TERM:
        sum_seven_term(plan.c[step], ring, around, plan.stride, T_new, new, new_stride, runs)
    else:
        sum_increments(plan.c[step], ring, around, plan.stride, T_new, new, new_stride, runs)


@compiled
def _finish_rows(
    plan: BlockPlan,
    tile: BlockTile,
    step: int,
    T: Any,
    here: int,
    T_new: Any,
    new: int,
    new_stride: int,
    z: int,
    y: int,
    rows: int,
) -> None:
    """Make new values from the sums of some rows. The heat of rows that the tile owns is added to the ledger."""
    nz, ny, nx, stride, f, g = plan.nz, plan.ny, plan.nx, plan.stride, plan.f[step], plan.g[step]
    first_owned, end_owned = (tile.first_y, tile.end_y) if tile.first_z <= z < tile.end_z else (0, 0)
    z = wrap(z, nz)
    # Faces in the order of stencil.cuh, so that edges and corners have the same bits.
    add_face_column(f[0], g[0], T, here, stride, T_new, new, new_stride, rows)
    add_face_column(f[1], g[1], T, here + nx - 1, stride, T_new, new + nx - 1, new_stride, rows)
    inside = 0 < z < nz - 1 and y > 0 and y + rows < ny
    if inside and plan.scheme == SEVEN_TERM and plan.x_min.size == 0 and plan.x_max.size == 0:
        return
    for row in range(rows):
        i, out, y_here = here + row * stride, new + row * new_stride, wrap(y + row, ny)
        owned = first_owned <= y + row < end_owned
        if owned and plan.x_min.size:
            plan.x_min[z, y_here] += f[0] - g[0] * T[i]
        if owned and plan.x_max.size:
            plan.x_max[z, y_here] += f[1] - g[1] * T[i + nx - 1]
        if y_here == 0:
            add_face_row(f[2], g[2], T, i, T_new, out, nx, plan.y_min, z, owned)
        if y_here == ny - 1:
            add_face_row(f[3], g[3], T, i, T_new, out, nx, plan.y_max, z, owned)
        if z == 0:
            add_face_row(f[4], g[4], T, i, T_new, out, nx, plan.z_min, y_here, owned)
        if z == nz - 1:
            add_face_row(f[5], g[5], T, i, T_new, out, nx, plan.z_max, y_here, owned)
        if plan.scheme == INCREMENTS:
            add_increments(T, i, T_new, out, nx)
        elif plan.scheme == STOCHASTIC:
            round_increments(T, i, T_new, out, nx, z, y_here, plan.first_step + step)
