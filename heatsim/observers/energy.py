"""The energy balance, written to energy.csv.

All columns are heat in J since t = 0, positive into the body: what is stored, what sources gave, what passed each
face, and the residual = stored − sources − Σ faces, which is rounding and nothing else:

    |residual| ≤ 1e-12·(Σ|heat through each face| + |heat of the sources| + |stored|) + steps·u·H

Every step rounds every cell's deviation T − T_ref by a fraction u of itself at the most: u = 2⁻⁵³ in float64 and 2⁻²⁴
in float32, half a unit in the last place; with stochastic rounding 2⁻²³, for it may go to the farther of the two
neighbours. A body that has warmed and cooled again was rounded when it was warm, so H is the largest
Σ ρ·cp·V·|T − T_ref| of all rows so far. Where materials change with temperature, contents stand in place of T − T_ref
(heatsim/physics/enthalpy.py), of the heat capacities at T_ref: what melts counts with its latent heat.

Patches on faces and surfaces towards void have columns of their own, between the faces and the residual; a patch's heat
is among its face's, that towards void is not.
"""

from math import fsum

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.observers.observer import Observer, RunState, Value, Values
from heatsim.physics.problem import HeatProblem
from heatsim.storage import folder
from heatsim.storage.tables import TableWriter

COLUMNS = ("time", "stored", "sources", *FACES, "residual")

_RELATIVE_TOLERANCE = 1e-12
_UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
_STOCHASTIC_ROUNDOFF = 2.0**-23


def columns(problem: HeatProblem) -> tuple[str, ...]:
    """The columns of energy.csv: after the faces one for each patch, whose heat is among its face's, and "void"."""
    if problem.body is None:
        return COLUMNS
    patches = (patch.name for patch in problem.scenario.patches)
    void = ("void",) if problem.body.medium.exposed_cells else ()
    return (*COLUMNS[:-1], *patches, *void, COLUMNS[-1])


def balance(state: RunState) -> dict[str, float]:
    """The row of energy.csv for the current step, by column."""
    body = state.problem.body
    stored = state.stored_heat()
    if body is None:
        heats = state.ledger.heats(state.problem.cell_heat_capacity)
        row: tuple[float, ...] = (state.time, stored, 0.0, *heats, stored - fsum(heats))
        return dict(zip(COLUMNS, row, strict=True))
    through = state.ledger.body_heats(body)
    sources = state.ledger.source_heat(state.problem, state.step) + through.beams
    void = (through.void,) if body.medium.exposed_cells else ()
    residual = fsum((stored, -sources, *(-heat for heat in through.faces), -through.void))
    row = (state.time, stored, sources, *through.faces, *through.patches, *void, residual)
    return dict(zip(columns(state.problem), row, strict=True))


def bound(state: RunState, row: dict[str, float]) -> float:
    """How large the residual in J may be at a row: rounding of the sums, and of every cell in every step."""
    turned_over = fsum(abs(row[name]) for name in ("stored", "sources", *FACES)) + abs(row.get("void", 0.0))
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
            self._table = TableWriter.create(path, columns(state.problem))
        else:
            self._table = TableWriter.reopen(path, columns(state.problem), keep_rows=int(saved["energy_rows"]))

    def handle(self, state: RunState) -> None:
        """Append a row."""
        state.largest_heat = max(state.largest_heat, state.absolute_heat())
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
