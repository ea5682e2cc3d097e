"""Measure the time that a run takes to step or to solve: do some of its work on its own field, before it starts.

Code is compiled before work is timed, so times do not depend on caches of compiled code. A unit of work is a step of
"euler", a stage of "stabilized", an application of the operator of "implicit", or the whole search for a steady state.
"""

import gc
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from heatsim import device as devices
from heatsim.errors import CapacityError, RunError, ScenarioError
from heatsim.physics.estimates.method_choice import choose_method
from heatsim.physics.problem import HeatProblem
from heatsim.run import process_memory
from heatsim.run.adaptive_time import coarser_plan, measure_search, measure_units, on_coarser_grid
from heatsim.run.euler_time import measure_step
from heatsim.run.plan import Plan
from heatsim.run.work_time import WorkTime
from heatsim.scenario import Scenario
from heatsim.solver.steady.steady_state import usual_cycles

# A plan of several ranks times steps on a grid of at most this number of cells, because it must fit one processor.
_MOST_PAINTED = {"cpu": 2**24, "cuda": 2**26}
# On grids with more cells a CPU needs seconds for a step of a method with a tolerance: then steps on a coarser grid are
# timed.
_MOST_CELLS = 2**21
# On grids with more cells a CPU searches for a steady state on a coarser one.
SEARCH_CELLS = 2**19
# Other methods than that of a run may need this part more of the memory of its process.
_PART_FOR_OTHERS = 20


def fitting_methods(problem: HeatProblem) -> tuple[str, ...]:
    """The methods in time that fit a scenario, its own among them."""
    several = problem.timeline.adaptive or (problem.choice or choose_method(problem)).work is not None
    return ("euler", "stabilized", "implicit") if several else ("euler",)


@dataclass(frozen=True)
class Measured:
    """What was measured of a run before it starts.

    Attributes:
        times: the time of the work of each method.
        process: the most bytes that the process of the run will hold on the host; 0 if unknown.
    """

    times: Mapping[str, WorkTime]
    process: int = 0


def measure_methods(problem: HeatProblem) -> Measured:
    """The time of the work of each method that fits a scenario, and the memory of the process.

    For a steady state there is only "steady". Leaves out methods that need more memory than there is, and methods that
    fail at the start. The run's own method is measured first. The others get about as much memory: on a CPU they are
    timed on a coarser grid if they need more.
    """
    own = problem.scenario.time.method
    others = () if problem.scenario.steady else (name for name in fitting_methods(problem) if name != own)
    found, process, room = dict[str, WorkTime](), 0, None
    for method in (own, *others):
        with suppress(ScenarioError, CapacityError, RunError):
            plan = Plan.of(problem if method == own else problem.with_method(method))
            plan.check_memory()
            timed = timed_plan(plan, room)
            if timed is not None:
                found[method] = measure_work(plan, timed)
                if method == own:
                    process = process_memory.expected(plan, timed)
                    room = process_memory.on_host(plan) + process // _PART_FOR_OTHERS
        gc.collect()  # arrays of steppers, which refer to each other
    return Measured(found, process)


def measure_any_grid(scenario: Scenario) -> dict[str, WorkTime]:
    """The times that :func:`measure_methods` finds; on a grid too large for one processor, those on a coarser grid.

    Raises:
        ScenarioError: the scenario has a mistake.
        DeviceError: the device of the scenario is not available.
    """
    timed = on_coarser_grid(scenario, _MOST_PAINTED[devices.choose(scenario.solver.device).backend])
    factor = scenario.grid.cell_count / timed.grid.cell_count
    try:
        times = measure_methods(HeatProblem.from_scenario(timed)).times
    except ScenarioError:
        if timed is scenario:
            raise
        return {}  # such as a region without cells on the coarser grid
    return {method: found.scaled(factor) for method, found in times.items()}


def timed_plan(plan: Plan, room: int | None = None) -> Plan | None:
    """The plan whose steps are timed for a run: its own, or on a CPU that of the same run on a coarser grid.

    Args:
        plan: of the run.
        room: bytes that the timed run may need; None for any number.

    Returns:
        The plan; None if no grid of the run needs so few bytes.
    """
    scenario, cells = plan.problem.scenario, plan.problem.grid.cell_count
    most = SEARCH_CELLS if scenario.steady else _MOST_CELLS if plan.problem.timeline.adaptive else cells
    if room is None or plan.device.backend != "cpu":
        return coarser_plan(plan, most)
    timed = coarser_plan(plan, min(most, max(1, cells * room // max(1, process_memory.on_host(plan)))))
    return timed if process_memory.on_host(timed) <= room else None


def measure_work(plan: Plan, timed: Plan | None = None) -> WorkTime:
    """The time of the work of a run's method.

    Args:
        plan: of the run.
        timed: from :func:`timed_plan`, whose work is done; None for the result of that function.

    Raises:
        ScenarioError, RunError: the first steps fail, or there is no steady state.
    """
    timed = timed or timed_plan(plan) or plan
    if plan.problem.scenario.steady:
        measured = measure_search(timed, usual_cycles(plan.problem))
    else:
        measured = measure_units(timed) if plan.problem.timeline.adaptive else WorkTime(measure_step(timed))
    return measured.scaled(plan.problem.grid.cell_count / timed.problem.grid.cell_count)
