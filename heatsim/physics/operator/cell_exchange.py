"""Heat of sources in single cells at one moment, with the same interface for solvers as surfaces."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_heat import HeatedCells
from heatsim.physics.operator.surface_exchange import ExchangingCells
from heatsim.physics.sources.beam_rows import BeamRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellExchange(ExchangingCells):
    """The cells that sources heat individually.

    Attributes:
        heated: the cells.
        cell_types: their types, on the device; one number if all are equal.
        amounts: at this moment, shape (amounts,).
        light: the heat of beams, as in :meth:`HeatedCells.densities`, on the device.
        reference: the temperature in K that deviations are counted from.
    """

    heated: HeatedCells
    cell_types: Any
    amounts: Array
    light: Sequence[tuple[Any, Any]]
    reference: float

    @classmethod
    def beginning(
        cls,
        xp: Any,
        heated: HeatedCells,
        types: Any,
        amounts: Array,
        beams: Sequence[BeamRows],
        reference: float,
    ) -> "CellExchange":
        """Those of a body at one moment.

        Args:
            xp: NumPy, or CuPy.
            heated: the cells.
            types: the types of all cells of the grid, flattened, on the device; None if there is one type.
            amounts: at this moment, shape (amounts,).
            beams: those that shine; only their first step is used.
            reference: the temperature in K that deviations are counted from.
        """
        cells = xp.asarray(heated.cells)
        cell_types = 0 if types is None else types[cells]
        return cls(xp, cells, heated, cell_types, amounts, _light(xp, heated, beams), reference)

    def at(self, amounts: Array, beams: Sequence[BeamRows]) -> "CellExchange":
        """The same cells at another moment."""
        return replace(self, amounts=amounts, light=_light(self.xp, self.heated, beams))

    @property
    def bends(self) -> bool:
        """Whether the heat depends on the temperature."""
        return bool(self.heated.tables)

    @cached_property
    def holding(self) -> NDArray[np.bool_]:
        """Cells whose heat falls with the temperature somewhere, so that it may fix the level of a steady state.

        Shape (n,). The search checks later whether it does: the state that it finds must be stable.
        """
        heated, falls = self.heated, np.zeros(len(self.heated.amounts) + 1, dtype=bool)
        for number, amount in enumerate(heated.amounts):
            if amount.table >= 0:
                values = self.amounts[number] * heated.tables[amount.table].values
                falls[number] = bool((np.diff(values) < 0.0).any())
        entries = falls[np.minimum(heated.numbers, len(heated.amounts))] & (heated.weights > 0.0)
        return np.asarray(np.bincount(heated.owners, entries, len(heated)) > 0.0)

    @property
    def grounded(self) -> bool:
        """Whether the heat of any cell fixes the level of a steady state."""
        return bool(self.holding.any())

    def hotter_than_tables(self, T: Any) -> bool:
        """Whether any cell, at deviations T in K, is beyond the end of one of its tables that still grows there."""
        growing = np.full(len(self.heated.amounts) + 1, np.inf)
        for number, amount in enumerate(self.heated.amounts):
            if amount.table >= 0:
                table = self.heated.tables[amount.table]
                if self.amounts[number] * (table.values[-1] - table.values[-2]) > 0.0:
                    growing[number] = table.high
        ends = self.xp.asarray(growing[np.minimum(self.heated.numbers, len(self.heated.amounts))])
        return bool((T[self.xp.asarray(self.heated.owners)] + self.reference > ends).any())

    def linear_terms(self) -> tuple[Any, Any]:
        """Heat in W into each cell, and its decrease per kelvin, where it does not depend on the temperature."""
        return self.exchange(0.0)

    def exchange(self, T: Any) -> tuple[Any, Any]:
        """Heat into each cell in W, and its decrease per kelvin in W/K, at deviations T in K."""
        heat, slope = self.heated.densities(self.amounts, self.light, T + self.reference, self.xp)
        volumes = self.heated.volumes(self.xp)
        return heat * volumes, -slope * volumes


def _light(xp: Any, heated: HeatedCells, beams: Sequence[BeamRows]) -> list[tuple[Any, Any]]:
    """Of each beam that shines the places of the cells that absorb it, and the heat in W/m³ there."""
    found = []
    for rows in beams:
        some = heated.entries_of_beam(rows.number)
        if len(some):
            heat = heated.weights[some] * rows.fluxes(0, heated.spots[some])
            found.append((xp.asarray(heated.owners[some]), xp.asarray(heat)))
    return found
