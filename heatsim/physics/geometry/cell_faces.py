"""Faces between cells: their numbers, and those between two materials."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.counted import coordinates
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_SLAB = 2**22  # cells


@dataclass(frozen=True, eq=False)
class FaceAreas:
    """Smooth areas of faces between cells.

    Attributes:
        faces: 3·cell + axis, ascending; cell is the index in the flattened grid of the cell below the face. A face
            between the two ends of a periodic axis has its last cell below.
        areas: in m².
        centres: x, y and z in m of the centre of the surface that each face stands for, shape (n, 3); (0, 3) if they
            are not wanted.
    """

    faces: Indices
    areas: Array
    centres: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def of(self, faces: Indices) -> Array:
        """The areas of faces in m²; 0 for faces that are not listed."""
        if not len(self.faces):
            return np.zeros(len(faces))
        place = np.minimum(np.searchsorted(self.faces, faces), len(self.faces) - 1)
        return np.where(self.faces[place] == faces, self.areas[place], 0.0)


NO_AREAS = FaceAreas(np.zeros(0, dtype=np.int64), np.zeros(0))


def distinct(numbers: Indices) -> Indices:
    """The distinct numbers, none negative, ascending, shape (k,). ``numpy.unique`` hashes, which is slower."""
    last = int(numbers.max(initial=-1))
    if last < 64 * len(numbers):  # dense enough to mark them
        marked = np.zeros(last + 1, bool)
        marked[numbers] = True
        return np.flatnonzero(marked)
    ascending, new = np.sort(numbers), np.ones(len(numbers), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.asarray(ascending[new])


def between(
    grid: Grid, material: NDArray[np.uint8], wanted: NDArray[np.bool_], periodic: tuple[bool, bool, bool]
) -> Indices:
    """All faces between two materials a ≠ b with ``wanted[a, b]``, numbered as in :class:`FaceAreas`; ascending."""
    nz, ny, nx = grid.shape
    found = []
    planes = max(1, _SLAB // (nx * ny))
    for first in range(0, nz, planes):
        here = material[first : first + planes]
        for axis, wraps in enumerate(periodic):
            n, along = grid.cells[axis], 2 - axis
            if n == 1:
                continue
            if axis == 2:
                above = np.concatenate((material[first + 1 : first + planes + 1], material[:1]))[: len(here)]
            else:
                above = np.roll(here, -1, axis=along)
            differs = here != above
            if not wraps and (axis != 2 or first + planes >= nz):
                np.moveaxis(differs, along, 0)[-1] = False
            # Only few cells differ from their neighbour, so only these are looked up.
            cells = np.flatnonzero(differs)
            pairs = wanted[here.reshape(-1)[cells], above.reshape(-1)[cells]]
            found.append(3 * (cells[pairs] + first * ny * nx) + axis)
    return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def voxel_areas(grid: Grid, faces: Indices) -> Array:
    """The areas in m² of the faces of voxels."""
    if grid.uniform:
        dx, dy, dz = grid.spacing
        return np.array([dy * dz, dx * dz, dx * dy])[faces % 3]
    low, found = faces // 3, np.empty(len(faces))
    for axis in range(3):
        across = faces % 3 == axis
        found[across] = grid.side_areas(2 * axis + 1, low[across])
    return found


def face_centres(grid: Grid, faces: Indices) -> Array:
    """The centres of the faces of voxels: x, y and z in m, shape (n, 3)."""
    nx, ny, _ = grid.cells
    low, axis = faces // 3, faces % 3
    centres = np.stack([low % nx, low // nx % ny, low // (nx * ny)], axis=1) + 0.5
    centres[np.arange(len(faces)), axis] += 0.5
    return coordinates(grid, centres)


def cells_beside(grid: Grid, faces: Indices) -> tuple[Indices, Indices]:
    """The cells below and above each face along its axis, in the flattened grid."""
    nx, ny, _ = grid.cells
    low, axis = faces // 3, faces % 3
    stride = np.array([1, nx, nx * ny])[axis]
    n = np.array(grid.cells)[axis]
    place = low // stride % n
    return low, np.where(place == n - 1, low - (n - 1) * stride, low + stride)


def total_areas(
    grid: Grid, surfaces: FaceAreas, material: NDArray[np.uint8], held: PaintedPlanes = EVERYTHING
) -> dict[frozenset[int], float]:
    """The total area in m² of surfaces between materials; keys are pairs of their numbers. Collective.

    Args:
        grid: the whole grid.
        surfaces: the areas.
        material: the material of each cell, in the shape of the planes that are held.
        held: these planes.
    """
    plane = grid.cells[0] * grid.cells[1]
    low, high = cells_beside(grid, surfaces.faces)
    one, other = (material.reshape(-1)[held.local_cells(cells, plane)].astype(np.int64) for cells in (low, high))
    pairs = 256 * np.minimum(one, other) + np.maximum(one, other)
    totals = held.sums(low // plane, pairs, surfaces.areas)
    return {frozenset(divmod(pair, 256)): total for pair, total in totals.items()}
