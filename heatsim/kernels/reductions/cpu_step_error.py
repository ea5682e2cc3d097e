"""The CPU kernel of :mod:`heatsim.kernels.reductions.step_error`; it does what step_error.cu does, to the same bits."""

from typing import Any

import numpy as np
from numba import njit

from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept
from heatsim.physics import cell_types
from heatsim.physics.cell_types import INTERIOR

CELL_TYPE = INTERIOR - 1
_OTHER_SOURCES = source_key((cell_types,))


@kept(nogil=True, error_model="numpy")
def look(
    T0: Any,
    F0: Any,
    T1: Any,
    F1: Any,
    weights: Any,
    cells: Any,
    void: int,
    size: tuple[int, int, int],
    found: Any,
    first: int,
    end: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """Look at slabs ``first`` … ``end`` − 1, each of the blocks between planes 2n and 2n + 1.

    Args:
        T0: the field at the start, a 1-d array.
        F0: its rate.
        T1: the field at the end.
        F1: its rate.
        weights: of the four in e.
        cells: the cells' bytes; not read if ``void`` is negative.
        void: the type of void; negative if there is none.
        size: number of cells along x, y, z.
        found: gets the largest |mean of e| over blocks, the extremes of T1, and how many cells are not finite, of each
            slab; shape (slabs, 4).
        first: the first slab.
        end: one after the last slab.
        other_sources: part of numba's cache key; do not pass it.
    """
    nx, ny, nz = size
    for slab in range(first, end):
        largest, lowest, highest, not_finite = _look_at_slab(T0, F0, T1, F1, weights, cells, void, nx, ny, nz, 2 * slab)
        found[slab, 0], found[slab, 1], found[slab, 2], found[slab, 3] = largest, lowest, highest, not_finite


@njit(nogil=True, error_model="numpy")
def _look_at_slab(
    T0: Any, F0: Any, T1: Any, F1: Any, weights: Any, cells: Any, void: int, nx: int, ny: int, nz: int, z: int
) -> tuple[float, float, float, int]:
    """The same for the blocks that begin in plane z."""
    largest, lowest, highest, not_finite = 0.0, np.inf, -np.inf, 0
    for y in range(0, ny, 2):
        for x in range(0, nx, 2):
            total, summed = 0.0, 0
            for at_z in range(z, min(z + 2, nz)):
                for at_y in range(y, min(y + 2, ny)):
                    row = (at_z * ny + at_y) * nx
                    for i in range(row + x, row + min(x + 2, nx)):
                        if void >= 0 and cells[i] & CELL_TYPE == void:
                            continue
                        value = np.float64(T1[i])
                        e = weights[0] * np.float64(T0[i]) + weights[1] * np.float64(F0[i])
                        e = e + weights[2] * value + weights[3] * np.float64(F1[i])
                        total += e
                        summed += 1
                        if value < lowest:  # false for NaN
                            lowest = value
                        if value > highest:
                            highest = value
                        if not (value - value == 0.0 and e - e == 0.0):
                            not_finite += 1
            if summed:
                mean = abs(total / summed)
                if mean > largest:
                    largest = mean
    return largest, lowest, highest, not_finite
