"""The energy balance, written to energy.csv.

All columns are heat in J since t = 0, positive into the body: what is stored, what sources gave, what passed each
face, and the residual = stored − sources − Σ faces, which is rounding and nothing else. How large it can be is derived
in heatsim/physics/energy_bound.py.

Patches on faces and surfaces towards void have columns of their own, between the faces and the residual; a patch's heat
is among its face's, that towards void is not.
"""

from math import fsum

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.observers.observer import Observer, RunState, Value, Values
from heatsim.physics.energy_bound import EnergyBound, Row
from heatsim.physics.problem import HeatProblem
from heatsim.storage import folder
from heatsim.storage.checkpoint import Pieces
from heatsim.storage.tables import TableWriter

COLUMNS = ("time", "stored", "sources", *FACES, "residual")

_CHECKSUMS = "energy_checksums"


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


def bound(state: RunState) -> float:
    """How large the residual in J may be at the last row."""
    return 0.0 if state.energy_bound is None else state.energy_bound.residual


class Energy(Observer):
    """At 0, probe_every, 2·probe_every, … and the end."""

    _table: TableWriter
    _bound: EnergyBound

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def check(self, state: RunState, saved: Values) -> None:
        """See that the rows that the checkpoint counts are as they were written."""
        path, names = state.folder / folder.ENERGY, columns(state.problem)
        TableWriter.check(path, names, int(saved["energy_rows"]), saved[_CHECKSUMS])

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or cut it back to what the checkpoint knows."""
        path, names = state.folder / folder.ENERGY, columns(state.problem)
        self._bound = state.energy_bound = EnergyBound(state.problem, state.field.reference)
        if saved is not None:
            self._bound.restore(saved)
        if saved is None:
            self._table = TableWriter.create(path, names)
        else:
            self._table = TableWriter.reopen(path, names, int(saved["energy_rows"]), saved[_CHECKSUMS])

    def handle(self, state: RunState) -> None:
        """Append a row."""
        row, around = balance(state), state.deviations()
        turned_over = abs(row["stored"]) + state.ledger.magnitude(state.problem)
        self._bound.add(Row(state.step, state.absolute_heat(), around.lowest, around.highest, turned_over))
        self._table.append(list(row.values()))

    def save(self) -> dict[str, Value]:
        """How many rows are in the table, and what the bound of the residual needs."""
        return {"energy_rows": self._table.rows, **self._bound.save()}

    def record(self) -> dict[str, Pieces]:
        """The running checksum of the table after each row."""
        rows = self._table.rows
        return {_CHECKSUMS: Pieces((rows + 1,), np.uint32, lambda: [self._table.checksums(rows)])}

    def flush(self) -> None:
        """Bring the table to disk."""
        self._table.flush()
        if not self._table.is_in_place:
            raise folder.removed(self._table.path)

    def close(self) -> None:
        """Close the table."""
        if hasattr(self, "_table"):
            self._table.close()
