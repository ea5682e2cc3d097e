"""The energy balance, written to energy.csv.

Heats in J since t = 0, positive into the body: stored heat, heat from sources, heat through each face, and the
residual = stored − sources − Σ faces − void, which consists of rounding and, with implicit steps, of what the solver of
their equations left. heatsim/physics/readings/energy_bound.py derives how large it can be.

Beside them the heat flows in W: the same heats per time, averaged since the row before. So a flow times the time
between two rows is exactly the heat that passed, also of a source that was on for a part of that time. The first row
has no row before it; its flows are NaN.

What enters and what leaves is there too, in W: `in x_min` and `out x_min` are the sums over the boundary faces of
x_min of positive and of negative heat since the row before, so a face half hot and half cold has both. Of sources these
are the sums over the cells that are heated and those that are cooled; of sources that heat all their cells alike, over
the sources.

With `output.region_heat` the heat of each region and the flow through each contact follow, and the heat through
contacts that alone separate parts of the body; see parts.py.

Patches and void surfaces have extra columns between the faces and the residual. The heat of a patch is included in that
of its face; the heat through void surfaces is not. The heat through the surface of each region with a condition towards
void is included in that through all void surfaces.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import fsum, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.observers.observer import SUMS, Reads, Value, Values
from heatsim.observers.parts import (
    ContactFlows,
    ContactHeats,
    RegionHeats,
    contact_heat_names,
    contact_names,
    region_names,
    surface_names,
)
from heatsim.observers.state import EnergyRow, RunState
from heatsim.observers.table import Column, TableObserver
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.bound_rows import BoundRows
from heatsim.physics.readings.energy_bound import EnergyBound
from heatsim.solver.field.field import Extremes
from heatsim.solver.ledger.heats import HeatRows, RunningSums
from heatsim.solver.ledger.sum_table import OwnSums
from heatsim.storage import folder
from heatsim.storage.run_tables import JOULE, TIME, WATT
from heatsim.storage.tables import GROSS

RESIDUAL = "residual"

Floats = NDArray[np.float64]


def heats(problem: HeatProblem) -> tuple[str, ...]:
    """The names of the heats in J of energy.csv; "void" and those of regions only if void surfaces let heat through."""
    return ("stored", *_given(problem), RESIDUAL)


def _given(problem: HeatProblem) -> tuple[str, ...]:
    """The names of what enters and leaves the body."""
    patches = (patch.name for patch in problem.scenario.patches)
    void = ("void", *surface_names(problem)) if problem.materials.weighted_surfaces.void else ()
    return ("sources", *FACES, *patches, *void)


def columns(problem: HeatProblem) -> list[Column]:
    """The columns of energy.csv after the time: heats in J and the residual, then heat flows in W."""
    names, of_regions = heats(problem), region_names(problem)
    gross = (way + name for way in GROSS for name in _given(problem))
    in_joules = (*names, *of_regions, *contact_heat_names(problem))
    in_watts = (*names[:-1], *of_regions, *contact_names(problem), *gross)
    return [*((name, JOULE) for name in in_joules), *((name, WATT) for name in in_watts)]


class _EnergySample(NamedTuple):
    """What a row needs of the field and the ledger.

    Attributes:
        step: number of steps done.
        time: in s.
        sums: ``sums`` of the field's reduction.
        extremes: the lowest and highest T − T_ref in K.
        through: ``row()`` of the ledger.
        sources: heat in J from sources in the body, if the method chooses its own steps.
        roundings: of a method that chooses its own steps.
        contacts: heat flows through contacts in W.
    """

    step: int
    time: float
    sums: NDArray[np.float64]
    extremes: Extremes
    through: OwnSums
    sources: float
    roundings: float
    contacts: Sequence[float] = ()


def _sample(state: RunState, contacts: Sequence[float] = ()) -> _EnergySample:
    return _EnergySample(
        state.step,
        state.time,
        state.field.reduction().sums,
        state.statistics.deviations(),
        state.ledger.row(),
        state.ledger.shown_sources,
        state.roundings,
        contacts,
    )


def balance(state: RunState) -> dict[str, float]:
    """The time in s and the heats in J of the last row, by name."""
    return {} if state.energy_row is None else state.energy_row.heats


def bound(state: RunState) -> float:
    """How large the residual in J may be at the last row that was made: rounding, and what a solver left."""
    return 0.0 if state.energy_bound is None else state.energy_bound.residual + state.imbalance


def imbalance(state: RunState) -> dict[str, float]:
    """For methods that solve equations the heat in J that their solver left at most, and as a part of what flowed."""
    if state.problem.scenario.time.method != "implicit":
        return {}
    flowed = 0.0 if state.energy_row is None else state.energy_row.turnover
    return {"imbalance": state.imbalance, "imbalance_part": state.imbalance / flowed if flowed > 0.0 else 0.0}


class Energy(TableObserver):
    """Writes energy.csv."""

    file = folder.ENERGY
    saved_as = "energy"

    _bound: EnergyBound
    _before: dict[str, float] | None
    _sums: RunningSums  # of the ledger's heats since the start, their magnitudes, and those of even sources
    _behind: ContactHeats
    _released: float  # heat in J that even sources have set free

    def columns(self, state: RunState) -> list[Column]:
        """The terms of the balance, and the heat flows."""
        return columns(state.problem)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the table; restore the bound of the residual and the row before."""
        self._state = state
        self._bound = state.energy_bound = EnergyBound(state.problem, state.field.reference)
        self._before, initial, behind = None, None, None
        self._released = 0.0
        if saved is not None:
            self._bound.restore(saved)
            self._before = json.loads(str(saved["energy_before"]))
            self._released = float(saved["energy_released"])
            state.energy_row = EnergyRow(self._before or {}, float(saved["energy_turnover"]))
            initial = json.loads(str(saved.get("region_heats", "null")))
            behind = json.loads(str(saved.get("contact_heats", "null")))
        self._regions, self._contacts = RegionHeats(state, initial), ContactFlows(state)
        self._behind = ContactHeats(state, behind)
        columns = state.ledger.heats().numbers.size + 1 + self._behind.heats_of_sources(np.zeros(1)).shape[1]
        parts = np.zeros((2, columns)) if saved is None else np.array(json.loads(str(saved["energy_sums"])))
        self._sums = RunningSums(parts)
        self._limit_samples(state.field.reduction().sums.nbytes + state.ledger.row().nbytes)
        super().start(state, saved)
        self._heats = heats(state.problem)

    def reads(self, state: RunState) -> Reads:
        """The sums of the field and the ledger, and the temperatures beside contacts."""
        return SUMS

    def sample(self, state: RunState) -> _EnergySample:
        """The sums of the field and the ledger."""
        return _sample(state, self._contacts.row())

    def rows(self, samples: Sequence[_EnergySample]) -> list[list[float]]:
        """The energy balances and heat flows of many rows, found together; adds them to the bound of the residual."""
        statistics = self._state.statistics
        totals = statistics.totals([sample.sums for sample in samples])
        stored = [heat - self._state.initial_heat for heat in statistics.heats(totals)]
        absolute = statistics.heats(totals, absolute=True)
        times = np.array([sample.time for sample in samples])
        through, terms, gross, sources = self._balances(samples, times, np.array(stored))
        self._bound.add(_rows_of_bound(samples, through, np.array(absolute), terms[:, 0]))
        heats_of_rows = np.column_stack([times, terms, np.array(self._regions.rows(totals))])
        contacts = np.array([sample.contacts for sample in samples])
        behind = self._behind.stored(totals) - sources - through.behind_contacts
        columns = [heats_of_rows, behind, self._flows(heats_of_rows), contacts, gross]
        rows: list[list[float]] = np.column_stack(columns).tolist()
        return rows

    def _balances(
        self, samples: Sequence[_EnergySample], times: Floats, stored: Floats
    ) -> tuple[HeatRows, Floats, Floats, Floats]:
        """The heats through surfaces since the start, the terms of the balance, what enters and leaves in W.

        The last array is what even sources have given behind contacts since the start, in J.

        Args:
            samples: of the next rows.
            times: of these rows in s.
            stored: heat in J that the body has gained since the start.
        """
        state, problem = self._state, self._state.problem
        if problem.timeline.adaptive:
            released = np.array([sample.sources for sample in samples])
        else:
            released = np.array(state.ledger.source_heats([sample.step for sample in samples]))
        edges = np.append(times[0] if self._before is None else self._before[TIME], times)
        even = np.diff(released, prepend=self._released)
        even_magnitude = np.abs(even) + 2.0 * problem.sources.cancelled(edges)
        self._released = float(released[-1])

        of_rows = state.ledger.heats_of([sample.through for sample in samples])
        size, behind = of_rows.numbers[0].size, self._behind.heats_of_sources(edges)
        since_row = np.column_stack([of_rows.numbers.reshape(len(times), -1), even_magnitude, behind])
        since_start = self._sums.add(since_row)
        through = replace(of_rows, numbers=since_start[:, :size].reshape(of_rows.numbers.shape))
        sources = released + through.beams + through.cells
        given = np.column_stack([stored, -sources, -through.faces, -through.towards_void[:, 0]])
        residual = [fsum(row) for row in given.tolist()]
        void = [through.towards_void] if problem.materials.weighted_surfaces.void else []
        terms = np.column_stack([stored, sources, through.through, *void, residual])

        flowed = through.numbers[-1, 1, -2:].sum() + since_start[-1, size] + through.magnitude[-1]
        turnover = 0.5 * (flowed + abs(stored[-1] - residual[-1]))
        names = heats(problem)
        state.energy_row = EnergyRow(dict(zip((TIME, *names), (times[-1], *terms[-1].tolist()), strict=True)), turnover)
        net, magnitude = (of_rows.numbers[:, which] for which in (0, 1))
        net = np.column_stack([even + net[:, -2] + net[:, -1], net[:, :-2]])
        magnitude = np.column_stack([even_magnitude + magnitude[:, -2] + magnitude[:, -1], magnitude[:, :-2]])
        some, seconds = slice(len(names) - 2), np.where(np.diff(edges) > 0.0, np.diff(edges), nan)[:, np.newaxis]
        flows = [0.5 * both[:, some] / seconds for both in (magnitude + net, magnitude - net)]
        return through, terms, np.column_stack(flows), self._behind.sources(since_start[:, size + 1 :], released)

    def _flows(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The heat flows in W, the averages since the row before; NaN in a row that has none before.

        Args:
            rows: the time in s and the heats in J with the residual, shape (rows, numbers).
        """
        names = [TIME, *self._heats, *region_names(self._state.problem)]
        first = [nan] * len(names) if self._before is None else [self._before[name] for name in names]
        self._before = dict(zip(names, rows[-1].tolist(), strict=True))
        changes = np.diff(np.concatenate([[first], rows]), axis=0)
        flowing = [number for number, name in enumerate(names) if name not in (TIME, RESIDUAL)]
        return np.asarray(changes[:, flowing] / changes[:, :1])

    def save(self) -> dict[str, Value]:
        """The number of rows in the table, the last row, sums since the start, the state of the bound."""
        saved: dict[str, Value] = {**super().save(), **self._bound.save(), "energy_before": json.dumps(self._before)}
        saved |= {"energy_sums": json.dumps(self._sums.parts.tolist()), "energy_released": self._released}
        saved["energy_turnover"] = 0.0 if self._state.energy_row is None else self._state.energy_row.turnover
        if self._regions.initial:
            saved["region_heats"] = json.dumps(self._regions.initial)
        if self._behind.initial:
            saved["contact_heats"] = json.dumps(self._behind.initial)
        return saved


def _rows_of_bound(samples: Sequence[_EnergySample], through: HeatRows, absolute: Floats, stored: Floats) -> BoundRows:
    """What the bound of the residual needs of rows.

    Args:
        samples: of the rows.
        through: the heats through surfaces.
        absolute: Σ ρ·cp·V·|T − T_ref| in J.
        stored: heat in J that the body has gained since the start.
    """
    return BoundRows(
        np.array([sample.step for sample in samples]),
        absolute,
        np.array([sample.extremes.lowest for sample in samples]),
        np.array([sample.extremes.highest for sample in samples]),
        np.abs(stored) + through.magnitude,
        np.array([sample.roundings for sample in samples]),
        through.cells_magnitude,
    )
