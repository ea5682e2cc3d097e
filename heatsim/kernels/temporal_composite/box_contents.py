"""Contents of the boxes that correction.cu steps: infos of their vectors, and lists of their other cells.

Compiled by numba, because the loops visit every cell.

    info    one bit for each cell of the vector that has an entry | index of the stencil of the other cells << 4
    entry   index in the box | directions << 16 | owned << 22 | unlisted << 23
            | indices of the stencils of its type << 24 and of the other type << 28

Stencils, plain cells and pairs: see :mod:`heatsim.kernels.temporal_composite.box_cells`. A vector whose cells all have
the same stencil is stepped as a vector. All other cells that are not plain have entries.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.source_key import source_key
from heatsim.kernels.temporal_composite import box_cells
from heatsim.kernels.temporal_composite.box_cells import LISTED, StencilBody, is_plain, list_types, stencil_of
from heatsim.numba_cache import kept

PORTION = 16  # infos per asynchronous copy
PAIRS = 16  # column of a box's row where the numbers of its pairs begin
_TYPES = 0x80  # length of tables by cell type
_MOST_CELLS = 1 << 16  # of a box: an index in the box has 16 bits
_BANKS = 32  # of shared memory
_OTHER_SOURCES = source_key((box_cells,))


@kept()
def contents(
    boxes: NDArray[np.int32],
    body: StencilBody,
    steps: int,
    most_pairs: int,
    other_sources: str = _OTHER_SOURCES,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint32]]:
    """The data of each box that ``temporal_composite/correction.cu`` needs.

    Args:
        boxes: the first six columns of ``boxes.cover``.
        body: the cells and how they exchange heat.
        steps: time steps per sweep.
        most_pairs: largest number of pairs of a box; further ones are listed among the others.
        other_sources: key of the other compiled sources, so that numba's cache notices their changes.

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
            larger[:used] = table[:used]
            table = larger
        row[13], row[15] = used, n_others
        for distance in range(steps):
            before = used
            used = _deal(pairs[:n_pairs][distances[:n_pairs] == distance], table, used)
            row[16 : 16 + steps - distance] += used - before
        used = _deal(others[:n_others], table, used)
    return rows, stencils, infos, table[:used].copy()


@kept()
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


@kept()
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


@kept()
def _index(stencil: int, stencils: NDArray[np.int32], used_stencils: int) -> int:
    """The index of a stencil among those of a box; ``used_stencils`` if it is not there."""
    number = 0
    while number < used_stencils and stencils[number] != stencil:
        number += 1
    return number


@kept()
def _distance(i: int, before: int, size: int) -> int:
    """Cells between position ``i`` and a box of ``size`` cells with a halo of ``before`` along an axis; 0 within it."""
    return max(before - i, i - before - size + 1, 0)


@kept()
def _entry(index: int, distance: int, listed: bool, stencil: int, place_of: NDArray[np.int64]) -> int:
    """The entry of a cell."""
    entry = index | (stencil >> 16) << 16
    if distance == 0:
        entry |= 1 << 22
    if listed:
        return int(entry | place_of[stencil & 0xFF] << 24 | place_of[stencil >> 8 & 0xFF] << 28)
    return entry | 1 << 23


@kept()
def _portions(row: NDArray[np.int32]) -> int:
    """Portions of the infos of a box."""
    return (int(row[12]) * int(row[11]) + PORTION - 1) // PORTION


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
