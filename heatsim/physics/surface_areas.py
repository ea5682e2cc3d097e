"""The smooth area of each face between two cells, from the painted shapes.

Between two cells of different regions lies the surface of the region that was painted last. A piece of that surface
with area dS and unit normal n adds nᵢ²·dS to the voxel face across axis i in its column of cells:

    z                     . ' /
    |   +-------+     . '    /| n        Σ nᵢ² = 1, so the faces have the area of the surface, whatever its direction.
    |   |   o   | . '        '           A plane gives |nᵢ| of a face's area to every face across axis i, so what
    |   +-------+-------+                flows normal to it crosses each face with the resistance that the plane has.
    |       . ' |   o   |
    +-----------+-------+---- x

If the column has no such face, as at edges, the area goes to the nearest face. Pieces that another region covers do not
count.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heatsim.parallel.slab import HALO
from heatsim.physics.cell_faces import FaceAreas, between, cells_beside, face_centres, voxel_areas
from heatsim.physics.division import NOWHERE, Division
from heatsim.physics.facets import facets
from heatsim.physics.polygons import Polygons, split
from heatsim.physics.regions import Parts
from heatsim.physics.shapes import Solid
from heatsim.physics.voxel_areas import areas as areas_of_voxels
from heatsim.physics.voxel_areas import reach as reach_in_voxels
from heatsim.scenario import Box, Region, Scenario, load_labels

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_BESIDE = 1e-3  # cells: distance from a surface at which its neighbour is looked up; STL files round by less
_LEVELS = 4  # a piece that another region partly covers is quartered at most this often
_FARTHEST = 16  # cells: longest search along a column for its face
_NEAR = 2  # cells: longest search around a piece without a face in its columns


def reach(scenario: Scenario) -> int:
    """How many planes away from a face the cells lie that its smooth area depends on."""
    # A piece adds to a face at most this far from it, and looks for faces as far as that on its other side.
    boxes = all(region.shape is None or isinstance(region.shape, Box) for region in scenario.regions)
    found = 2 * ((1 if boxes else _FARTHEST) + 1) + _NEAR
    if any(region.labels is not None for region in scenario.regions):
        found = max(found, reach_in_voxels(scenario.grid))
    return found


def find(
    division: Division,
    parts: Parts,
    material: NDArray[np.uint8],
    wanted: NDArray[np.bool_],
    periodic: tuple[bool, bool, bool],
    centres: bool = False,
) -> FaceAreas:
    """All faces between wanted materials, with their smooth areas.

    Each rank finds the faces of its planes and of HALO + 1 planes on both sides.

    Args:
        division: the materials of the palette, with their scenario.
        parts: the painted cells.
        material: the material of each cell, in the shape of the parts' arrays.
        wanted: whether areas between two materials of the palette are wanted, shape (materials, materials).
        periodic: which axes wrap.
        centres: whether to find the centres of these areas too: where a face has no smooth area, that of the voxel.
    """
    scenario, grid, held = division.scenario, division.scenario.grid, parts.held
    here, plane = held.grid(grid), grid.cells[0] * grid.cells[1]
    local = between(here, material, wanted, held.periodic(periodic))
    faces = 3 * held.global_cells(local // 3, plane) + local % 3
    near = np.flatnonzero(held.near(faces // 3 // plane, HALO + 1))
    order = near[np.argsort(faces[near])]
    faces, local = faces[order], local[order]
    if not len(faces):
        return FaceAreas(faces, np.zeros(0))
    smooth = _from_shapes(_Painting(division, parts, material, periodic), parts, wanted, centres)
    areas = smooth.of(faces)
    low, high = cells_beside(grid, faces)
    # If a shape that the domain cuts off meets itself across a periodic axis, the end of the domain is the surface.
    areas = np.where((high < low) & (areas == 0.0), voxel_areas(grid, faces), areas)
    owner = parts.owner.reshape(-1)
    labels = np.array([False, *(region.labels is not None for region in scenario.regions)])
    images = labels[np.maximum(*(owner[held.local_cells(cells, plane)] for cells in (low, high)))]
    if images.any():
        void = len(wanted) - 1 if scenario.uses_void else None
        areas[images] = areas_of_voxels(
            here, material, local[images], void, held.periodic(periodic), max(scenario.domain.cells)
        )
    if not centres:
        return FaceAreas(faces, areas)
    middles = face_centres(grid, faces)
    known, at, places = np.intersect1d(faces[~images], smooth.faces, assume_unique=True, return_indices=True)
    if len(known):
        middles[np.flatnonzero(~images)[at]] = smooth.centres[places]
    return FaceAreas(faces, areas, middles)


def _from_shapes(painting: "_Painting", parts: Parts, wanted: NDArray[np.bool_], centres: bool) -> FaceAreas:
    """The areas of faces from the surfaces of shapes, and if wanted their centres."""
    found: list[tuple[Indices, Array, Array]] = [(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 3)))]
    for number in range(1, len(painting.solids)):
        solid, inner = painting.solids[number], painting.materials[number]
        if solid is None or not parts.region_cells[number - 1] or not wanted[inner].any():
            continue
        for some in facets(solid.shape, painting.grid):
            near = some[painting.near(some.corners[:, :, 2], painting.grid.spacing[2], painting.grid.origin[2])]
            polygons = split(near, painting.grid)
            samples = painting.visible(polygons[painting.near(polygons.corners[:, :, 2])], number, wanted)
            ids, pieces, points = painting.assign(samples, number)
            found.append((ids, pieces, points if centres else points[:0]))
    ids, pieces, points = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    faces, place = np.unique(ids, return_inverse=True)
    total = np.zeros(len(faces))
    np.add.at(total, place.reshape(-1), pieces)
    if not centres:
        return FaceAreas(faces, total)
    moments = np.stack([np.bincount(place.reshape(-1), pieces * along, len(faces)) for along in points.T], axis=1)
    has, grid = total > 0.0, painting.grid
    middles = np.array(grid.origin) + moments[has] / total[has, None] * grid.spacing
    return FaceAreas(faces[has], total[has], middles)


@dataclass(frozen=True, eq=False)
class _Samples:
    """Pieces of a smooth surface, each at a point.

    Attributes:
        points: in cells from the corner of the grid, shape (n, 3).
        normals: shape (n, 3).
        areas: in m², shape (n,).
        other: the material outside, an index in the palette.
    """

    points: Array
    normals: Array
    areas: Array
    other: Indices

    def __getitem__(self, which: NDArray[np.generic]) -> "_Samples":
        return _Samples(self.points[which], self.normals[which], self.areas[which], self.other[which])


class _Painting:
    """The painted regions: materials near their surfaces, and faces for pieces of the surfaces."""

    def __init__(
        self,
        division: Division,
        parts: Parts,
        material: NDArray[np.uint8],
        periodic: tuple[bool, bool, bool],
    ) -> None:
        scenario = division.scenario
        self.grid, self.periodic = scenario.grid, periodic
        self.solids = [None, *(None if region.shape is None else Solid.of(region.shape) for region in scenario.regions)]
        self.materials = [
            division.kind(scenario.domain.material or division.kinds[0][0], NOWHERE),
            *(division.kind(region.materials[0], region.name) for region in scenario.regions),
        ]
        self._regions: list[Region | None] = [None, *scenario.regions]
        self._division = division
        self._labels = {
            number: load_labels(region.labels.file.path)
            for number, region in enumerate(scenario.regions, 1)
            if region.labels is not None
        }
        self._beside = [self._regions_beside(number) for number in range(len(self.solids))]
        self._owner, self._material, self._held = parts.owner.reshape(-1), material.reshape(-1), parts.held
        # Length in cells along x, y, z of a step along a unit normal.
        self._step = _BESIDE * min(self.grid.spacing) / np.array(self.grid.spacing)

    def near(self, z: Array, spacing: float = 1.0, origin: float = 0.0) -> Indices:
        """Polygons that can reach a face of own planes, or of the next HALO + 1 planes.

        Args:
            z: of their corners, shape (n, corners).
            spacing: between two planes.
            origin: of the grid.
        """
        if self._held.whole:
            return np.arange(len(z))
        low, high = ((end - origin) / spacing for end in (z.min(axis=1), z.max(axis=1)))
        margin, kept = HALO + _FARTHEST + 4, np.zeros(len(z), dtype=bool)
        nz = self.grid.cells[2]
        first, last = self._held.own_planes(nz)
        for shift in (-nz, 0, nz) if self.periodic[2] else (0,):
            kept |= (high >= first + shift - margin) & (low <= last + shift + margin)
        return np.flatnonzero(kept)

    def visible(self, pieces: Polygons, number: int, wanted: NDArray[np.bool_]) -> "_Samples":
        """The pieces of a region's surface between wanted materials, cut at the borders of other regions."""
        wanted_here, alone = wanted[self.materials[number]], not self._beside[number]
        found = []
        pieces = pieces if alone else pieces.triangles()
        for level in range(_LEVELS + 1):
            middles = pieces.middles
            other = self._outside(middles, pieces.normals, number)
            mixed = np.zeros(len(middles), dtype=bool)
            if level < _LEVELS and not alone:
                for corner in range(3):
                    near = 0.98 * pieces.corners[:, corner] + 0.02 * middles
                    mixed |= self._outside(near, pieces.normals, number) != other
            pure = ~mixed & (other >= 0) & wanted_here[other]
            part = pieces[pure]
            found.append((middles[pure], part.normals, part.areas, other[pure]))
            if not mixed.any():
                break
            pieces = pieces[mixed].quartered()
        return _Samples(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _outside(self, points: Array, normals: Array, number: int) -> Indices:
        """The material just outside a region's surface; −1 if the surface is covered, or at the end of the domain."""
        cells = np.array(self.grid.cells)
        out, inner = points + normals * self._step, points - normals * self._step
        hidden = np.zeros(len(points), dtype=bool)
        for axis, wraps in enumerate(self.periodic):
            if wraps:
                out[:, axis] %= cells[axis]
            hidden |= (out[:, axis] < 0.0) | (out[:, axis] > cells[axis])
            hidden |= (inner[:, axis] < 0.0) | (inner[:, axis] > cells[axis])
        other = np.full(len(points), self.materials[0], dtype=np.int64)
        for beside in self._beside[number]:
            painted = self._paints(beside, out)
            if beside < number:
                other = np.where(painted >= 0, painted, other)
            else:
                hidden |= (painted >= 0) | (self._paints(beside, inner) >= 0)
        return np.where(hidden, -1, other)

    def _regions_beside(self, number: int) -> list[int]:
        """The other regions that a region's surface may touch, in order."""
        own, margin = self.solids[number], max(self.grid.spacing)
        found = []
        for other in range(1, len(self.solids)):
            solid = self.solids[other]
            apart = (
                own is not None
                and solid is not None
                and any(
                    low - margin > other_high or high + margin < other_low
                    for low, high, other_low, other_high in zip(own.low, own.high, solid.low, solid.high, strict=True)
                )
            )
            if other != number and not apart:
                found.append(other)
        return found

    def _paints(self, number: int, points: Array) -> Indices:
        """The material that a region paints at points; −1 outside the region."""
        region, solid = self._regions[number], self.solids[number]
        assert region is not None
        if solid is not None:
            inside = solid.contains(np.array(self.grid.origin) + points * np.array(self.grid.spacing))
            return np.where(inside, self.materials[number], -1)
        if region.labels is None:
            return np.full(len(points), self.materials[number])
        labels = self._labels[number]
        x, y, z = (np.clip(points[:, axis].astype(np.int64), 0, self.grid.cells[axis] - 1) for axis in range(3))
        found, painted = labels[z, y, x], np.full(len(points), -1, dtype=np.int64)
        for label, name in region.labels.materials.items():
            painted[found == int(label)] = self._division.kind(name, region.name)
        return painted

    def assign(self, samples: _Samples, number: int, turned: bool = False) -> tuple[Indices, Array, Array]:
        """Faces, the areas in m² that pieces of a region's surface add to them, and the points of these pieces.

        Pieces without a face are tried once more with reversed normals: not in all STL files do normals point outwards.
        """
        shares = samples.normals**2
        faces = np.stack([self._in_column(samples, number, axis) for axis in range(3)], axis=1)
        # A share without a face in its column goes to the face with the largest share, or to the nearest face.
        most = np.where(faces >= 0, shares, -1.0).argmax(axis=1)
        home = np.take_along_axis(faces, most[:, None], axis=1)[:, 0]
        lost = np.flatnonzero(home < 0)
        if len(lost):
            home[lost] = self._nearest(samples[lost], number)
        faces = np.where(faces >= 0, faces, home[:, None])
        known = faces >= 0
        found, areas = faces[known], (shares * samples.areas[:, None])[known]
        points = samples.points[np.nonzero(known)[0]]
        left = samples[home < 0]
        if turned or not len(left.areas):
            return found, areas, points
        left = _Samples(left.points, -left.normals, left.areas, left.other)
        more = self.assign(left, number, turned=True)
        return (
            np.concatenate((found, more[0])),
            np.concatenate((areas, more[1])),
            np.concatenate((points, more[2])),
        )

    def _in_column(self, samples: _Samples, number: int, axis: int) -> Indices:
        """The nearest face across an axis in the column of cells of each piece; −1 if there is none."""
        points, normals = samples.points, samples.normals
        slopes = np.abs(normals) * np.array(self.grid.spacing)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            reach = 1.0 + 0.5 * (slopes.sum(axis=1) - slopes[:, axis]) / slopes[:, axis]
        left = np.flatnonzero(normals[:, axis] ** 2 > 1e-9)
        nearest = np.rint(points[:, axis])
        direction = np.where(points[:, axis] >= nearest, 1, -1)
        cells = np.clip(np.floor(points).astype(np.int64), 0, np.array(self.grid.cells) - 1)
        faces = np.full(len(points), -1, dtype=np.int64)
        for step in range(2 * _FARTHEST + 1):
            distance = (step + 1) // 2 * (1 if step % 2 else -1)
            left = left[abs(distance) <= reach[left]]
            if not len(left):
                break
            upper = cells[left]
            upper[:, axis] = nearest[left].astype(np.int64) + distance * direction[left]
            faces[left] = self._face(upper, axis, normals[left, axis] > 0.0, samples.other[left], number)
            left = left[faces[left] < 0]
        return faces

    def _face(self, upper: Indices, axis: int, outwards: NDArray[np.bool_], other: Indices, number: int) -> Indices:
        """The face below each cell along an axis; −1 if it is not between the region and the other material.

        Args:
            upper: the cells (x, y, z), shape (n, 3); they may lie outside the grid.
            axis: the axis across which the faces lie.
            outwards: whether the region lies below.
            other: the material on the other side.
            number: the number of the region.
        """
        nx, ny, _ = self.grid.cells
        n, wraps = self.grid.cells[axis], self.periodic[axis]
        at = upper[:, axis]
        inside = (at >= 0) & (at <= n) if wraps else (at > 0) & (at < n)
        high, low = upper.copy(), upper.copy()
        high[:, axis], low[:, axis] = at % n, (at - 1) % n
        strides = np.array([1, nx, nx * ny])
        low_cell, high_cell = low @ strides, high @ strides
        found = np.flatnonzero(inside & (n > 1) & self._held.has(low[:, 2]) & self._held.has(high[:, 2]))
        below, above = (self._held.local_cells(cells[found], nx * ny) for cells in (low_cell, high_cell))
        inner, outer = np.where(outwards[found], below, above), np.where(outwards[found], above, below)
        fits = (self._owner[inner] == number) & (self._owner[outer] < number) & (self._material[outer] == other[found])
        faces = np.full(len(upper), -1, dtype=np.int64)
        faces[found[fits]] = 3 * low_cell[found[fits]] + axis
        return faces

    def _nearest(self, pieces: _Samples, number: int) -> Indices:
        """The nearest face of the region to each piece, faces along the piece preferred; −1 if there is none."""
        points = pieces.points
        cells, best = np.floor(points).astype(np.int64), np.full(len(points), np.inf)
        spacing = np.array(self.grid.spacing)
        faces = np.full(len(points), -1, dtype=np.int64)
        for axis in range(3):
            alike = np.abs(pieces.normals[:, axis])
            for offset in product(range(-_NEAR, _NEAR + 1), repeat=3):
                upper = cells + np.array(offset)
                middle = upper + 0.5
                middle[:, axis] -= 0.5
                distance = np.linalg.norm((middle - points) * spacing, axis=1) * (2.0 - alike)
                closer = np.flatnonzero(distance < best)
                inside = np.ones(len(closer), dtype=bool)
                place = upper[closer]
                for along in range(3):
                    if along != axis:
                        if self.periodic[along]:
                            place[:, along] %= self.grid.cells[along]
                        inside &= (place[:, along] >= 0) & (place[:, along] < self.grid.cells[along])
                closer, place = closer[inside], place[inside]
                outwards = pieces.normals[closer, axis] > 0.0
                found = self._face(place, axis, outwards, pieces.other[closer], number)
                hit = closer[found >= 0]
                faces[hit], best[hit] = found[found >= 0], distance[hit]
        return faces
