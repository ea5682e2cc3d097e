"""The energy balance, written to energy.csv.

All columns are heat in J since t = 0, positive into the body: what is stored, what sources gave, what passed each
face, and the residual = stored − sources − Σ faces, which is rounding and, with implicit steps, what the solver of
their equations left. How large rounding can be is derived in heatsim/physics/energy_bound.py.

Patches on faces and surfaces towards void have columns of their own, between the faces and the residual; a patch's heat
is among its face's, that towards void is not.
"""

from math import fsum

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import RunState
from heatsim.physics.energy_bound import EnergyBound, Row
from heatsim.physics.problem import HeatProblem
from heatsim.storage import folder
from heatsim.storage.checkpoint import Pieces
from heatsim.storage.tables import TableWriter

_CHECKSUMS = "energy_checksums"


def columns(problem: HeatProblem) -> tuple[str, ...]:
    """The columns of energy.csv: after the faces one for each patch, whose heat is among its face's, and "void"."""
    patches = (patch.name for patch in problem.scenario.patches)
    void = ("void",) if problem.materials.exposed_cells else ()
    return ("time", "stored", "sources", *FACES, *patches, *void, "residual")


def balance(state: RunState) -> dict[str, float]:
    """The row of energy.csv for the current step, by column."""
    stored, through = state.stored_heat(), state.ledger.heats()
    sources = state.ledger.source_heat(state.step) + through.beams
    void = (through.void,) if state.problem.materials.exposed_cells else ()
    residual = fsum((stored, -sources, *(-heat for heat in through.faces), -through.void))
    row = (state.time, stored, sources, *through.faces, *through.patches, *void, residual)
    return dict(zip(columns(state.problem), row, strict=True))


def bound(state: RunState) -> float:
    """How large the residual in J may be at the last row: rounding, and what a solver of equations left."""
    return 0.0 if state.energy_bound is None else state.energy_bound.residual + state.imbalance


def imbalance(state: RunState) -> dict[str, float]:
    """For methods that solve equations the heat in J that their solver left at most, and as a part of what flowed.

    What flowed is half of the sum of the magnitudes of all heats since the start.
    """
    if state.problem.scenario.time.method != "implicit":
        return {}
    row = balance(state)
    flowed = sum(abs(row[name]) for name in ("stored", "sources", *FACES, "void") if name in row) / 2.0
    return {"imbalance": state.imbalance, "imbalance_part": state.imbalance / flowed if flowed > 0.0 else 0.0}


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
        row, around = balance(state), state.statistics.deviations()
        turned_over = abs(row["stored"]) + state.ledger.heats().magnitude
        heat = state.statistics.heat(absolute=True)
        self._bound.add(Row(state.step, heat, around.lowest, around.highest, turned_over, state.roundings))
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
