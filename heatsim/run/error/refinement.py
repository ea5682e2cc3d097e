"""Cells for an accuracy: a run in memory and its error in space, smaller cells where it arises, and so on.

1. The run and the same run on a coarser grid give the errors of its values, as :mod:`heatsim.run.error.coarser_run`
   states them.
2. Two sums e over each plane of cells (:mod:`heatsim.physics.readings.plane_errors`) say what its width d costs; each
   counts as a half. They fall with d³, so that widths d·λ/∛e give all planes across an axis equal parts. λ makes the
   parts of the axes equal, which needs the fewest cells, and reduces the whole in proportion to the error.
3. Automatic cells that are nowhere wider keep their planes, their growth and their even numbers.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from heatsim.counts import plain
from heatsim.errors import InputError, Interrupted, Mistake, RunError, ScenarioError
from heatsim.grid import FACES, Floats
from heatsim.observers.plane_errors import PlaneErrors
from heatsim.parallel.team import Team
from heatsim.physics.estimates.other_grids import Cells, GridChoice
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.plane_errors import Place
from heatsim.run.capacity import check_room
from heatsim.run.error.coarser_run import by, compare, in_a_line, plan_on, run_in_memory
from heatsim.run.interrupt import Stop, stop_on_signals
from heatsim.run.plan import Plan
from heatsim.scenario import Scenario
from heatsim.scenario.tables.domain import Domain
from heatsim.scenario.tables.marks import Widths, extent

_MOST_ROUNDS = 12
# A round aims at this part of the accuracy, and at an error between these parts of the last one.
_AIM, _LEAST, _MOST = 0.8, 0.2, 0.7
_FEWEST = 8  # cells along an axis, so that there is a coarser grid
_SMALL = 1e-12  # of all error: planes with less have no limit
_TRIES = 30  # of a grid with as many cells as are allowed
_MORE = 1.05  # times as many cells that are worth a run


@dataclass(frozen=True)
class Round:
    """A grid.

    Attributes:
        cells: along x, y, z.
        error: the largest one of a temperature in K.
        name: of that temperature.
    """

    cells: Cells
    error: float
    name: str


@dataclass(frozen=True)
class Refinement:
    """How the cells for an accuracy were found.

    Attributes:
        accuracy: what was asked for in K.
        rounds: the grids; the last one is that of the run.
        missed: why the error is larger than the accuracy, and what helps; empty if it is not.
        seconds: that it took.
        error_in_space: on the last grid, as summary.json has it.
    """

    accuracy: float
    rounds: tuple[Round, ...]
    missed: str
    seconds: float
    error_in_space: dict[str, Any]

    @property
    def entries(self) -> dict[str, Any]:
        """What summary.json says about it, by key."""
        whole = asdict(self)
        return {"error_in_space": whole.pop("error_in_space"), "refinement": whole}


def refuse_accuracy(scenario: Scenario, why: str) -> None:
    """Refuse a scenario whose cells a run has still to find; ``why`` they have to be known.

    Raises:
        ScenarioError: it has an accuracy.
    """
    if scenario.domain.accuracy is not None:
        message = (
            f"got {scenario.domain.accuracy:g} K, but {why}: leave it out, or run the scenario alone and take the "
            "scenario.toml of that run, which has the cells"
        )
        raise ScenarioError(scenario.path, [Mistake("domain.accuracy", message)])


def refine_on_first(scenario: Scenario, team: Team, progress: bool) -> tuple[Scenario, Refinement | None]:
    """As :func:`refine`; rank 0 does it for all. Nothing is done for a scenario without an accuracy. Collective."""
    if scenario.domain.accuracy is None:
        return scenario, None
    if team.size == 1:
        return refine(scenario, progress=progress)
    found = list[tuple[Domain, Refinement]]()
    with team.agreeing():
        if team.first:
            refined, refinement = refine(scenario, progress=progress)
            found.append((refined.domain, refinement))
    [(domain, refinement)] = team.broadcast(found)
    return scenario.model_copy(update={"domain": domain}), refinement


def refine(scenario: Scenario, stop: Stop | None = None, progress: bool = False) -> tuple[Scenario, Refinement]:
    """The scenario with cells on which its error in space is below ``domain.accuracy``, as far as that can be done.

    Args:
        scenario: with an accuracy.
        stop: interrupts it, as a signal does.
        progress: print each grid on stderr.

    Raises:
        InputError: the scenario cannot be run, or its error in space cannot be found.
        RunError: a run failed.
        Interrupted: a stop was requested.
    """
    accuracy, rounds, missed, started = scenario.domain.accuracy, list[Round](), "", time.monotonic()
    assert accuracy is not None
    try:
        with stop_on_signals(stop) as wanted:
            now = _try(_with_coarser_grid(scenario), wanted)
            while True:
                rounds.append(now.round)
                if progress:
                    print(_in_words(now), file=sys.stderr)
                if now.round.error <= accuracy:
                    missed = ""
                    break
                if missed:
                    break
                if len(rounds) == _MOST_ROUNDS:
                    missed = f"{_MOST_ROUNDS} grids were tried"
                    break
                try:
                    finer, missed = _finer(now, accuracy)
                    if finer is None:
                        break
                    now = _try(finer, wanted)
                except (InputError, RunError, MemoryError) as error:
                    missed = f"smaller cells cannot be used: {in_a_line(error)}"
                    break
    except Interrupted:
        raise Interrupted("interrupted before the run began: its cells are not found yet; run it again") from None
    if missed:
        missed = _remedy(now, accuracy, missed)
    found = Refinement(accuracy, tuple(rounds), missed, time.monotonic() - started, now.found)
    return now.scenario.settled, found


@dataclass(frozen=True)
class _Tried:
    """A run in memory.

    Attributes:
        scenario: with its cells, which are not settled.
        found: its error in space as summary.json has it.
        shares: for each axis the part of each plane in the error; in all 1.
    """

    scenario: Scenario
    found: dict[str, Any]
    shares: list[Floats]

    @property
    def round(self) -> Round:
        """The grid with its error."""
        largest = next(value for value in self.found["values"] if value["name"] == self.found["largest"])
        return Round(self.scenario.grid.cells, float(largest["error"]), largest["name"])


def _try(scenario: Scenario, stop: Stop) -> _Tried:
    """Run a scenario and the same on a coarser grid, in memory."""
    started = time.monotonic()
    plain_one = scenario.settled
    plain_one = plain_one.model_copy(update={"output": plain_one.output.model_copy(update={"fields": False})})
    check_room(plain_one)
    plan = Plan.of(HeatProblem.from_scenario(plain_one))
    plan.check_memory()
    planes, same = PlaneErrors(list(_places(scenario))), plan.problem.scenario
    fine = run_in_memory(plan, stop, [planes])
    cells = GridChoice.of(same).coarser()[0]
    coarse = run_in_memory(plan_on(same, cells, same.solver.kernel), stop, ends=True)
    found = compare(same, fine, coarse, cells)
    if found["largest"] is None:
        raise InputError(f"{scenario.path}: domain.accuracy: the body has no temperature whose error could be stated")
    return _Tried(scenario, {**found, "seconds": time.monotonic() - started}, _shares(planes.found))


def _with_coarser_grid(scenario: Scenario) -> Scenario:
    """The scenario with cells that are small enough for a coarser grid that shows their error.

    Raises:
        InputError: there are none.
    """
    while not (choice := GridChoice.of(scenario.settled)).coarser():
        few = [n < _FEWEST and not fixed for n, fixed in zip(choice.given, choice.fixed, strict=True)]
        axes = zip(scenario.grid.axes, few, strict=True)
        halves = [_limits(axis.borders, axis.widths / (2.0 if small else 1.0)) for axis, small in axes]
        scenario = _with_cells(scenario, halves)
        if scenario.grid.cells == choice.given:
            raise InputError(
                f"{scenario.path}: domain.accuracy: no coarser grid keeps the planes of all parts, so that the error "
                "in space cannot be found; leave domain.accuracy out"
            )
    return scenario


def _places(scenario: Scenario) -> Iterator[Place]:
    """Where probes read temperatures."""
    regions = {region.name: region for region in scenario.regions}
    low = scenario.domain.origin
    high = [start + size for start, size in zip(low, scenario.domain.size, strict=True)]
    for probe in scenario.probes:
        if probe.unit is not None:
            continue
        if probe.points:
            points = np.array(probe.points)
            yield points.min(axis=0), points.max(axis=0)
        elif probe.region is not None and (ends := extent(regions[probe.region])) is not None:
            yield ends[0], ends[1]
        elif probe.surface in FACES:
            axis, end = divmod(FACES.index(probe.surface), 2)
            place = [(low, high)[end][axis] if other == axis else None for other in range(3)]
            yield (
                [start if at is None else at for start, at in zip(low, place, strict=True)],
                [stop if at is None else at for stop, at in zip(high, place, strict=True)],
            )


def _shares(sums: Sequence[Floats]) -> list[Floats]:
    """The part of each plane in the error, both sums in equal parts; in all 1."""
    totals = sum(of_axis.sum(axis=1) for of_axis in sums)
    known = totals > 0.0
    weights = np.where(known, 1.0 / np.where(known, totals, 1.0), 0.0) / max(known.sum(), 1)
    return [np.asarray(weights @ of_axis) for of_axis in sums]


def _finer(now: _Tried, accuracy: float) -> tuple[Scenario | None, str]:
    """The next grid, and why it may not be fine enough; no grid if none is worth a run."""
    domain, part = now.scenario.domain, min(max(_AIM * accuracy / now.round.error, _LEAST), _MOST)
    found = _with_part(now, part)
    if found.grid.cell_count <= domain.most:
        return found, ""
    many, few = part, 1.0
    for _ in range(_TRIES):
        middle = (many * few) ** 0.5
        allowed = _with_part(now, middle).grid.cell_count <= domain.most
        many, few = (many, middle) if allowed else (middle, few)
    found = _with_part(now, few)
    worth = _MORE * now.scenario.grid.cell_count <= found.grid.cell_count <= domain.most
    return found if worth else None, f"domain.most = {domain.most:,} allows no more cells"


def _with_part(now: _Tried, part: float) -> Scenario:
    """The scenario with cells on which the error is expected to be a part of that now."""
    axes = sum(len(shares) > 1 for shares in now.shares)
    wanted = []
    for axis, shares in zip(now.scenario.grid.axes, now.shares, strict=True):
        roots = np.maximum(shares, _SMALL) ** (1.0 / 3.0)
        # On the new grid each plane has the share λ³, and an axis has Σ∛e/λ planes.
        scale = (part / (axes * roots.sum())) ** 0.5 if len(shares) > 1 else 1.0
        wanted.append(_limits(axis.borders, scale * axis.widths / roots))
    return _with_cells(now.scenario, wanted)


def _with_cells(scenario: Scenario, wanted: Sequence[Widths]) -> Scenario:
    """The scenario with cells that are nowhere wider.

    Raises:
        InputError: there are none.
    """
    try:
        return scenario.with_cells(wanted)
    except ValueError as error:
        raise InputError(f"{scenario.path}: domain.cells: {error}") from None


def _limits(borders: Floats, widths: Floats) -> Widths:
    return Widths(borders[:-1], borders[1:], widths)


def _in_words(now: _Tried) -> str:
    unit = now.scenario.output.temperature_unit
    return f'{by(now.round.cells)} cells: ±{unit.difference_text(now.round.error, 2)} in space, of "{now.round.name}"'


def _remedy(now: _Tried, accuracy: float, why: str) -> str:
    """A message about an accuracy that is not reached."""
    unit, more = now.scenario.output.temperature_unit, ""
    with suppress(InputError):
        cells = _with_part(now, _AIM * accuracy / now.round.error).grid.cell_count
        if cells > now.scenario.domain.most:
            more = f"about {plain(cells, 2)} cells are needed: make domain.most larger, or "
    return (
        f"domain.accuracy = {unit.difference_text(accuracy)} is not reached: {_in_words(now)}; {why}; {more}ask for a "
        "larger error"
    )
