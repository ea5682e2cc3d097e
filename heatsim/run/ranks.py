"""Divide a run among ranks, and refuse numbers of ranks that do not work."""

from pathlib import Path

from heatsim.errors import Mistake, ScenarioError
from heatsim.kernels.multigrid.rank_sweeps import cut_multiple
from heatsim.parallel.slab import TooManyRanksError, slabs
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.physics.slab_problem import on_slab
from heatsim.storage.disk import resume_command

# Methods that solve equations by multigrid.
SOLVING = ("steady", "implicit")


def divide(problem: HeatProblem, team: Team) -> HeatProblem:
    """The problem that a rank of ``team`` steps: that of its planes.

    Raises:
        ScenarioError: the grid has too few planes, or a number of planes that the method cannot divide.
    """
    if team.size == 1:
        return problem
    scenario = problem.scenario
    method = scenario.time.method
    planes, group = problem.grid.cells[2], problem.grid.groups.size
    if method in SOLVING:
        group = max(group, cut_multiple(planes, team.size))
        if problem.periodic[2] and planes % 2:
            message = (
                f'got {planes} cells along z, where the body is periodic; method = "{method}" on several ranks needs '
                "an even number of them; or leave out --ranks"
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
