"""Boxes over the cells of a composite body that are wrong after a sweep of 07.

Compiled by numba, because the loops visit every cell.

Positions are in bricks of 4 × 4 × 4 cells; the last brick of an axis may be shorter.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.linked_functions import linked
from heatsim.numba_cache import kept

BRICK = 4
_INTERIOR = 0x80
_CELL_TYPE = 0x7F
# A box grows while each cell that it newly covers costs at most this many cells, including the halo.
_WORTH = 5.0


@kept()
def mark(
    cells: NDArray[np.uint8],
    patch_x: int,
    patch_y: int,
    steps: int,
    wraps: tuple[bool, bool, bool],
    needed: NDArray[np.bool_],
) -> None:
    """Mark the bricks with cells that are wrong after a sweep.

    A cell is wrong if it is next to another cell type, or if stage s of the pipeline uses another type for it: that of
    the first cell of its patch s planes above. The error spreads by one cell in each later step.

    Args:
        cells: one byte per cell, shape (nz, ny, nx).
        patch_x: cells of a patch in x.
        patch_y: cells of a patch in y.
        steps: time steps per sweep.
        wraps: which of z, y, x are periodic.
        needed: one flag per brick; set to True for bricks with wrong cells.
    """
    nz, ny, nx = cells.shape
    for z in range(nz):
        for y in range(ny):
            patch_row = y - y % patch_y
            for x in range(nx):
                byte = cells[z, y, x]
                cell_type = byte & _CELL_TYPE
                reach = steps - 1 if byte < _INTERIOR else -1
                column = x - x % patch_x
                for stage in range(steps):
                    if reach >= steps - 1 - stage:
                        break
                    above = z + stage
                    if above >= nz:
                        if not wraps[0]:
                            break
                        above %= nz
                    if cells[above, patch_row, column] & _CELL_TYPE != cell_type:
                        reach = steps - 1 - stage
                if reach >= 0:
                    _mark_around(needed, z, y, x, reach, (nz, ny, nx), wraps)


@linked()
def _mark_around(
    needed: NDArray[np.bool_],
    z: int,
    y: int,
    x: int,
    reach: int,
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
) -> None:
    for dz in (-reach, 0, reach):
        at_z = _place(z + dz, shape[0], wraps[0])
        for dy in (-reach, 0, reach):
            at_y = _place(y + dy, shape[1], wraps[1])
            for dx in (-reach, 0, reach):
                at_x = _place(x + dx, shape[2], wraps[2])
                needed[at_z // BRICK, at_y // BRICK, at_x // BRICK] = True


@linked()
def _place(i: int, n: int, wraps: bool) -> int:
    """Position i of an axis of n cells, wrapped if the axis is periodic, else clamped."""
    if wraps:
        return i % n
    return min(max(i, 0), n - 1)


@kept()
def cover(
    needed: NDArray[np.bool_],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
    vector: int,
    most_cells: int,
) -> NDArray[np.int32]:
    """Disjoint boxes over all needed bricks, as rows (x, y, z, cells in x, in y, in z, cells with the halo).

    A box begins at the first uncovered brick. It grows by the layer with the lowest cost per newly covered cell, as
    long as it fits in a block's shared memory.

    Args:
        needed: one flag per brick.
        shape: cells of the grid along z, y, x.
        wraps: which of z, y, x are periodic.
        steps: time steps per sweep.
        vector: cells per vector.
        most_cells: largest number of stored cells of a box with its halo.
    """
    taken = np.zeros(needed.shape, dtype=np.bool_)
    rows, used = np.empty((16, 7), dtype=np.int32), 0
    size, trial, start = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    for z in range(needed.shape[0]):
        for y in range(needed.shape[1]):
            for x in range(needed.shape[2]):
                if not needed[z, y, x] or taken[z, y, x]:
                    continue
                start[0], start[1], start[2] = z, y, x
                volume = _grow(needed, taken, start, size, trial, shape, wraps, steps, vector, most_cells)
                taken[z : z + size[0], y : y + size[1], x : x + size[2]] = True
                if used == len(rows):
                    larger = np.empty((2 * used, 7), dtype=np.int32)
                    for number in range(used):
                        for column in range(7):
                            larger[number, column] = rows[number, column]
                    rows = larger
                for axis in range(3):
                    first = start[2 - axis] * BRICK
                    rows[used, axis] = first
                    rows[used, 3 + axis] = min(first + size[2 - axis] * BRICK, shape[2 - axis]) - first
                rows[used, 6] = volume
                used += 1
    return rows[:used]


@linked()
def _grow(
    needed: NDArray[np.bool_],
    taken: NDArray[np.bool_],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    trial: NDArray[np.int64],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
    vector: int,
    most_cells: int,
) -> int:
    """Set ``size`` to the bricks of the box that begins at ``start``; return its cells with the halo.

    ``taken`` marks the bricks of earlier boxes, ``trial`` is overwritten; the others are as for :func:`cover`.
    """
    size[:] = 1
    volume, inside = _volume(start, size, shape, wraps, steps), 1
    while True:
        best, best_axis, best_volume, best_new = np.inf, -1, 0, 0
        for axis in range(3):
            for other in range(3):
                trial[other] = size[other] + (other == axis)
            if start[axis] + trial[axis] > needed.shape[axis]:
                continue
            new = _layer(needed, taken, start, size, axis)
            if new <= 0:
                continue
            larger = _volume(start, trial, shape, wraps, steps)
            if _stored(start, trial, shape, wraps, steps, vector) > most_cells:
                continue
            cost = (larger - volume) / (new * BRICK**3)
            if cost < best:
                best, best_axis, best_volume, best_new = cost, axis, larger, new
        if best_axis < 0 or best > max(_WORTH, volume / (inside * BRICK**3)):
            return int(volume)
        size[best_axis] += 1
        volume = best_volume
        inside += best_new


@linked()
def _volume(
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
) -> int:
    """Cells of a box with its halo."""
    volume = 1
    for axis in range(3):
        volume *= _length(axis, start, size, shape, wraps, steps)
    return volume


@linked()
def _stored(
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
    vector: int,
) -> int:
    """Stored cells of a box with its halo: a plane takes an odd number of vectors."""
    rows = _length(1, start, size, shape, wraps, steps)
    plane = rows * _length(2, start, size, shape, wraps, steps) // vector | 1
    return int(plane * vector * _length(0, start, size, shape, wraps, steps))


@linked()
def _length(
    axis: int,
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
) -> int:
    """Cells of a box with its halo along an axis."""
    first, last = start[axis] * BRICK, min((start[axis] + size[axis]) * BRICK, shape[axis])
    halo = 2 * steps if wraps[axis] else min(steps, first) + min(steps, shape[axis] - last)
    return int(last - first + halo)


@linked()
def _layer(
    needed: NDArray[np.bool_], taken: NDArray[np.bool_], start: NDArray[np.int64], size: NDArray[np.int64], axis: int
) -> int:
    """Number of needed bricks in the next layer of a box along an axis; −1 if another box has a brick of that layer."""
    low, high = start.copy(), start.copy()
    for other in range(3):
        high[other] += size[other]
    low[axis] = high[axis]
    high[axis] += 1
    new = 0
    for z in range(low[0], high[0]):
        for y in range(low[1], high[1]):
            for x in range(low[2], high[2]):
                if taken[z, y, x]:
                    return -1
                new += needed[z, y, x]
    return new
