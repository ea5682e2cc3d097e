"""Seconds that the steps of a run take, measured with real steps on its own field before it starts."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from heatsim.errors import CapacityError, RunError, ScenarioError
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.time_loop import Batch
from heatsim.solver.make_stepper import make_stepper

_METHODS = "euler", "stabilized", "implicit"
# Seconds for the steps of one method. Reading the initial field and compiling come before.
_SECONDS = 0.4
_WARM_UP = 0.05


def measure_steps(problem: HeatProblem) -> dict[str, float]:
    """Seconds of one step of "euler", one stage of "stabilized" and one application of the operator of "implicit".

    Methods that do not fit the scenario or the memory are missing, and so is one whose steps fail at the start.

    Args:
        problem: of a run in which time passes.
    """
    found = {}
    for method in _METHODS:
        with suppress(ScenarioError, CapacityError, RunError):
            plan = Plan.of(problem if method == problem.scenario.time.method else problem.with_method(method))
            plan.check_memory()
            found[method] = _measure(plan)
    return found


def _measure(plan: Plan) -> float:
    state = initial_state(plan, Path())
    work = _steps(plan, state) if state.method is None else _stages(state)
    seconds, count = 0.0, 0.0
    warm = False
    started = time.perf_counter()
    for done in work:
        plan.device.synchronise()
        seconds, count = time.perf_counter() - started, count + done
        if not warm and seconds > _WARM_UP:
            # The first steps are slow: of memory that is touched for the first time, of clocks that are low.
            warm, count, started = True, 0.0, time.perf_counter()
        elif seconds > _SECONDS:
            break
    return seconds / count


def _steps(plan: Plan, state: RunState) -> Iterator[float]:
    """Do batches of steps as the time loop does, one each time; yields the number of steps."""
    problem = plan.problem
    stepper = make_stepper(problem, state.field, state.ledger, plan.kernel, tuned=plan.tuned, arrays=state.arrays)
    stepper.prepare()
    batch = Batch()
    while stepper.step < problem.timeline.last_step:
        steps = min(batch.steps, problem.timeline.interval_end(stepper.step) - stepper.step)
        started = time.perf_counter()
        stepper.advance(steps)
        plan.device.synchronise()
        batch.took(steps, time.perf_counter() - started)
        yield steps


def _stages(state: RunState) -> Iterator[float]:
    """Do steps of a method that chooses them; yields the number of stages or of applications of the operator."""
    method = state.method
    assert method is not None
    method.prepare()
    before = 0.0
    while method.step < state.problem.timeline.last_step:
        method.advance(1)
        now = method.counts.get("applications", float(method.work.stages))
        yield now - before
        before = now
