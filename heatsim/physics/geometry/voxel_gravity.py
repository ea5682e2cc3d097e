"""Centres of gravity of the material beyond voxel faces.

Compiled by numba, because the loops visit every cell of a ball around each face.
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from heatsim.numba_cache import kept


@kept(parallel=True, nogil=True)
def gravity(
    material: NDArray[np.uint8],
    places: NDArray[np.int64],
    own: NDArray[np.int64],
    far: int,
    axis: int,
    side: int,
    radius: float,
    periodic: NDArray[np.bool_],
    sums: NDArray[np.float64],
) -> None:
    """Sum the vectors, in cells, from each face's cells to all cells of the far material, minus those of the near one.

    There are two balls, one around each of the two cells at the face.

    Args:
        material: the material of each cell, shape (nz, ny, nx).
        places: x, y, z of the cell before each face, shape (3, n).
        own: its material, shape (n,); −1 if all materials but the far one count as near.
        far: the material beyond the faces.
        axis: the axis across which the faces lie.
        side: the side of the cell, −1 or 1.
        radius: radius of the balls in cells.
        periodic: which axes (x, y, z) wrap; beyond the ends of others the cells at the ends are repeated.
        sums: the result along x, y, z, shape (n, 3); zeros before.
    """
    nz, ny, nx = material.shape
    reach, squared = int(radius) + 1, radius * radius
    beside_x, beside_y, beside_z = side * (axis == 0), side * (axis == 1), side * (axis == 2)
    for face in prange(places.shape[1]):
        for dz in range(-reach, reach + 1):
            z = _place(places[2, face] + dz, nz, periodic[2])
            for dy in range(-reach, reach + 1):
                y = _place(places[1, face] + dy, ny, periodic[1])
                for dx in range(-reach, reach + 1):
                    near = dx * dx + dy * dy + dz * dz <= squared
                    ax, ay, az = dx - beside_x, dy - beside_y, dz - beside_z
                    near_too = ax * ax + ay * ay + az * az <= squared
                    if not (near or near_too):
                        continue
                    found = material[z, y, _place(places[0, face] + dx, nx, periodic[0])]
                    sign = 1 if found == far else -1 if found == own[face] else 0
                    if sign == 0:
                        continue
                    sums[face, 0] += sign * (dx * near + ax * near_too)
                    sums[face, 1] += sign * (dy * near + ay * near_too)
                    sums[face, 2] += sign * (dz * near + az * near_too)


@njit(inline="always")
def _place(i: int, n: int, wraps: bool) -> int:
    if wraps:
        return i % n
    return min(max(i, 0), n - 1)
