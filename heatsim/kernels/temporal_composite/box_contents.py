"""Contents of the boxes that correction.cu steps: infos of their vectors, and lists of their other cells.

Compiled by numba, because the loops visit every cell.

    info    one bit for each cell of the vector that has an entry | index of the stencil of the other cells << 4
    entry   index in the box | directions << 16 | owned << 22 | unlisted << 23
            | indices of the stencils of its type << 24 and of the other type << 28

A cell is plain if all its neighbours have its own cell type. It is a pair if they have its own or one other type, and
it is at no end of the grid, no void surface and no weighted surface. Its stencil holds both types:

    stencil     type | other type << 8 | directions of the other << 16        plain cells: the type twice

A vector whose cells all have the same stencil is stepped as a vector. All other cells that are not plain have entries.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.linked_functions import linked
from heatsim.numba_cache import kept

LISTED = 16  # stencils of a box
PORTION = 16  # infos per asynchronous copy
PAIRS = 16  # column of a box's row where the numbers of its pairs begin
_TYPES = 0x80  # length of tables by cell type
_MOST_CELLS = 1 << 16  # of a box: an index in the box has 16 bits
_BANKS = 32  # of shared memory
_INTERIOR = 0x80
_CELL_TYPE = 0x7F


class StencilBody(NamedTuple):
    """What the contents of boxes depend on.

    Attributes:
        cells: one byte per cell, shape (nz, ny, nx); empty if there is one cell type.
        shape: cells of the grid along z, y, x.
        wraps: which of z, y, x are periodic.
        open_faces: which of x_min … z_max let heat through.
        void: the cell type of void if heat passes its surfaces, else −1.
        bits: one bit per cell, 1 for weighted surfaces; empty if there are none.
        vector: cells per vector.
    """

    cells: NDArray[np.uint8]
    shape: tuple[int, int, int]
    wraps: tuple[bool, bool, bool]
    open_faces: NDArray[np.bool_]
    void: int
    bits: NDArray[np.uint32]
    vector: int


@linked()
def list_types(
    body: StencilBody,
    row: NDArray[np.int32],
    place_of: NDArray[np.int64],
    stencils: NDArray[np.int32],
    info: NDArray[np.uint8],
) -> int:
    """List the stencils of plain cells of a box, at most LISTED, and write them to its infos; return their number.

    ``place_of`` becomes the index of each type among ``stencils``, or −1 if the type is not listed.
    """
    place_of[:] = -1
    if not body.cells.size:
        place_of[0] = 0
        return 1
    cells, shape, vector = body.cells, body.shape, body.vector
    used = 0
    for bz in range(row[11]):
        z = (row[8] + bz) % shape[0]
        for by in range(row[7]):
            y = (row[4] + by) % shape[1]
            for bx in range(row[3]):
                number = cells[z, y, (row[0] + bx) % shape[2]] & _CELL_TYPE
                if place_of[number] < 0 and used < LISTED:
                    place_of[number] = used
                    stencils[used] = number | number << 8
                    used += 1
                if bx % vector == 0 and place_of[number] > 0:
                    info[bz * row[12] + by * (row[3] // vector) + bx // vector] = place_of[number] << 4
    return used


@linked()
def is_plain(
    cells: NDArray[np.uint8],
    shape: tuple[int, int, int],
    vector: int,
    place_of: NDArray[np.int64],
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
    return bool(byte >= _INTERIOR and place_of[byte & _CELL_TYPE] >= 0)


@linked()
def stencil_of(
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
    """(the cell is not plain, it is a pair, its box lists its types, its stencil).

    The arguments are parts of a :class:`StencilBody`: its arrays in a tuple would cost a third of the speed here.
    """
    at_face, at_end = _ends(shape, wraps, open_faces, z, y, x)
    if not cells.size:
        return at_face, False, True, 0
    cell_type = cells[z, y, x] & _CELL_TYPE
    special = (
        at_face
        or cells[z, y, x] < _INTERIOR
        or cell_type != cells[z, y, first_x] & _CELL_TYPE
        or place_of[cell_type] < 0
    )
    if not special:
        return False, False, True, cell_type | cell_type << 8
    other, differing, listed = cell_type, 0, place_of[cell_type] >= 0
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
        beside &= _CELL_TYPE
        if beside != cell_type:
            listed = listed and other in (cell_type, beside)
            other = beside
            differing |= 1 << side
    listed = listed and place_of[other] >= 0
    weighted = False
    if bits.size:
        number = (z * shape[1] + y) * shape[2] + x
        weighted = (bits[number // 32] >> (number % 32)) & 1 == 1
    pair = listed and not at_end and other != void and not weighted
    return True, pair, listed, cell_type | other << 8 | differing << 16


@linked()
def _ends(
    shape: tuple[int, int, int], wraps: tuple[bool, bool, bool], open_faces: NDArray[np.bool_], z: int, y: int, x: int
) -> tuple[bool, bool]:
    """(the cell is at a face that lets heat through, it is at an end of an axis that does not wrap)."""
    at_face, at_end = False, False
    for axis, i in ((2, x), (1, y), (0, z)):
        if not wraps[axis]:
            face = 2 * (2 - axis)
            if i == 0:
                at_face, at_end = at_face or open_faces[face], True
            if i == shape[axis] - 1:
                at_face, at_end = at_face or open_faces[face + 1], True
    return at_face, at_end


@kept()
def contents(
    boxes: NDArray[np.int32],
    body: StencilBody,
    steps: int,
    most_pairs: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint32]]:
    """The data of each box that ``temporal_composite/correction.cu`` needs.

    Args:
        boxes: the first six columns of ``boxes.cover``.
        body: the cells and how they exchange heat.
        steps: time steps per sweep.
        most_pairs: largest number of pairs of a box; further ones are listed among the others.

    Returns:
        rows: for each box: for x, y, z the start of its halo, cells of the halo before the box, cells of the box, cells
            in all; vectors from one plane to the next; first entry; first portion of infos; number of others; number of
            pairs in each step.
        stencils: the stencils of each box.
        infos: the infos of all boxes, whole portions for each.
        entries: the entries of all boxes. Pairs come first; those of the last step precede those that only earlier
            steps need.
    """
    rows = _extents(boxes, body, steps)
    infos = np.zeros(PORTION * (rows[-1, 14] + _portions(rows[-1])), np.uint8)
    stencils = np.zeros((len(boxes), LISTED), np.int32)
    table, used = np.empty(1 << 16, np.uint32), 0
    place_of = np.empty(_TYPES, np.int64)
    pairs, others = np.empty(_MOST_CELLS, np.uint32), np.empty(_MOST_CELLS, np.uint32)
    alike = np.empty(_MOST_CELLS, np.uint32)  # pairs of one distance
    distances = np.empty(_MOST_CELLS, np.int64)  # of pairs from the box
    for number in range(len(boxes)):
        row = rows[number]
        info = infos[PORTION * row[14] : PORTION * (row[14] + _portions(row))]
        used_stencils = list_types(body, row, place_of, stencils[number], info)
        n_pairs, n_others = _list_entries(
            body, steps, most_pairs, row, place_of, stencils[number], used_stencils, info, pairs, distances, others
        )
        if used + n_pairs + n_others > len(table):
            larger = np.empty(2 * (used + n_pairs + n_others), np.uint32)
            for place in range(used):
                larger[place] = table[place]
            table = larger
        row[13], row[15] = used, n_others
        for distance in range(steps):
            chosen, before = 0, used
            for place in range(n_pairs):
                if distances[place] == distance:
                    alike[chosen] = pairs[place]
                    chosen += 1
            used = _deal(alike[:chosen], table, used)
            for step in range(steps - distance):
                row[PAIRS + step] += used - before
        used = _deal(others[:n_others], table, used)
    return rows, stencils, infos, table[:used].copy()


@linked()
def _extents(boxes: NDArray[np.int32], body: StencilBody, steps: int) -> NDArray[np.int32]:
    """The rows of all boxes, with everything but entries, others and pairs."""
    rows = np.zeros((len(boxes), PAIRS + steps), np.int32)
    for number in range(len(boxes)):
        for axis in range(3):
            first, size = boxes[number, axis], boxes[number, 3 + axis]
            before, behind = _halo(2 - axis, first, size, body.shape, body.wraps, steps)
            rows[number, 4 * axis], rows[number, 4 * axis + 1] = first - before, before
            rows[number, 4 * axis + 2], rows[number, 4 * axis + 3] = size, before + size + behind
        rows[number, 12] = rows[number, 3] // body.vector * rows[number, 7] | 1
        rows[number, 14] = rows[number - 1, 14] + _portions(rows[number - 1]) if number else 0
    return rows


@linked()
def _list_entries(
    body: StencilBody,
    steps: int,
    most_pairs: int,
    row: NDArray[np.int32],
    place_of: NDArray[np.int64],
    stencils: NDArray[np.int32],
    used_stencils: int,
    info: NDArray[np.uint8],
    pairs: NDArray[np.uint32],
    distances: NDArray[np.int64],
    others: NDArray[np.uint32],
) -> tuple[int, int]:
    """Complete the stencils and infos of a box, and write its entries; return the numbers of pairs and others."""
    cells, shape, wraps, open_faces, void, bits, size = body
    start_x, before_x, size_x, all_x = row[0:4]
    start_y, before_y, size_y, all_y = row[4:8]
    start_z, before_z, size_z, all_z = row[8:12]
    special, pair, listed = np.zeros((3, size), np.bool_)
    stencil = np.zeros(size, np.int64)
    n_pairs, n_others, reach = 0, 0, steps - 1
    first_lane, end_lane = max(before_x - reach, 0) // size, (min(before_x + size_x + reach, all_x) + size - 1) // size
    for bz in range(max(before_z - reach, 0), min(before_z + size_z + reach, all_z)):
        z = (start_z + bz) % shape[0]
        for by in range(max(before_y - reach, 0), min(before_y + size_y + reach, all_y)):
            y = (start_y + by) % shape[1]
            beside = max(_distance(by, before_y, size_y), _distance(bz, before_z, size_z))
            for lane in range(first_lane, end_lane):
                first_x = (start_x + lane * size) % shape[2]
                if is_plain(cells, shape, size, place_of, z, y, first_x):
                    continue
                found, alike = False, True
                for i in range(size):
                    special[i], pair[i], listed[i], stencil[i] = stencil_of(
                        cells, shape, wraps, open_faces, void, bits, place_of, z, y, first_x + i, first_x
                    )
                    found |= special[i]
                    alike &= special[i] and pair[i] and stencil[i] == stencil[0]
                if not found:
                    continue
                place = bz * row[12] + by * (all_x // size) + lane
                number = _index(stencil[0], stencils, used_stencils) if alike else LISTED
                if number < LISTED:
                    stencils[number] = stencil[0]
                    used_stencils = max(used_stencils, number + 1)
                    info[place] = number << 4
                    continue
                for i in range(size):
                    distance = max(beside, _distance(lane * size + i, before_x, size_x))
                    if not special[i] or distance > reach:
                        continue
                    info[place] |= 1 << i
                    entry = _entry(place * size + i, distance, listed[i], stencil[i], place_of)
                    if pair[i] and n_pairs < most_pairs:
                        pairs[n_pairs], distances[n_pairs] = entry, distance
                        n_pairs += 1
                    else:
                        others[n_others] = entry
                        n_others += 1
    return n_pairs, n_others


@linked()
def _index(stencil: int, stencils: NDArray[np.int32], used_stencils: int) -> int:
    """The index of a stencil among those of a box; ``used_stencils`` if it is not there."""
    number = 0
    while number < used_stencils and stencils[number] != stencil:
        number += 1
    return number


@linked()
def _distance(i: int, before: int, size: int) -> int:
    """Cells between position ``i`` and a box of ``size`` cells with a halo of ``before`` along an axis; 0 within it."""
    return max(before - i, i - before - size + 1, 0)


@linked()
def _entry(index: int, distance: int, listed: bool, stencil: int, place_of: NDArray[np.int64]) -> int:
    """The entry of a cell."""
    entry = index | (stencil >> 16) << 16
    if distance == 0:
        entry |= 1 << 22
    if listed:
        return int(entry | place_of[stencil & 0xFF] << 24 | place_of[stencil >> 8 & 0xFF] << 28)
    return entry | 1 << 23


@linked()
def _portions(row: NDArray[np.int32]) -> int:
    """Portions of the infos of a box."""
    return (int(row[12]) * int(row[11]) + PORTION - 1) // PORTION


@linked()
def _halo(
    axis: int, first: int, size: int, shape: tuple[int, int, int], wraps: tuple[bool, bool, bool], steps: int
) -> tuple[int, int]:
    """Cells of the halo before and after a box along an axis."""
    if wraps[axis]:
        return steps, steps
    return min(steps, first), min(steps, shape[axis] - first - size)


@linked()
def _deal(found: NDArray[np.uint32], table: NDArray[np.uint32], used: int) -> int:
    """Append entries to the table so that consecutive ones use different banks; return the new number of entries."""
    ends = np.zeros(_BANKS + 1, np.int64)
    for entry in found:
        ends[entry % _BANKS + 1] += 1
    for bank in range(_BANKS):
        ends[bank + 1] += ends[bank]
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
