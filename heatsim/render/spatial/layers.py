"""Thin layers in sections. A layer has no cells; a plane of cells beside it holds it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_settings import LayerPlace

_ROUNDING = 1e-6  # cells

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShownLayer:
    """A thin layer: its material, the axis normal to it, and the corners (x, y, z) of its rectangle in m."""

    material: str
    axis: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @classmethod
    def of(cls, place: LayerPlace, grid: Grid) -> "ShownLayer | None":
        """The layer at a place in a grid; without a rectangle it spans the grid. None if it lies outside."""
        low = list(grid.origin)
        high = [start + length for start, length in zip(grid.origin, grid.size, strict=True)]
        border = float(grid.axes[place.axis].places(place.at))
        if not -_ROUNDING <= border <= grid.cells[place.axis] + _ROUNDING:
            return None
        along = [axis for axis in range(3) if axis != place.axis]
        if place.rectangle is not None:
            for number, axis in enumerate(along):
                low[axis] = max(low[axis], place.rectangle[0][number])
                high[axis] = min(high[axis], place.rectangle[1][number])
        if any(low[axis] >= high[axis] for axis in along):
            return None
        low[place.axis] = high[place.axis] = place.at
        return cls(place.material, place.axis, (low[0], low[1], low[2]), (high[0], high[1], high[2]))

    def border(self, grid: Grid) -> int:
        """The number of cells below its plane."""
        return round(float(grid.axes[self.axis].places(self.low[self.axis])))

    def covers(self, grid: Grid) -> NDArray[np.bool_]:
        """Which cells of its plane hold a part of it, in the shape of a face."""
        cells = np.zeros(grid.face_shape(2 * self.axis), dtype=bool)
        u, v = (self._reach(grid, axis) for axis in range(3) if axis != self.axis)
        cells[v, u] = True
        return cells

    def corners(self) -> _Floats:
        """Its four corners in m, in order around it, shape (4, 3)."""
        return corners_of(self.axis, self.low, self.high)

    def edges(self) -> _Floats:
        """Both ends (x, y, z) in m of each edge of its rectangle, shape (4, 2, 3)."""
        corners = self.corners()
        return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)

    def _reach(self, grid: Grid, axis: int) -> slice:
        first, last = (float(grid.axes[axis].places(corner[axis])) for corner in (self.low, self.high))
        return slice(max(floor(first + _ROUNDING), 0), max(ceil(last - _ROUNDING), 0))


def corners_of(axis: int, low: Sequence[float], high: Sequence[float]) -> _Floats:
    """The four corners of a rectangle normal to an axis, in order around it, shape (4, 3)."""
    u, v = (other for other in range(3) if other != axis)
    corners = np.array([low] * 4, dtype=np.float64)
    corners[[1, 2], u] = high[u]
    corners[[2, 3], v] = high[v]
    return corners


def side_of_layers(reader: FieldReader, layers: Sequence[ShownLayer], axis: int, border: int) -> int:
    """The side of the cells that hold the layers between two planes of cells: 1 below, −1 above, 0 without layers.

    Args:
        reader: of the fields, which has the materials.
        layers: all of the body.
        axis: the normal of the planes of cells.
        border: the number of cells below the layers.
    """
    grid = reader.grid
    here = [layer.covers(grid) for layer in layers if (layer.axis, layer.border(grid)) == (axis, border)]
    if not here:
        return 0
    from heatsim.scenario.tables.layers import side_of

    below, above = (_conducting(reader, axis, cell) for cell in (border - 1, border))
    return side_of(np.any(here, axis=0), below, above) or 1


def _conducting(reader: FieldReader, axis: int, cell: int) -> NDArray[np.bool_]:
    """Which cells of a plane conduct; no cell if the plane is outside the box."""
    grid = reader.grid
    if not 0 <= cell < grid.cells[axis]:
        return np.zeros(grid.face_shape(2 * axis), dtype=bool)
    if axis == 2:
        plane: NDArray[np.bool_] = reader.conducting(slice(cell, cell + 1))[0]
        return plane
    planes = [reader.conducting(slice(k, k + 1))[0] for k in range(grid.cells[2])]
    return np.stack([plane[:, cell] if axis == 0 else plane[cell] for plane in planes])


def layers_on(
    layers: Sequence[ShownLayer], reader: FieldReader, axis: int, cells: Sequence[int], place: float
) -> Iterator[tuple[ShownLayer, _Floats]]:
    """The layers that a section shows: a line if it crosses the layer, the edges if the layer lies in its cells.

    Args:
        layers: all of the body.
        reader: of the fields.
        axis: the normal of the section.
        cells: the planes of cells that the section shows.
        place: its coordinate in m.

    Yields:
        Each layer with its lines, as both ends (x, y, z) in m, shape (lines, 2, 3).
    """
    for layer in layers:
        if layer.axis != axis:
            if layer.low[axis] <= place <= layer.high[axis]:
                ends = np.array([[layer.low, layer.high]])
                ends[:, :, axis] = place
                yield layer, ends
            continue
        border = layer.border(reader.grid)
        own = border - 1 if side_of_layers(reader, layers, axis, border) > 0 else border
        if own in cells:
            edges = layer.edges()
            edges[:, :, axis] = place
            yield layer, edges
