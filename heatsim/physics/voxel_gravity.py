"""Where the material beyond a voxel face lies.

Loops over every cell of a ball around each face, compiled by numba.
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
    """Add up the arms, in cells, of all cells of the far material less those of the near one.

    The balls are two, around the cell and its neighbour beyond the face: together they see the surface between them.

    Args:
        material: of each cell, shape (nz, ny, nx).
        places: x, y, z of the cell before each face, shape (3, n).
        own: its material, −1 where all that is not far is near; shape (n,).
        far: the material beyond the faces.
        axis: across which the faces lie.
        side: on which side of the cell, −1 or 1.
        radius: of the balls in cells.
        periodic: which axes (x, y, z) wrap; beyond the others lies what lies at the ends.
        sums: along x, y, z, shape (n, 3), zeros.
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
