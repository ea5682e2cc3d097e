"""How the fast CPU kernels do several steps at a time: tiles march along z inside the cache of a core.

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

Memory is read once and written once for S steps. What a step does with the rows is the business of the kernel, which
supplies two functions to :func:`sweeping`. Arrays are pointers there (plan.py).

A plan (plan.py) has at least these fields:

    nz, ny, nx                          number of cells
    periodic_x, periodic_y, periodic_z  which axes wrap
    steps                               number of steps of the call
    sweeps                              number of sweeps that share the steps
    workers                             number of threads that share the tiles
    tile_y, tile_z                      rows and planes that a tile writes
    rows                                rows that are stepped while they are in the first-level cache
    stride                              cells from one row to the next in the ring
    margin                              cells before the first row of the ring
"""

from typing import Any, NamedTuple

from heatsim.kernels.cpu.lines import compiled, copy_row, larger, smaller, wrap
from heatsim.kernels.cpu.plan import memory_of, record_in


class MarchTile(NamedTuple):
    """The rows and planes that a tile writes, and the steps of the call that the sweep does."""

    first_y: int
    end_y: int
    first_z: int
    end_z: int
    first_step: int
    end_step: int


class RowBlock(NamedTuple):
    """Some rows of a plane before and after a step.

    Attributes:
        z, y: the plane and the first row; beyond an end of a periodic axis they are the halo's.
        size: number of rows, which lie one after the other in the grid.
        below, here, above: where the first row begins in the ring, in the planes below, here and above.
        new: where the first row begins in the array of new values.
        new_stride: cells from one row to the next there.
    """

    z: int
    y: int
    size: int
    below: int
    here: int
    above: int
    new: int
    new_stride: int


def sweeping(fields: tuple[str, ...], advance_rows: Any, complete_plane: Any) -> Any:
    """A compiled function that does one worker's share of some sweeps.

    With several workers, all must finish a sweep before the next begins. Its arguments:

        numbers      those of the call's plan
        field        the temperatures before the first sweep, a 1-d array. Even sweeps read it, odd ones write it.
        other        an array of the same size. Even sweeps write it, odd ones read it.
        first_sweep  the first sweep
        end_sweep    one after the last sweep
        memory       memory for a tile's levels, initially zero
        worker       the worker's number

    Args:
        fields: of the plan.
        advance_rows: (plan, tile, step, rows, ring, T_new) does a step of some rows.
        complete_plane: (plan, ring, start, z, from_y, to_y) is called when rows of a plane of the ring are new;
            ``start`` is where row 0 begins.
    """
    plan_of = record_in(fields)

    @compiled
    def sweep_tiles(
        numbers: Any, field: Any, other: Any, first_sweep: int, end_sweep: int, memory: Any, worker: int
    ) -> None:
        plan, T, T_new, ring = plan_of(numbers), memory_of(field), memory_of(other), memory_of(memory)
        tiles_y, tiles_z = -(-plan.ny // plan.tile_y), -(-plan.nz // plan.tile_z)
        for sweep in range(first_sweep, end_sweep):
            steps = (plan.steps * sweep // plan.sweeps, plan.steps * (sweep + 1) // plan.sweeps)
            for number in range(worker, tiles_y * tiles_z, plan.workers):
                y, z = number % tiles_y * plan.tile_y, number // tiles_y * plan.tile_z
                tile = MarchTile(
                    y, smaller(y + plan.tile_y, plan.ny), z, smaller(z + plan.tile_z, plan.nz), steps[0], steps[1]
                )
                source, target = (T, T_new) if sweep % 2 == 0 else (T_new, T)
                march(plan, tile, source, target, ring)

    @compiled
    def march(plan: Any, tile: MarchTile, T: Any, T_new: Any, ring: Any) -> None:
        """Move one tile through all planes."""
        nz, ny, nx, periodic_y, periodic_z = plan.nz, plan.ny, plan.nx, plan.periodic_y, plan.periodic_z
        first_y, end_y, first_z, end_z, first_step, end_step = tile
        stride, steps = plan.stride, end_step - first_step
        # A level has three planes; row y of a plane begins at origin + y * stride.
        plane = (end_y - first_y + 2 * steps + 2) * stride
        origin = plan.margin - (first_y - steps - 1) * stride

        for p in range(first_z - steps, end_z + steps):
            for stage in range(-1, steps):
                # 1. Stage −1 loads plane p to level 0, with the whole halo.
                # 2. Each other stage advances one plane by one step: the plane below that of the previous stage.
                z, halo = p - 1 - stage, steps - 1 - stage
                if z < first_z - halo or z >= end_z + halo or not (periodic_z or 0 <= z < nz):
                    continue
                level = origin + 3 * stage * plane
                here, next_level = level + z % 3 * plane, level + 3 * plane + z % 3 * plane
                below = level + (z - 1) % 3 * plane if periodic_z or z > 0 else here
                above = level + (z + 1) % 3 * plane if periodic_z or z < nz - 1 else here
                from_y, to_y = _rows(first_y, end_y, halo, ny, periodic_y)
                if stage < 0:
                    for y in range(from_y, to_y):
                        copy_row(T, (wrap(z, nz) * ny + wrap(y, ny)) * nx, ring, next_level + y * stride, nx)
                    set_row_ends(plan, ring, next_level + from_y * stride, to_y - from_y)
                else:
                    # 3. The last stage writes to memory.
                    last = halo == 0
                    target = T_new if last else ring
                    y = from_y
                    while y < to_y:
                        # Rows that lie one after the other in the grid too, where a periodic axis ends.
                        size, at = smaller(smaller(plan.rows, to_y - y), ny - wrap(y, ny)), y * stride
                        new, new_stride = ((z * ny + y) * nx, nx) if last else (next_level + at, stride)
                        rows = RowBlock(z, y, size, below + at, here + at, above + at, new, new_stride)
                        advance_rows(plan, tile, first_step + stage, rows, ring, target)
                        if not last:
                            set_row_ends(plan, ring, new, size)
                        y += size
                if halo > 0:
                    set_end_rows(plan, ring, next_level, from_y, to_y)
                    complete_plane(plan, ring, next_level, z, from_y, to_y)

    return sweep_tiles


@compiled
def _rows(first: int, end: int, halo: int, n: int, periodic: bool) -> Any:
    """The rows of a tile with ``halo`` more at both sides, clipped to the grid if it is not periodic."""
    if periodic:
        return first - halo, end + halo
    return larger(first - halo, 0), smaller(end + halo, n)


@compiled
def set_row_ends(plan: Any, ring: Any, start: int, rows: int) -> None:
    """Set the cells before and after each row: the neighbours of its first and last cell."""
    nx, stride, periodic = plan.nx, plan.stride, plan.periodic_x
    for row in range(start, start + rows * stride, stride):
        first, last = ring[row], ring[row + nx - 1]
        ring[row - 1] = last if periodic else first
        ring[row + nx] = first if periodic else last


@compiled
def set_end_rows(plan: Any, ring: Any, plane: int, from_y: int, to_y: int) -> None:
    """Copy the outermost rows beyond the ends in y, unless y is periodic."""
    nx, stride, first, last = plan.nx, plan.stride, plane, plane + (plan.ny - 1) * plan.stride
    if not plan.periodic_y and from_y == 0:
        copy_row(ring, first, ring, first - stride, nx)
    if not plan.periodic_y and to_y == plan.ny:
        copy_row(ring, last, ring, last + stride, nx)
