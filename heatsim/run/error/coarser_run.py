"""Finding the error of a run in space with the same run on a coarser grid, where that is cheap.

Two grids have no observed order, so the error of a value is ± its difference between the two grids. If the cells of the
coarser grid are less than twice as large, it is the difference divided by their ratio less 1, which assumes an order of
at least 1.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.errors import HeatsimError, InputError, Interrupted, ScenarioError
from heatsim.observers.observer import Observer
from heatsim.physics.estimates.other_grids import Cells, GridChoice
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import check_room
from heatsim.run.error.values import OF_BODY, Values, means_of_regions, values_of
from heatsim.run.execution import Execution
from heatsim.run.initial_state import initial_state
from heatsim.run.interrupt import Stop
from heatsim.run.make_observers import make_tables
from heatsim.run.plan import Plan
from heatsim.run.summary import summarise
from heatsim.scenario import Scenario
from heatsim.scenario.tables.domain import AxisCells
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import render_command, resume_command
from heatsim.storage.run_tables import WATT, RunTable, read_energy, read_nodes, read_probes
from heatsim.storage.summary_file import read_summary, write_summary
from heatsim.temperature_units import KELVIN

# The time of a coarser run in parts of that of the run, at most.
PART = 0.1
# It ends after this many times of this time: other work may slow it down.
_LATE = 1.15
# s. Ranks that wait longer for another one take it for stuck.
_LONGEST_OF_RANKS = 1200.0
# Measured on two cores, 2026-11-29: the least times in s of a step and of a stage of methods with a tolerance on any
# grid; how many times longer the work on a coarser grid may take than its number of cells says; the part of the time of
# rows that depends on no grid.
_STEP, _STAGE, _SLOWER, _OF_ROWS = 1e-3, 1e-4, 1.75, 0.5
# A heat flow that differs less, in parts of the largest, does not depend on the grid.
_NOTHING = 1e-9
_MOST_TIMES = 64  # of a band


@dataclass(frozen=True)
class FinishedRun:
    """A finished run whose error in space is to be found.

    Attributes:
        scenario: with the method that the run took.
        folder: of the run.
        means: of its regions.
        ranks: that did it.
        set_up: the time in s in which it was set up, without compiling; None if it is not known apart.
        seconds: the time in s of which a coarser run may take a tenth; None for that in its summary.
        more: makes more values of a run from the table of its probes.
        progress: say on stderr that a coarser run begins.
    """

    scenario: Scenario
    folder: Path
    means: Values = field(default_factory=dict)
    ranks: int = 1
    set_up: float | None = None
    seconds: float | None = None
    more: Callable[[RunTable | None], Values] = lambda probes: {}
    progress: bool = False


def state_error(run: FinishedRun, stop: Stop) -> None:
    """Find the errors of the values of a run in space, and write them into its summary.json.

    It does nothing if summary.json has them, or why they are not known.

    Raises:
        Interrupted: a stop was requested.
        FolderError, StorageError: the folder cannot be read or written.
    """
    summary = read_summary(run.folder)
    if "error_in_space" in summary:
        return
    try:
        found = _compare(run, summary, stop)
    except Interrupted:
        raise Interrupted(
            f"the run in {run.folder} is complete, but its error in space is not known; go on with "
            f"`{resume_command(run.folder)}`, or draw pictures with `{render_command(run.folder)}`"
        ) from None
    except (HeatsimError, MemoryError) as error:
        found = {"missing": in_a_line(error)}
    with run_folder.claim(run.folder):
        write_summary(run.folder, {**summary, "error_in_space": found})


def cheap_grid(choice: GridChoice, scenario: Scenario, stepping: float, others: float, most: float) -> Cells:
    """The coarser grid on which a run is expected to take at most some time.

    Args:
        choice: the grids of the scenario.
        scenario: with its method.
        stepping: the time of steps on the given grid in s.
        others: the time in s of what depends on the number of cells only.
        most: in s.

    Raises:
        InputError: there is none; says why.
    """
    if any(change.recorded is None for change in scenario.changes.values()):
        raise InputError("a program sets values during the run, and a coarser one would go without it")
    grids = choice.coarser()
    if not grids:
        raise InputError("no coarser grid keeps the planes of all parts")
    for cells in grids:
        seconds = choice.work(cells, scenario) * stepping + prod(cells) / prod(choice.given) * others
        if _SLOWER * seconds <= most:
            return cells
    raise InputError(too_long(grids[0]))


def by(cells: Cells) -> str:
    """The numbers of cells as text."""
    return " × ".join(map(str, cells))


def too_long(cells: Cells) -> str:
    """Why a run on a coarser grid is not done."""
    return f"a run with {by(cells)} cells takes more than a tenth of the time"


def _compare(run: FinishedRun, summary: Mapping[str, Any], stop: Stop) -> dict[str, Any]:
    """The errors as summary.json has them.

    Raises:
        InputError: the coarser run would take too long, or cannot be done.
        Interrupted: a stop was requested.
    """
    started, scenario, probes = time.monotonic(), run.scenario, read_probes(run.folder)
    budget = PART * float(summary["wall_time"] if run.seconds is None else run.seconds)
    budget = budget if run.ranks == 1 else min(budget, _LONGEST_OF_RANKS)
    # One process does the coarser run.
    stepping = run.ranks * float(summary.get("stepping_time") or summary.get("solving_time") or 0.0)
    set_up = float(summary["preparing_time"] if run.set_up is None else run.set_up)
    choice = GridChoice.of(scenario)
    # Some time depends on no grid: of rows, of steps of methods with a tolerance, of triangles.
    rows = float(summary["observing_time"])
    fixed = _OF_ROWS * rows
    if summary.get("stages") is not None:
        fixed += _STEP * float(summary["steps"]) + _STAGE * float(summary["stages"])
    if any(part.stl is not None for part in (*scenario.regions, *scenario.sources)):
        fixed, set_up = fixed + set_up, 0.0
    cells = cheap_grid(choice, scenario, stepping, set_up + (1.0 - _OF_ROWS) * rows, budget - fixed)
    if run.progress:
        print(f"a run with {by(cells)} cells shows the error in space …", file=sys.stderr)
    tuned = summary["backend"] == "cuda" and summary["method"] in ("euler", "stabilized")
    plan = plan_on(scenario, cells, summary["kernel"] if tuned else scenario.solver.kernel)
    try:
        coarse = run_in_memory(plan, _Limit(stop, started + _LATE * budget), ends=True)
    except Interrupted:
        raise Interrupted("") if stop.requested else InputError(too_long(cells)) from None
    of_files = values_of(summary, probes, read_energy(run.folder), read_nodes(run.folder))
    fine = RunValues({**run.means, **of_files, **run.more(probes)}, probes)
    coarse = replace(coarse, values={**coarse.values, **run.more(coarse.probes)})
    return {**compare(scenario, fine, coarse, cells), "seconds": time.monotonic() - started}


@dataclass(frozen=True)
class RunValues:
    """What a run has found; ``probes``: its table of probes."""

    values: Values
    probes: RunTable | None


def run_in_memory(plan: Plan, stop: Stop, watchers: Sequence[Observer] = (), *, ends: bool = False) -> RunValues:
    """Do a run that writes nothing.

    Args:
        plan: of the run.
        stop: interrupts it.
        watchers: additional observers.
        ends: with the extremes at its start and end.

    Raises:
        Interrupted: a stop was requested.
        RunError: the run failed.
    """
    execution = Execution(plan, Path(), initial_state(plan, Path()), in_memory=True)
    state, tables = execution.state, make_tables(plan.problem.scenario)
    execution.run(False, [*tables, *watchers], stop)
    kept = {table.file: RunTable.of(table.columns(state), np.array(table.kept)) for table in tables}
    probes, energy, nodes = (kept.get(file) for file in (run_folder.PROBES, run_folder.ENERGY, run_folder.NODES))
    of_tables = values_of(summarise(plan, state, execution.timing, None), probes, energy, nodes, ends)
    return RunValues({**means_of_regions(state), **of_tables}, probes)


def compare(scenario: Scenario, fine: RunValues, coarse: RunValues, cells: Cells) -> dict[str, Any]:
    """The errors of the values of a run as summary.json has them; ``cells``: of the coarser grid."""
    ratio = GridChoice.of(scenario).ratio(cells)
    of_lines = {name: probe.name for probe in scenario.probes if probe.line is not None for name in probe.columns}
    errors = _errors(fine.values, coarse.values, ratio, of_lines)
    return {
        "cells": cells,
        "ratio": ratio,
        "largest": _largest(errors),
        "values": errors,
        "bands": _bands(fine.probes, coarse.probes, ratio, of_lines),
    }


def plan_on(scenario: Scenario, cells: Cells, kernel: str) -> Plan:
    """The plan of the same run on another grid, without fields.

    Raises:
        ScenarioError, CapacityError: it cannot be run there.
    """
    widths = GridChoice.of(scenario).widths(cells)
    tables = {name: AxisCells(widths=tuple(of_axis), intervals=None) for name, of_axis in widths.items()}
    changes = {
        "domain": scenario.domain.model_copy(update={"cells": cells, **tables}),
        "output": scenario.output.model_copy(update={"fields": False}),
        "solver": scenario.solver.model_copy(update={"kernel": kernel}),
    }
    other = scenario.model_copy(update=changes)
    check_room(other)
    plan = Plan.of(HeatProblem.from_scenario(other))
    plan.check_memory()
    return plan


class _Limit(Stop):
    """A request to stop of the user, or the end of the time that a run may take; ``end``: by the monotonic clock."""

    def __init__(self, stop: Stop, end: float) -> None:
        self._stop, self._end = stop, end

    @property
    def requested(self) -> bool:
        """Whether the run is to stop."""
        return self._stop.requested or time.monotonic() > self._end

    @requested.setter
    def requested(self, value: bool) -> None:
        self._stop.requested = value


def _errors(values: Values, coarser: Values, ratio: float, of_lines: Mapping[str, str]) -> list[dict[str, Any]]:
    """The values with their errors; of the points along a line, the one with the largest error."""
    largest = max((abs(value) for (_, unit), value in values.items() if unit == WATT), default=0.0)
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for (name, unit), value in values.items():
        other = coarser.get((name, unit))
        if other is None or not (isfinite(value) and isfinite(other)):
            continue
        error = _error(value - other, ratio)
        if unit == WATT and error <= _NOTHING * largest:
            continue  # a condition or a power sets it
        column, comma, what = name.rpartition(", ")
        key = (of_lines[column], what) if column in of_lines else (of_lines.get(name, name), unit, comma)
        if key not in found or error > found[key]["error"]:
            found[key] = {"name": name, "unit": unit, "value": value, "coarser": other, "error": error}
    return list(found.values())


def _largest(errors: Sequence[Mapping[str, Any]]) -> str | None:
    """The name of the temperature with the largest error: of probes and regions; without any, of the body."""
    temperatures = [value for value in errors if value["unit"] == KELVIN.name]
    asked = [value for value in temperatures if value["name"] not in OF_BODY] or temperatures
    return max(asked, key=lambda value: float(value["error"]))["name"] if asked else None


def _error(difference: Any, ratio: float) -> Any:
    return np.abs(difference) / min(ratio - 1.0, 1.0)


def _bands(
    probes: RunTable | None, coarser: RunTable | None, ratio: float, of_lines: Mapping[str, str]
) -> dict[str, Any] | None:
    """The errors in K of temperatures of probes over time, at most at 64 times: the largest up to the times beside it.

    Without probes along lines.
    """
    if probes is None or coarser is None:
        return None
    rows, others = min(len(probes.times), len(coarser.times)), coarser.in_unit(KELVIN.name)
    if rows < 2 or not np.allclose(probes.times[:rows], coarser.times[:rows]):
        return None
    chosen = np.unique(np.linspace(0, rows - 1, min(rows, _MOST_TIMES)).round().astype(np.intp))
    errors = {}
    for name, column in probes.in_unit(KELVIN.name).items():
        if name not in of_lines:
            between = np.maximum.reduceat(_error(column[:rows] - others[name][:rows], ratio), chosen)
            if rows > len(chosen):
                between[1:] = np.maximum(between[1:], between[:-1])
            errors[name] = between
    return {"times": probes.times[chosen], "errors": errors} if errors else None


def in_a_line(error: BaseException) -> str:
    """The message of an error, or the first of its mistakes, in one line."""
    text = str(error.mistakes[0]) if isinstance(error, ScenarioError) else str(error) or type(error).__name__
    return " ".join(text.split())
