"""The uniform box grid: its shape and the positions of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

AXES = ("x", "y", "z")
FACES = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")

# The largest number of groups of planes of a grid; a smaller limit if the planes have few cells.
_MOST_GROUPS = 4096
_MOST_SMALL_GROUPS = 16
_FEW_CELLS = 4096


@dataclass(frozen=True)
class PlaneGroups:
    """Groups of whole planes across z, in which sums over a field are formed.

    A sum is formed within each group in a fixed order; then the sums of all groups are added exactly. Groups depend on
    the whole grid only. So a sum keeps its bits if the grid is cut between groups and each piece is summed elsewhere.

    Attributes:
        size: planes of a group, a power of two, at least 2; the last group of a grid may have fewer.
    """

    size: int

    @classmethod
    def of(cls, shape: tuple[int, int, int]) -> "PlaneGroups":
        """The groups of a whole grid; ``shape``: (nz, ny, nx)."""
        planes, ny, nx = shape
        size = 2
        while size * _MOST_GROUPS < planes or (size * _MOST_SMALL_GROUPS < planes and size * ny * nx < _FEW_CELLS):
            size *= 2
        return cls(size)

    def starts(self, planes: int) -> NDArray[np.int64]:
        """The first plane of each group of some planes, and their number; the planes begin where a group begins."""
        return np.append(np.arange(0, planes, self.size, dtype=np.int64), planes)


@dataclass(frozen=True)
class Grid:
    """A box of equal cells with temperatures at their centres.

    Vectors are (x, y, z); arrays are indexed [z, y, x], x fastest.

    Attributes:
        cells: number of cells along x, y, z.
        size: edge lengths of the box in m.
        origin: the corner with the smallest coordinates in m.
    """

    cells: tuple[int, int, int]
    size: tuple[float, float, float]
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a field: (nz, ny, nx)."""
        nx, ny, nz = self.cells
        return (nz, ny, nx)

    def face_shape(self, face: int) -> tuple[int, int]:
        """Shape of an array of the cells at a face: (nz, ny) across x, (nz, nx) across y, (ny, nx) across z."""
        nz, ny, nx = self.shape
        return ((nz, ny), (nz, nx), (ny, nx))[face // 2]

    @property
    def spacing(self) -> tuple[float, float, float]:
        """(dx, dy, dz) in m."""
        dx, dy, dz = (length / n for length, n in zip(self.size, self.cells, strict=True))
        return (dx, dy, dz)

    @property
    def cell_count(self) -> int:
        """Number of cells."""
        return prod(self.cells)

    @property
    def groups(self) -> PlaneGroups:
        """The groups of planes for sums, if this is the whole grid."""
        return PlaneGroups.of(self.shape)

    @property
    def cell_volume(self) -> float:
        """Volume of one cell in m³."""
        return prod(self.spacing)

    def part(self, cells: Sequence[tuple[int, int]]) -> "Grid":
        """The grid of a box of these cells: the first and the one after the last, along x, y, z."""
        counts, sizes, origins = [], [], []
        for (first, last), spacing, origin in zip(cells, self.spacing, self.origin, strict=True):
            counts.append(last - first)
            sizes.append((last - first) * spacing)
            origins.append(origin + first * spacing)
        (nx, ny, nz), (lx, ly, lz), (x, y, z) = counts, sizes, origins
        return Grid((nx, ny, nz), (lx, ly, lz), (x, y, z))

    def centres(self, axis: int) -> NDArray[np.float64]:
        """Coordinates in m of the cell centres along an axis (0 = x, 1 = y, 2 = z)."""
        n = self.cells[axis]
        # (2i + 1)/(2n) is rounded once, so the centres of a symmetric box stay symmetric.
        fractions = (2.0 * np.arange(n) + 1.0) / (2.0 * n)
        return np.asarray(self.origin[axis] + self.size[axis] * fractions, dtype=np.float64)

    def planes(self, first: int, count: int) -> "Grid":
        """A grid of ``count`` planes of this one, from plane ``first`` on, with its spacing to the bit."""
        (nx, ny, _), (x, y, _), (*corner, z) = self.cells, self.size, self.origin
        dz, origin = self.spacing[2], (corner[0], corner[1], z + first * self.spacing[2])
        return _Planes((nx, ny, count), (x, y, count * dz), origin, whole=self, first=first)


@dataclass(frozen=True)
class _Planes(Grid):
    """Some planes of a grid, from plane ``first`` on. The first plane of the grid follows its last one."""

    whole: Grid = field(kw_only=True)
    first: int = field(kw_only=True)

    def centres(self, axis: int) -> NDArray[np.float64]:
        """Those of the whole grid, bit for bit."""
        centres = self.whole.centres(axis)
        return centres if axis < 2 else centres[np.arange(self.first, self.first + self.cells[2]) % len(centres)]

    @property
    def spacing(self) -> tuple[float, float, float]:
        """The spacing of the whole grid, bit for bit: size / cells would differ by rounding."""
        return self.whole.spacing
