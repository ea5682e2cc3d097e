"""Measure the time that a run takes to step or to solve: do some of its work on its own field, before it starts.

Code is compiled before work is timed, so times do not depend on caches of compiled code. A unit of work is a step of
"euler", a stage of "stabilized", an application of the operator of "implicit", or the whole search for a steady state.
Steps of a method with a tolerance also take time that does not depend on their number of units: error estimates, new
tables, launches on a GPU. Both parts follow from steps with different numbers of units.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from math import inf, prod
from pathlib import Path

import numpy as np

from heatsim import device as devices
from heatsim.errors import CapacityError, Interrupted, RunError, ScenarioError
from heatsim.observers.state import RunState
from heatsim.physics.method_choice import choose_method
from heatsim.physics.problem import HeatProblem
from heatsim.run.batch_size import BatchSize
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.work_time import WorkTime, fitted
from heatsim.scenario import Scenario
from heatsim.solver import steady_state
from heatsim.solver.make_stepper import make_stepper
from heatsim.solver.stepper import Stepper

# Seconds for the steps of one method. Reading the initial field and compiling come before.
_SECONDS = 0.4
# Steps of "euler" are timed at this number of places of a run: beams and switched sources cost time while they act.
_PLACES = 8
# A plan of several ranks times steps on a grid of at most this number of cells, because it must fit one processor.
_MOST_PAINTED = {"cpu": 2**24, "cuda": 2**26}
# On grids with more cells a CPU needs seconds for a step of the other methods: then steps on a coarser grid are timed.
_MOST_CELLS = 2**21
# On grids with at most this number of cells more steps are timed, because the first steps have few units; and steps of
# "euler" are timed in new memory.
_SHORT = 2**19
_FEWEST = 5  # batches
_LONGEST = 1.2  # s for the steps of a method, apart from the last batch
# Number of steps before timing starts. They compile the code of later steps.
_WARM = 3
# On grids with more cells a CPU searches for a steady state on a coarser one. The first cycles compile.
_SEARCH_CELLS, _WARM_CYCLES = 2**19, 8


def fitting_methods(problem: HeatProblem) -> tuple[str, ...]:
    """The methods in time that fit a scenario, its own among them."""
    several = problem.timeline.adaptive or (problem.choice or choose_method(problem)).work is not None
    return ("euler", "stabilized", "implicit") if several else ("euler",)


def measure_methods(problem: HeatProblem) -> dict[str, WorkTime]:
    """The time of the work of each method that fits a scenario. For a steady state only "steady".

    Leaves out methods that need more memory than there is, and methods that fail at the start.
    """
    found = {}
    for method in ("steady",) if problem.scenario.steady else fitting_methods(problem):
        with suppress(ScenarioError, CapacityError, RunError):
            plan = Plan.of(problem if method == problem.scenario.time.method else problem.with_method(method))
            plan.check_memory()
            found[method] = measure_work(plan)
    return found


def measure_any_grid(scenario: Scenario) -> dict[str, WorkTime]:
    """The times that :func:`measure_methods` finds; on a grid too large for one processor, those on a coarser grid.

    Raises:
        ScenarioError: the scenario has a mistake.
        DeviceError: the device of the scenario is not available.
    """
    timed = _on_coarser_grid(scenario, _MOST_PAINTED[devices.choose(scenario.solver.device).backend])
    factor = scenario.grid.cell_count / timed.grid.cell_count
    try:
        times = measure_methods(HeatProblem.from_scenario(timed))
    except ScenarioError:
        if timed is scenario:
            raise
        return {}  # such as a region without cells on the coarser grid
    return {method: found.scaled(factor) for method, found in times.items()}


def measure_work(plan: Plan) -> WorkTime:
    """The time of the work of a run's method.

    Raises:
        ScenarioError, RunError: the first steps fail, or there is no steady state.
    """
    if plan.problem.scenario.steady:
        return _measure_search(plan)
    if plan.problem.timeline.adaptive:
        timed = _coarser(plan, _MOST_CELLS)
        return _measure_steps(timed).scaled(plan.problem.grid.cell_count / timed.problem.grid.cell_count)
    state, stepper = _start(plan)
    for _ in islice(_steps(stepper, BatchSize(stepper.steps_a_sweep), 0), _WARM):
        pass
    # First use of memory is slow. In a short run this counts.
    new = plan.problem.grid.cell_count <= _SHORT
    return WorkTime(_measure_euler(*(_start(plan) if new else (state, stepper))))


def _start(plan: Plan) -> tuple[RunState, Stepper]:
    """The start of a run with the method "euler", and its stepper."""
    state = initial_state(plan, Path())
    stepper = make_stepper(plan.problem, state.field, state.ledger, plan.kernel, tuned=plan.tuned, arrays=state.arrays)
    stepper.prepare()
    return state, stepper


def _measure_euler(state: RunState, stepper: Stepper) -> float:
    """The mean seconds of a step of "euler": of all steps if there is time, else of steps at several places."""
    last = stepper.problem.timeline.last_step
    batch, counts, seconds = BatchSize(stepper.steps_a_sweep), list[float](), list[float]()
    started = time.perf_counter()
    for steps, taken in _timed(_steps(stepper, batch, 0), lambda: _look(state, stepper)):
        counts.append(steps)
        seconds.append(taken)
        enough = _SECONDS if batch.steps >= stepper.steps_a_sweep else _LONGEST
        if sum(seconds) > enough or time.perf_counter() - started > _LONGEST + _SECONDS:
            break
    if stepper.step == last:
        return sum(seconds) / sum(counts)
    means, short = list[float](), max(stepper.steps_a_sweep, batch.steps // 4)
    for place in _spread(_PLACES):
        if means and time.perf_counter() - started > _LONGEST:
            break
        batch.steps = short
        work = _timed(_steps(stepper, batch, last * place // _PLACES), lambda: _look(state, stepper))
        means.append(_mean(work, _SECONDS / _PLACES))
    return sum(means) / len(means)


def _measure_steps(plan: Plan) -> WorkTime:
    """The time of the work of a method with a tolerance."""
    state = initial_state(plan, Path())
    work = _tried_steps(state)
    warm, fewest = (_WARM, _FEWEST) if plan.problem.grid.cell_count <= _SHORT else (1, 0)
    for _ in islice(work, warm):
        pass
    found = _batches(work, fewest)
    if not found:
        # The run ended during these steps. Now that its code is compiled, time all of it.
        state = initial_state(plan, Path())
        found = _batches(_tried_steps(state), fewest)
    units, seconds = (np.array(values) for values in zip(*found, strict=True))
    return replace(fitted(units, seconds), row=_measure_row(state))


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


def _batches(work: Iterator[float], fewest: int) -> list[tuple[float, float]]:
    """The units and the seconds of more than ``fewest`` steps, if there is time."""
    found, passed = list[tuple[float, float]](), 0.0
    for units, taken in _timed(work):
        found.append((units, taken))
        passed += taken
        if passed > (_SECONDS if len(found) > fewest else _LONGEST):
            break
    return found


def _measure_search(plan: Plan) -> WorkTime:
    """The time of a search for a steady state. If there is no time for a whole search, an estimate from its cycles."""
    timed, usual = _coarser(plan, _SEARCH_CELLS), steady_state.usual_cycles(plan.problem)
    _search(timed, _WARM_CYCLES, inf)
    taken, cycles = _search(timed, inf, _LONGEST)
    if cycles is None and taken < 0.5 * _LONGEST:
        # The first complete search compiles the code that the warm-up cycles did not reach.
        taken = min(taken, _search(timed, inf, _LONGEST)[0])
    each = taken if cycles is None else taken * max(usual / cycles, 1.0)
    return WorkTime(each * plan.problem.grid.cell_count / timed.problem.grid.cell_count)


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


def _spread(places: int) -> list[int]:
    """The numbers 0 to ``places`` − 1, in an order that spreads the first few evenly; ``places``: a power of 2."""
    digits = places.bit_length() - 1
    return [int(f"{number:0{digits}b}"[::-1], 2) for number in range(places)]


def _coarser(plan: Plan, most: int) -> Plan:
    """On a CPU, the plan of the same run on a grid with at most ``most`` cells; on a GPU, the plan itself."""
    scenario = plan.problem.scenario
    coarser = _on_coarser_grid(scenario, most)
    if plan.device.backend != "cpu" or coarser is scenario:
        return plan
    try:
        return Plan.of(HeatProblem.from_scenario(coarser))
    except ScenarioError:  # such as a region without cells
        return plan


def _on_coarser_grid(scenario: Scenario, most: int) -> Scenario:
    """A scenario on a grid with at most ``most`` cells; the scenario itself if its grid has no more."""
    cells = scenario.domain.cells
    while prod(cells) > most:
        nx, ny, nz = cells
        cells = (-(-nx // 2), -(-ny // 2), -(-nz // 2))
    if cells == scenario.domain.cells:
        return scenario
    return scenario.model_copy(update={"domain": scenario.domain.model_copy(update={"cells": cells})})


def _mean(timed: Iterator[tuple[float, float]], most: float) -> float:
    """The mean of the seconds that a unit of work takes. Stops once ``most`` seconds have passed.

    A few batches evaluate conditions and sources for many steps, so the times of single batches differ.
    """
    counts, seconds = 0.0, 0.0
    for count, taken in timed:
        counts, seconds = counts + count, seconds + taken
        if seconds > most:
            break
    return seconds / counts


def _timed(work: Iterator[float], look: Callable[[], object] = lambda: None) -> Iterator[tuple[float, float]]:
    """The work of each batch, and its time in s; ``look`` is called after each batch and is not timed."""
    started = time.perf_counter()
    for count in work:
        yield count, time.perf_counter() - started
        look()
        started = time.perf_counter()


def _look(state: RunState, stepper: Stepper) -> None:
    """Find the sums of a row as a run does, so that later steps start with realistic caches."""
    if stepper.step in stepper.problem.timeline.steps:
        state.find_row()
        state.stored_heat()


def _steps(stepper: Stepper, batch: BatchSize, first: int) -> Iterator[float]:
    """Do batches of steps from ``first`` on as the time loop does, one each time; yields the number of steps.

    The field is not that of the run at this time, but steps of other fields take as long.
    """
    timeline = stepper.problem.timeline
    stepper.step = first
    while stepper.step < timeline.last_step:
        steps = min(batch.steps, timeline.interval_end(stepper.step) - stepper.step)
        started = time.perf_counter()
        stepper.advance(steps)
        stepper.field.device.synchronise()
        batch.took(steps, time.perf_counter() - started)
        yield steps


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
