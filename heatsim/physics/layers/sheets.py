"""Layers of one plane, divided by their edges, by the faces of cells and by the centres of cells.

In each of the rectangles that result, the layers that cover it lie on each other:

    conductance of a square = Σ k·t along u and along v       resistance across = Σ t/k       capacity = Σ ρ·cp·t

Rectangles along a path are in series, rows of rectangles side by side in parallel. So a strip that is narrower than a
cell conducts with its true width.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Layers in one plane that belong to the cells on one side of it.

    Attributes:
        axis: the axis that the plane is normal to.
        own: the index along this axis of the cells that they belong to.
        side: the side of these cells on which the plane lies: 1 above them, −1 below.
        layers: numbers of the layers.
        lines: coordinates in cells of the lines between rectangles along both axes of the plane, in the order x, y, z.
        parts: of their cells that lie between these lines, along both axes.
        lengths: of these parts in mean widths of a cell; see ``Axis.pieces``.
        widths: of the lower and the upper half of the cells along both axes, over half their means, shape (2, n).
        conductance: along the two axes in W/K, shape (2, nv, nu) of the rectangles.
        resistance: across in m² K/W, shape (nv, nu).
        capacity: heat capacity in J/(m² K), shape (nv, nu).
        covered: the cells of the plane that hold a part of a layer and conduct, in the shape of a face.
        areas: of each layer on cells that conduct, in m².
    """

    axis: int
    own: int
    side: int
    layers: tuple[int, ...]
    lines: tuple[Array, Array]
    parts: tuple[Array, Array]
    lengths: tuple[Array, Array]
    widths: tuple[Array, Array]
    conductance: Array
    resistance: Array
    capacity: Array
    covered: Mask
    areas: tuple[float, ...]

    @property
    def along(self) -> tuple[int, int]:
        """The two axes of the plane, in the order x, y, z."""
        u, v = (axis for axis in range(3) if axis != self.axis)
        return u, v

    def cell_means(self, values: Array) -> Array:
        """The means over the cells of the plane of values of the rectangles."""
        for dimension, lines, width in zip((1, 0), self.lines, self.parts, strict=True):
            weighted = values * (width if dimension == 1 else width[:, None])
            starts = np.searchsorted(lines, np.arange(lines[-1]))
            values = np.add.reduceat(weighted, starts, axis=dimension)
        return values

    def cell_of(self, axis: int) -> NDArray[np.intp]:
        """The cell in which each rectangle lies, along the first (0) or second (1) axis of the plane."""
        lines = self.lines[axis]
        return np.floor((lines[1:] + lines[:-1]) / 2.0).astype(np.intp)

    def between_nodes(self, place: int) -> Array:
        """Conductances in W/K along the first (0) or second (1) axis from the centre of each cell to that of the next.

        They are those of pieces that are as wide as a cell of the mean width is long: squares, if cells are equal. The
        last one wraps. A gap between two centres lets nothing through.
        """
        return self._of_rows(place, _between_nodes)

    def in_half_cells(self, place: int) -> Array:
        """The same, in the lower and in the upper half of each cell; shape (2, …)."""
        return self._of_rows(place, _in_half_cells)

    def _of_rows(self, place: int, of: Callable[[Array, Array, Array], Array]) -> Array:
        """The means over cells of conductances of rows of rectangles along an axis."""
        u, v = self.lines if place == 0 else self.lines[::-1]
        rows = of(u, self.lengths[place], self.conductance[place] if place == 0 else self.conductance[place].T)
        width = self.parts[1 - place][:, None]
        means = np.add.reduceat(width * rows, np.searchsorted(v, np.arange(v[-1])), axis=-2)
        return np.asarray(means if place == 0 else np.swapaxes(means, -1, -2))


def _between_nodes(lines: Array, lengths: Array, conductance: Array) -> Array:
    """Conductances in W/K from the centre of each cell to that of the next; the last one wraps.

    Args:
        lines: between rectangles, in cells.
        lengths: of the rectangles, in mean widths of a cell.
        conductance: of squares in the rectangles, shape (rows, rectangles).

    Returns:
        Shape (rows, n): rectangles in series. A gap lets nothing through.
    """
    first = int(np.searchsorted(lines, 0.5))
    link = np.floor(np.roll((lines[1:] + lines[:-1]) / 2.0, -first) % lines[-1] - 0.5).astype(np.intp) % int(lines[-1])
    lengths, conductance = np.roll(lengths, -first), np.roll(conductance, -first, axis=1)
    return _in_series(lengths, conductance, np.searchsorted(link, np.arange(lines[-1])))


def _in_half_cells(lines: Array, lengths: Array, conductance: Array) -> Array:
    """As :func:`_between_nodes`, over the lower and upper half of each cell; shape (2, rows, n)."""
    halves = _in_series(lengths, conductance, np.searchsorted(lines, np.arange(2.0 * lines[-1]) / 2.0))
    return np.stack((halves[:, ::2], halves[:, 1::2]))


def _in_series(lengths: Array, conductance: Array, starts: NDArray[np.intp]) -> Array:
    """Conductances of groups of rectangles in series; 0 with a gap among them."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.add.reduceat(lengths / conductance, starts, axis=1))
