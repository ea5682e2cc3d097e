"""Find the visible pieces of a region's smooth surface: those that no other region covers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.parallel.slab import HALO
from heatsim.physics.geometry.counted import coordinates, places, widths
from heatsim.physics.geometry.division import NOWHERE, Division
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.physics.geometry.polygons import Polygons
from heatsim.physics.geometry.shapes import Solid, Vector
from heatsim.physics.geometry.stl import Surface
from heatsim.scenario import Box, Region, load_labels
from heatsim.scenario.tables.regions import Shape

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FARTHEST = 16  # in cells: largest distance along a column between a piece and its face

_BESIDE = 1e-3  # in cells: distance from a surface at which its neighbour is looked up; STL files round by less
_SMALL = 0.25  # in cells: the middle of a smaller piece decides for all of it
_ROUNDING = 1e-6  # of this size: pieces of cells are halves, quarters and so on where no rounding disturbs them
_LEVELS = 4  # a piece that another region partly covers is quartered at most this many times


@dataclass(frozen=True, eq=False)
class SurfacePieces:
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

    def __getitem__(self, which: NDArray[np.generic]) -> "SurfacePieces":
        return SurfacePieces(self.points[which], self.normals[which], self.areas[which], self.other[which])

    @staticmethod
    def joined(some: Sequence["SurfacePieces"]) -> "SurfacePieces":
        """The pieces of at least one surface in one."""
        return SurfacePieces(
            np.concatenate([pieces.points for pieces in some]),
            np.concatenate([pieces.normals for pieces in some]),
            np.concatenate([pieces.areas for pieces in some]),
            np.concatenate([pieces.other for pieces in some]),
        )


def _painting(shape: Shape, grid: Grid) -> Solid:
    """The solid of a shape; of an STL file without the shells that paint no cell."""
    solid = Solid.of(shape)
    if not isinstance(solid.shape, Surface):
        return solid
    return replace(solid, shape=solid.shape.without(solid.shape.shells_without_cells(grid)))


class VisibleSurfaces:
    """The surfaces of all regions.

    Args:
        division: the materials of the palette, with their scenario.
        held: the planes whose faces are wanted.
        periodic: which axes wrap.

    Attributes:
        grid: the cells.
        solids: the solid of each region by its number, from 1; None for regions without a shape, and for the domain.
        materials: the material that each region paints, by its number; 0 is the domain.
        periodic: which axes wrap.
    """

    def __init__(self, division: Division, held: PaintedPlanes, periodic: tuple[bool, bool, bool]) -> None:
        scenario = division.scenario
        self.grid, self.periodic, self._held = scenario.grid, periodic, held
        self.solids = [
            None,
            *(None if region.shape is None else _painting(region.shape, self.grid) for region in scenario.regions),
        ]
        self.materials = [
            division.kind(scenario.domain.material or division.kinds[0][0], NOWHERE),
            *(division.kind(region.materials[0], region.name) for region in scenario.regions),
        ]
        self._regions: list[Region | None] = [None, *scenario.regions]
        self._division = division
        self._labels = {
            number: load_labels(region.labels.file)
            for number, region in enumerate(scenario.regions, 1)
            if region.labels is not None
        }
        self._bounds = [None if solid is None else self._bounds_of(solid) for solid in self.solids]
        self._beside = [self._regions_beside(number) for number in range(len(self.solids))]

    def near(self, z: Array, metres: bool = False) -> Indices:
        """Polygons that can reach a face of own planes, or of the next HALO + 1 planes.

        Args:
            z: of their corners, shape (n, corners), in cells from the corner of the grid.
            metres: whether z is in m.
        """
        if self._held.whole:
            return np.arange(len(z))
        low, high = z.min(axis=1), z.max(axis=1)
        if metres:
            low, high = self.grid.axes[2].places(low), self.grid.axes[2].places(high)
        margin, kept = HALO + FARTHEST + 4, np.zeros(len(z), dtype=bool)
        nz = self.grid.cells[2]
        first, last = self._held.own_planes(nz)
        for shift in (-nz, 0, nz) if self.periodic[2] else (0,):
            kept |= (high >= first + shift - margin) & (low <= last + shift + margin)
        return np.flatnonzero(kept)

    def pieces(self, pieces: Polygons, number: int, wanted: NDArray[np.bool_]) -> SurfacePieces:
        """The pieces of a region's surface between wanted materials, cut at the borders of other regions."""
        wanted_here = wanted[self.materials[number]]
        alone = not self._beside[number] and self._of_several_shells(number) is None
        found, small = [], _SMALL if self.grid.uniform else _SMALL * (1.0 - _ROUNDING)
        pieces = pieces if alone else pieces.triangles()
        for level in range(_LEVELS + 1):
            middles = pieces.middles
            other, parts, normals = self._seen(middles, pieces.normals, number)
            mixed = np.zeros(len(middles), dtype=bool)
            if level < _LEVELS and not alone:
                large = np.flatnonzero(np.ptp(pieces.corners, axis=1).max(axis=1) >= small)
                for corner in range(3):
                    near = 0.98 * pieces.corners[large, corner] + 0.02 * middles[large]
                    other_near, parts_near, _ = self._seen(near, pieces.normals[large], number)
                    mixed[large] |= (other_near != other[large]) | (parts_near != parts[large])
            pure = ~mixed & (other >= 0) & wanted_here[other]
            found.append((middles[pure], normals[pure], (pieces.areas * parts)[pure], other[pure]))
            if not mixed.any():
                break
            pieces = pieces[mixed].quartered()
        return SurfacePieces(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def bounds_beside(self, number: int) -> list[tuple[Array, Array]]:
        """The lowest and highest coordinates, in cells, of each region that a region's surface may touch."""
        found = []
        for other in self._beside[number]:
            solid, cells = self.solids[other], np.array(self.grid.cells, dtype=np.float64)
            ends = (np.zeros(3), cells) if solid is None else (self.in_cells(solid.low), self.in_cells(solid.high))
            found.append(ends)
        return found

    def unclear_beside(self, number: int) -> list[tuple[Array, Array]]:
        """Those of :meth:`bounds_beside` within which a region paints only some places: curved shapes, label images."""
        paired = zip(self._beside[number], self.bounds_beside(number), strict=True)
        return [ends for other, ends in paired if not self._paints_all(other)]

    def _paints_all(self, number: int) -> bool:
        region = self._regions[number]
        return region is not None and region.labels is None and isinstance(region.shape, Box | None)

    def in_cells(self, place: tuple[float, ...]) -> Array:
        """A place (x, y, z) in m, in cells from the corner of the grid."""
        return places(self.grid, np.array(place))

    def _of_several_shells(self, number: int) -> Surface | None:
        """The surface of a region if some of its triangles may lie inside the body, or point into it."""
        solid = self.solids[number]
        return solid.shape if solid is not None and isinstance(solid.shape, Surface) and not solid.shape.plain else None

    def _seen(self, points: Array, normals: Array, number: int) -> tuple[Indices, Array, Array]:
        """The material just outside a region's surface, as :meth:`outside`; the part of its area; normals."""
        surface, parts = self._of_several_shells(number), np.ones(len(points))
        if surface is not None:
            step = self._step_at(points)
            front, back = (coordinates(self.grid, points + side * normals * step) for side in (1.0, -1.0))
            parts, inwards = surface.sides(front, back)
            normals = np.where(inwards[:, None], -normals, normals)
        return np.where(parts == 0.0, -1, self.outside(points, normals, number)), parts, normals

    def outside(self, points: Array, normals: Array, number: int) -> Indices:
        """The material just outside a region's surface; −1 if the surface is covered, or at the end of the domain."""
        cells, step = np.array(self.grid.cells), self._step_at(points)
        out, inner = points + normals * step, points - normals * step
        hidden, wrapped = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=bool)
        for axis, wraps in enumerate(self.periodic):
            if wraps:
                wrapped |= (out[:, axis] < 0.0) | (out[:, axis] >= cells[axis])
                out[:, axis] %= cells[axis]
            hidden |= (out[:, axis] < 0.0) | (out[:, axis] > cells[axis])
            hidden |= (inner[:, axis] < 0.0) | (inner[:, axis] > cells[axis])
        # Across a periodic axis the region may go on at the other end.
        hidden[wrapped] |= self._paints(number, out[wrapped], coordinates(self.grid, out[wrapped])) >= 0
        other = np.full(len(points), self.materials[0], dtype=np.int64)
        place, inner_place = coordinates(self.grid, out), coordinates(self.grid, inner)
        for beside in self._beside[number]:
            painted = self._paints(beside, out, place)
            if beside < number:
                other = np.where(painted >= 0, painted, other)
            else:
                hidden |= (painted >= 0) | (self._paints(beside, inner, inner_place) >= 0)
        return np.where(hidden, -1, other)

    def _bounds_of(self, solid: Solid) -> tuple[Vector, Vector]:
        """The lowest and highest coordinates of a solid in m; counted in cells if these have several widths."""
        if self.grid.uniform:
            return solid.low, solid.high
        low, high = (tuple(self.in_cells(end).tolist()) for end in (solid.low, solid.high))
        return low, high

    def _regions_beside(self, number: int) -> list[int]:
        """The other regions that a region's surface may touch, also across a periodic axis, in order."""
        own, sizes = self._bounds[number], self.grid.size if self.grid.uniform else self.grid.cells
        widest = max(self.grid.mean_spacing)
        margins = [widest if self.grid.uniform else widest / mean for mean in self.grid.mean_spacing]
        shifts = [(0.0, size, -size) if wraps else (0.0,) for size, wraps in zip(sizes, self.periodic, strict=True)]
        found = []
        for other in range(1, len(self.solids)):
            its = self._bounds[other]
            apart = (
                own is not None
                and its is not None
                and any(
                    all(low - margin > other_high + shift or high + margin < other_low + shift for shift in along)
                    for low, high, other_low, other_high, margin, along in zip(*own, *its, margins, shifts, strict=True)
                )
            )
            if other != number and not apart:
                found.append(other)
        return found

    def _step_at(self, points: Array) -> Array:
        """Lengths in cells along x, y, z of a step along a unit normal; ``points`` in cells."""
        here = widths(self.grid, points)
        return np.asarray(_BESIDE * here.min(axis=-1, keepdims=True) / here)

    def _paints(self, number: int, points: Array, places: Array) -> Indices:
        """The material that a region paints at points; −1 outside the region. ``places``: the points in m."""
        region, solid = self._regions[number], self.solids[number]
        assert region is not None
        if solid is not None:
            return np.where(solid.contains(places), self.materials[number], -1)
        if region.labels is None:
            return np.full(len(points), self.materials[number])
        labels = self._labels[number]
        x, y, z = (np.clip(points[:, axis], 0, self.grid.cells[axis] - 1).astype(np.int64) for axis in range(3))
        found, painted = labels[z, y, x], np.full(len(points), -1, dtype=np.int64)
        for label, name in region.labels.materials.items():
            painted[found == int(label)] = self._division.kind(name, region.name)
        return painted
