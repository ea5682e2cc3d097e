"""The grid of a box: its shape, and the positions and sizes of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

AXES = ("x", "y", "z")
FACES = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")

# The largest number of groups of planes of a grid; a smaller limit if the planes have few cells.
_MOST_GROUPS = 4096
_MOST_SMALL_GROUPS = 16
_FEW_CELLS = 4096


@dataclass(frozen=True)
class PlaneGroups:
    """Groups of whole planes across z, in which sums over a field are formed.

    A sum is formed within each group in a fixed order; then the sums of all groups are added exactly. Groups depend on
    the whole grid only. So a sum keeps its bits if the grid is cut between groups and each piece is summed elsewhere.

    Attributes:
        size: planes of a group, a power of two, at least 2; the last group of a grid may have fewer.
    """

    size: int

    @classmethod
    def of(cls, shape: tuple[int, int, int]) -> "PlaneGroups":
        """The groups of a whole grid; ``shape``: (nz, ny, nx)."""
        planes, ny, nx = shape
        size = 2
        while size * _MOST_GROUPS < planes or (size * _MOST_SMALL_GROUPS < planes and size * ny * nx < _FEW_CELLS):
            size *= 2
        return cls(size)

    def starts(self, planes: int) -> NDArray[np.int64]:
        """The first plane of each group of some planes, and their number; the planes begin where a group begins."""
        return np.append(np.arange(0, planes, self.size, dtype=np.int64), planes)


@dataclass(frozen=True, eq=False)
class Axis:
    """The planes of cells along one axis.

    For each of its two sides along an axis, the heat balance of a cell needs how much a flux through the side changes
    the cell (``gains``), and how far its node lies from the side (``halves``); sums need its ``measures``. So nothing
    else in the program has to know whether cells are equal.

    Attributes:
        uniform: whether all cells have one width; then all factors are exactly 1.
        spacing: the mean width in m, to which the factors refer.
        borders: coordinates in m of the planes between cells, both ends included; shape (n + 1,), ascending.
        centres: coordinates in m of the nodes, shape (n,).
        widths: in m, shape (n,).
        gains: area of each side over volume in 1/m: towards smaller and towards larger coordinates; shape (n, 2).
        halves: conductivity times the resistance between node and side in m, as ``gains``; shape (n, 2).
        beyond: those of the neighbours, from the same sides to their nodes; at the ends those of the opposite end.
        measures: of volumes in m: the volume of a cell is the product of its three measures; shape (n,).
        rings: whether the coordinates are radii, and cells whole rings.
    """

    uniform: bool
    spacing: float
    borders: Floats
    centres: Floats
    widths: Floats
    gains: Floats
    halves: Floats
    beyond: Floats
    measures: Floats
    rings: bool = False

    @classmethod
    def equal(cls, n: int, origin: float, size: float) -> "Axis":
        """``n`` cells of one width."""
        # (2i + 1)/(2n) is rounded once, so the centres of a symmetric box stay symmetric.
        spacing, places = size / n, np.arange(n + 1)
        centres = np.asarray(origin + size * ((2.0 * places[:-1] + 1.0) / (2.0 * n)), dtype=np.float64)
        one, sides = np.ones(n), np.ones((n, 2))
        half = sides * (0.5 * spacing)
        borders = np.asarray(origin + size * (places / n), dtype=np.float64)
        return cls(True, spacing, borders, centres, one * spacing, sides / spacing, half, half, one * spacing)

    @classmethod
    def between(cls, borders: Sequence[float]) -> "Axis":
        """Cells between planes at ``borders``, in m."""
        planes = np.array(borders)
        widths = np.diff(planes)
        halves = np.column_stack((widths, widths)) / 2.0
        return cls._of(planes, (planes[1:] + planes[:-1]) / 2.0, 0.5 / halves, halves, widths)

    @classmethod
    def radial(cls, borders: Sequence[float]) -> "Axis":
        """Rings between the radii ``borders``, in m: whole circles around an axis at 0.

        Areas and volumes grow with the radius. For each m² of its side at the radius r, a half cell has the resistance
        r·|ln(r/r_c)|/k (Incropera, §3.3.1), so that conduction through hollow cylinders is exact. The measures are the
        areas of the rings in m².
        """
        planes = np.array(borders)
        centres = (planes[1:] + planes[:-1]) / 2.0
        sides = np.column_stack((planes[:-1], planes[1:]))
        measures = np.pi * (planes[1:] ** 2 - planes[:-1] ** 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            halves = sides * np.abs(np.log(sides / centres[:, None]))
        # No heat passes the axis; its half cell is as long as it looks.
        halves[sides == 0.0] = centres[0]
        return cls._of(planes, centres, 2.0 * np.pi * sides / measures[:, None], halves, measures, rings=True)

    @classmethod
    def _of(
        cls, borders: Floats, centres: Floats, gains: Floats, halves: Floats, measures: Floats, rings: bool = False
    ) -> "Axis":
        widths = np.diff(borders)
        beyond = np.column_stack((np.roll(halves[:, 1], 1), np.roll(halves[:, 0], -1)))
        spacing = float(borders[-1] - borders[0]) / len(widths)
        return cls(False, spacing, borders, centres, widths, gains, halves, beyond, measures, rings)

    def some(self, planes: NDArray[np.integer]) -> "Axis":
        """The axis with these planes only, in this order; ``borders`` are those from their first one on."""
        names = ("centres", "widths", "gains", "halves", "beyond", "measures")
        borders = np.append(0.0, np.cumsum(self.widths[planes])) + self.borders[planes[0]]
        return replace(self, borders=borders, **{name: getattr(self, name)[planes] for name in names})

    def __len__(self) -> int:
        return len(self.widths)

    @cached_property
    def gain_factors(self) -> Floats:
        """``gains`` over those of cells of the mean width; shape (n, 2)."""
        return np.ones((len(self), 2)) if self.uniform else self.gains * self.spacing

    @cached_property
    def half_factors(self) -> Floats:
        """``halves`` over those of cells of the mean width; shape (n, 2)."""
        return np.ones((len(self), 2)) if self.uniform else self.halves * (2.0 / self.spacing)

    @cached_property
    def beyond_factors(self) -> Floats:
        """``beyond`` over those of cells of the mean width; shape (n, 2)."""
        return np.ones((len(self), 2)) if self.uniform else self.beyond * (2.0 / self.spacing)

    @cached_property
    def link_factors(self) -> Floats:
        """α/d² towards both neighbours over that of cells of the mean width, within one material; shape (n, 2)."""
        return self.gain_factors * 2.0 / (self.half_factors + self.beyond_factors)

    @cached_property
    def volume_factors(self) -> Floats:
        """``measures`` over the mean width; shape (n,)."""
        return np.ones(len(self)) if self.uniform else self.measures / self.spacing

    def kernel_factors(self, precision: str) -> NDArray[Any]:
        """What kernels read of graded axes, shape (n, 6) in a precision; (0, 6) if all cells have one width.

        For each plane, towards smaller and then towards larger coordinates: the factor of links within one material, of
        the half cell's conductance, and of area over volume.
        """
        if self.uniform:
            return np.zeros((0, 6), dtype=precision)
        columns = self.link_factors, 1.0 / self.half_factors, self.gain_factors
        return np.ascontiguousarray(np.hstack(columns).astype(precision))

    def other_halves(self, planes: Any, side: int) -> Floats:
        """Resistances of the other halves of cells over those of the halves towards a side (−1 or 1).

        They are 1 where the other side, or this one, is the axis of rings: no heat passes it.
        """
        planes = np.asarray(planes)
        if not self.rings:
            return np.ones(planes.shape)
        with np.errstate(divide="ignore"):
            lower, upper = (np.abs(np.log(self.borders[planes + of] / self.centres[planes])) for of in (0, 1))
        over = lower / upper if side > 0 else upper / lower
        return np.where(np.isfinite(lower), over, 1.0)

    def ways(self, planes: NDArray[np.integer], side: int, start: Any, end: Any) -> Floats:
        """Resistances between two places in cells over those of the half cells towards a side.

        Args:
            planes: of the cells.
            side: −1 or 1, towards smaller or larger coordinates.
            start: one place in half cells from the centres, −1 to 1; it divides the resistance of its half cell.
            end: the other one.
        """
        other = self.other_halves(planes, side)
        first, last = (np.where(side * np.asarray(place) < 0.0, place * other, place) for place in (start, end))
        return np.asarray(np.abs(last - first))

    def pieces(self, lines: Floats) -> tuple[Floats, Floats]:
        """The parts of the cells that lie between neighbouring lines, and their lengths in mean widths.

        ``lines``: ascending, counted in cells; the borders and centres of all cells are among them. A length is
        conductivity times resistance for the area of the side of the same half cell.
        """
        middles = (lines[1:] + lines[:-1]) / 2.0
        cell = np.floor(middles).astype(np.intp)
        parts = np.diff(lines)
        lengths = parts * (self.widths / self.spacing)[cell]
        if not self.rings:
            return parts, lengths
        radii = self.coordinates(lines)
        side = self.borders[cell + (middles - cell > 0.5)]
        with np.errstate(divide="ignore", invalid="ignore"):
            around = side * np.log(radii[1:] / radii[:-1]) / self.spacing
        return np.pi * np.diff(radii**2) / self.measures[cell], np.where(side > 0.0, around, lengths)

    def around(self, border: int) -> float:
        """The length in m of the circle at a border between planes of cells; 1 if coordinates are no radii."""
        return 2.0 * float(np.pi * self.borders[border]) if self.rings else 1.0

    def places(self, coordinates: Any) -> Any:
        """Coordinates in m, counted in cells from the first border: linear within each cell and beyond both ends."""
        if self.uniform:
            return (coordinates - self.borders[0]) / self.spacing
        cell = np.clip(np.searchsorted(self.borders, coordinates, side="right") - 1, 0, len(self) - 1)
        return cell + (coordinates - self.borders[cell]) / self.widths[cell]

    def coordinates(self, places: Any) -> Any:
        """Coordinates in m of places that are counted in cells: the inverse of :meth:`places`."""
        if self.uniform:
            return self.borders[0] + places * self.spacing
        cell = np.clip(np.floor(places), 0, len(self) - 1).astype(np.intp)
        return self.borders[cell] + (places - cell) * self.widths[cell]

    def fractions(self, places: Any) -> Any:
        """Places that are counted in cells, as fractions of the length of the axis."""
        if self.uniform:
            return places / len(self)
        return (self.coordinates(places) - self.borders[0]) / (self.borders[-1] - self.borders[0])

    def at_fraction(self, fraction: float) -> float:
        """The place, counted in cells, at a fraction of the length of the axis: the inverse of :meth:`fractions`."""
        if self.uniform:
            return fraction * len(self)
        return float(self.places(self.borders[0] + fraction * (self.borders[-1] - self.borders[0])))

    def nodes(self, first: int, count: int) -> tuple[Floats, Floats, float]:
        """The centres and half widths of planes from ``first`` on, and the length of their unit in m.

        The unit is a cell if all cells have one width. Behind the last plane the first one follows.
        """
        if self.uniform:
            return np.arange(count, dtype=np.float64) + (first + 0.5), np.full(count, 0.5), self.spacing
        planes = np.arange(first, first + count) % len(self)
        return self.centres[planes], self.widths[planes] / 2.0, 1.0


@dataclass(frozen=True)
class Grid:
    """A box of cells with temperatures at their centres.

    Vectors are (x, y, z); arrays are indexed [z, y, x], x fastest.

    Attributes:
        cells: number of cells along x, y, z.
        size: edge lengths of the box in m.
        origin: the corner with the smallest coordinates in m.
        borders: for each axis the coordinates in m of the planes between cells, both ends included; empty where all
            cells have one width.
        radial: whether x is the radius of bodies that are symmetric around the axis x = 0. Cells are whole rings then;
            there is one along y. ``borders`` of x is not empty.
    """

    cells: tuple[int, int, int]
    size: tuple[float, float, float]
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    borders: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]] = ((), (), ())
    radial: bool = False

    @cached_property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        """The planes of cells along x, y, z."""
        x, y, z = (
            Axis.between(borders) if borders else Axis.equal(n, origin, size)
            for n, origin, size, borders in zip(self.cells, self.origin, self.size, self.borders, strict=True)
        )
        return (Axis.radial(self.borders[0]) if self.radial else x), y, z

    @property
    def uniform(self) -> bool:
        """Whether all cells are equal."""
        return not any(self.borders)

    @property
    def axis_names(self) -> tuple[str, str, str]:
        """The names of the axes in words; x is the radius where cells are rings."""
        return ("radius x" if self.radial else "x", "y", "z")

    def with_lengths(self, values: Sequence[Any]) -> list[Any]:
        """Of values for x, y and z those of axes along which the grid has lengths: not y where cells are rings."""
        x, y, z = values
        return [x, z] if self.radial else [x, y, z]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a field: (nz, ny, nx)."""
        nx, ny, nz = self.cells
        return (nz, ny, nx)

    def face_shape(self, face: int) -> tuple[int, int]:
        """Shape of an array of the cells at a face: (nz, ny) across x, (nz, nx) across y, (ny, nx) across z."""
        nz, ny, nx = self.shape
        return ((nz, ny), (nz, nx), (ny, nx))[face // 2]

    @property
    def spacing(self) -> tuple[float, float, float]:
        """(dx, dy, dz) in m of equal cells.

        Raises:
            RuntimeError: the cells are not equal; what asks for one spacing cannot be right for them.
        """
        if not self.uniform:
            raise RuntimeError("cells of several widths have no spacing")
        return self.mean_spacing

    @property
    def mean_spacing(self) -> tuple[float, float, float]:
        """The mean widths of the cells along x, y, z in m."""
        dx, dy, dz = (length / n for length, n in zip(self.size, self.cells, strict=True))
        return (dx, dy, dz)

    @property
    def cell_count(self) -> int:
        """Number of cells."""
        return prod(self.cells)

    @property
    def groups(self) -> PlaneGroups:
        """The groups of planes for sums, if this is the whole grid."""
        return PlaneGroups.of(self.shape)

    @property
    def cell_volume(self) -> float:
        """Volume in m³ of one of equal cells; raises as :attr:`spacing`."""
        return prod(self.spacing)

    @property
    def mean_areas(self) -> tuple[float, float, float]:
        """The areas in m² of the sides across x, y, z of a cell of the mean widths."""
        volume = self.mean_volume
        dx, dy, dz = self.mean_spacing
        return volume / dx, volume / dy, volume / dz

    @property
    def mean_volume(self) -> float:
        """The volume in m³ of a cell of the mean widths."""
        return prod(self.mean_spacing)

    def volume_factors(self, cells: NDArray[np.integer]) -> Floats:
        """Volumes of cells over :attr:`mean_volume`; ``cells``: their indices in the flattened grid."""
        nx, ny, _ = self.cells
        x, y, z = (axis.volume_factors for axis in self.axes)
        return np.asarray(x[cells % nx] * y[cells // nx % ny] * z[cells // (nx * ny)])

    @staticmethod
    def along(axis: int, values: Any) -> Any:
        """A number for each plane across an axis, in the shape that multiplies an array of shape (nz, ny, nx)."""
        return values.reshape([-1 if dimension == 2 - axis else 1 for dimension in range(3)])

    def side_areas(self, side: int, cells: NDArray[np.integer]) -> Floats:
        """Areas in m² of cells' sides towards x−, x+, …, z+ (0 to 5); ``cells`` as for :meth:`volume_factors`."""
        axis, stride = side // 2, (1, self.cells[0], self.cells[0] * self.cells[1])[side // 2]
        planes = cells // stride % self.cells[axis]
        return np.asarray(self.mean_volume * self.volume_factors(cells) * self.axes[axis].gains[planes, side % 2])

    def part(self, cells: Sequence[tuple[int, int]]) -> "Grid":
        """The grid of a box of these cells: the first and the one after the last, along x, y, z."""
        counts, sizes, origins, borders = [], [], [], []
        for (first, last), axis, own, origin in zip(cells, self.axes, self.borders, self.origin, strict=True):
            counts.append(last - first)
            borders.append(own[first : last + 1])
            sizes.append(own[last] - own[first] if own else (last - first) * axis.spacing)
            origins.append(own[first] if own else origin + first * axis.spacing)
        (nx, ny, nz), (lx, ly, lz), (x, y, z), (bx, by, bz) = counts, sizes, origins, borders
        return Grid((nx, ny, nz), (lx, ly, lz), (x, y, z), (bx, by, bz), self.radial)

    def centres(self, axis: int) -> Floats:
        """Coordinates in m of the cell centres along an axis (0 = x, 1 = y, 2 = z)."""
        return self.axes[axis].centres

    def planes(self, first: int, count: int) -> "Grid":
        """A grid of ``count`` planes of this one, from plane ``first`` on, with its spacing to the bit.

        The first plane of the grid follows its last one.
        """
        (nx, ny, _), (x, y, _), (*corner, z) = self.cells, self.size, self.origin
        planes = np.arange(first, first + count) % self.cells[2]
        depth = float(self.axes[2].widths[planes].sum()) if self.borders[2] else count * self.mean_spacing[2]
        start = self.borders[2][planes[0]] if self.borders[2] else z + first * self.mean_spacing[2]
        origin = (corner[0], corner[1], start)
        return _Planes((nx, ny, count), (x, y, depth), origin, self.borders, self.radial, whole=self, first=first)


@dataclass(frozen=True)
class _Planes(Grid):
    """Some planes of a grid, from plane ``first`` on. The first plane of the grid follows its last one."""

    whole: Grid = field(kw_only=True)
    first: int = field(kw_only=True)

    @cached_property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        """Those of the whole grid, bit for bit."""
        x, y, z = self.whole.axes
        return x, y, z.some(np.arange(self.first, self.first + self.cells[2]) % len(z))

    @property
    def mean_spacing(self) -> tuple[float, float, float]:
        """That of the whole grid, bit for bit: size / cells would differ by rounding."""
        return self.whole.mean_spacing
