"""Enthalpy tables of materials that vary with temperature, laid out for kernels (composite/varying.cuh)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.matter.enthalpy import EnthalpyTable

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class EnthalpyTables:
    """Enthalpy tables of all cell types in one precision; empty arrays if no material varies.

    Attributes:
        places: for each cell type (steps per kelvin of content, first step, last step); shape (types, 3).
        bases: entry of step 0 of each cell type, shape (types,), int64. Types of one material have the same base, and
            only these: kernels compare bases to distinguish materials.
        potentials: value at the lower end of each step, and rise across it; shape (entries, 2).
        states: temperature and conductivity in the same form: value, rise, value, rise; shape (entries, 4).
        resistances: contact resistances in m² K/W, infinite across gaps; shape (types, types).
    """

    places: Array
    bases: NDArray[np.int64]
    potentials: Array
    states: Array
    resistances: Array

    @property
    def vary(self) -> bool:
        """Whether any material varies with temperature."""
        return bool(self.bases.size)


def make_enthalpy_tables(materials: CellTypes, precision: str) -> EnthalpyTables:
    """The tables of a body's cell types."""
    if not materials.varies:
        nothing = np.zeros((0, 0), dtype=precision)
        return EnthalpyTables(nothing, np.zeros(0, dtype=np.int64), nothing, nothing, nothing)
    enthalpies = materials.enthalpies
    starts = _starts(list(dict.fromkeys(enthalpies)))
    return EnthalpyTables(
        places=np.array(
            [(1.0 / enthalpy.step, enthalpy.first, enthalpy.first + enthalpy.steps - 1) for enthalpy in enthalpies],
            dtype=precision,
        ),
        bases=np.array([starts[enthalpy] - enthalpy.first for enthalpy in enthalpies], dtype=np.int64),
        potentials=_entries(starts, lambda enthalpy: enthalpy.potentials).astype(precision),
        states=np.hstack(
            (
                _entries(starts, lambda enthalpy: enthalpy.temperatures),
                _entries(starts, lambda enthalpy: enthalpy.conductivities),
            )
        ).astype(precision),
        resistances=np.where(materials.gap_of >= 0, np.inf, materials.resistance).astype(precision)
        if materials.has_gaps
        else materials.resistance.astype(precision),
    )


def _starts(enthalpies: Sequence[EnthalpyTable]) -> dict[EnthalpyTable, int]:
    """The first entry of each table. No two tables get the same base; entries may stay unused for this."""
    starts: dict[EnthalpyTable, int] = {}
    end, bases = 0, set[int]()
    for enthalpy in enthalpies:
        while end - enthalpy.first in bases:
            end += 1
        bases.add(end - enthalpy.first)
        starts[enthalpy] = end
        end += enthalpy.steps
    return starts


def _entries(
    starts: Mapping[EnthalpyTable, int], at_nodes: Callable[[EnthalpyTable], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Value at the lower end and rise across each step of all tables, shape (entries, 2)."""
    entries = np.zeros((max(start + enthalpy.steps for enthalpy, start in starts.items()), 2))
    for enthalpy, start in starts.items():
        values = at_nodes(enthalpy)
        entries[start : start + enthalpy.steps] = np.stack((values[:-1], np.diff(values)), axis=1)
    return entries
