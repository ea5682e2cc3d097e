"""Sums over neighbours in rows of cells of several widths, for the CPU kernels.

The coefficient of a link is that of a cell of the mean widths times the factor of its plane (planes.py). So the
coefficients of links along a row stand in two arrays, and those across it are the same for the whole row. Axes are
those of the ring (ring_axes.py).
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.lines import compiled, whole_vectors
from heatsim.kernels.cpu.plan import behind, constant, get, put, reals_at

# Fields of a plan, 0 if all cells have one width: c1 and c2 of the cells of a row, each in ``links_width`` numbers, and
# the distance to those of the next step, or type; the factors of the planes across x, y and z, each of shape (6, n).
GRADED = ("links_x", "links_width", "links_stride", "planes_x", "planes_y", "planes_z")


@compiled
def links_along(plan: Any, number: int, x: int, T: Any) -> Any:
    """c1 and c2 of a row's cells from place ``x`` on, of a step or a type; two arrays."""
    west = behind(reals_at(plan.links_x, T), number * plan.links_stride + x)
    return west, behind(west, plan.links_width)


@compiled
def links_across(plan: Any, c: Any, y: int, z: int, T: Any) -> Any:
    """c3 … c6 of a row, from c0…c6 of a cell of the mean widths."""
    along_y, along_z, ny, nz = reals_at(plan.planes_y, T), reals_at(plan.planes_z, T), plan.ny, plan.nz
    return c[3] * along_y[y], c[4] * along_y[ny + y], c[5] * along_z[z], c[6] * along_z[nz + z]


@compiled
def sum_graded(along: Any, across: Any, T: Any, around: Any, T_new: Any, new: int, n: int) -> None:
    """c1·(T(x−) − T) + … + c6·(T(z+) − T) of n cells of a row.

    Args:
        along: from :func:`links_along`.
        across: from :func:`links_across`.
        T: the array of values.
        around: indices of the first cell's neighbours in z− and y−, of the cell, and of its neighbours in y+ and z+.
        T_new: the array for the sums.
        new: index of the first sum.
        n: the number of cells.
    """
    whole_vectors()
    (c1, c2), (c3, c4, c5, c6) = along, across
    below, south_of, here, north_of, above = around
    i, west, east, out = np.uint64(here), np.uint64(here - 1), np.uint64(here + 1), np.uint64(new)
    south, north, down, up = np.uint64(south_of), np.uint64(north_of), np.uint64(below), np.uint64(above)
    for x in range(np.uint64(n)):
        centre = get(T, i + x)
        total = constant(c1, x) * (get(T, west + x) - centre) + constant(c2, x) * (get(T, east + x) - centre)
        total += c3 * (get(T, south + x) - centre)
        total += c4 * (get(T, north + x) - centre)
        total += c5 * (get(T, down + x) - centre)
        total += c6 * (get(T, up + x) - centre)
        put(T_new, out + x, total)


@compiled
def step_graded(along: Any, across: Any, heat: int, T: Any, around: Any, T_new: Any, new: int, n: int) -> None:
    """T + (the sum of :func:`sum_graded` + the heat of each cell, from ``heat`` on in T); other arguments as there."""
    whole_vectors()
    (c1, c2), (c3, c4, c5, c6) = along, across
    below, south_of, here, north_of, above = around
    i, west, east, out = np.uint64(here), np.uint64(here - 1), np.uint64(here + 1), np.uint64(new)
    south, north, down, up = np.uint64(south_of), np.uint64(north_of), np.uint64(below), np.uint64(above)
    gained = np.uint64(heat)
    for x in range(np.uint64(n)):
        centre = get(T, i + x)
        total = constant(c1, x) * (get(T, west + x) - centre) + constant(c2, x) * (get(T, east + x) - centre)
        total += c3 * (get(T, south + x) - centre)
        total += c4 * (get(T, north + x) - centre)
        total += c5 * (get(T, down + x) - centre)
        total += c6 * (get(T, up + x) - centre)
        put(T_new, out + x, centre + (total + get(T, gained + x)))
