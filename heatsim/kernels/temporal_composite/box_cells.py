"""Which cells of a box are plain, pairs or neither, for :mod:`heatsim.kernels.temporal_composite.box_contents`.

A cell is plain if all its neighbours have its own cell type. It is a pair if they have its own or one other type, and
it is at no end of the grid, no void surface and no weighted surface. Its stencil holds both types:

    stencil     type | other type << 8 | directions of the other << 16        plain cells: the type twice
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from heatsim.numba_cache import kept

LISTED = 16  # stencils of a box
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


@kept()
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


@kept()
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


@kept()
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


@njit(inline="always")
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
