"""Sums over neighbours in rows of cells of several widths, for the CPU kernels.

The coefficient of a link is that of a cell of the mean widths times the factor of its plane (planes.py). Along a row
the factors are arrays; those across it are the same for the whole row. Axes are those of the ring (ring_axes.py).
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.lines import compiled, whole_vectors
from heatsim.kernels.cpu.plan import constant, get, put, reals_at

# Fields of a plan: the factors of the planes along x, y, z, each of shape (6, n), if cells have several widths; else 0.
PLANES = ("planes_x", "planes_y", "planes_z")


@compiled
def row_coefficients(plan: Any, c: Any, y: int, z: int, T: Any) -> Any:
    """The coefficients of a row: c1 and c2 of the mean cell, and c3 … c6 of its own."""
    along_y, along_z, ny, nz = reals_at(plan.planes_y, T), reals_at(plan.planes_z, T), plan.ny, plan.nz
    south, north, below, above = c[3] * along_y[y], c[4] * along_y[ny + y], c[5] * along_z[z], c[6] * along_z[nz + z]
    return c[1], c[2], south, north, below, above


@compiled
def sum_graded(c: Any, along: Any, n: int, T: Any, around: Any, T_new: Any, new: int, count: int) -> None:
    """c1·f1·(T(x−) − T) + c2·f2·(T(x+) − T) + c3·(T(y−) − T) + … + c6·(T(z+) − T) of some cells of a row.

    Args:
        c: from :func:`row_coefficients`.
        along: f1 of the first cell; f2 stands ``n`` numbers further on.
        n: see above.
        T: the array of values.
        around: indices of the first cell's neighbours in z− and y−, of the cell, and of its neighbours in y+ and z+.
        T_new: the array for the sums.
        new: index of the first sum.
        count: the number of cells.
    """
    whole_vectors()
    c1, c2, c3, c4, c5, c6 = c
    below, south_of, here, north_of, above = around
    i, west, east, out = np.uint64(here), np.uint64(here - 1), np.uint64(here + 1), np.uint64(new)
    south, north, down, up = np.uint64(south_of), np.uint64(north_of), np.uint64(below), np.uint64(above)
    other = np.uint64(n)
    for x in range(np.uint64(count)):
        centre = get(T, i + x)
        total = c1 * constant(along, x) * (get(T, west + x) - centre)
        total += c2 * constant(along, other + x) * (get(T, east + x) - centre)
        total += c3 * (get(T, south + x) - centre)
        total += c4 * (get(T, north + x) - centre)
        total += c5 * (get(T, down + x) - centre)
        total += c6 * (get(T, up + x) - centre)
        put(T_new, out + x, total)
