"""Divide a run among ranks, and refuse numbers of ranks that do not work."""

from pathlib import Path

from heatsim.errors import Mistake, ScenarioError
from heatsim.kernels.multigrid.rank_sweeps import cut_multiple
from heatsim.parallel.slab import Slab, TooManyRanksError, slabs
from heatsim.parallel.team import Team
from heatsim.physics import regions
from heatsim.physics.boundary import Boundary
from heatsim.physics.held_planes import EVERYTHING, HeldPlanes
from heatsim.physics.materials import SOLVING, planes_to_hold
from heatsim.physics.problem import HeatProblem
from heatsim.physics.slab_problem import on_slab
from heatsim.scenario import Scenario
from heatsim.storage.disk import resume_command


def divide(problem: HeatProblem, team: Team) -> HeatProblem:
    """The problem that a rank of ``team`` steps: that of its planes.

    Raises:
        ScenarioError: the grid has too few planes for the method.
    """
    if team.size == 1:
        return problem
    return on_slab(problem, _slab(problem.scenario, problem.boundary, team))


def held_planes(scenario: Scenario, team: Team) -> HeldPlanes:
    """The planes that a rank of ``team`` has to paint.

    Raises:
        ScenarioError: the grid has too few planes.
    """
    if team.size == 1:
        return EVERYTHING
    boundary = Boundary.from_scenario(scenario)
    return planes_to_hold(scenario, boundary, _slab(scenario, boundary, team), team)


def painted_bytes(problem: HeatProblem, team: Team, backend: str) -> int:
    """The bytes that a rank needs on its host for the painted cells."""
    scenario, grid = problem.scenario, problem.grid
    held = held_planes(scenario, team)
    per_cell = regions.ARRAYS * regions.are_painted(scenario)
    # On the CPU the map of cell types of a run on one rank is the one that kernels read.
    per_cell += (not problem.materials.uniform) * (team.size > 1 or backend == "cuda")
    return per_cell * held.grid(grid).cell_count


def _slab(scenario: Scenario, boundary: Boundary, team: Team) -> Slab:
    """The planes of a rank."""
    planes, group, method = scenario.grid.cells[2], scenario.grid.groups.size, scenario.time.method
    if method in SOLVING:
        group = max(group, cut_multiple(planes, team.size))
        if boundary.periodic[2] and planes % 2:
            message = (
                f'got {planes} cells along z, where the body is periodic; method = "{method}" on several ranks needs '
                "an even number: change domain.cells, or leave out --ranks"
            )
            raise ScenarioError(scenario.path, [Mistake("domain.cells", message)])
    try:
        found = slabs(planes, team.size, periodic=boundary.periodic[2], group=group)
    except TooManyRanksError as error:
        raise ScenarioError(scenario.path, [Mistake("domain.cells", str(error))]) from None
    return found[team.rank]


def resume_advice(folder: Path, ranks: int) -> str:
    """Text that says how to continue a run after a rank was lost."""
    fewer = ", or on fewer ranks" if ranks > 1 else ""
    return f"continue from the last checkpoint with `{resume_command(folder)} --ranks {ranks}`{fewer}"
