"""Measure the time of the work of methods with a tolerance.

Their steps also take time that does not depend on their number of units: error estimates, new tables, launches on a
GPU. Both parts follow from steps with different numbers of units.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from heatsim.observers.state import RunState
from heatsim.run import timed_work
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.work_time import WorkTime, fitted

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
        if passed > (timed_work.SECONDS if len(found) > fewest else timed_work.LONGEST):
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
