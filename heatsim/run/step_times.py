"""Seconds that the steps of a run take, measured with real steps on its own field before it starts."""

import time
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import CapacityError, RunError, ScenarioError
from heatsim.observers.state import RunState
from heatsim.physics.method_choice import choose_method
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.time_loop import Batch
from heatsim.solver.make_stepper import make_stepper
from heatsim.solver.stepper import Stepper

# Seconds for the steps of one method. Reading the initial field and compiling come before.
_SECONDS = 0.4
# Steps of "euler" are timed at this number of places of a run: beams and switched sources cost time while they act.
_PLACES = 8
# On grids with more cells a CPU needs seconds for a step of the other methods: then steps on a coarser grid are timed.
_MOST_CELLS = 2**21
# On grids with at most this number of cells more steps are timed: the first ones include compiling. The first steps of
# "implicit" are also short, so their work besides applications of the operator would have too much weight.
_SHORT = 2**19
_FEWEST = 5  # batches in addition to the first
_LONGEST = 1.2  # s for the steps of a method, apart from the last batch


def fitting_methods(problem: HeatProblem) -> tuple[str, ...]:
    """The methods in time that fit a scenario, its own among them."""
    several = problem.timeline.adaptive or (problem.choice or choose_method(problem)).work is not None
    return ("euler", "stabilized", "implicit") if several else ("euler",)


def measure_steps(problem: HeatProblem) -> dict[str, float]:
    """Seconds of one step of "euler", one stage of "stabilized" and one application of the operator of "implicit".

    Methods that do not fit the scenario or the memory are missing, and so is one whose steps fail at the start.

    Args:
        problem: of a run in which time passes.
    """
    found = {}
    for method in fitting_methods(problem):
        with suppress(ScenarioError, CapacityError, RunError):
            plan = Plan.of(problem if method == problem.scenario.time.method else problem.with_method(method))
            plan.check_memory()
            found[method] = measure_step(plan)
    return found


def measure_step(plan: Plan) -> float:
    """Seconds of one step, stage or application of the operator of a run's method in time.

    Raises:
        ScenarioError, RunError: the first steps fail.
    """
    if plan.problem.timeline.adaptive:
        timed = _coarser(plan)
        state = initial_state(timed, Path())
        fewest = _FEWEST if timed.problem.grid.cell_count <= _SHORT else 0
        each = _median(_stages(state), fewest)
        return each * plan.problem.grid.cell_count / timed.problem.grid.cell_count
    state = initial_state(plan, Path())
    stepper = make_stepper(plan.problem, state.field, state.ledger, plan.kernel, tuned=plan.tuned, arrays=state.arrays)
    stepper.prepare()
    return _measure_euler(stepper)


def _measure_euler(stepper: Stepper) -> float:
    """The mean seconds of a step of "euler": of all steps if there is time, else of steps at several places."""
    last, batch = stepper.problem.timeline.last_step, Batch(stepper.steps_a_sweep)
    counts, seconds = [], []
    started = time.perf_counter()
    for steps, taken in _timed(_steps(stepper, batch, 0)):
        counts.append(steps)
        seconds.append(taken)
        if sum(seconds) > (_SECONDS if batch.steps >= stepper.steps_a_sweep else _LONGEST):
            break
    if stepper.step == last:
        return sum(seconds) / sum(counts)
    means, short = list[float](), max(stepper.steps_a_sweep, batch.steps // 4)
    for place in _spread(_PLACES):
        if means and time.perf_counter() - started > _LONGEST:
            break
        batch.steps = short
        means.append(_mean(_steps(stepper, batch, last * place // _PLACES), _SECONDS / _PLACES))
    return sum(means) / len(means)


def _spread(places: int) -> list[int]:
    """The numbers 0 to ``places`` − 1, in an order that spreads the first few evenly; ``places``: a power of 2."""
    digits = places.bit_length() - 1
    return [int(f"{number:0{digits}b}"[::-1], 2) for number in range(places)]


def _coarser(plan: Plan) -> Plan:
    """The plan of the same run on a coarser grid, if a CPU would need seconds for a step; else the plan itself."""
    scenario = plan.problem.scenario
    cells = scenario.domain.cells
    while prod(cells) > _MOST_CELLS:
        nx, ny, nz = cells
        cells = (-(-nx // 2), -(-ny // 2), -(-nz // 2))
    if plan.device.backend != "cpu" or cells == scenario.domain.cells:
        return plan
    domain = scenario.domain.model_copy(update={"cells": cells})
    try:
        return Plan.of(HeatProblem.from_scenario(scenario.model_copy(update={"domain": domain})))
    except ScenarioError:  # such as a region without cells
        return plan


def _mean(work: Iterator[float], most: float) -> float:
    """The mean of the seconds that a unit of work takes. Stops once ``most`` seconds have passed.

    A few batches evaluate conditions and sources for many steps, so the times of single batches differ.
    """
    counts, seconds = 0.0, 0.0
    for count, taken in _timed(work):
        counts, seconds = counts + count, seconds + taken
        if seconds > most:
            break
    return seconds / counts


def _median(work: Iterator[float], fewest: int) -> float:
    """The median time in s of a unit of work, over more than ``fewest`` batches if there is time."""
    counts, seconds = [], []
    for count, taken in _timed(work):
        counts.append(count)
        seconds.append(taken)
        if sum(seconds) > (_SECONDS if len(seconds) > fewest else _LONGEST):
            break
    return weighted_median(np.array(seconds) / np.array(counts), np.array(counts))


def _timed(work: Iterator[float]) -> Iterator[tuple[float, float]]:
    """The work of each batch, and its time in s."""
    started = time.perf_counter()
    for count in work:
        yield count, time.perf_counter() - started
        started = time.perf_counter()


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The value that half of the weight does not exceed. Code that is compiled on the way does not change it."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, 0.5 * below[-1])])


def _steps(stepper: Stepper, batch: Batch, first: int) -> Iterator[float]:
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


def _stages(state: RunState) -> Iterator[float]:
    """Do steps of a method that chooses them; yields the number of stages or of applications of the operator."""
    method = state.method
    assert method is not None
    method.prepare()
    before = 0.0
    device = state.field.device
    while method.step < state.problem.timeline.last_step:
        method.advance(1)
        device.synchronise()
        now = method.counts.get("applications", float(method.work.stages))
        # At a due time within the last step the field is interpolated there, which costs no stage.
        if now > before:
            yield now - before
            before = now
