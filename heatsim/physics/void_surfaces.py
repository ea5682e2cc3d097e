"""Cells with surfaces towards void or badly conducting contacts, and the smooth area that each of these stands for.

A surface made of voxels is a staircase, larger than the smooth surface that it stands for: a sphere's is 1.5 times as
large. What passes a face between two cells is therefore weighted with the ratio of smooth and voxel area: the heat that
a surface exchanges with its surroundings is proportional to it, and a contact's resistance R becomes R over the ratio.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cell_faces import Array, FaceAreas, Indices, cells_beside, voxel_areas

_EXACT = 1e-6  # a ratio nearer than this to 0 or 1 is 0 or 1


@dataclass(frozen=True, eq=False)
class Exposure:
    """Cells with surfaces that are weighted.

    Attributes:
        bits: a bit for each cell of the grid, in the order of memory, the lowest bit of a word first; uint32.
        before: the number of these cells before each word; uint32.
        cells: their indices in the flattened grid, ascending; int64, shape (n,).
        area: smooth over voxel area of their surfaces towards x−, x+, y−, y+, z−, z+, shape (n, 6); 1 where there are
            none, and between materials without a contact.
        void: whether heat passes surfaces towards void.
        contacts: whether there are contacts of which the ratio is not 1.
    """

    bits: NDArray[np.uint32]
    before: NDArray[np.uint32]
    cells: Indices
    area: Array
    void: bool
    contacts: bool

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.bits.nbytes + self.before.nbytes + self.area.nbytes

    def ratios(self, cells: Indices, direction: int) -> Array:
        """Smooth over voxel area of cells' surfaces in a direction (0 to 5), 1 for cells without weighted surfaces."""
        place = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return np.where(self.cells[place] == cells, self.area[place, direction], 1.0)

    @cached_property
    def most(self) -> Array:
        """The largest ratio for each of the six directions, at least 1."""
        return np.asarray(self.area.max(axis=0, initial=1.0))


def expose(grid: Grid, surfaces: FaceAreas, material: NDArray[np.uint8], void: int | None) -> Exposure | None:
    """The cells at faces that are weighted, if there are any.

    Args:
        grid: the cells.
        surfaces: faces towards void through which heat passes, and those of contacts.
        material: of each cell, shape (nz, ny, nx).
        void: the number of void among the materials.
    """
    low, high = cells_beside(grid, surfaces.faces)
    axis = surfaces.faces % 3
    ratio = surfaces.areas / voxel_areas(grid, surfaces.faces)
    ratio = np.where(np.abs(ratio - 1.0) <= _EXACT, 1.0, np.where(ratio <= _EXACT, 0.0, ratio))
    below, above = (material.reshape(-1)[cells] for cells in (low, high))
    towards_void = np.zeros(len(low), dtype=bool) if void is None else (below == void) | (above == void)
    contacts = ~towards_void & (ratio != 1.0)
    # Cells of void have no temperature.
    sides = [
        (low, 2 * axis + 1, (towards_void & (below != void)) | contacts),
        (high, 2 * axis, (towards_void & (above != void)) | contacts),
    ]
    cells = np.unique(np.concatenate([side[weighted] for side, _, weighted in sides]))
    if not len(cells):
        return None
    words = -(-grid.cell_count // 32)
    bits = np.zeros(words, dtype=np.uint32)
    np.bitwise_or.at(bits, cells // 32, np.left_shift(np.uint32(1), (cells % 32).astype(np.uint32)))
    counts = np.bincount(cells // 32, minlength=words)
    before = (np.cumsum(counts) - counts).astype(np.uint32)
    area = np.ones((len(cells), 6))
    for side, direction, weighted in sides:
        area[np.searchsorted(cells, side[weighted]), direction[weighted]] = ratio[weighted]
    return Exposure(bits, before, cells, area, bool(towards_void.any()), bool(contacts.any()))
