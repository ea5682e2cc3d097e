"""What the pictures need of a snapshot, read plane by plane so that large grids never have to fit in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.storage.vtkhdf import FieldReader

# A cell smaller than a pixel cannot be seen: a view in space shows at most this many along an axis.
MOST_IN_SURFACES = 128
MOST_IN_SLICES = 512


@dataclass(frozen=True)
class Sections:
    """The three planes through the centre of the box at one time, in K.

    Where an axis has an even number of cells, no cell lies at the centre and its two neighbours are averaged.

    Attributes:
        x: the plane at the centre of x, shape (nz, ny).
        y: the plane at the centre of y, shape (nz, nx).
        z: the plane at the centre of z, shape (ny, nx).
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64]


def _central(n: int) -> list[int]:
    return [n // 2] if n % 2 else [n // 2 - 1, n // 2]


def spread(n: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` of the indices 0 … n − 1, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def read_sections(reader: FieldReader, index: int) -> Sections:
    """Read the three central planes of snapshot ``index``; one plane is in memory at a time."""
    nx, ny, nz = reader.grid.cells
    x = np.empty((nz, ny))
    y = np.empty((nz, nx))
    z = np.zeros((ny, nx))
    for k in range(nz):
        plane = np.asarray(reader.read_plane(index, 2, k), dtype=np.float64)
        x[k] = plane[:, _central(nx)].mean(axis=1)
        y[k] = plane[_central(ny), :].mean(axis=0)
        if k in _central(nz):
            z += plane / len(_central(nz))
    return Sections(x, y, z)


@dataclass(frozen=True)
class Samples:
    """Temperatures at some cell centres: ``indices`` along x, y, z, and ``values`` in K, shape (z, y, x)."""

    indices: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
    values: NDArray[np.float64]


def read_samples(reader: FieldReader, index: int, most: int = MOST_IN_SURFACES) -> Samples:
    """Read snapshot ``index`` at no more than ``most`` cells along each axis."""
    x, y, z = (spread(n, most) for n in reader.grid.cells)
    planes = [np.asarray(reader.read_plane(index, 2, int(k)), dtype=np.float64)[np.ix_(y, x)] for k in z]
    return Samples((x, y, z), np.stack(planes))


def wide_axes(grid: Grid) -> list[int]:
    """The axes (0 = x, 1 = y, 2 = z) with more than one cell: three in space, two in a plane, one along a line."""
    return [axis for axis in range(3) if grid.cells[axis] > 1]


def choose_times(count: int, most: int) -> Sequence[int]:
    """Indices of at most ``most`` of ``count`` snapshots, evenly chosen, the first and the last among them."""
    return [int(index) for index in spread(count, most)]
