"""The parts of a snapshot that pictures need, read plane by plane, so that large grids need not fit in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.storage.field_reader import FieldReader

# Cells smaller than a pixel are invisible: a 3-D view shows at most this many along an axis.
MOST_IN_SURFACES = 128
MOST_IN_SLICES = 512


@dataclass(frozen=True)
class Section:
    """A plane of cells normal to one axis.

    Attributes:
        values: in K, NaN in void; shape (nz, ny) normal to x, (nz, nx) to y, (ny, nx) to z.
        materials: the number of each cell's material, of the same shape.
        place: position along the axis, as a fraction of the box.
    """

    values: NDArray[np.float64]
    materials: NDArray[np.uint8]
    place: float


# Another plane replaces the central one if its temperature range is larger by at least this factor.
_WORTH_LEAVING_THE_CENTRE = 1.15


def spread(n: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` of the indices 0 … n − 1, evenly spaced, with both ends."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def read_sections(
    reader: FieldReader, index: int, places: Mapping[int, float] = MappingProxyType({})
) -> tuple[Section, Section, Section]:
    """The planes normal to x, y and z that show most of snapshot ``index``; one slab is in memory at a time.

    ``places`` may have the coordinate in m of the plane normal to an axis (0 = x), by axis; it then shows the cells
    there.

    This is the central plane of each axis, unless the temperature range on another plane is larger, such as the hot top
    of a plate or the path of a beam. With an even number of cells, the central plane is the mean of the two middle
    ones.
    """
    chosen = [_choose(ranges) for ranges in _ranges(reader, index)]
    grid = reader.grid
    for axis, place in places.items():
        cell = int((place - grid.origin[axis]) / grid.spacing[axis])
        chosen[axis] = [min(max(cell, 0), grid.cells[axis] - 1)]
    x, y, z = (np.zeros(reader.grid.face_shape(face)) for face in (0, 2, 4))
    labels = tuple(np.empty(plane.shape, dtype=np.uint8) for plane in (x, y, z))
    for planes, slab in reader.slabs(index):
        materials = reader.read_materials(planes)
        values = np.where(reader.conducting(planes), slab.astype(np.float64), np.nan)
        x[planes] = values[:, :, chosen[0]].mean(axis=2)
        y[planes] = values[:, chosen[1]].mean(axis=1)
        labels[0][planes] = materials[:, :, chosen[0][0]]
        labels[1][planes] = materials[:, chosen[1][0]]
        for k in chosen[2]:
            if planes.start <= k < planes.stop:
                z += values[k - planes.start] / len(chosen[2])
                labels[2][...] = materials[k - planes.start]
    middles = [(np.mean(picked) + 0.5) / n for picked, n in zip(chosen, reader.grid.cells, strict=True)]
    found = (Section(*parts) for parts in zip((x, y, z), labels, map(float, middles), strict=True))
    return next(found), next(found), next(found)


def _central(n: int) -> list[int]:
    return [n // 2] if n % 2 else [n // 2 - 1, n // 2]


def _ranges(reader: FieldReader, index: int) -> list[NDArray[np.float64]]:
    """The temperature range on each plane normal to x, to y and to z, without void."""
    lows = [np.full(n, np.inf) for n in reader.grid.cells]
    highs = [np.full(n, -np.inf) for n in reader.grid.cells]
    for planes, slab in reader.slabs(index):
        conducts = reader.conducting(planes)
        low, high = np.where(conducts, slab, np.inf), np.where(conducts, slab, -np.inf)
        for axis, others in enumerate(((0, 1), (0, 2))):
            np.minimum(lows[axis], low.min(axis=others), out=lows[axis])
            np.maximum(highs[axis], high.max(axis=others), out=highs[axis])
        lows[2][planes], highs[2][planes] = low.min(axis=(1, 2)), high.max(axis=(1, 2))
    return [np.maximum(high - low, 0.0) for low, high in zip(lows, highs, strict=True)]


def _choose(ranges: NDArray[np.float64]) -> list[int]:
    """The plane to show, or the two middle ones, from the temperature range on each plane."""
    central = _central(len(ranges))
    best = int(np.argmax(ranges))
    return central if ranges[best] <= _WORTH_LEAVING_THE_CENTRE * ranges[central].max() else [best]


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
    """Read snapshot ``index`` at no more than ``most`` cells along each axis."""
    x, y, z = (spread(n, most) for n in reader.grid.cells)
    planes = [
        np.where(reader.conducting(slice(k, k + 1))[0], reader.read_plane(index, 2, k).astype(np.float64), np.nan)
        for k in z.tolist()
    ]
    labels = [reader.read_materials(slice(k, k + 1))[0][np.ix_(y, x)] for k in z.tolist()]
    return Samples((x, y, z), np.stack([plane[np.ix_(y, x)] for plane in planes]), np.stack(labels))


def wide_axes(grid: Grid) -> list[int]:
    """The axes (0 = x, 1 = y, 2 = z) with more than one cell: three for 3-D grids, two for planes, one for lines."""
    return [axis for axis in range(3) if grid.cells[axis] > 1]


def choose_times(count: int, most: int) -> Sequence[int]:
    """Indices of at most ``most`` of ``count`` snapshots, evenly spaced, with the first and the last."""
    return [int(index) for index in spread(count, most)]
