"""Find the voxel faces to which pieces of smooth surfaces belong."""

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.counted import counted, narrowest, turned, widths
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.geometry.surface_pieces import FARTHEST, SurfacePieces

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
# Whether faces fit a piece, from the cell on its inner side, the one on its outer side, and the material outside.
Fits = Callable[[Indices, Indices, Indices], NDArray[np.bool_]]

NEAR = 2  # in cells: largest distance of the search for a face, if a piece has none in its columns

_ACROSS = 1e-9  # square of a normal's component; if it is at most this, the piece is parallel to the axis
_EQUAL = 1e-6  # relative difference of two distances that count as equal


class FaceSearch:
    """Finds faces between painted cells.

    Args:
        grid: the whole grid.
        parts: the painted cells.
        material: the material of each cell, in the shape of the parts' arrays.
        periodic: which axes wrap.
        void: the number of void among the materials; None without void.
    """

    def __init__(
        self,
        grid: Grid,
        parts: Parts,
        material: NDArray[np.uint8],
        periodic: tuple[bool, bool, bool],
        void: int | None,
    ) -> None:
        self._grid, self._periodic, self._held = grid, periodic, parts.held
        self._owner, self._material, self._void = parts.owner.reshape(-1), material.reshape(-1), void

    def assign(self, samples: SurfacePieces, number: int, material: int) -> tuple[Indices, Array, Array]:
        """Faces, the areas in m² that pieces of a region's surface add to them, and the points of these pieces.

        Pieces without a face are tried again with reversed normals, because normals in some STL files point inwards.
        Then they are tried with the faces of other regions: a region that is less than a cell higher than a later one
        has no cells there, and the surface of the later one is covered.

        Args:
            samples: the pieces.
            number: of the region.
            material: that it paints.
        """

        def own(inner: Indices, outer: Indices, other: Indices) -> NDArray[np.bool_]:
            owned = (self._owner[inner] == number) & (self._owner[outer] < number)
            return np.asarray(owned & (self._material[outer] == other))

        def of_others(inner: Indices, outer: Indices, other: Indices) -> NDArray[np.bool_]:
            inside = self._material[inner]
            alike = (inside == material) | ((other == self._void) & (inside != self._void))
            return np.asarray(alike & (self._material[outer] == other))

        found: list[tuple[Indices, Array, Array]] = []
        for fits, sign in ((own, 1.0), (own, -1.0), (of_others, 1.0)):
            turned = SurfacePieces(samples.points, sign * samples.normals, samples.areas, samples.other)
            faces, areas, points, left = self._assign(turned, fits)
            found.append((faces, areas, points))
            samples = samples[left]
            if not len(samples.areas):
                break
        faces, areas, points = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return faces, areas, points

    def _assign(self, samples: SurfacePieces, fits: Fits) -> tuple[Indices, Array, Array, Indices]:
        """As :meth:`assign`, for the faces that fit; and the pieces that have none."""
        shares = samples.normals**2
        faces = np.stack([self._in_column(samples, fits, axis) for axis in range(3)], axis=1)
        # A share without a face in its column goes to the face with the largest share, or to the nearest faces.
        most = np.where(faces >= 0, shares, -1.0).argmax(axis=1)
        home = np.take_along_axis(faces, most[:, None], axis=1)[:, 0]
        faces = np.where(faces >= 0, faces, home[:, None])
        known = faces >= 0
        found, areas = faces[known], (shares * samples.areas[:, None])[known]
        points = samples.points[np.nonzero(known)[0]]
        lost = np.flatnonzero(home < 0)
        if len(lost):
            pieces, near, parts = self._nearest(samples[lost], fits)
            home[lost[pieces]] = near
            found = np.concatenate((found, near))
            areas = np.concatenate((areas, parts * samples.areas[lost[pieces]]))
            points = np.concatenate((points, samples.points[lost[pieces]]))
        return found, areas, points, np.flatnonzero(home < 0)

    def _in_column(self, samples: SurfacePieces, fits: Fits, axis: int) -> Indices:
        """The nearest face across an axis in the column of cells of each piece; −1 if there is none."""
        points, normals = samples.points, samples.normals
        reach = self._reach(points, normals, axis)
        left = np.flatnonzero(normals[:, axis] ** 2 > _ACROSS)
        nearest = np.rint(points[:, axis])
        beside = points[:, axis] - nearest
        # On a plane between cells, the first of two equally near faces is the one outside: so mirrored bodies agree.
        direction = np.where(np.where(np.abs(beside) <= _EQUAL, normals[:, axis], beside) >= 0.0, 1, -1)
        cells = np.clip(np.floor(points).astype(np.int64), 0, np.array(self._grid.cells) - 1)
        faces = np.full(len(points), -1, dtype=np.int64)
        for step in range(2 * FARTHEST + 1):
            distance = (step + 1) // 2 * (1 if step % 2 else -1)
            upwards = (direction[left] > 0) == (distance > 0)
            left = left[abs(distance) <= np.where(upwards, reach[1][left], reach[0][left])]
            if not len(left):
                break
            upper = cells[left]
            upper[:, axis] = nearest[left].astype(np.int64) + distance * direction[left]
            faces[left] = self._face(upper, axis, normals[left, axis] > 0.0, samples.other[left], fits)
            left = left[faces[left] < 0]
        return faces

    def _reach(self, points: Array, normals: Array, axis: int) -> tuple[Array, Array]:
        """How many cells from each piece its face may lie: towards smaller and towards larger coordinates."""
        slopes, along = np.abs(normals) * widths(self._grid, points), self._grid.axes[axis]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if along.uniform:
                found = 1.0 + 0.5 * (slopes.sum(axis=1) - slopes[:, axis]) / slopes[:, axis]
                return found, found
            far = 0.5 * (slopes.sum(axis=1) - slopes[:, axis]) / np.abs(normals[:, axis])
        far, wraps = np.minimum(far, along.borders[-1] - along.borders[0]), self._periodic[axis]
        at = turned(along, points[:, axis], wraps)
        below, above = (counted(along, at + side * far, wraps) - points[:, axis] for side in (-1.0, 1.0))
        return 1.0 + _EQUAL - below, 1.0 + _EQUAL + above

    def _face(self, upper: Indices, axis: int, outwards: NDArray[np.bool_], other: Indices, fits: Fits) -> Indices:
        """The face below each cell along an axis; −1 if it does not fit.

        Args:
            upper: the cells (x, y, z), shape (n, 3); they may lie outside the grid.
            axis: the axis across which the faces lie.
            outwards: whether the region lies below.
            other: the material on the other side.
            fits: whether faces fit.
        """
        nx, ny, _ = self._grid.cells
        n, wraps = self._grid.cells[axis], self._periodic[axis]
        at = upper[:, axis]
        inside = (at >= 0) & (at <= n) if wraps else (at > 0) & (at < n)
        high, low = upper.copy(), upper.copy()
        high[:, axis], low[:, axis] = at % n, (at - 1) % n
        strides = np.array([1, nx, nx * ny])
        low_cell, high_cell = low @ strides, high @ strides
        found = np.flatnonzero(inside & (n > 1) & self._held.has(low[:, 2]) & self._held.has(high[:, 2]))
        below, above = (self._held.local_cells(cells[found], nx * ny) for cells in (low_cell, high_cell))
        inner, outer = np.where(outwards[found], below, above), np.where(outwards[found], above, below)
        found = found[fits(inner, outer, other[found])]
        faces = np.full(len(upper), -1, dtype=np.int64)
        faces[found] = 3 * low_cell[found] + axis
        return faces

    def _nearest(self, pieces: SurfacePieces, fits: Fits) -> tuple[Indices, Indices, Array]:
        """The nearest face that fits each piece, preferably parallel to the piece.

        A face that is at a right angle to the piece may look to either side. Of several faces at the same distance each
        gets an equal part of the piece, so mirrored bodies have mirrored areas.

        Returns:
            Indices of pieces, their faces, and the part of the piece that each face gets. Pieces without a face near
            them are missing.
        """
        points = pieces.points
        cells, best = np.floor(points).astype(np.int64), np.full(len(points), np.inf)
        found = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))]
        left = np.arange(len(points))
        for least, axis, offset in self._places_nearby:
            left = left[least <= best[left] * (1.0 + _EQUAL)]
            if not len(left):
                break
            normals, upper = pieces.normals[left, axis], cells[left] + offset
            middle = upper + 0.5
            middle[:, axis] -= 0.5
            away = self._between(points[left], middle)
            distance = np.linalg.norm(away, axis=1) * (2.0 - np.abs(normals))
            # A piece on a plane between cells reaches as far to both sides: so mirrored bodies agree.
            farthest = np.where(np.arange(3) == axis, NEAR + 1.0, NEAR + 0.5) + _EQUAL
            inside = (np.abs(middle - points[left]) <= farthest).all(axis=1)
            for along in range(3):
                if along != axis:
                    if self._periodic[along]:
                        upper[:, along] %= self._grid.cells[along]
                    inside &= (upper[:, along] >= 0) & (upper[:, along] < self._grid.cells[along])
            for outwards in (False, True):
                looks = ((normals > 0.0) == outwards) | (normals**2 <= _ACROSS)
                closer = np.flatnonzero(inside & looks & (distance <= best[left] * (1.0 + _EQUAL)))
                other = pieces.other[left[closer]]
                faces = self._face(upper[closer], axis, np.full(len(closer), outwards), other, fits)
                hit, closer = left[closer[faces >= 0]], closer[faces >= 0]
                best[hit] = np.minimum(best[hit], distance[closer])
                found.append((hit, faces[faces >= 0], distance[closer]))
        piece, face, far = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        nearest = far <= best[piece] * (1.0 + _EQUAL)
        # In a short periodic axis the same face can be found in both directions.
        piece, face = np.unique(np.stack((piece[nearest], face[nearest])), axis=1)
        return piece, face, 1.0 / np.bincount(piece, minlength=len(points))[piece]

    def _between(self, points: Array, others: NDArray[np.floating[Any]]) -> Array:
        """The vectors in m from points to others, both in cells, shape (n, 3)."""
        if self._grid.uniform:
            return np.asarray((others - points) * np.array(self._grid.spacing))
        along = zip(self._grid.axes, points.T, others.T, self._periodic, strict=True)
        return np.stack([turned(axis, end, wraps) - turned(axis, at, wraps) for axis, at, end, wraps in along], axis=1)

    @cached_property
    def _places_nearby(self) -> list[tuple[float, int, Indices]]:
        """Faces that may be near a piece, the nearest first, as (smallest distance in m, axis, offset).

        The offset leads from the cell of the piece to the cell above the face. A face lies below that cell, so the last
        one that is as near as the first lies below the cell after it.
        """
        places, spacing = [], narrowest(self._grid)
        for axis in range(3):
            for offset in product(*(range(-NEAR - 1, NEAR + 1 + (along == axis)) for along in range(3))):
                middle = np.array(offset) + np.where(np.arange(3) == axis, 0.0, 0.5)
                least = np.linalg.norm(np.maximum(np.maximum(middle - 1.0, -middle), 0.0) * spacing)
                places.append((float(least), axis, np.array(offset)))
        return sorted(places, key=lambda place: place[0])
