"""The sides of boxes: what is visible of them, in closed form.

The edges of other regions divide a side into rectangles. What lies outside is the same all over a rectangle, unless a
curved shape or a label image may touch it. So one point decides, and the part of the rectangle in a column of cells is
the product of two lengths. Rectangles near curved shapes and label images become facets, like curved surfaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.counted import coordinates, widths_along
from heatsim.physics.geometry.facets import Facets
from heatsim.physics.geometry.surface_pieces import SurfacePieces, VisibleSurfaces
from heatsim.scenario import Box

Array = NDArray[np.float64]

_EQUAL = 1e-7  # cells: edges this near to each other or to a plane between cells count as equal
_BESIDE = 1e-2  # cells: shapes this near to a rectangle may touch it


@dataclass(frozen=True, eq=False)
class _Side:
    """Rectangles of one side of a box.

    Attributes:
        grid: the cells.
        axis: the axis that is normal to the side.
        outwards: 1.0 if the box lies below the side, else −1.0.
        edges: of the rectangles along x, y and z, in cells from the corner of the grid; along the axis twice the plane.
    """

    grid: Grid
    axis: int
    outwards: float
    edges: tuple[Array, Array, Array]

    @property
    def normal(self) -> Array:
        return np.asarray(self.outwards * np.eye(3)[self.axis])

    @cached_property
    def corners(self) -> tuple[Array, Array]:
        """The lowest and highest coordinates of the rectangles, shape (n, 3)."""
        return _everywhere([ends[:-1] for ends in self.edges]), _everywhere([ends[1:] for ends in self.edges])

    def facets(self, which: NDArray[np.bool_]) -> Facets:
        """Some of the rectangles as facets."""
        low, high = (ends[which] for ends in self.corners)
        ring = np.repeat(low[:, None], 4, axis=1)
        for along, places in ((self.axis - 2, (1, 2)), (self.axis - 1, (2, 3))):
            ring[:, places, along] = high[:, None, along]
        return Facets(coordinates(self.grid, ring), np.tile(self.normal, (len(ring), 1)), np.ones(len(ring)))

    def pieces(self, seen: NDArray[np.bool_], other: NDArray[np.int64]) -> SurfacePieces:
        """The parts of rectangles in the columns of cells.

        Args:
            seen: which rectangles are wanted, shape (n,).
            other: the material outside each of them.
        """
        ends = [np.union1d(edges, np.arange(np.ceil(edges[0]), edges[-1])) for edges in self.edges]
        ends[self.axis] = self.edges[self.axis]
        middles = [(end[1:] + end[:-1]) / 2.0 for end in ends]
        numbers = [np.searchsorted(edges, at) - 1 for edges, at in zip(self.edges, middles, strict=True)]
        numbers[self.axis] = np.zeros(1, dtype=np.int64)
        counts = tuple(len(edges) - 1 for edges in self.edges)
        of = np.ravel_multi_index(tuple(_everywhere(numbers).T), counts)
        some = np.flatnonzero(seen[of])
        along = zip(ends, middles, self.grid.axes, strict=True)
        lengths = [np.diff(end) * widths_along(axis, at) for end, at, axis in along]
        lengths[self.axis] = np.ones(1)
        areas = _everywhere(lengths)[some].prod(axis=1)
        return SurfacePieces(
            _everywhere(middles)[some], np.broadcast_to(self.normal, (len(some), 3)), areas, other[of[some]]
        )


def _everywhere(along: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All combinations of values along x, y and z, shape (n, 3)."""
    return np.stack([values.reshape(-1) for values in np.meshgrid(*along, indexing="ij")], axis=1)


def visible_sides(
    box: Box, visible: VisibleSurfaces, number: int, wanted: NDArray[np.bool_]
) -> list[SurfacePieces | Facets]:
    """The visible parts of a box's surface between wanted materials, one for each column of cells.

    Args:
        box: the shape of a region.
        visible: the surfaces of all regions.
        number: of the region.
        wanted: whether surfaces between two materials are wanted, shape (materials, materials).

    Returns:
        The visible pieces, and as facets the rectangles that shapes other than boxes may touch.
    """
    pieces, found = list[SurfacePieces](), list[SurfacePieces | Facets]()
    for axis, outwards in product(range(3), (-1.0, 1.0)):
        side = _side(box, visible, number, axis, outwards)
        low, high = side.corners
        if not len(low):
            continue
        unclear = np.zeros(len(low), dtype=bool)
        for lowest, highest in visible.unclear_beside(number):
            near = (low - _BESIDE <= highest) & (high + _BESIDE >= lowest)
            near[:, axis] |= visible.periodic[axis]  # a shape at the other end touches it too
            unclear |= near.all(axis=1)
        other = visible.outside((low + high) / 2.0, np.broadcast_to(side.normal, low.shape), number)
        seen = ~unclear & (other >= 0) & wanted[visible.materials[number]][other]
        if seen.any():
            pieces.append(side.pieces(seen, other))
        if unclear.any():
            found.append(side.facets(unclear))
    return [SurfacePieces.joined(pieces), *found] if pieces else found


def _side(box: Box, visible: VisibleSurfaces, number: int, axis: int, outwards: float) -> _Side:
    """The rectangles into which the edges of the regions beside a box divide one of its sides."""
    grid, edges = visible.grid, []
    lowest, highest = visible.in_cells(box.min), visible.in_cells(box.max)
    for along, (first, last) in enumerate(zip(lowest, highest, strict=True)):
        if along == axis:
            edges.append(np.full(2, last if outwards > 0.0 else first))
            continue
        others = [end[along] for ends in visible.bounds_beside(number) for end in ends]
        some = np.unique(np.clip([first, last, *others], max(first, 0.0), min(last, float(grid.cells[along]))))
        some = np.where(np.abs(some - np.rint(some)) <= _EQUAL, np.rint(some), some)
        edges.append(some[np.diff(some, prepend=-1.0) > _EQUAL])
    x, y, z = edges
    return _Side(grid, axis, outwards, (x, y, z))
