"""Measure the time of a search for a steady state."""

import time
from math import inf
from pathlib import Path

from heatsim.errors import Interrupted
from heatsim.run import timed_work
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.work_time import WorkTime
from heatsim.solver import steady_state

_WARM_CYCLES = 8  # they compile


def measure_search(plan: Plan, usual: int) -> WorkTime:
    """The time of a search for a steady state. If there is no time for a whole search, an estimate from its cycles.

    Args:
        plan: of the search.
        usual: the usual number of cycles.
    """
    _search(plan, _WARM_CYCLES, inf)
    taken, cycles = _search(plan, inf, timed_work.LONGEST)
    if cycles is None and taken < 0.5 * timed_work.LONGEST:
        # The first complete search compiles the code that the warm-up cycles did not reach.
        taken = min(taken, _search(plan, inf, timed_work.LONGEST)[0])
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
