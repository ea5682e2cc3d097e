"""Contents of the boxes that correction.cu steps: infos of their vectors, and lists of their other cells.

Compiled by numba, because the loops visit every cell.

A cell is plain if all its neighbours are of its own kind. It is a pair if they are of its own kind or of one other:

    way     kind | other kind << 8 | directions of the other << 16        plain cells: the kind twice
    info    one bit for each cell of the vector that has an entry | index of the way of the other cells << 4
    entry   index in the box | directions << 16 | owned << 22 | unlisted << 23 | indices of both kinds' ways << 24, <<
    28

A vector whose cells all have the same way is stepped as a vector. All other cells that are not plain have entries.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.numba_cache import kept

LISTED = 16  # ways of a box
PORTION = 16  # infos per asynchronous copy
PAIRS = 16  # column of a box's row where the numbers of its pairs begin
_INTERIOR = 0x80
_KIND = 0x7F
_MOST_CELLS = 1 << 16  # of a box: an index in the box has 16 bits
_BANKS = 32  # of shared memory


@kept()
def contents(
    boxes: NDArray[np.int32],
    cells: NDArray[np.uint8],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    open_faces: NDArray[np.bool_],
    void: int,
    bits: NDArray[np.uint32],
    vector: int,
    steps: int,
    most_pairs: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint32]]:
    """The data of each box that ``temporal_composite/correction.cu`` needs.

    Args:
        boxes: the first six columns of ``boxes.cover``.
        cells: one byte per cell, shape (nz, ny, nx); empty if there is one kind.
        shape: cells of the grid along z, y, x.
        wraps: which of z, y, x are periodic.
        open_faces: which of x_min … z_max let heat through.
        void: the kind of void if heat passes its surfaces, else −1.
        bits: one bit per cell, 1 for weighted surfaces; empty if there are none.
        vector: cells per vector.
        steps: time steps per sweep.
        most_pairs: largest number of pairs of a box; further ones are listed among the others.

    Returns:
        rows: for each box: for x, y, z the start of its halo, cells of the halo before the box, cells of the box, cells
            in all; vectors from one plane to the next; first entry; first portion of infos; number of others; number of
            pairs in each step.
        ways: the ways of each box.
        infos: the infos of all boxes, whole portions for each.
        entries: the entries of all boxes. Pairs come first; those of the last step precede those that only earlier
            steps need.
    """
    table, used = np.empty(1 << 16, np.uint32), 0
    rows = np.zeros((len(boxes), PAIRS + steps), np.int32)
    ways = np.zeros((len(boxes), LISTED), np.int32)
    pairs, others = np.empty(_MOST_CELLS, np.uint32), np.empty(_MOST_CELLS, np.uint32)
    distances = np.empty(_MOST_CELLS, np.int64)  # of pairs from the box
    special, pair, listed = np.zeros(vector, np.bool_), np.zeros(vector, np.bool_), np.zeros(vector, np.bool_)
    way = np.zeros(vector, np.int64)
    for number in range(len(boxes)):
        for axis in range(3):
            first, size = boxes[number, axis], boxes[number, 3 + axis]
            before, behind = _halo(2 - axis, first, size, shape, wraps, steps)
            rows[number, 4 * axis], rows[number, 4 * axis + 1] = first - before, before
            rows[number, 4 * axis + 2], rows[number, 4 * axis + 3] = size, before + size + behind
        rows[number, 12] = rows[number, 3] // vector * rows[number, 7] | 1
        rows[number, 14] = rows[number - 1, 14] + _portions(rows[number - 1]) if number else 0
    infos = np.zeros(PORTION * (rows[-1, 14] + _portions(rows[-1])), np.uint8)
    place_of = np.empty(_INTERIOR, np.int64)  # of a kind among the ways; −1 where it is not
    for number in range(len(boxes)):
        row = rows[number]
        start_x, before_x, size_x, all_x = row[0:4]
        start_y, before_y, size_y, all_y = row[4:8]
        start_z, before_z, size_z, all_z = row[8:12]
        info = infos[PORTION * row[14] : PORTION * (row[14] + _portions(row))]
        place_of[:] = -1
        used_ways = 1
        if cells.size:
            used_ways = _list_kinds(cells, shape, row, vector, place_of, ways[number], info)
        else:
            place_of[0] = 0
        n_pairs, n_others = 0, 0
        reach = steps - 1
        first_lane = max(before_x - reach, 0) // vector
        for bz in range(max(before_z - reach, 0), min(before_z + size_z + reach, all_z)):
            z = (start_z + bz) % shape[0]
            for by in range(max(before_y - reach, 0), min(before_y + size_y + reach, all_y)):
                y = (start_y + by) % shape[1]
                for lane in range(first_lane, (min(before_x + size_x + reach, all_x) + vector - 1) // vector):
                    first_x = (start_x + lane * vector) % shape[2]
                    if _is_plain(cells, shape, place_of, vector, z, y, first_x):
                        continue
                    found, alike = False, True
                    for i in range(vector):
                        x = first_x + i
                        special[i], pair[i], listed[i], way[i] = _way(
                            cells, shape, wraps, open_faces, void, bits, place_of, z, y, x, first_x
                        )
                        found |= special[i]
                        alike &= special[i] and pair[i] and way[i] == way[0]
                    if not found:
                        continue
                    vector_place = bz * row[12] + by * (all_x // vector) + lane
                    if alike:
                        place = 0
                        while place < used_ways and ways[number, place] != way[0]:
                            place += 1
                        if place < LISTED:
                            ways[number, place] = way[0]
                            used_ways = max(used_ways, place + 1)
                            info[vector_place] = place << 4
                            continue
                    for i in range(vector):
                        if not special[i]:
                            continue
                        bx = lane * vector + i
                        distance = max(
                            before_z - bz, bz - before_z - size_z + 1, before_y - by, by - before_y - size_y + 1,
                            before_x - bx, bx - before_x - size_x + 1, 0,
                        )  # fmt: skip
                        if distance > reach:
                            continue
                        info[vector_place] |= 1 << i
                        entry = vector_place * vector + i | (way[i] >> 16) << 16
                        if distance == 0:
                            entry |= 1 << 22
                        if listed[i]:
                            entry |= place_of[way[i] & 0xFF] << 24 | place_of[way[i] >> 8 & 0xFF] << 28
                        else:
                            entry |= 1 << 23
                        if pair[i] and n_pairs < most_pairs:
                            pairs[n_pairs], distances[n_pairs] = entry, distance
                            n_pairs += 1
                        else:
                            others[n_others] = entry
                            n_others += 1
        if used + n_pairs + n_others > len(table):
            larger = np.empty(2 * (used + n_pairs + n_others), np.uint32)
            larger[:used] = table[:used]
            table = larger
        row[13], row[15] = used, n_others
        for distance in range(steps):
            before = used
            used = _deal(pairs[:n_pairs][distances[:n_pairs] == distance], table, used)
            row[16 : 16 + steps - distance] += used - before
        used = _deal(others[:n_others], table, used)
    return rows, ways, infos, table[:used].copy()


@kept()
def _is_plain(
    cells: NDArray[np.uint8],
    shape: tuple[int, int, int],
    place_of: NDArray[np.int64],
    vector: int,
    z: int,
    y: int,
    first_x: int,
) -> bool:
    """A quick test: True for nearly all vectors of plain cells, False for all others and at ends of the grid."""
    if not cells.size or z in (0, shape[0] - 1) or y in (0, shape[1] - 1) or first_x in (0, shape[2] - vector):
        return False
    byte = cells[z, y, first_x]
    for i in range(1, vector):
        if cells[z, y, first_x + i] != byte:
            return False
    return bool(byte >= _INTERIOR and place_of[byte & _KIND] >= 0)


@kept()
def _way(
    cells: NDArray[np.uint8],
    shape: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    open_faces: NDArray[np.bool_],
    void: int,
    bits: NDArray[np.uint32],
    place_of: NDArray[np.int64],
    z: int,
    y: int,
    x: int,
    first_x: int,
) -> tuple[bool, bool, bool, int]:
    """(the cell is not plain, it is a pair, its box lists its kinds, its way)."""
    at_face, at_end = False, False
    for axis, i in ((2, x), (1, y), (0, z)):
        if not wraps[axis]:
            face = 2 * (2 - axis)
            if i == 0:
                at_face, at_end = at_face or open_faces[face], True
            if i == shape[axis] - 1:
                at_face, at_end = at_face or open_faces[face + 1], True
    if not cells.size:
        return at_face, False, True, 0
    kind = cells[z, y, x] & _KIND
    special = at_face or cells[z, y, x] < _INTERIOR or kind != cells[z, y, first_x] & _KIND or place_of[kind] < 0
    if not special:
        return False, False, True, kind | kind << 8
    other, differing, listed = kind, 0, place_of[kind] >= 0
    for side in range(6):
        if side == 0:
            ends, beside = x == 0, cells[z, y, x - 1]
        elif side == 1:
            ends, beside = x == shape[2] - 1, cells[z, y, (x + 1) % shape[2]]
        elif side == 2:
            ends, beside = y == 0, cells[z, y - 1, x]
        elif side == 3:
            ends, beside = y == shape[1] - 1, cells[z, (y + 1) % shape[1], x]
        elif side == 4:
            ends, beside = z == 0, cells[z - 1, y, x]
        else:
            ends, beside = z == shape[0] - 1, cells[(z + 1) % shape[0], y, x]
        if ends and not wraps[2 - side // 2]:
            continue
        beside &= _KIND
        if beside != kind:
            listed = listed and other in (kind, beside)
            other = beside
            differing |= 1 << side
    listed = listed and place_of[other] >= 0
    weighted = False
    if bits.size:
        number = (z * shape[1] + y) * shape[2] + x
        weighted = (bits[number // 32] >> (number % 32)) & 1 == 1
    return True, listed and not at_end and other != void and not weighted, listed, kind | other << 8 | differing << 16


@kept()
def _portions(row: NDArray[np.int32]) -> int:
    """Portions of the infos of a box."""
    return (int(row[12]) * int(row[11]) + PORTION - 1) // PORTION


@kept()
def _list_kinds(
    cells: NDArray[np.uint8],
    shape: tuple[int, int, int],
    row: NDArray[np.int32],
    vector: int,
    place_of: NDArray[np.int64],
    ways: NDArray[np.int32],
    info: NDArray[np.uint8],
) -> int:
    """List the kinds of a box, at most LISTED, and write them to its infos; return their number."""
    used = 0
    for bz in range(row[11]):
        z = (row[8] + bz) % shape[0]
        for by in range(row[7]):
            y = (row[4] + by) % shape[1]
            for bx in range(row[3]):
                kind = cells[z, y, (row[0] + bx) % shape[2]] & _KIND
                if place_of[kind] < 0 and used < LISTED:
                    place_of[kind] = used
                    ways[used] = kind | kind << 8
                    used += 1
                if bx % vector == 0 and place_of[kind] > 0:
                    info[bz * row[12] + by * (row[3] // vector) + bx // vector] = place_of[kind] << 4
    return used


@kept()
def _halo(
    axis: int, first: int, size: int, shape: tuple[int, int, int], wraps: tuple[bool, bool, bool], steps: int
) -> tuple[int, int]:
    """Cells of the halo before and after a box along an axis."""
    if wraps[axis]:
        return steps, steps
    return min(steps, first), min(steps, shape[axis] - first - size)


@kept()
def _deal(found: NDArray[np.uint32], table: NDArray[np.uint32], used: int) -> int:
    """Append entries to the table so that consecutive ones use different banks; return the new number of entries."""
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
