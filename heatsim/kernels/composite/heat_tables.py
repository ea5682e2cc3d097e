"""The cells that sources heat individually, laid out for kernels (composite/cell_heat.cu)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_heat import HeatedCells

Field = NDArray[Any]


@dataclass(frozen=True, eq=False)
class HeatTables:
    """The cells that sources heat individually, see :class:`heatsim.physics.cells.cell_heat.HeatedCells`.

    Attributes:
        cells: by their index in the flattened grid, ascending, int64, shape (n,).
        first: the first entry of each cell, and the number of entries; int64, shape (n + 1,).
        numbers: of each entry the number of its amount, or (number of amounts) + (number of its beam), or GAPS + (the
            row of its gap law); int32, shape (entries,).
        weights: temperature change in K of the cell per unit of its amount, shape (entries,).
        spots: cells (u, v) of beams, or the side and the link of a gap; int32, shape (entries, 2), or (0, 2).
        table_of: the number of the table of each amount, −1 for none; int32, shape (amounts,).
        tables: for each table its first entry, number of steps, steps per kelvin, and T − T_ref in K at its first node;
            shape (tables, 4).
        entries: for each step of all tables the value at its lower end and the rise across it; shape (steps, 2).
        across: of each link across a gap the resistances of its lower and its upper half cell, and the ratio of its
            areas; shape (links, 3).
    """

    cells: NDArray[np.int64]
    first: NDArray[np.int64]
    numbers: NDArray[np.int32]
    weights: Field
    spots: NDArray[np.int32]
    table_of: NDArray[np.int32]
    tables: Field
    entries: Field
    across: Field

    def __len__(self) -> int:
        return len(self.cells)


def make_heat_tables(heated: HeatedCells, reference: float, precision: str) -> HeatTables:
    """The cells that sources heat individually, for kernels that use T − T_ref; ``reference``: T_ref in K."""
    starts = np.cumsum([0, *(table.steps for table in heated.tables)])
    places = [
        (float(start), float(table.steps), table.per_kelvin, table.low - reference)
        for start, table in zip(starts[:-1], heated.tables, strict=True)
    ]
    rises = [np.stack((table.values[:-1], np.diff(table.values)), axis=1) for table in heated.tables]
    return HeatTables(
        cells=heated.cells,
        first=heated.first,
        numbers=heated.numbers,
        weights=heated.per_kelvin().astype(precision),
        spots=np.ascontiguousarray(heated.spots),
        table_of=np.array([amount.table for amount in heated.amounts], dtype=np.int32),
        tables=np.array(places, dtype=precision).reshape(-1, 4),
        entries=np.concatenate([np.zeros((0, 2)), *rises]).astype(precision),
        across=heated.across.astype(precision),
    )


def on_device(tables: HeatTables, xp: Any) -> HeatTables:
    """The same with arrays of the library ``xp``."""
    return replace(tables, **{name: xp.ascontiguousarray(xp.asarray(array)) for name, array in vars(tables).items()})
