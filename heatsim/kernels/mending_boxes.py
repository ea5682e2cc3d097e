"""Boxes over the cells of a composite body that 07 gets wrong, and lists of their cells that are not plain.

Compiled by numba: loops over every cell.

All positions are counted in bricks of 4 × 4 × 4 cells, the last of an axis shorter where it has to be.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

BRICK = 4
_INTERIOR = 0x80
_KIND = 0x7F
# An axis of a box grows as long as each brick that is needed costs at most so many cells, halo included.
_WORTH = 5.0
_MOST_CELLS = 1 << 16  # of a box, as its places have 16 bits
_BANKS = 32  # of shared memory


@njit(cache=True)
def mark(
    cells: NDArray[np.uint8],
    patch_x: int,
    patch_y: int,
    steps: int,
    wraps: tuple[bool, bool, bool],
    needed: NDArray[np.bool_],
) -> None:
    """Mark the bricks with cells that are wrong after a sweep.

    A cell is wrong where it is beside another kind, where a stage of the pipeline takes it for what the first cell of
    its patch is that many planes above, and as far as either spreads in the steps that follow.

    Args:
        cells: a byte a cell, shape (nz, ny, nx).
        patch_x: cells of a patch in x.
        patch_y: cells of a patch in y.
        steps: of a sweep.
        wraps: which of z, y, x are periodic.
        needed: of each brick whether it has wrong cells; entries are added.
    """
    nz, ny, nx = cells.shape
    for z in range(nz):
        for y in range(ny):
            patch_row = y - y % patch_y
            for x in range(nx):
                byte = cells[z, y, x]
                kind = byte & _KIND
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
                    if cells[above, patch_row, column] & _KIND != kind:
                        reach = steps - 1 - stage
                if reach >= 0:
                    _mark_around(needed, z, y, x, reach, (nz, ny, nx), wraps)


@njit(cache=True)
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


@njit(cache=True)
def _place(i: int, n: int, wraps: bool) -> int:
    """A position of an axis of n cells; beyond an end the end, or what is there where it wraps."""
    if wraps:
        return i % n
    return min(max(i, 0), n - 1)


@njit(cache=True)
def cover(
    needed: NDArray[np.bool_],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
    vector: int,
    cell_bytes: int,
    room: int,
) -> NDArray[np.int32]:
    """Disjoint boxes over all bricks needed, as rows (x, y, z, cells in x, in y, in z, cells with the halo).

    Each begins at the first brick that no other has and grows by the layer that costs least for what it brings, within
    what fits a block's shared memory.

    Args:
        needed: bricks.
        shape: of the grid in cells.
        wraps: which of z, y, x are periodic.
        steps: of a sweep.
        vector: cells that lie together.
        cell_bytes: shared memory that a cell takes.
        room: of a block.
    """
    taken = np.zeros(needed.shape, dtype=np.bool_)
    boxes = []
    size, trial, start = np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    for z in range(needed.shape[0]):
        for y in range(needed.shape[1]):
            for x in range(needed.shape[2]):
                if not needed[z, y, x] or taken[z, y, x]:
                    continue
                start[0], start[1], start[2] = z, y, x
                size[:] = 1
                volume, inside = _volume(start, size, shape, wraps, steps), 1
                while True:
                    best, best_axis, best_volume, best_new = np.inf, -1, 0, 0
                    for axis in range(3):
                        trial[:] = size
                        trial[axis] += 1
                        if start[axis] + trial[axis] > needed.shape[axis]:
                            continue
                        new = _layer(needed, taken, start, size, axis)
                        if new <= 0:
                            continue
                        larger = _volume(start, trial, shape, wraps, steps)
                        if _stored(start, trial, shape, wraps, steps, vector) * cell_bytes > room:
                            continue
                        cost = (larger - volume) / (new * BRICK**3)
                        if cost < best:
                            best, best_axis, best_volume, best_new = cost, axis, larger, new
                    if best_axis < 0 or best > max(_WORTH, volume / (inside * BRICK**3)):
                        break
                    size[best_axis] += 1
                    volume = best_volume
                    inside += best_new
                taken[z : z + size[0], y : y + size[1], x : x + size[2]] = True
                ends = [min((start[a] + size[a]) * BRICK, shape[a]) - start[a] * BRICK for a in range(3)]
                boxes.append((x * BRICK, y * BRICK, z * BRICK, ends[2], ends[1], ends[0], volume))
    rows = np.zeros((len(boxes), 7), dtype=np.int32)
    for number, box in enumerate(boxes):
        for column in range(7):
            rows[number, column] = box[column]
    return rows


@njit(cache=True)
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


@njit(cache=True)
def _stored(
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
    vector: int,
) -> int:
    """Cells that a box with its halo takes room for: a plane is an odd number of vectors."""
    rows = _length(1, start, size, shape, wraps, steps)
    plane = rows * _length(2, start, size, shape, wraps, steps) // vector | 1
    return plane * vector * _length(0, start, size, shape, wraps, steps)


@njit(cache=True)
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


@njit(cache=True)
def _layer(
    needed: NDArray[np.bool_], taken: NDArray[np.bool_], start: NDArray[np.int64], size: NDArray[np.int64], axis: int
) -> int:
    """Bricks needed in the layer behind a box along an axis; −1 if another box has one of them."""
    low, high = start.copy(), start + size
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


@njit(cache=True)
def entries(
    boxes: NDArray[np.int32],
    cells: NDArray[np.uint8],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    open_faces: NDArray[np.bool_],
    void: int,
    vector: int,
    steps: int,
    most_pairs: int,
) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """The cells of each box that are not plain, as ``mended.cu`` wants them.

    Args:
        boxes: as from ``cover``.
        cells: a byte a cell, shape (nz, ny, nx); empty where there is one kind.
        shape: of the grid in cells.
        wraps: which of z, y, x are periodic.
        open_faces: which of x_min … z_max let heat through.
        void: the kind of void, if heat passes its surfaces; else −1.
        vector: cells that are stepped as what the first of them is.
        steps: of a sweep.
        most_pairs: of a box; more than these are among the others.

    Returns:
        The entries of all boxes, and a row for each box: the first entry, how many are others, how many are pairs in
        each step of the sweep. Pairs come first, those of the last step before those that only earlier ones need.
    """
    table, used = np.empty(1 << 16, np.uint32), 0
    rows = np.zeros((len(boxes), 2 + steps), np.int32)
    pairs, others = np.empty(_MOST_CELLS, np.uint32), np.empty(_MOST_CELLS, np.uint32)
    distances = np.empty(_MOST_CELLS, np.int64)  # of pairs from the box
    at_end, kinds = np.zeros(6, np.bool_), np.zeros(6, np.int64)
    for number in range(len(boxes)):
        start = (boxes[number, 2], boxes[number, 1], boxes[number, 0])
        size = (boxes[number, 5], boxes[number, 4], boxes[number, 3])
        before_z, behind_z = _halo(0, start, size, shape, wraps, steps)
        before_y, behind_y = _halo(1, start, size, shape, wraps, steps)
        before_x, behind_x = _halo(2, start, size, shape, wraps, steps)
        row = before_x + size[2] + behind_x
        plane = (row // vector * (before_y + size[1] + behind_y) | 1) * vector
        reach, n_pairs, n_others = steps - 1, 0, 0
        for dz in range(-min(before_z, reach), size[0] + min(behind_z, reach)):
            z = (start[0] + dz) % shape[0]
            for dy in range(-min(before_y, reach), size[1] + min(behind_y, reach)):
                y = (start[1] + dy) % shape[1]
                for dx in range(-min(before_x, reach), size[2] + min(behind_x, reach)):
                    x = (start[2] + dx) % shape[2]
                    at_end[0], at_end[1] = not wraps[2] and x == 0, not wraps[2] and x == shape[2] - 1
                    at_end[2], at_end[3] = not wraps[1] and y == 0, not wraps[1] and y == shape[1] - 1
                    at_end[4], at_end[5] = not wraps[0] and z == 0, not wraps[0] and z == shape[0] - 1
                    at_face = False
                    for side in range(6):
                        at_face |= at_end[side] and open_faces[side]
                    kind, special = 0, at_face
                    if cells.size:
                        kind = cells[z, y, x] & _KIND
                        special |= cells[z, y, x] < _INTERIOR or kind != cells[z, y, x - x % vector] & _KIND
                    if not special:
                        continue
                    other, differing, pair = kind, 0, not at_face
                    if cells.size:
                        kinds[0], kinds[1] = cells[z, y, x - 1], cells[z, y, (x + 1) % shape[2]]
                        kinds[2], kinds[3] = cells[z, y - 1, x], cells[z, (y + 1) % shape[1], x]
                        kinds[4], kinds[5] = cells[z - 1, y, x], cells[(z + 1) % shape[0], y, x]
                    for side in range(6):
                        pair &= not at_end[side]
                        beside = kinds[side] & _KIND
                        if cells.size and not at_end[side] and beside != kind:
                            pair &= other in (kind, beside)
                            other = beside
                            differing |= 1 << side
                    pair &= other != void
                    distance = max(-dz, dz - size[0] + 1, -dy, dy - size[1] + 1, -dx, dx - size[2] + 1, 0)
                    owned = distance == 0
                    place = (before_z + dz) * plane + (before_y + dy) * row + before_x + dx
                    entry = place | differing << 16 | owned << 22 | other << 24
                    if pair and n_pairs < most_pairs:
                        pairs[n_pairs], distances[n_pairs] = entry, distance
                        n_pairs += 1
                    else:
                        others[n_others] = entry
                        n_others += 1
        if used + n_pairs + n_others > len(table):
            larger = np.empty(2 * (used + n_pairs + n_others), np.uint32)
            larger[:used] = table[:used]
            table = larger
        rows[number, 0], rows[number, 1] = used, n_others
        for distance in range(steps):
            before = used
            used = _deal(pairs[:n_pairs][distances[:n_pairs] == distance], table, used)
            rows[number, 2 : 2 + steps - distance] += used - before
        used = _deal(others[:n_others], table, used)
    return table[:used].copy(), rows


@njit(cache=True)
def _halo(
    axis: int,
    start: tuple[int, int, int],
    size: tuple[int, int, int],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    steps: int,
) -> tuple[int, int]:
    """Cells of the halo before and behind a box along an axis."""
    if wraps[axis]:
        return steps, steps
    return min(steps, start[axis]), min(steps, shape[axis] - start[axis] - size[axis])


@njit(cache=True)
def _deal(found: NDArray[np.uint32], table: NDArray[np.uint32], used: int) -> int:
    """Put entries into the table so that those beside each other lie in different banks; how many there are then."""
    counts = np.zeros(_BANKS + 1, np.int64)
    for entry in found:
        counts[entry % _BANKS + 1] += 1
    ends = np.cumsum(counts)
    order, filled = np.empty(len(found), np.uint32), ends[:-1].copy()
    for entry in found:
        order[filled[entry % _BANKS]] = entry
        filled[entry % _BANKS] += 1
    taken = ends[:-1].copy()
    left = len(found)
    while left:
        for bank in range(_BANKS):
            if taken[bank] < ends[bank + 1]:
                table[used] = order[taken[bank]]
                taken[bank] += 1
                used += 1
                left -= 1
    return used
