"""The energy balance, written to energy.csv.

All columns are heat in J since t = 0, positive into the body: stored heat, heat from sources, heat through each face,
and the residual = stored − sources − Σ faces − void, which consists of rounding only. heatsim/physics/energy_bound.py
derives how large it can be.

Patches and void surfaces have extra columns between the faces and the residual. The heat of a patch is included in that
of its face; the heat through void surfaces is not.
"""

from contextlib import ExitStack
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
    """The names of the columns of energy.csv; "void" only if void surfaces let heat through."""
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
    """Upper bound in J of the residual in the last row; 0 if no energy is written."""
    return 0.0 if state.energy_bound is None else state.energy_bound.residual


class Energy(Observer):
    """Writes a row at 0, probe_every, 2·probe_every, … and the end."""

    _table: TableWriter
    _bound: EnergyBound

    def __init__(self) -> None:
        self._open = ExitStack()

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def check(self, state: RunState, saved: Values) -> None:
        """Check that the rows of the checkpoint are still in the file, unchanged."""
        path, names = state.folder / folder.ENERGY, columns(state.problem)
        TableWriter.check(path, names, int(saved["energy_rows"]), saved[_CHECKSUMS])

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or remove the rows after the checkpoint."""
        path, names = state.folder / folder.ENERGY, columns(state.problem)
        self._bound = state.energy_bound = EnergyBound(state.problem, state.field.reference)
        if saved is not None:
            self._bound.restore(saved)
        if saved is None:
            self._table = TableWriter.create(path, names)
        else:
            self._table = TableWriter.reopen(path, names, int(saved["energy_rows"]), saved[_CHECKSUMS])
        self._open.callback(self._table.close)

    def handle(self, state: RunState) -> None:
        """Append a row."""
        row, around = balance(state), state.statistics.deviations()
        turned_over = abs(row["stored"]) + state.ledger.heats().magnitude
        heat = state.statistics.heat(absolute=True)
        self._bound.add(Row(state.step, heat, around.lowest, around.highest, turned_over))
        self._table.append(list(row.values()))

    def save(self) -> dict[str, Value]:
        """The number of rows in the table, and the state of the residual's bound."""
        return {"energy_rows": self._table.rows, **self._bound.save()}

    def record(self) -> dict[str, Pieces]:
        """The running checksum of the table after each row."""
        rows = self._table.rows
        return {_CHECKSUMS: Pieces((rows + 1,), np.uint32, lambda: [self._table.checksums(rows)])}

    def flush(self) -> None:
        """Write the table to the disk."""
        self._table.flush()
        if not self._table.is_in_place:
            raise folder.removed(self._table.path)

    def close(self) -> None:
        """Close the table."""
        self._open.close()
