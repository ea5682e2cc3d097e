"""The sides of boxes: what is visible of them, in closed form.

The edges of other regions divide a side into rectangles. What lies outside is the same all over a rectangle, unless a
curved shape or a label image may touch it. So one point decides, and the part of the rectangle in a column of cells is
the product of two lengths. Rectangles near curved shapes and label images become facets, like curved surfaces.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
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
        low, high: opposite corners in cells from the corner of the grid, shape (n, 3).
    """

    grid: Grid
    axis: int
    outwards: float
    low: Array
    high: Array

    @property
    def normals(self) -> Array:
        return np.tile(self.outwards * np.eye(3)[self.axis], (len(self.low), 1))

    def facets(self, which: NDArray[np.bool_]) -> Facets:
        """Some of the rectangles as facets."""
        corners = np.repeat(self.low[which][:, None], 4, axis=1)
        for along, ring in ((self.axis - 2, (1, 2)), (self.axis - 1, (2, 3))):
            corners[:, ring, along] = self.high[which][:, None, along]
        places = np.array(self.grid.origin) + corners * self.grid.spacing
        return Facets(places, self.normals[which], np.ones(len(places)))

    def pieces(self, number: np.int64, other: np.int64) -> SurfacePieces:
        """The parts of a rectangle in the columns of cells; ``other`` is the material outside."""
        ends, spacing = [], np.array(self.grid.spacing)
        for along in range(3):
            low, high = self.low[number, along], self.high[number, along]
            cuts = np.arange(np.floor(low) + 1.0, np.ceil(high))
            ends.append(np.array([low, low]) if along == self.axis else np.array([low, *cuts, high]))
        middles = np.meshgrid(*((end[1:] + end[:-1]) / 2.0 for end in ends), indexing="ij")
        lengths = [np.diff(end) * d for end, d in zip(ends, spacing, strict=True)]
        lengths[self.axis] = np.ones(1)
        areas = np.einsum("i,j,k->ijk", *lengths).reshape(-1)
        points = np.stack([middle.reshape(-1) for middle in middles], axis=1)
        normal = np.broadcast_to(self.outwards * np.eye(3)[self.axis], points.shape)
        return SurfacePieces(points, normal, areas, np.full(len(areas), other))


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
        For each side its visible pieces, and as facets the rectangles that shapes other than boxes may touch.
    """
    found: list[SurfacePieces | Facets] = []
    for axis, outwards in product(range(3), (-1.0, 1.0)):
        side = _side(box, visible, number, axis, outwards)
        unclear = np.zeros(len(side.low), dtype=bool)
        for low, high in visible.unclear_beside(number):
            near = (side.low - _BESIDE <= high) & (side.high + _BESIDE >= low)
            near[:, axis] |= visible.periodic[axis]  # a shape at the other end touches it too
            unclear |= near.all(axis=1)
        other = visible.outside((side.low + side.high) / 2.0, side.normals, number)
        seen = np.flatnonzero(~unclear & (other >= 0) & wanted[visible.materials[number]][other])
        if len(seen):
            found.append(SurfacePieces.joined([side.pieces(which, other[which]) for which in seen]))
        if unclear.any():
            found.append(side.facets(unclear))
    return found


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
    low, high = (
        np.stack([ends.reshape(-1) for ends in np.meshgrid(*parts, indexing="ij")], axis=1)
        for parts in ([end[:-1] for end in edges], [end[1:] for end in edges])
    )
    return _Side(grid, axis, outwards, low, high)
