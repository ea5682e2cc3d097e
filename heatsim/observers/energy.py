"""The energy balance, written to energy.csv.

All columns are heat in J since t = 0, positive into the body: stored heat, heat from sources, heat through each face,
and the residual = stored − sources − Σ faces − void, which consists of rounding and, with implicit steps, of
what the solver of their equations left. heatsim/physics/energy_bound.py
derives how large it can be.

Patches and void surfaces have extra columns between the faces and the residual. The heat of a patch is included in that
of its face; the heat through void surfaces is not.
"""

from math import fsum

from heatsim.grid import FACES
from heatsim.observers.observer import Value, Values
from heatsim.observers.state import RunState
from heatsim.observers.table import TableObserver
from heatsim.physics.energy_bound import EnergyBound, Row
from heatsim.physics.problem import HeatProblem
from heatsim.storage import folder


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


class Energy(TableObserver):
    """Writes energy.csv."""

    file = folder.ENERGY
    saved_as = "energy"

    _bound: EnergyBound

    def columns(self, state: RunState) -> tuple[str, ...]:
        """The time and the terms of the balance."""
        return columns(state.problem)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the table, and restore the bound of the residual."""
        self._bound = state.energy_bound = EnergyBound(state.problem, state.field.reference)
        if saved is not None:
            self._bound.restore(saved)
        super().start(state, saved)

    def row(self, state: RunState) -> list[float]:
        """The time and the energy balance; adds them to the bound of the residual."""
        row, around = balance(state), state.statistics.deviations()
        turned_over = abs(row["stored"]) + state.ledger.heats().magnitude
        heat = state.statistics.heat(absolute=True)
        self._bound.add(Row(state.step, heat, around.lowest, around.highest, turned_over, state.roundings))
        return list(row.values())

    def save(self) -> dict[str, Value]:
        """The number of rows in the table, and the state of the residual's bound."""
        return {**super().save(), **self._bound.save()}
