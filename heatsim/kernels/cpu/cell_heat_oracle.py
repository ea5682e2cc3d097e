"""NumPy reference for composite/cell_heat.cu: the heat of sources in single cells."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import HostBody, StepRow

Field = NDArray[Any]


def cell_heat(T: Field, body: HostBody, row: StepRow) -> Field:
    """The heat in K that sources give to each heated cell in a step, from T − T_ref of all cells in K."""
    heated, count = body.heated, len(body.heated.table_of)
    warmth, dtype = T.reshape(-1)[heated.cells], heated.weights.dtype
    entries = np.zeros(len(heated.numbers), dtype)
    owners = np.repeat(np.arange(len(heated)), np.diff(heated.first))
    for number, table in enumerate(heated.table_of.tolist()):
        some = heated.numbers == number
        entries[some] = heated.weights[some] * row.amounts[number]
        if table >= 0:
            entries[some] *= _densities(heated.tables[table], heated.entries, warmth[owners[some]])
    for number, beam in enumerate(row.spots, start=count):
        some = np.flatnonzero(heated.numbers == number)
        entries[some] = heated.weights[some] * (row.amounts[count] * beam.fluxes(0, heated.spots[some]))
    heat = np.zeros(len(heated), dtype)
    counts = np.diff(heated.first)
    for nth in range(counts.max()):
        some = np.flatnonzero(counts > nth)
        heat[some] += entries[heated.first[some] + nth]
    return heat


def _densities(table: Field, entries: Field, T: Field) -> Field:
    """Densities in W/m³ at T − T_ref in K, from a table that is constant beyond its ends."""
    start, last, per_kelvin, low = table
    steps = np.fmin(np.fmax((T - low) * per_kelvin, T.dtype.type(0.0)), last)
    step = np.fmin(np.floor(steps), last - T.dtype.type(1.0))
    value, rise = np.moveaxis(entries[(start + step).astype(np.int64)], -1, 0)
    return np.asarray(value + rise * (steps - step))
