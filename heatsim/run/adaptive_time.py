"""Measure the time of the work of methods with a tolerance, and of a search for a steady state.

Steps of methods with a tolerance also take time that does not depend on their number of units: error estimates, new
tables, launches on a GPU. Both parts follow from steps with different numbers of units.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import inf, prod
from pathlib import Path

import numpy as np

from heatsim.errors import Interrupted, ScenarioError
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.run import work_time
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.work_time import WorkTime, fitted
from heatsim.scenario import Scenario
from heatsim.solver.steady import steady_state

# On grids with at most this number of cells more steps are timed, because the first steps have few units.
_SHORT = 2**19
_FEWEST = 5  # steps
# Number of steps before timing starts. They compile the code of later steps.
_WARM_STEPS = 3


def measure_units(plan: Plan) -> WorkTime:
    """The time of the work of a method with a tolerance."""
    state = initial_state(plan, Path())
    work = _tried_steps(state)
    warm, fewest = (_WARM_STEPS, _FEWEST) if plan.problem.grid.cell_count <= _SHORT else (1, 0)
    for _ in islice(work, warm):
        pass
    found = _batches(work, fewest)
    if not found:
        # The run ended during these steps. Now that its code is compiled, time all of it.
        state = initial_state(plan, Path())
        found = _batches(_tried_steps(state), fewest)
    units, seconds = (np.array(values) for values in zip(*found, strict=True))
    return replace(fitted(units, seconds), row=_measure_row(state))


def _batches(work: Iterator[float], fewest: int) -> list[tuple[float, float]]:
    """The units and the seconds of more than ``fewest`` steps, if there is time."""
    found, started, before = list[tuple[float, float]](), time.perf_counter(), 0.0
    for units in work:
        passed = time.perf_counter() - started
        found.append((units, passed - before))
        before = passed
        if passed > (work_time.SECONDS if len(found) > fewest else work_time.LONGEST):
            break
    return found


def _tried_steps(state: RunState) -> Iterator[float]:
    """Do steps of a method with a tolerance, without rows. Yields the stages or applications of each step."""
    method = state.method
    assert method is not None
    method.prepare()
    before, device = 0.0, state.field.device
    while method.step < state.problem.timeline.last_step:
        if method.at_due:
            method.step += 1
            continue
        method.accept(method.method.complete(method.begin()))
        device.synchronise()
        now = method.counts.get("applications", float(method.work.stages))
        if now > before:
            yield now - before
            before = now


def _measure_row(state: RunState) -> float:
    """Seconds to interpolate the field within the last step."""
    method = state.method
    assert method is not None
    last, seconds = method.method.last, 0.0
    assert last is not None
    # The first interpolation compiles.
    for part in (0.3, 0.6):
        started = time.perf_counter()
        method.method.interpolate(last.start + part * last.h)
        state.field.device.synchronise()
        seconds = time.perf_counter() - started
    return seconds


_WARM_CYCLES = 8  # they compile


def measure_search(plan: Plan, usual: int) -> WorkTime:
    """The time of a search for a steady state. If there is no time for a whole search, an estimate from its cycles.

    Args:
        plan: of the search.
        usual: the usual number of cycles.
    """
    _search(plan, _WARM_CYCLES, inf)
    taken, cycles = _search(plan, inf, work_time.LONGEST)
    if cycles is None and taken < 0.5 * work_time.LONGEST:
        # The first complete search compiles the code that the warm-up cycles did not reach.
        taken = min(taken, _search(plan, inf, work_time.LONGEST)[0])
    return WorkTime(taken if cycles is None else taken * max(usual / cycles, 1.0))


def _search(plan: Plan, most_cycles: float, most_seconds: float) -> tuple[float, int | None]:
    """Search for a steady state. Returns seconds, and the number of cycles if time ran out, else None."""
    state, cycles = initial_state(plan, Path()), 0
    started = time.perf_counter()

    def stopped() -> bool:
        nonlocal cycles
        cycles += 1
        return cycles >= most_cycles or time.perf_counter() - started > most_seconds

    try:
        steady_state.find_steady_state(state.part, state.field, state.arrays.body.cells, stopped)
    except Interrupted:
        return time.perf_counter() - started, cycles
    state.field.device.synchronise()
    return time.perf_counter() - started, None


def coarser_plan(plan: Plan, most: int) -> Plan:
    """On a CPU, the plan of the same run on a grid with at most ``most`` cells; on a GPU, the plan itself."""
    scenario = plan.problem.scenario
    coarser = on_coarser_grid(scenario, most)
    if plan.device.backend != "cpu" or coarser is scenario:
        return plan
    try:
        return Plan.of(HeatProblem.from_scenario(coarser))
    except ScenarioError:  # such as a region without cells
        return plan


def on_coarser_grid(scenario: Scenario, most: int) -> Scenario:
    """A scenario on a grid with at most ``most`` cells; the scenario itself if its grid has no more."""
    cells = scenario.domain.cells
    while prod(cells) > most:
        nx, ny, nz = cells
        cells = (-(-nx // 2), -(-ny // 2), -(-nz // 2))
    if cells == scenario.domain.cells:
        return scenario
    return scenario.model_copy(update={"domain": scenario.domain.model_copy(update={"cells": cells})})
