"""Measure the time of a step of "euler"."""

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from heatsim.observers.state import RunState
from heatsim.run import timed_work
from heatsim.run.batch_size import BatchSize
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.solver.make_stepper import make_stepper
from heatsim.solver.stepper import Stepper

# Steps are timed at this number of places of a run: beams and switched sources cost time while they act.
_PLACES = 8


def measure_step(plan: Plan) -> float:
    """The mean seconds of a step.

    Raises:
        ScenarioError: the first steps fail.
    """
    state, stepper = _start(plan)
    for _ in islice(_steps(stepper, BatchSize(stepper.steps_a_sweep), 0), timed_work.WARM_STEPS):
        pass
    # First use of memory is slow. In a short run this counts.
    new = plan.problem.grid.cell_count <= timed_work.SHORT
    return _measure(*(_start(plan) if new else (state, stepper)))


def _start(plan: Plan) -> tuple[RunState, Stepper]:
    """The start of a run with the method "euler", and its stepper."""
    state = initial_state(plan, Path())
    stepper = make_stepper(plan.problem, state.field, state.ledger, plan.kernel, tuned=plan.tuned, arrays=state.arrays)
    stepper.prepare()
    return state, stepper


def _measure(state: RunState, stepper: Stepper) -> float:
    """The mean seconds of a step of "euler": of all steps if there is time, else of steps at several places."""
    last = stepper.problem.timeline.last_step
    batch, counts, seconds = BatchSize(stepper.steps_a_sweep), list[float](), list[float]()
    started = time.perf_counter()
    for steps, taken in timed_work.timed(_steps(stepper, batch, 0), lambda: _look(state, stepper)):
        counts.append(steps)
        seconds.append(taken)
        enough = timed_work.SECONDS if batch.steps >= stepper.steps_a_sweep else timed_work.LONGEST
        if sum(seconds) > enough or time.perf_counter() - started > timed_work.LONGEST + timed_work.SECONDS:
            break
    if stepper.step == last:
        return sum(seconds) / sum(counts)
    means, short = list[float](), max(stepper.steps_a_sweep, batch.steps // 4)
    for place in _spread(_PLACES):
        if means and time.perf_counter() - started > timed_work.LONGEST:
            break
        batch.steps = short
        work = timed_work.timed(_steps(stepper, batch, last * place // _PLACES), lambda: _look(state, stepper))
        means.append(_mean(work, timed_work.SECONDS / _PLACES))
    return sum(means) / len(means)


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


def _look(state: RunState, stepper: Stepper) -> None:
    """Find the sums of a row as a run does, so that later steps start with realistic caches."""
    if stepper.step in stepper.problem.timeline.steps:
        state.find_row()
        state.stored_heat()


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


def _spread(places: int) -> list[int]:
    """The numbers 0 to ``places`` − 1, in an order that spreads the first few evenly; ``places``: a power of 2."""
    digits = places.bit_length() - 1
    return [int(f"{number:0{digits}b}"[::-1], 2) for number in range(places)]
