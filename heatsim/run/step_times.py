"""Seconds that the steps of a run take, measured with real steps on its own field before it starts."""

import time
from collections.abc import Iterator
from contextlib import suppress
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
_FEWEST = 2  # batches beside the first, in which code may be compiled


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
    state = initial_state(plan, Path())
    if state.method is not None:
        return _median(_stages(state), _SECONDS)
    problem = plan.problem
    stepper = make_stepper(problem, state.field, state.ledger, plan.kernel, tuned=plan.tuned, arrays=state.arrays)
    stepper.prepare()
    last, batch = problem.timeline.last_step, Batch()
    first = sorted({last * place // _PLACES for place in range(_PLACES)})
    _median(_steps(stepper, batch, first[0]), _SECONDS / _PLACES)
    # The mean over a place: a few of its batches evaluate conditions and sources for many steps.
    return float(np.mean([_mean(_steps(stepper, batch, step), _SECONDS / _PLACES) for step in first]))


def _mean(work: Iterator[float], most: float) -> float:
    """The mean of the seconds that a unit of work takes; it is done for ``most`` seconds."""
    counts, seconds = _timed(work, most)
    return float(seconds.sum() / counts.sum())


def _median(work: Iterator[float], most: float) -> float:
    """The median of the same."""
    counts, seconds = _timed(work, most)
    return weighted_median(seconds / counts, counts)


def _timed(work: Iterator[float], most: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much work was done in each of some batches, and in which time in s; it is done for ``most`` seconds."""
    counts, seconds = [], []
    started = time.perf_counter()
    for count in work:
        counts.append(count)
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
        if sum(seconds) > most and len(seconds) > _FEWEST:
            break
    return np.array(counts), np.array(seconds)


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
