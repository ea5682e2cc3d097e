"""The condition of each cell at a face, and mixed cells, whose surface several conditions share.

The edges of a patch divide cells. The heat through the face of such a cell is the sum over its parts,

    q = Σ w_j·q_j        w_j: the fraction of the cell's face that condition j has, Σ w_j = 1
                         q_j: the flux of condition j, with the temperature of the cell

so a patch has its exact area at any resolution. The part that no patch covers has the condition of the face.

Cells at surfaces towards void can be mixed too, where a condition varies in space. Faces 6 to 11 stand for the sides
x−, x+, …, z+ of cells towards void.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.scenario import Scenario

Maps = tuple[NDArray[np.uint8], ...]

MIXED = 255  # instead of the number of a condition: several conditions share the cell
TOWARDS_VOID = 6  # the number of side x− of cells towards void; the other sides follow
FACE_SHIFT = 40  # bits for a cell's place on its face
_NEGLIGIBLE = 1e-12  # fraction of a cell's face: rounding leaves this much between patches that meet in the cell


@dataclass(frozen=True, eq=False)
class MixedCells:
    """The mixed cells of all faces, and their parts, cell by cell.

    Attributes:
        places: face·2⁴⁰ + index of the cell on the face, row by row; for sides towards void (6 + side)·2⁴⁰ + index of
            the cell in the flattened grid. Ascending, shape (cells,).
        first: the first part of each cell, and the number of parts; shape (cells + 1,).
        numbers: the condition of each part, shape (parts,).
        fractions: of the cell's face, shape (parts,).
    """

    places: NDArray[np.int64]
    first: NDArray[np.int64]
    numbers: NDArray[np.int64]
    fractions: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in (self.places, self.first, self.numbers, self.fractions))

    def on_face(self, face: int) -> tuple[slice, NDArray[np.int64]]:
        """The range of a face's parts, and for each part the index of its cell on the face.

        ``face`` may be a side towards void.
        """
        first, last = np.searchsorted(self.places, (place_of(face, 0), place_of(face + 1, 0)))
        counts = np.diff(self.first[first : last + 1])
        return slice(int(self.first[first]), int(self.first[last])), np.repeat(
            self.places[first:last] - place_of(face, 0), counts
        )

    @property
    def parts_on_faces(self) -> int:
        """The number of parts on faces of the box; those on sides towards void come after them."""
        return int(self.first[np.searchsorted(self.places, place_of(TOWARDS_VOID, 0))])


def place_of(face: int, cell: int) -> int:
    """The number of a cell in :attr:`MixedCells.places`."""
    return (face << FACE_SHIFT) + cell


NO_MIXED_CELLS = MixedCells(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def lay_out(scenario: Scenario) -> tuple[Maps, MixedCells]:
    """The conditions of cells at faces, and the mixed cells.

    Returns:
        maps: for each face the number of each cell's condition, in the shape of ``Grid.face_shape``, empty if the face
            has no patch: 0 to 5 for the faces in the order of FACES, 6 and above for patches, MIXED for mixed cells.
        mixed: the mixed cells.
    """
    maps = [np.zeros((0, 0), dtype=np.uint8)] * 6
    places, numbers, fractions = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for number, patch in enumerate(scenario.patches, start=6):
        face = FACES.index(patch.face)
        if not maps[face].size:
            maps[face] = np.full(scenario.grid.face_shape(face), face, dtype=np.uint8)
        u, v = patch.coverage(scenario.grid)
        rows, columns = np.flatnonzero(v), np.flatnonzero(u)
        covered = np.outer(v[rows], u[columns])
        cells = rows[:, None] * len(u) + columns
        maps[face].reshape(-1)[cells[covered == 1.0]] = number
        part = covered < 1.0
        places.append(place_of(face, 0) + cells[part])
        numbers.append(np.full(np.count_nonzero(part), number))
        fractions.append(covered[part])
    mixed = _grouped(np.concatenate(places), np.concatenate(numbers), np.concatenate(fractions))
    for face in range(6):
        maps[face].reshape(-1)[mixed.on_face(face)[1]] = MIXED
    return tuple(maps), mixed


def _grouped(places: NDArray[np.int64], numbers: NDArray[np.int64], fractions: NDArray[np.float64]) -> MixedCells:
    """Mixed cells from the parts that patches cover; the rest of each cell has the condition of its face."""
    cells, owners = np.unique(places, return_inverse=True)
    rest = 1.0 - np.bincount(owners, fractions, len(cells))
    left = rest > _NEGLIGIBLE
    places = np.concatenate((cells[left], places))
    numbers = np.concatenate((cells[left] >> FACE_SHIFT, numbers))
    fractions = np.concatenate((rest[left], fractions))
    order = np.lexsort((numbers, places))
    first = np.searchsorted(places[order], cells)
    return MixedCells(cells, np.append(first, len(order)), numbers[order], fractions[order])
