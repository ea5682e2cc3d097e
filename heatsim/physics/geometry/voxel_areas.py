"""The smooth area of faces between voxels of label images, whose shapes are unknown.

A plane with the unit normal n gives |nᵢ| of a voxel face's area to each face across axis i. The normal at a face points
to the centre of gravity of the cells of the far material in balls around the two cells at the face. The radius of the
balls in cells grows with the square root of the number of cells, so it falls in metres: the errors from voxels and from
curvature both fall with the spacing. Where cells have several widths, those beside the face count: this is right as
long as the widths change little within a ball. Surfaces that are flat over several cells, or between two sharp edges,
belong to boxes and keep their voxel area: near an edge the balls would contain two faces and round the edge off.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.cell_faces import Array, Indices, cells_beside, voxel_areas
from heatsim.physics.geometry.counted import widths_around

_RADIUS = 4.5  # of the smallest ball, in cells
_CELLS = 24  # cells along the longest axis of the grid; in larger grids the ball is larger
_FLAT = 5  # cells: a surface this long in one direction along each of its axes is flat
_SHARP = 3  # cells: height of a drop or wall at which a shorter flat surface may end


def reach(grid: Grid) -> int:
    """How many planes away from a face the cells lie that its area depends on."""
    return max(int(_radius(max(grid.cells))) + 2, _FLAT + 1, _SHARP + 2)


def _radius(longest: int) -> float:
    """The radius of the balls in cells; ``longest``: cells along the longest axis of the grid."""
    return float(_RADIUS * max(1.0, longest / _CELLS) ** 0.5)


def areas(
    grid: Grid,
    material: NDArray[np.uint8],
    faces: Indices,
    void: int | None,
    periodic: tuple[bool, bool, bool],
    longest: int | None = None,
) -> Array:
    """The areas in m² of faces between cells of different materials.

    Args:
        grid: the cells.
        material: the material of each cell, shape (nz, ny, nx).
        faces: numbered as in :class:`heatsim.physics.geometry.cell_faces.FaceAreas`.
        void: the number of void among the materials; None if there is no void.
        periodic: which axes wrap.
        longest: cells along the longest axis, if ``grid`` is only a part of the grid.
    """
    radius = _radius(longest or max(grid.cells))
    found = voxel_areas(grid, faces)
    low, high = cells_beside(grid, faces)
    below, above = (material.reshape(-1)[cells].astype(np.int64) for cells in (low, high))
    # Seen from the material with the smaller number, but never from void.
    upwards = (below < above) if void is None else ((below < above) & (below != void)) | (above == void)
    cells, own, far = (np.where(upwards, *pair) for pair in ((low, high), (below, above), (above, below)))
    for axis in range(3):
        for side in (1, -1):
            for number in np.unique(far).tolist():
                seen = np.flatnonzero((faces % 3 == axis) & (upwards == (side > 0)) & (far == number))
                if not len(seen):
                    continue
                around = _Surroundings((material == number), cells[seen], periodic)
                opposite = np.full(len(seen), -1, dtype=np.int64) if number == void else own[seen]
                found[seen] *= _weights(grid, material, around, opposite, number, axis, side, periodic, radius)
    return found


class _Surroundings:
    """The materials around many cells. Beyond a face that does not wrap, the cells at the face are repeated."""

    def __init__(self, far: NDArray[np.bool_], cells: Indices, periodic: tuple[bool, bool, bool]) -> None:
        nz, ny, nx = far.shape
        self._far = far.reshape(-1)
        self._axes = tuple(
            (cells // stride % n, n, stride, wraps)
            for n, stride, wraps in zip((nx, ny, nz), (1, nx, nx * ny), periodic, strict=True)
        )

    def __len__(self) -> int:
        return len(self._axes[0][0])

    @property
    def places(self) -> Indices:
        """The cells' x, y, z, shape (3, n)."""
        return np.array([place for place, *_ in self._axes])

    def at(self, axis: int, n: int, other: int, m: int) -> NDArray[np.bool_]:
        """Whether the cells at distance n along an axis and m along another have the far material."""
        away = [0, 0, 0]
        away[axis] += n
        away[other] += m
        return self._is_far(away)

    def _is_far(self, away: Sequence[int]) -> NDArray[np.bool_]:
        index = np.zeros(len(self), dtype=np.int64)
        for (place, n, stride, wraps), distance in zip(self._axes, away, strict=True):
            at = place + distance
            index += (at % n if wraps else np.clip(at, 0, n - 1)) * stride
        return np.asarray(self._far[index])


def _weights(
    grid: Grid,
    material: NDArray[np.uint8],
    around: _Surroundings,
    own: Indices,
    far: int,
    axis: int,
    side: int,
    periodic: tuple[bool, bool, bool],
    radius: float,
) -> Array:
    """|nᵢ| at the faces of cells on one side across an axis; 1 for flat surfaces."""
    from heatsim.physics.geometry.voxel_gravity import gravity

    sums = np.zeros((len(own), 3))
    gravity(material, around.places, own, far, axis, side, radius, np.array(periodic), sums)
    # A normal counted in cells is one in m times the widths of the cells there.
    middles = around.places.T + 0.5
    middles[:, axis] += 0.5 * side
    normal = np.abs(sums) / widths_around(grid, middles, axis)
    length = np.sqrt((normal**2).sum(axis=1))
    # A thin sheet with the far material on both sides has no centre of gravity to one side: it keeps its voxel area.
    weights = np.where(length > 0.0, normal[:, axis] / np.where(length > 0.0, length, 1.0), 1.0)
    weights[_flat(around, axis, side)] = 1.0
    return np.asarray(weights)


def _flat(around: _Surroundings, axis: int, side: int) -> NDArray[np.bool_]:
    """Whether the surface across an axis belongs to a box, seen along each of the two other axes.

    It is flat over several cells in one direction, or it ends in both directions at a high drop or wall. Smooth slopes
    have steps of one cell, or flat parts of one cell.
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
) -> tuple[NDArray[np.bool_], Indices, NDArray[np.bool_], NDArray[np.bool_]]:
    """In one direction: whether a surface is flat; its flat cells; whether it ends at a drop; or at a wall."""
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
