"""The energy balance, written to energy.csv.

All columns are heat in J since t = 0, positive into the body: what is stored, what sources gave, what passed each
face, and the residual = stored − sources − Σ faces, which is rounding and nothing else:

    |residual| ≤ 1e-12·(Σ|heat through each face| + |heat of the sources| + |stored|) + steps·u·H

Every step rounds every cell's deviation T − T_ref by a fraction u of itself at the most: u = 2⁻⁵³ in float64 and 2⁻²⁴
in float32, half a unit in the last place; with stochastic rounding 2⁻²³, for it may go to the farther of the two
neighbours. A body that has warmed and cooled again was rounded when it was warm, so H is the largest
Σ ρ·cp·V·|T − T_ref| of all rows so far.
"""

from math import fsum

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.observers.observer import Observer, RunState, Value, Values
from heatsim.storage import folder
from heatsim.storage.tables import TableWriter

COLUMNS = ("time", "stored", "sources", *FACES, "residual")

_RELATIVE_TOLERANCE = 1e-12
_UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
_STOCHASTIC_ROUNDOFF = 2.0**-23


def balance(state: RunState) -> dict[str, float]:
    """The row of energy.csv for the current step, by column."""
    heats = state.ledger.heats(state.problem.cell_heat_capacity)
    stored, sources = state.stored_heat(), 0.0
    row = (state.time, stored, sources, *heats, stored - sources - fsum(heats))
    return dict(zip(COLUMNS, row, strict=True))


def bound(state: RunState, row: dict[str, float]) -> float:
    """How large the residual in J may be at a row: rounding of the sums, and of every cell in every step."""
    turned_over = fsum(abs(row[name]) for name in ("stored", "sources", *FACES))
    stochastic = state.problem.rounding == "stochastic"
    unit_roundoff = _STOCHASTIC_ROUNDOFF if stochastic else _UNIT_ROUNDOFF[state.field.precision]
    return _RELATIVE_TOLERANCE * turned_over + state.step * unit_roundoff * state.largest_heat


class Energy(Observer):
    """At 0, probe_every, 2·probe_every, … and the end."""

    _table: TableWriter

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or cut it back to what the checkpoint knows."""
        path = state.folder / folder.ENERGY
        if saved is None:
            self._table = TableWriter.create(path, COLUMNS)
        else:
            self._table = TableWriter.reopen(path, COLUMNS, keep_rows=int(saved["energy_rows"]))

    def handle(self, state: RunState) -> None:
        """Append a row."""
        heat = state.field.absolute_total() * state.problem.cell_heat_capacity
        state.largest_heat = max(state.largest_heat, heat)
        self._table.append(list(balance(state).values()))

    def save(self) -> dict[str, Value]:
        """How many rows are in the table."""
        return {"energy_rows": self._table.rows}

    def flush(self) -> None:
        """Bring the table to disk."""
        self._table.flush()

    def close(self) -> None:
        """Close the table."""
        if hasattr(self, "_table"):
            self._table.close()
