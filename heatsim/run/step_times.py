"""Measure the time that a run takes to step or to solve: do some of its work on its own field, before it starts.

Code is compiled before work is timed, so times do not depend on caches of compiled code. A unit of work is a step of
"euler", a stage of "stabilized", an application of the operator of "implicit", or the whole search for a steady state.
"""

from contextlib import suppress

from heatsim import device as devices
from heatsim.errors import CapacityError, RunError, ScenarioError
from heatsim.physics.method_choice import choose_method
from heatsim.physics.problem import HeatProblem
from heatsim.run.adaptive_time import measure_units
from heatsim.run.coarser_grid import coarser_plan, on_coarser_grid
from heatsim.run.euler_time import measure_step
from heatsim.run.plan import Plan
from heatsim.run.search_time import measure_search
from heatsim.run.work_time import WorkTime
from heatsim.scenario import Scenario

# A plan of several ranks times steps on a grid of at most this number of cells, because it must fit one processor.
_MOST_PAINTED = {"cpu": 2**24, "cuda": 2**26}
# On grids with more cells a CPU needs seconds for a step of a method with a tolerance: then steps on a coarser grid are
# timed.
_MOST_CELLS = 2**21


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
    timed = on_coarser_grid(scenario, _MOST_PAINTED[devices.choose(scenario.solver.device).backend])
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
        return measure_search(plan)
    if plan.problem.timeline.adaptive:
        timed = coarser_plan(plan, _MOST_CELLS)
        return measure_units(timed).scaled(plan.problem.grid.cell_count / timed.problem.grid.cell_count)
    return WorkTime(measure_step(plan))
