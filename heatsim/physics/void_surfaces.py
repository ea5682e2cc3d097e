"""Surfaces towards void, and how much true area a voxel's surface stands for.

A surface made of voxels is a staircase, larger than the smooth surface it stands for: a sphere's is 1.5 times the true
one. Of a plane with the unit normal n, the staircase has |n_a| units of area across axis a for every unit of true area,
so weighting each voxel surface with |n_a| of its own axis gives Σ n_a² = 1. The normal points to the centre of gravity
of the void in a ball around the cell. Surfaces that are flat over several cells, or from one sharp edge or corner to
another, are faces of the box shapes that parts are made of, and keep their area: near their edges the ball would see
two faces and round them off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid

_RADIUS = 3.5  # of the ball, in cells
_FLAT = 5  # cells that a flat surface goes on for, in some direction along each of its two axes
_SHARP = 3  # cells of a drop or a wall at which a shorter one ends


@dataclass(frozen=True, eq=False)
class Exposure:
    """The cells that touch void.

    Attributes:
        bits: a bit for each cell of the grid, in the order of memory, the lowest bit of a word first; uint32.
        before: the number of exposed cells before each word; uint32.
        cells: their indices in the flattened grid, ascending; int64, shape (n,).
        area: true over voxel area of their surfaces across x, y, z; shape (n, 3).
    """

    bits: NDArray[np.uint32]
    before: NDArray[np.uint32]
    cells: NDArray[np.int64]
    area: NDArray[np.float64]


def find(grid: Grid, void: NDArray[np.bool_], periodic: tuple[bool, bool, bool]) -> Exposure:
    """The exposed cells of a grid.

    Args:
        grid: the cells.
        void: which of them are void, shape (nz, ny, nx).
        periodic: which axes (x, y, z) wrap.
    """
    nz, ny, nx = void.shape
    planes = []
    for z in range(nz):
        beside = np.zeros((ny, nx), dtype=bool)
        for axis in range(3):
            for side in (-1, 1):
                beside |= _plane_beside(void, z, axis, side, periodic)
        planes.append(np.flatnonzero(beside & ~void[z]) + z * ny * nx)
    cells = np.concatenate(planes).astype(np.int64)

    words = -(-void.size // 32)
    bits = np.zeros(words, dtype=np.uint32)
    np.bitwise_or.at(bits, cells // 32, np.left_shift(np.uint32(1), (cells % 32).astype(np.uint32)))
    counts = np.bincount(cells // 32, minlength=words)
    before = (np.cumsum(counts) - counts).astype(np.uint32)

    area = np.zeros((len(cells), 3))
    for axis in range(3):
        surfaces = np.zeros(len(cells))
        for side in (-1, 1):
            exposed = _Surroundings(void, cells, periodic).at(axis, side)
            weights = _weights(grid, _Surroundings(void, cells[exposed], periodic), axis, side)
            area[exposed, axis] += weights
            surfaces += exposed
        area[:, axis] /= np.maximum(surfaces, 1.0)
    return Exposure(bits, before, cells, area)


def _plane_beside(
    void: NDArray[np.bool_], z: int, axis: int, side: int, periodic: tuple[bool, bool, bool]
) -> NDArray[np.bool_]:
    """Which neighbours of the cells of a plane are void, in one direction; beyond a face the cell itself."""
    if axis == 2:
        nz = len(void)
        return np.asarray(void[(z + side) % nz if periodic[2] else min(max(z + side, 0), nz - 1)])
    along = 1 - axis
    n = void.shape[1 + along]
    at = np.arange(n) + side
    return np.asarray(void[z].take(at % n if periodic[axis] else np.clip(at, 0, n - 1), along))


class _Surroundings:
    """Looks around many cells at a time; beyond a face that does not wrap lies what lies at the face."""

    def __init__(self, void: NDArray[np.bool_], cells: NDArray[np.int64], periodic: tuple[bool, bool, bool]) -> None:
        nz, ny, nx = void.shape
        self._void = void.reshape(-1)
        self._axes = tuple(
            (cells // stride % n, n, stride, wraps)
            for n, stride, wraps in zip((nx, ny, nz), (1, nx, nx * ny), periodic, strict=True)
        )
        self._shifted: dict[tuple[int, int], NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self._axes[0][0])

    def is_void(self, place: Sequence[int]) -> NDArray[np.bool_]:
        """Which of the cells that lie (dx, dy, dz) away are void."""
        x, y, z = (self._index(axis, distance) for axis, distance in enumerate(place))
        return np.asarray(self._void[x + y + z])

    def at(self, axis: int, n: int, other: int = 0, m: int = 0) -> NDArray[np.bool_]:
        """Which of the cells n away along an axis, and m along another, are void."""
        place = [0, 0, 0]
        place[axis] += n
        place[other] += m
        return self.is_void(place)

    def _index(self, axis: int, distance: int) -> NDArray[np.int64]:
        if (axis, distance) not in self._shifted:
            at, n, stride, wraps = self._axes[axis]
            at = (at + distance) % n if wraps else np.clip(at + distance, 0, n - 1)
            self._shifted[axis, distance] = at * stride
        return self._shifted[axis, distance]


def _weights(grid: Grid, around: _Surroundings, axis: int, side: int) -> NDArray[np.float64]:
    """|n_a| of the cells' surfaces across an axis on one side, 1 where they are flat."""
    # Two balls, around the cell and the void beside it: together they see the surface between them.
    beside = [0, 0, 0]
    beside[axis] = side
    gravity = np.zeros((3, len(around)))
    reach = range(-int(_RADIUS) - 1, int(_RADIUS) + 2)
    for place in product(reach, repeat=3):
        arms = [arm for arm in (np.array(place), np.subtract(place, beside)) if (arm**2).sum() <= _RADIUS**2]
        if arms:
            void = around.is_void(place)
            for other, arm in enumerate(np.sum(arms, axis=0).tolist()):
                if arm:
                    gravity[other] += arm * void
    normal = np.abs(gravity) / np.reshape(grid.spacing, (3, 1))
    length = np.sqrt((normal**2).sum(axis=0))
    # A sheet with as much void behind it has no centre of gravity beside it: its surfaces count as they are.
    weights = np.where(length > 0.0, normal[axis] / np.where(length > 0.0, length, 1.0), 1.0)
    weights[_flat(around, axis, side)] = 1.0
    return weights


def _flat(around: _Surroundings, axis: int, side: int) -> NDArray[np.bool_]:
    """Whether the surface across an axis is that of a box shape, as seen along each of the two others.

    It goes on flat in some direction, or it ends in both by a drop or a wall that no smooth surface has: a slope gives
    either steps of one cell or stretches of one.
    """
    flat = np.ones(len(around), dtype=bool)
    for other in range(3):
        if other == axis:
            continue
        (on, cells, drop, wall), (on_too, cells_too, drop_too, wall_too) = (
            _end(around, axis, side, other, direction) for direction in (-1, 1)
        )
        sharp = (drop | wall) & (drop_too | wall_too)
        sharp &= (drop & drop_too) | (wall & wall_too) | (cells + cells_too > 0)
        flat &= on | on_too | sharp
    return flat


def _end(
    around: _Surroundings, axis: int, side: int, other: int, direction: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """How a surface goes on in a direction: whether flat; else for how many cells, and whether to a drop or a wall."""
    on = np.ones(len(around), dtype=bool)
    cells = np.zeros(len(around), dtype=np.int64)
    drop, wall = np.zeros_like(on), np.zeros_like(on)
    for n in range(direction, direction * (_FLAT + 1), direction):
        in_line, before = around.at(axis, 0, other, n), around.at(axis, side, other, n)
        ends = on & (in_line | ~before)
        down, up = ends & in_line, ends & ~in_line
        for depth in range(1, _SHARP):
            down &= around.at(axis, -side * depth, other, n)
            up &= ~around.at(axis, side * (depth + 1), other, n)
        drop |= down
        wall |= up
        on &= ~ends
        cells += on
    return on, cells, drop, wall
