"""What a scenario describes in space: the parts of its picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid

_Mask = NDArray[np.bool_]
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShownSource:
    """A heat source: its text in the legend, and its cells, shape (nz, ny, nx)."""

    text: str
    cells: _Mask


@dataclass(frozen=True)
class ShownBorder:
    """A contact between two parts, or a surface towards void: its text, and the cells of both sides, (nz, ny, nx)."""

    text: str
    one: _Mask
    other: _Mask

    def rectangles(self, grid: Grid) -> "Iterator[Rectangle3D]":
        """The rectangles around the faces between both sides, one for each plane of faces."""
        for axis in range(3):
            along = 2 - axis
            below, above = (slice(None, -1), slice(1, None))
            one, other = np.moveaxis(self.one, along, 0), np.moveaxis(self.other, along, 0)
            touching = (one[below] & other[above]) | (other[below] & one[above])
            for plane in np.flatnonzero(touching.any(axis=(1, 2))).tolist():
                # The axes of the plane from the last to the first, as in the array.
                upper, lower = (other_axis for other_axis in (2, 1, 0) if other_axis != axis)
                low, high = np.zeros(3, dtype=np.intp), np.zeros(3, dtype=np.intp)
                low[axis] = high[axis] = plane + 1
                for other_axis, across in ((upper, 1), (lower, 0)):
                    places = np.flatnonzero(touching[plane].any(axis=across))
                    low[other_axis], high[other_axis] = places[0], places[-1] + 1
                (x, y, z), (u, v, w) = (
                    [float(of.borders[border]) for of, border in zip(grid.axes, corner, strict=True)]
                    for corner in (low, high)
                )
                yield Rectangle3D(self.text, axis, (x, y, z), (u, v, w))


@dataclass(frozen=True)
class Rectangle3D:
    """A patch on a face, or a layer in a plane: its text, the axis normal to it, and two corners (x, y, z) in m.

    Attributes:
        text: in the legend, or of a layer in the remarks.
        normal: the axis normal to it.
        low, high: its corners.
        material: of a layer; empty for a patch.
    """

    text: str
    normal: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    material: str = ""


@dataclass(frozen=True)
class ShownProbe:
    """A probe at a point or along a line: its name, and its points (x, y, z) in m, shape (points, 3)."""

    text: str
    points: _Floats


@dataclass(frozen=True)
class ShownBeam:
    """A beam: its text, its path (x, y, z) in m, shape (points, 3), the axis normal to its face, its radius in m."""

    text: str
    points: _Floats
    normal: int
    radius: float

    @property
    def spot(self) -> _Floats:
        """The edge of the spot at the start, shape (points, 3)."""
        angles = np.linspace(0.0, 2.0 * np.pi, 49)
        edge = np.repeat(self.points[:1], len(angles), axis=0)
        u, v = (axis for axis in range(3) if axis != self.normal)
        edge[:, u] += self.radius * np.cos(angles)
        edge[:, v] += self.radius * np.sin(angles)
        return edge

    def crossings(self, axis: int, place: float) -> _Floats:
        """The points at which the path crosses a plane normal to an axis, shape (points, 3)."""
        before, after = self.points[:-1], self.points[1:]
        there = (before[:, axis] - place) * (after[:, axis] - place) < 0.0
        before, after = before[there], after[there]
        part = (place - before[:, axis]) / (after[:, axis] - before[:, axis])
        return np.asarray(before + part[:, None] * (after - before))


@dataclass(frozen=True)
class Geometry:
    """What a scenario describes in space.

    Attributes:
        title: of the scenario.
        grid: its cells.
        materials: their names.
        labels: the number of each cell's material, shape (nz, ny, nx).
        regions: the text of each region.
        owners: the number of each cell's region, from 1, shape (nz, ny, nx); 0 for cells without.
        sources: of heat, without beams.
        contacts: resistances between parts.
        surfaces: of regions towards void that have a condition.
        patches: on faces.
        layers: in planes.
        beams: on faces.
        probes: points and lines.
        remarks: texts on conditions, and on probes of regions.
    """

    title: str
    grid: Grid
    materials: Sequence[str]
    labels: NDArray[np.uint8]
    regions: Sequence[str]
    owners: NDArray[np.uint8]
    sources: Sequence[ShownSource]
    contacts: Sequence[ShownBorder]
    surfaces: Sequence[ShownBorder]
    patches: Sequence[Rectangle3D]
    layers: Sequence[Rectangle3D]
    beams: Sequence[ShownBeam]
    probes: Sequence[ShownProbe]
    remarks: Sequence[str]


def sign_of(number: int) -> str:
    """The letters of a region by its number from 0: A, B, …, Z, AA, AB, …."""
    first, last = divmod(number, 26)
    return ("" if first == 0 else sign_of(first - 1)) + chr(ord("A") + last)
