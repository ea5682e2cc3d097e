"""Closed surfaces of triangles from STL files, and the cells inside them.

Inside is where the winding number is not 0. So shells that overlap, touch or repeat each other are one body, and a
shell of the opposite orientation within another one is a cavity.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted
from heatsim.grid import Grid
from heatsim.physics.geometry.counted import places
from heatsim.physics.geometry.winding import Winding
from heatsim.scenario import Stl
from heatsim.scenario.files import InputFile
from heatsim.scenario.messages import show
from heatsim.scenario.stl_file import read_triangles
from heatsim.scenario.values.quantities import LARGEST

# Fraction of the part's size: corners nearer than this are merged if the surface is open. Programs that write
# coordinates as text may round the same corner differently in different triangles.
_MERGED = 1e-6
_BESIDE = 1e-6  # fraction of the part's size: distance from a triangle at which its two sides are looked at
_SAMPLES = 16  # along the size of a shell, at least
_MOST_SAMPLES = 2**17
_CELLS_AT_ONCE = 2**18
_STRAY = 1e-3  # part of the samples of a shell that may differ from the others: surfaces in contact are rounded

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class _Shells(NamedTuple):
    """A closed surface; the volume that it encloses, counted with the winding number, is positive.

    Attributes:
        points: corners (x, y, z) in the unit of the file, shape (n, 3).
        triangles: indices of three corners each, shape (m, 3).
        of: the shell of each triangle, a closed surface that is connected; shape (m,).
        boxes: the lowest and the highest coordinates of each shell, shape (shells, 2, 3).
        cavities: the number of shells that are cavities.
        reversed_shells: the number of shells beside the others whose triangles point inwards.
        joined: whether shells overlap, touch or repeat each other, or a shell overlaps itself.
    """

    points: Array
    triangles: Indices
    of: Indices
    boxes: Array
    cavities: int
    reversed_shells: int
    joined: bool


class Surface:
    """A closed surface.

    Args:
        points: corners (x, y, z) in m, shape (n, 3), float64.
        boxes: of each shell, in m.
        shells: the surface in the unit of its file.

    Attributes:
        points: the corners in m.
        triangles: indices of three corners each, shape (m, 3).
        boxes: the lowest and the highest coordinates of each shell, shape (shells, 2, 3).
    """

    def __init__(self, points: Array, boxes: Array, shells: _Shells) -> None:
        self.points, self.triangles, self.boxes, self._shells = points, shells.triangles, boxes, shells
        self._winding = Winding(points, shells.triangles)
        self._on_grid: tuple[Grid, _Lattice] | None = None

    @classmethod
    def from_stl(cls, stl: Stl) -> "Surface":
        """Read, scale and move a part. The surfaces of the latest parts are kept.

        Raises:
            ValueError: the file has no triangles, or its surface is open or has no clear inside; the message is for the
                user.
        """
        shells = _closed(stl.file)
        with np.errstate(over="ignore"):
            placed, boxes = (each * stl.scale + np.array(stl.translate) for each in (shells.points, shells.boxes))
        if not (abs(placed) <= LARGEST).all():
            raise ValueError(f"{show(stl.file.path.name)} reaches beyond {LARGEST!r} m with this scale")
        return cls(placed, boxes, shells)

    def shells_without_cells(self, grid: Grid) -> list[int]:
        """The shells of several that reach into the domain and hold no centre of a cell; none of a single shell."""
        ends = np.array([grid.origin, np.add(grid.origin, grid.size)])
        within = (self.boxes[:, 0] < ends[1]).all(axis=1) & (self.boxes[:, 1] > ends[0]).all(axis=1)
        order = np.argsort(self._shells.of, kind="stable")
        starts = np.searchsorted(self._shells.of[order], np.arange(len(self.boxes) + 1))
        return [
            shell
            for shell in np.flatnonzero(within).tolist()
            if len(self.boxes) > 1 and not self._has_cells(order[starts[shell] : starts[shell + 1]], shell, grid)
        ]

    def _has_cells(self, of_shell: Indices, shell: int, grid: Grid) -> bool:
        """Whether a shell alone holds a centre of a cell; planes in its middle are looked at first."""
        first, last = (_in_cells(each, grid) for each in self.boxes[shell])
        begin = np.maximum(np.ceil(first), 0).astype(int).tolist()
        end = (np.minimum(np.floor(last), np.array(grid.cells) - 1).astype(int) + 1).tolist()
        if any(stop <= start for start, stop in zip(begin, end, strict=True)):
            return False
        alone = _Lattice(self.points, self.triangles[of_shell], grid)
        x, y, z = (slice(start, stop) for start, stop in zip(begin, end, strict=True))
        planes = max(1, _CELLS_AT_ONCE // ((x.stop - x.start) * (y.stop - y.start)))
        middle = (z.start + z.stop - planes) // 2
        return any(
            alone.winding((slice(bottom, min(bottom + planes, z.stop)), y, x)).any()
            for bottom in sorted(range(z.start, z.stop, planes), key=lambda bottom: abs(bottom - middle))
        )

    def without(self, shells: Sequence[int]) -> "Surface":
        """The surface without some of its shells."""
        if not shells:
            return self
        kept = ~np.isin(self._shells.of, shells)
        left = self._shells._replace(triangles=self.triangles[kept], of=self._shells.of[kept])
        return Surface(self.points, self.boxes, left)

    @property
    def plain(self) -> bool:
        """Whether all of it is the surface of the body, and normals from the order of corners point out of the body."""
        return not self._shells.joined and not self._shells.reversed_shells

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The smallest and the largest coordinates (x, y, z) in m."""
        return tuple(self.points.min(axis=0).tolist()), tuple(self.points.max(axis=0).tolist())

    @property
    def summary(self) -> str:
        """Text about its shells; empty if there is only one that does not overlap itself."""
        shells = self._shells
        notes = [counted(shells.cavities, "cavity", "cavities")] if shells.cavities else []
        if shells.reversed_shells:
            notes.append(f"{counted(shells.reversed_shells, 'shell')} inside out, read as solid")
        notes += ["joined"] if shells.joined else []
        return ", ".join([counted(len(shells.boxes), "shell"), *notes]) if notes or len(shells.boxes) > 1 else ""

    def inside(self, grid: Grid, block: tuple[slice, slice, slice]) -> NDArray[np.bool_]:
        """Whether the centres of a block of cells (slices along z, y, x) lie inside; in the shape of the block.

        A centre on the surface counts as inside on one side of the part only, so that two parts in contact share no
        cell.
        """
        if self._on_grid is None or self._on_grid[0] != grid:
            self._on_grid = grid, _Lattice(self.points, self.triangles, grid)
        return np.asarray(self._on_grid[1].winding(block) != 0)

    def winding(self, points: Array) -> Indices:
        """The winding number around points (x, y, z) in m, shape (n, 3); shape (n,)."""
        return self._winding.at(points)

    def sides(self, front: Array, back: Array) -> tuple[Array, NDArray[np.bool_]]:
        """What pieces of the triangles add to the surface of the body.

        Args:
            front: points (x, y, z) in m just outside of each piece, along its normal; shape (n, 3).
            back: points just inside.

        Returns:
            The part of each piece's area that counts, and whether its normal points into the body. A piece within the
            body counts 0. Of k equal pieces at the same place each counts 1/k; so do k + 1 pieces if one of them is
            reversed, and this one counts −1/k.
        """
        ahead, behind = self.winding(front), self.winding(back)
        counts = (ahead == 0) != (behind == 0)
        return np.where(counts, 1.0, 0.0) / np.where(counts, behind - ahead, 1), ahead != 0


class _Lattice:
    """Triangles of a closed surface, and the centres of a grid's cells.

    Args:
        points: corners (x, y, z) in m, shape (n, 3).
        triangles: indices of three corners each, shape (m, 3).
        grid: the cells.
    """

    def __init__(self, points: Array, triangles: Indices, grid: Grid) -> None:
        self._centres = None if grid.uniform else [axis.centres for axis in grid.axes]
        self._winding = Winding(_in_cells(points, grid) if grid.uniform else points, triangles)

    def winding(self, block: tuple[slice, slice, slice]) -> NDArray[np.int16]:
        """The winding numbers around the centres of a block of cells (slices along z, y, x), in its shape."""
        return self._winding.in_cells(block, self._centres)


def _in_cells(points: Array, grid: Grid) -> Array:
    """Points counted in cells: a centre of a cell has whole numbers."""
    if not grid.uniform:
        return places(grid, points) - 0.5
    return np.asarray((points - np.array(grid.origin)) * (np.array(grid.cells) / np.array(grid.size)) - 0.5)


@lru_cache(maxsize=8)
def _closed(file: InputFile) -> _Shells:
    """The closed surface in a file.

    Raises:
        ValueError: as for :meth:`Surface.from_stl`.
    """
    try:
        corners = read_triangles(file.read())
        points, triangles = _merged(corners.reshape(-1, 3))
        if _balance(triangles)[0].size:
            size = float(np.ptp(points, axis=0).max())
            rounded = np.round(corners.reshape(-1, 3) / (_MERGED * size)) if size > 0.0 else corners.reshape(-1, 3)
            points, triangles = _merged(rounded)
            points = points * (_MERGED * size)
        _check_edges(points, triangles)
        shell = _shells(triangles)
        volumes = np.asarray(np.bincount(shell, _volumes(points, triangles)), dtype=np.float64)
        if volumes.sum() < 0.0:
            triangles, volumes = triangles[:, ::-1], -volumes
        joints = _joints(points, triangles, shell, volumes)
    except ValueError as error:
        raise ValueError(f"{show(file.path.name)} {error}") from None
    return _Shells(points, triangles, shell, _boxes(points[triangles], shell, len(volumes)), *joints)


def _merged(corners: Array) -> tuple[Array, Indices]:
    """Different corners, and the triangles between them that are more than a line."""
    number = np.zeros(len(corners), dtype=np.int64)
    for along in corners.T:
        values, index = np.unique(along, return_inverse=True)
        _, number = np.unique(number * len(values) + index.reshape(-1), return_inverse=True)
    points = np.empty((int(number.max(initial=-1)) + 1, 3))
    points[number] = corners
    triangles = number.reshape(-1, 3)
    return points, triangles[(triangles != np.roll(triangles, 1, axis=1)).all(axis=1)]


def _half_edges(triangles: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """The number of the edge of each side of a triangle, and whether the triangle runs along it upwards."""
    first, second = triangles.reshape(-1), np.roll(triangles, -1, axis=1).reshape(-1)
    return np.minimum(first, second) * (triangles.max(initial=0) + 1) + np.maximum(first, second), first < second


def _balance(triangles: Indices) -> tuple[Indices, Indices]:
    """The edges of an odd number of triangles, and those that more triangles run along in one direction."""
    edges, up = _half_edges(triangles)
    known, index = np.unique(edges, return_inverse=True)
    counts = np.bincount(index.reshape(-1), minlength=len(known))
    forwards = np.bincount(index.reshape(-1)[up], minlength=len(known))
    return known[counts % 2 == 1], known[2 * forwards != counts]


def _check_edges(points: Array, triangles: Indices) -> None:
    """Raise the mistake of a surface that is open, or whose triangles do not agree on what is inside.

    Raises:
        ValueError: says how many edges are wrong, and where one is.
    """
    if not len(triangles):
        raise ValueError("has no triangle that is more than a line")
    for wrong, message, remedy in zip(
        _balance(triangles),
        ("is open: {} to one triangle only", "has no clear inside: {} to two triangles whose normals disagree"),
        (
            "close the holes in the program that made the file",
            "let the program that made the file turn all normals out",
        ),
        strict=True,
    ):
        if len(wrong):
            middle = points[list(np.divmod(wrong[0], triangles.max() + 1))].mean(axis=0)
            one = len(wrong) == 1
            count = f"{counted(len(wrong), 'edge')} {'belongs' if one else 'belong'}"
            place = f"{'' if one else 'one of them '}at {_place(middle)} in the file"
            raise ValueError(f"{message.format(count)}, {place}; {remedy}")


def _place(point: Array) -> str:
    return f"({', '.join(f'{coordinate:.6g}' for coordinate in point.tolist())})"


def _shells(triangles: Indices) -> Indices:
    """The number of the shell of each triangle, from 0.

    Where more than two triangles meet at an edge, they continue in the order of the file: programs write shell after
    shell.
    """
    edges, up = _half_edges(triangles)
    ends = [np.flatnonzero(way)[np.argsort(edges[way], kind="stable")] // 3 for way in (up, ~up)]
    label = np.arange(len(triangles))
    while True:
        lowest = np.minimum(*(label[end] for end in ends))
        before = label.copy()
        for end in ends:
            np.minimum.at(label, before[end], lowest)
        label = label[label]
        if (label == before).all():
            return np.unique(label, return_inverse=True)[1].reshape(-1)


def _volumes(points: Array, triangles: Indices) -> Array:
    """Signed volumes between triangles and the middle of the surface; they add up to that of a shell."""
    a, b, c = np.moveaxis((points - points.mean(axis=0))[triangles], 1, 0)
    return np.asarray(np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0)


def _joints(points: Array, triangles: Indices, shell: Indices, volumes: Array) -> tuple[int, int, bool]:
    """The numbers of cavities and of reversed shells, and whether any shells overlap, touch or repeat each other.

    Raises:
        ValueError: a reversed shell lies partly within another one, two cavities overlap, or nothing is inside.
    """
    beside = _BESIDE * float(np.ptp(points, axis=0).max())
    places, normals, of = _samples(points, triangles, shell, len(volumes))
    whole = Winding(points, triangles)
    front, back = (whole.at(places + side * beside * normals) for side in (1.0, -1.0))
    if not ((front == 0) != (back == 0)).any():
        raise ValueError(
            "has shells that cancel each other: nothing is inside; remove one of them, or turn it inside out"
        )
    negative, outwards = volumes < 0.0, np.ones(len(volumes), dtype=bool)
    if negative.any():
        # The normals of a negative shell point into it. What the positive shells alone enclose there says what it is.
        inner = np.flatnonzero(negative[of])
        order = inner[np.argsort(of[inner], kind="stable")]
        enclosed = Winding(points, triangles[~negative[shell]]).at(places[order] + beside * normals[order]) > 0
        starts = np.flatnonzero(np.diff(of[order], prepend=-1))
        for first, last in zip(starts, [*starts[1:], len(order)], strict=True):
            here, within = order[first:last], enclosed[first:last]
            cavity = 2 * int(within.sum()) > len(here)
            stray = within != cavity
            if stray.sum() > _STRAY * len(here):
                other = "another shell that is not; turn all normals out, or make it lie within that shell as a cavity"
                raise ValueError(
                    f"has a shell that is inside out and crosses, at {_place(places[here[stray][0]])}, {other}"
                )
            twice = front[here] < 0
            if cavity and twice.sum() > _STRAY * len(here):
                place = _place(places[here[twice][0]])
                raise ValueError(
                    f"has two cavities that overlap at {place} in the file; make one of them, or move them apart"
                )
            outwards[of[here[0]]] = cavity
    # Alone, a shell has 0 in front of it and 1 behind, or if it is reversed −1 in front and 0 behind.
    joined = bool(((back != outwards[of]) | (front != back - 1)).any())
    return int((negative & outwards).sum()), int((~outwards).sum()), joined


def _boxes(corners: Array, shell: Indices, shells: int) -> Array:
    """The lowest and the highest coordinates of each shell, shape (shells, 2, 3)."""
    low, high = np.full((shells, 3), np.inf), np.full((shells, 3), -np.inf)
    np.minimum.at(low, shell, corners.min(axis=1))
    np.maximum.at(high, shell, corners.max(axis=1))
    return np.stack((low, high), axis=1)


def _samples(points: Array, triangles: Indices, shell: Indices, shells: int) -> tuple[Array, Array, Indices]:
    """Points spread over all triangles, the unit normals there, and the shells."""
    corners = points[triangles]
    # Each triangle begins at the corner across its longest side.
    sides = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
    turn = (np.argmax(sides, axis=1)[:, None] + [2, 0, 1]) % 3
    apex, one, other = np.moveaxis(np.take_along_axis(corners, turn[:, :, None], axis=1), 1, 0)
    doubled = np.cross(one - apex, other - apex)
    area, longest = np.linalg.norm(doubled, axis=1), sides.max(axis=1)
    flat = area <= _MERGED**2 * longest**2
    normals = doubled / np.where(flat, 1.0, area)[:, None]
    step = (np.ptp(_boxes(corners, shell, shells), axis=1).max(axis=1) / _SAMPLES)[shell]
    while True:
        across = np.maximum(np.ceil(longest / step), 1.0).astype(np.int64)
        down = np.maximum(np.ceil(area / longest / step), 1.0).astype(np.int64)
        counts = np.where(flat, 0, across * down)
        if counts.sum() <= _MOST_SAMPLES:
            break
        if counts.max() == 1:  # too many triangles: take a part of each shell
            kept = np.arange(len(counts)) % -(-len(counts) // _MOST_SAMPLES) == 0
            kept[np.unique(np.where(flat, -1, shell), return_index=True)[1]] = True
            counts[~kept] = 0
            break
        step = 2.0 * step
    of = np.repeat(np.arange(len(triangles)), counts)
    row, column = np.divmod(np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts), across[of])
    part, along = ((row + 0.5) / down[of])[:, None], ((column + 0.5) / across[of])[:, None]
    return apex[of] + part * (one[of] + along * (other[of] - one[of]) - apex[of]), normals[of], shell[of]
