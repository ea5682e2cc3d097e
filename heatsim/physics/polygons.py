"""Facets cut at the planes between cells into plane polygons, each within one cell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.facets import Facets

Array = NDArray[np.float64]

_ON_PLANE = 1e-7  # cells: corners so near to a plane between cells lie on it
_CORNERS = 10  # of a polygon within a cell: four, and one more for each side of the cell


@dataclass(frozen=True, eq=False)
class Polygons:
    """Plane polygons, each within one cell.

    Attributes:
        corners: in cells from the corner of the grid; the last one is repeated to fill up shape (n, corners, 3).
        normals: of the smooth surface, shape (n, 3).
        areas: of the smooth surface in m², shape (n,).
    """

    corners: Array
    normals: Array
    areas: Array

    def __getitem__(self, which: NDArray[np.generic]) -> "Polygons":
        return Polygons(self.corners[which], self.normals[which], self.areas[which])

    @property
    def middles(self) -> Array:
        """Centres of gravity in cells, shape (n, 3)."""
        fans = _fans(self.corners)
        weights = np.linalg.norm(np.cross(fans[:, :, 1] - fans[:, :, 0], fans[:, :, 2] - fans[:, :, 0]), axis=2)
        total = weights.sum(axis=1)
        weights = np.where(total[:, None] > 0.0, weights, 1.0)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("ij,ijk->ik", weights, fans.mean(axis=2)))

    def triangles(self) -> "Polygons":
        """The same as triangles."""
        fans = _fans(self.corners)
        parts = np.linalg.norm(np.cross(fans[:, :, 1] - fans[:, :, 0], fans[:, :, 2] - fans[:, :, 0]), axis=2)
        of, number = np.nonzero(parts > 0.0)
        areas = self.areas[of] * parts[of, number] / parts.sum(axis=1)[of]
        return Polygons(fans[of, number], self.normals[of], areas)

    def quartered(self) -> "Polygons":
        """Triangles cut into four equal ones each."""
        a, b, c = np.moveaxis(self.corners, 1, 0)
        ab, bc, ca = (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0
        four = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
        corners = np.concatenate([np.stack(triangle, axis=1) for triangle in four])
        return Polygons(corners, np.tile(self.normals, (4, 1)), np.tile(self.areas / 4.0, 4))


def _fans(corners: Array) -> Array:
    """The triangles of polygons from their first corner, shape (n, corners − 2, 3, 3)."""
    first = np.broadcast_to(corners[:, :1], corners[:, 1:-1].shape)
    return np.stack((first, corners[:, 1:-1], corners[:, 2:]), axis=2)


def split(some: Facets, grid: Grid) -> Polygons:
    """Facets cut at the planes between cells; what lies outside the domain is left out."""
    spacing = np.array(grid.spacing)
    corners, of = (some.corners - np.array(grid.origin)) / spacing, np.arange(len(some))
    corners = corners[:, np.minimum(np.arange(_CORNERS), corners.shape[1] - 1)]
    for axis, n in enumerate(grid.cells):
        done = []
        while len(corners):
            low, high = corners[:, :, axis].min(axis=1), corners[:, :, axis].max(axis=1)
            inside = (high > -_ON_PLANE) & (low < n + _ON_PLANE)
            first = np.maximum(np.floor(low + _ON_PLANE) + 1.0, 0.0)
            last = np.minimum(np.ceil(high - _ON_PLANE) - 1.0, float(n))
            crossing = inside & (first <= last)
            whole = inside & ~crossing
            done.append((corners[whole], of[whole]))
            planes = np.floor((first + last) / 2.0)[crossing]
            corners, of = corners[crossing], of[crossing]
            corners = np.concatenate([_half(corners, axis, planes, side) for side in (-1.0, 1.0)])
            of = np.tile(of, 2)
        corners = np.concatenate([polygons for polygons, _ in done] or [corners])
        of = np.concatenate([numbers for _, numbers in done] or [of])
    fans = _fans(corners) * spacing
    doubled = np.cross(fans[:, :, 1] - fans[:, :, 0], fans[:, :, 2] - fans[:, :, 0])
    areas = 0.5 * np.linalg.norm(doubled, axis=2).sum(axis=1) * some.factors[of]
    pieces = Polygons(corners, some.normals[of], areas)
    return pieces[areas > 0.0]


def _half(polygons: Array, axis: int, planes: Array, side: float) -> Array:
    """The parts of convex polygons on one side of planes across an axis (Sutherland & Hodgman, 1974)."""
    n, count, _ = polygons.shape
    height = side * (polygons[:, :, axis] - planes[:, None])
    following, height_there = np.roll(polygons, -1, axis=1), np.roll(height, -1, axis=1)
    crosses = height * height_there < 0.0
    share = np.where(crosses, height / np.where(crosses, height - height_there, 1.0), 0.0)
    cut = polygons + share[:, :, None] * (following - polygons)
    cut[:, :, axis] = np.where(crosses, planes[:, None], cut[:, :, axis])
    corners = np.stack((polygons, cut), axis=2).reshape(n, 2 * count, 3)
    repeated = (polygons == np.roll(polygons, 1, axis=1)).all(axis=2)
    taken = np.stack((~repeated & (height >= 0.0), crosses), axis=2).reshape(n, 2 * count)
    order = np.argsort(~taken, axis=1, kind="stable")
    place = np.minimum(np.arange(count), taken.sum(axis=1)[:, None] - 1)
    return np.take_along_axis(corners, np.take_along_axis(order, place, axis=1)[:, :, None], axis=1)
