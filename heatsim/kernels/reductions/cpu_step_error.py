"""The CPU kernel of :mod:`heatsim.kernels.reductions.step_error`; it does what step_error.cu does, to the same bits."""

from typing import Any

import numpy as np
from numba import from_dtype, types

from heatsim.kernels.cpu import lines, linked_functions, plan
from heatsim.kernels.cpu.compiling import Code, last_default
from heatsim.kernels.cpu.lines import OPTIONS, compiled, smaller
from heatsim.kernels.cpu.plan import behind, memory_of
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept
from heatsim.physics.cells import cell_types
from heatsim.physics.cells.cell_types import INTERIOR

CELL_TYPE = INTERIOR - 1
_OTHER_SOURCES = source_key((cell_types, linked_functions, plan, lines))


@kept(**OPTIONS)
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
        found: gets the largest |mean of e| over blocks, the largest |e| of a cell, the extremes of T1, and how many
            cells are not finite, of each slab; shape (slabs, 5).
        first: the first slab.
        end: one after the last slab.
        other_sources: part of numba's cache key; do not pass it.
    """
    fields = memory_of(T0), memory_of(F0), memory_of(T1), memory_of(F1)
    for slab in range(first, end):
        out = behind(memory_of(found), 5 * slab)
        _look_at_slab(fields, memory_of(weights), memory_of(cells), void, size, 2 * slab, out)


@compiled
def _look_at_slab(fields: Any, weights: Any, cells: Any, void: int, size: Any, z: int, out: Any) -> None:
    """The same for the blocks that begin in plane z."""
    (T0, F0, T1, F1), (nx, ny, nz) = fields, size
    largest, cell, lowest, highest, not_finite = 0.0, 0.0, np.inf, -np.inf, 0
    for y in range(0, ny, 2):
        for x in range(0, nx, 2):
            total, summed = 0.0, 0
            for at_z in range(z, smaller(z + 2, nz)):
                for at_y in range(y, smaller(y + 2, ny)):
                    row = (at_z * ny + at_y) * nx
                    for i in range(row + x, row + smaller(x + 2, nx)):
                        if void >= 0 and cells[i] & CELL_TYPE == void:
                            continue
                        value = np.float64(T1[i])
                        e = weights[0] * np.float64(T0[i]) + weights[1] * np.float64(F0[i])
                        e = e + weights[2] * value + weights[3] * np.float64(F1[i])
                        total += e
                        summed += 1
                        if abs(e) > cell:
                            cell = abs(e)
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
    out[0], out[1], out[2], out[3], out[4] = largest, cell, lowest, highest, np.float64(not_finite)


def code(dtype: np.dtype[Any]) -> Code:
    """The code of :func:`look` for fields of these numbers."""
    field, exact, long = types.Array(from_dtype(dtype), 1, "C"), types.float64, types.int64
    tables = types.Array(exact, 1, "C"), types.Array(types.uint8, 1, "C")
    equal: Any = types.UniTuple
    size, found = equal(long, 3), types.Array(exact, 2, "C")
    return Code(look, (field, field, field, field, *tables, long, size, found, long, long, last_default(look)))
