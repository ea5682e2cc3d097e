"""Divide a run among ranks, and refuse runs that work on one rank only."""

from pathlib import Path

from heatsim.errors import Mistake, ScenarioError
from heatsim.kernels.multigrid.rank_sweeps import cut_multiple
from heatsim.parallel.slab import TooManyRanksError, slabs
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.physics.slab_problem import on_slab
from heatsim.storage.disk import resume_command

_METHODS = ("euler", "stabilized", "steady")
# Methods that solve equations by multigrid.
SOLVING = ("steady", "implicit")


def divide(problem: HeatProblem, team: Team) -> HeatProblem:
    """The problem that a rank of ``team`` steps: that of its planes.

    Raises:
        ScenarioError: the method runs on one rank only, or the grid has too few planes.
    """
    if team.size == 1:
        return problem
    scenario = problem.scenario
    method = scenario.time.method
    if method not in _METHODS:
        others = " or ".join(f'"{other}"' for other in _METHODS if other not in SOLVING)
        taken = f'got "{method}"' if problem.choice is None else f'got "auto", which takes "{method}" here'
        message = f"{taken}; that method runs on one rank: leave out --ranks, or write method = {others}"
        raise ScenarioError(scenario.path, [Mistake("time.method", message)])
    planes, group = problem.grid.cells[2], problem.grid.groups.size
    if method in SOLVING:
        group = max(group, cut_multiple(planes, team.size))
        if problem.periodic[2] and planes % 2:
            message = (
                f'got {planes} cells along z, where the body is periodic; method = "{method}" on several ranks needs '
                "an even number of them"
            )
            raise ScenarioError(scenario.path, [Mistake("domain.cells", message)])
    try:
        found = slabs(planes, team.size, periodic=problem.periodic[2], group=group)
    except TooManyRanksError as error:
        raise ScenarioError(scenario.path, [Mistake("domain.cells", str(error))]) from None
    return on_slab(problem, found[team.rank])


def resume_advice(folder: Path, ranks: int) -> str:
    """Text that says how to continue a run after a rank was lost."""
    fewer = ", or on fewer ranks" if ranks > 1 else ""
    return f"continue from the last checkpoint with `{resume_command(folder)} --ranks {ranks}`{fewer}"
