"""Plane polygons within one cell each: facets cut at the planes between cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.counted import places
from heatsim.physics.geometry.facets import Facets

Array = NDArray[np.float64]

_ON_PLANE = 1e-7  # cells: corners this near to a plane between cells count as on it


@dataclass(frozen=True, eq=False)
class Polygons:
    """Plane polygons, each within one cell.

    Attributes:
        corners: in cells from the corner of the grid, shape (n, corners, 3); short polygons repeat the last one.
        normals: unit normals of the smooth surface, shape (n, 3).
        areas: areas of the smooth surface in m², shape (n,).
    """

    corners: Array
    normals: Array
    areas: Array

    def __getitem__(self, which: NDArray[np.generic]) -> "Polygons":
        return Polygons(self.corners[which], self.normals[which], self.areas[which])

    @property
    def middles(self) -> Array:
        """Centres of gravity in cells, shape (n, 3)."""
        weights = _doubled_areas(self.corners)
        weights = np.where(weights.sum(axis=0) > 0.0, weights, 1.0)
        first, sums = self.corners[:, 0], np.zeros((len(self.corners), 3))
        for number, weight in enumerate(weights, start=1):
            sums += weight[:, None] * (self.corners[:, number] + self.corners[:, number + 1])
        total = weights.sum(axis=0)[:, None]
        return np.asarray((first + sums / total) / 3.0)

    def triangles(self) -> "Polygons":
        """The polygons cut into triangles."""
        fans = _fans(self.corners)
        parts = np.linalg.norm(np.cross(fans[:, :, 1] - fans[:, :, 0], fans[:, :, 2] - fans[:, :, 0]), axis=2)
        of, number = np.nonzero(parts > 0.0)
        areas = self.areas[of] * parts[of, number] / parts.sum(axis=1)[of]
        return Polygons(fans[of, number], self.normals[of], areas)

    def quartered(self) -> "Polygons":
        """Each triangle cut into four equal triangles."""
        a, b, c = np.moveaxis(self.corners, 1, 0)
        ab, bc, ca = (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0
        four = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
        corners = np.concatenate([np.stack(triangle, axis=1) for triangle in four])
        return Polygons(corners, np.tile(self.normals, (4, 1)), np.tile(self.areas / 4.0, 4))


def _fans(corners: Array) -> Array:
    """The triangles of polygons from their first corner, shape (n, corners − 2, 3, 3)."""
    first = np.broadcast_to(corners[:, :1], corners[:, 1:-1].shape)
    return np.stack((first, corners[:, 1:-1], corners[:, 2:]), axis=2)


def _doubled_areas(corners: Array) -> Array:
    """Twice the areas of the triangles of polygons from their first corner, shape (corners − 2, n)."""
    found = np.empty((corners.shape[1] - 2, len(corners)))
    arms = [np.ascontiguousarray((corners[:, number] - corners[:, 0]).T) for number in range(1, corners.shape[1])]
    for number, ((ax, ay, az), (bx, by, bz)) in enumerate(pairwise(arms)):
        found[number] = np.sqrt((ay * bz - az * by) ** 2 + (az * bx - ax * bz) ** 2 + (ax * by - ay * bx) ** 2)
    return found


def split(some: Facets, grid: Grid) -> Polygons:
    """Facets cut at the planes between cells, without the parts outside the domain."""
    # A facet through cells of several widths is plane only where all lengths have one unit: that is the mean cell.
    spacing = np.array(grid.mean_spacing)
    corners, of = (some.corners - np.array(grid.origin)) / spacing, np.arange(len(some))
    for axis, n in enumerate(grid.cells):
        done, at = [], grid.axes[axis]
        borders = None if at.uniform else (at.borders - at.borders[0]) / spacing[axis]
        while len(corners):
            # Corner by corner: NumPy is slow along short axes.
            heights = np.ascontiguousarray(corners[:, :, axis].T)
            low, high = heights.min(axis=0), heights.max(axis=0)
            if borders is not None:
                low, high = (at.places(at.borders[0] + end * spacing[axis]) for end in (low, high))
            inside = (high > -_ON_PLANE) & (low < n + _ON_PLANE)
            first = np.maximum(np.floor(low + _ON_PLANE) + 1.0, 0.0)
            last = np.minimum(np.ceil(high - _ON_PLANE) - 1.0, float(n))
            crossing = inside & (first <= last)
            whole = inside & ~crossing
            done.append((corners[whole], of[whole]))
            planes = np.floor((first + last) / 2.0)[crossing]
            planes = planes if borders is None else borders[planes.astype(np.intp)]
            corners, of = corners[crossing], of[crossing]
            corners = _together([_half(corners, axis, planes, side) for side in (-1.0, 1.0)])
            of = np.tile(of, 2)
        corners = _together([polygons for polygons, _ in done] or [corners])
        of = np.concatenate([numbers for _, numbers in done] or [of])
    areas = 0.5 * _doubled_areas(corners * spacing).sum(axis=0) * some.factors[of]
    if not grid.uniform:
        corners = places(grid, np.array(grid.origin) + corners * spacing)
    pieces = Polygons(corners, some.normals[of], areas)
    return pieces[areas > 0.0]


def _together(some: Sequence[Array]) -> Array:
    """The polygons of several arrays in one; short ones repeat their last corner."""
    most = max(polygons.shape[1] for polygons in some)
    return np.concatenate([polygons[:, np.minimum(np.arange(most), polygons.shape[1] - 1)] for polygons in some])


def _half(polygons: Array, axis: int, planes: Array, side: float) -> Array:
    """The parts of convex polygons on one side of planes across an axis (Sutherland & Hodgman, 1974)."""
    n, count, _ = polygons.shape
    height = side * (polygons[:, :, axis] - planes[:, None])
    following, height_there = np.roll(polygons, -1, axis=1), np.roll(height, -1, axis=1)
    crosses = height * height_there < 0.0
    share = np.where(crosses, height / np.where(crosses, height - height_there, 1.0), 0.0)
    cut = polygons + share[:, :, None] * (following - polygons)
    cut[:, :, axis] = np.where(crosses, planes[:, None], cut[:, :, axis])
    repeated = (polygons == np.roll(polygons, 1, axis=1)).all(axis=2)
    # Each corner and each cut goes to its place in the part; the last one fills up the rest.
    taken = np.stack((~repeated & (height >= 0.0), crosses), axis=2).reshape(n, 2 * count)
    rank = np.cumsum(taken, axis=1)
    corners = np.stack((polygons, cut), axis=2).reshape(-1, 3)
    of, place = np.nonzero(taken)
    slots = np.zeros((n, int(rank[:, -1].max(initial=3))), dtype=np.int64)
    slots[of, rank[of, place] - 1] = of * 2 * count + place
    slots = np.maximum.accumulate(slots, axis=1)
    return np.asarray(corners[slots])
