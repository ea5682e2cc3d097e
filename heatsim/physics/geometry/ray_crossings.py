"""Crossings of rays along +x with triangles: their places and signs (:mod:`heatsim.physics.winding`).

Compiled by numba, because each ray meets other triangles.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from heatsim.numba_cache import kept

_Floats = NDArray[np.float64]
_Indices = NDArray[np.int64]


@kept(nogil=True)
def subtract_signs(
    points: _Floats, triangles: _Indices, xs: _Floats, ys: _Floats, zs: _Floats, steps: NDArray[np.int16]
) -> None:
    """Subtract the sign of each crossing at the first cell behind it, on the rays through all cells of a block.

    Args:
        points: corners (x, y, z), shape (n, 3).
        triangles: indices of three corners each, shape (m, 3).
        xs: the x of the cells' centres in the block, ascending, in the unit of the points.
        ys: their y.
        zs: their z.
        steps: the result, shape (z, y, x); zeros before.
    """
    for corners in triangles:
        low_z = min(points[corners[0], 2], points[corners[1], 2], points[corners[2], 2])
        high_z = max(points[corners[0], 2], points[corners[1], 2], points[corners[2], 2])
        for z in range(_first_from(zs, low_z), _first_from(zs, high_z)):
            up, x_up, down, x_down = _chord(points, corners, zs[z])
            for y in range(_first_from(ys, min(up, down)), _first_from(ys, max(up, down))):
                x = _first_from(xs, x_up + (ys[y] - up) * ((x_down - x_up) / (down - up)))
                if x < len(xs):
                    steps[z, y, x] -= 1 if up > down else -1


@kept(nogil=True)
def add_signs_ahead(
    points: _Floats,
    triangles: _Indices,
    ends: _Floats,
    places: _Floats,
    bins: _Indices,
    starts: _Indices,
    members: _Indices,
    signs: _Indices,
) -> None:
    """Add the signs of all crossings of rays.

    Args:
        points: as for :func:`subtract_signs`.
        triangles: as for :func:`subtract_signs`.
        ends: of each triangle along y, along z, and the upper one along x; shape (m, 5).
        places: where the rays begin, shape (k, 3).
        bins: the bin of each of them.
        starts: where each bin starts in ``members``, and where the last one ends.
        members: the triangles of all bins, in each bin those that reach farthest along x first.
        signs: the result, shape (k,); zeros before.
    """
    for ray in range(len(places)):
        x, y, z = places[ray]
        for triangle in members[starts[bins[ray]] : starts[bins[ray] + 1]]:
            low_y, high_y, low_z, high_z, high_x = ends[triangle]
            if x > high_x:
                break  # all others end before the ray begins
            if low_y <= y <= high_y and low_z <= z <= high_z:
                up, x_up, down, x_down = _chord(points, triangles[triangle], z)
                if min(up, down) <= y < max(up, down) and x_up + (y - up) * ((x_down - x_up) / (down - up)) > x:
                    signs[ray] += 1 if up > down else -1


@njit(inline="always")
def _first_from(values: _Floats, least: float) -> int:
    """The number of the first of ascending values that is at least ``least``; their count if there is none."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(inline="always")
def _chord(points: _Floats, corners: _Indices, z: float) -> tuple[float, float, float, float]:
    """Where a plane of constant z cuts a triangle: y and x at the edge that goes up, then at the one that goes down.

    All are 0 if it misses the triangle. The place of an edge is the same for all triangles that have it.
    """
    up, x_up, down, x_down = 0.0, 0.0, 0.0, 0.0
    for side in range(3):
        first, second = corners[side], corners[(side + 1) % 3]
        low = points[first, 2] <= z
        if low != (points[second, 2] <= z):
            one, other = points[min(first, second)], points[max(first, second)]
            along = z - one[2]
            y = one[1] + along * ((other[1] - one[1]) / (other[2] - one[2]))
            x = one[0] + along * ((other[0] - one[0]) / (other[2] - one[2]))
            if low:
                up, x_up = y, x
            else:
                down, x_down = y, x
    return up, x_up, down, x_down
