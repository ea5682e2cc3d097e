"""Sample cells of a field for 3-D views, and choose the times and axes that pictures show."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Axis, Grid
from heatsim.storage.field_reader import FieldReader

# Cells smaller than a pixel are invisible: a 3-D view shows at most this many along an axis.
MOST_IN_SURFACES = 128
MOST_IN_SLICES = 512


@dataclass(frozen=True)
class Samples:
    """Temperatures and materials at some cells.

    Attributes:
        indices: of the cells along x, y, z.
        values: in K, NaN in void, shape (z, y, x).
        materials: the number of each cell's material, of the same shape.
    """

    indices: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
    values: NDArray[np.float64]
    materials: NDArray[np.uint8]


def read_samples(reader: FieldReader, index: int, most: int = MOST_IN_SURFACES) -> Samples:
    """Read field ``index`` at no more than ``most`` cells along each axis."""
    x, y, z = (spread(n, most) for n in reader.grid.cells)
    planes = [
        np.where(reader.conducting(slice(k, k + 1))[0], reader.read_plane(index, 2, k).astype(np.float64), np.nan)
        for k in z.tolist()
    ]
    labels = [reader.read_materials(slice(k, k + 1))[0][np.ix_(y, x)] for k in z.tolist()]
    return Samples((x, y, z), np.stack([plane[np.ix_(y, x)] for plane in planes]), np.stack(labels))


def spread(n: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` of the indices 0 … n − 1, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def sample_borders(axis: Axis, indices: NDArray[np.intp]) -> NDArray[np.float64]:
    """The borders between sampled cells, which fill the axis, as fractions of its length; shape (samples + 1,)."""
    if axis.uniform:
        return np.linspace(0.0, 1.0, len(indices) + 1)
    between = 0.5 * (indices[1:] + indices[:-1] + 1)
    return np.asarray(axis.fractions(np.concatenate([[0.0], between, [len(axis)]])))


def wide_axes(grid: Grid) -> list[int]:
    """The axes (0 = x, 1 = y, 2 = z) with more than one cell: three for 3-D grids, two for planes, one for lines."""
    return [axis for axis in range(3) if grid.cells[axis] > 1]


def choose_times(count: int, most: int) -> Sequence[int]:
    """Indices of at most ``most`` of ``count`` fields, evenly spaced, with the first and the last."""
    return [int(index) for index in spread(count, most)]
