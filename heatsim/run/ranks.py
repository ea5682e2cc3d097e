"""Divide a run among ranks, and refuse numbers of ranks that do not work."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim import device as devices
from heatsim.counts import counted
from heatsim.errors import InputError, Mistake, ScenarioError
from heatsim.kernels.multigrid.rank_sweeps import cut_multiple
from heatsim.parallel.slab import Slab, TooManyRanksError, slabs
from heatsim.parallel.team import Team
from heatsim.physics.body import SOLVING, planes_to_hold
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.estimates.plane_costs import plane_contents
from heatsim.physics.geometry import regions
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.grounding import refuse_floating
from heatsim.physics.problem import HeatProblem
from heatsim.physics.slab_problem import on_slab
from heatsim.scenario import Scenario, input_checksums
from heatsim.storage.disk import render_command, resume_command

Array = NDArray[np.float64]

# Methods that solve equations, or may turn out to.
MAY_SOLVE = (*SOLVING, "auto")


def check_inputs_of_ranks(scenario: Scenario, team: Team) -> None:
    """Check that all ranks have read the same input files. Collective.

    Raises:
        InputError: a file changed in the meantime.
    """
    read = team.gathered(input_checksums(scenario))
    changed = [name for name in read[0] if any(other.get(name) != read[0][name] for other in read)]
    if changed or any(other.keys() != read[0].keys() for other in read):
        names = ", ".join(changed) or "the scenario"
        raise InputError(f"{scenario.path}: {names} changed while the ranks read it; run again")


def divide(problem: HeatProblem, team: Team) -> HeatProblem:
    """The problem that a rank of ``team`` steps: that of its planes. Collective.

    Raises:
        ScenarioError: the grid has too few planes for the method, or a part of the body has no steady temperature.
    """
    if team.size == 1:
        return problem
    _check_planes(problem.scenario, problem.boundary)
    slab = problem.held.stepped
    if slab is None:
        slab = cut(problem.scenario, problem.boundary, team.size, plane_costs(problem.scenario, team))[team.rank]
    part = on_slab(problem, slab)
    if problem.scenario.steady and problem.materials.held.slab is not None:
        refuse_floating(problem.scenario, Balance(part, 0.0), team)
    return part


def held_planes(scenario: Scenario, team: Team, even: bool = False) -> PaintedPlanes:
    """The planes that a rank of ``team`` has to paint. Collective, unless ``even``.

    Args:
        scenario: the scenario.
        team: the ranks.
        even: whether to divide the grid evenly, whatever the planes contain.

    Raises:
        ScenarioError: the grid has too few planes.
    """
    if team.size == 1:
        return EVERYTHING
    boundary = Boundary.from_scenario(scenario)
    found = cut(scenario, boundary, team.size, None if even else plane_costs(scenario, team))
    return planes_to_hold(scenario, boundary, found[team.rank], team)


def painted_bytes(problem: HeatProblem, backend: str) -> int:
    """The bytes that a rank needs on its host for the painted cells."""
    held = problem.held
    per_cell = regions.ARRAYS * regions.are_painted(problem.scenario)
    # On the CPU the map of cell types of a run on one rank is the one that kernels read.
    per_cell += (not problem.materials.uniform) * (held.slab is not None or backend == "cuda")
    return per_cell * held.grid(problem.grid).cell_count


def plane_costs(scenario: Scenario, team: Team) -> Array:
    """The cost of a sweep over each plane, shape (planes,). Collective.

    It depends on the scenario and the kind of device. Each rank counts in a part of the planes.

    Raises:
        ScenarioError: the grid has too few planes.
        DeviceError: the device of the scenario is not available.
    """
    contents = None
    if scenario.time.method not in SOLVING:  # kernels that solve equations do the same work in all cells
        boundary = Boundary.from_scenario(scenario)
        contents = plane_contents(scenario, boundary, cut(scenario, boundary, team.size)[team.rank], team)
    if contents is None:
        return np.ones(scenario.grid.cells[2])
    return contents.costs(scenario, team.broadcast(devices.choose(scenario.solver.device).backend))


def cut(scenario: Scenario, boundary: Boundary, ranks: int, costs: Array | None = None) -> Sequence[Slab]:
    """The slabs of all ranks, so that the slowest rank is as fast as possible.

    Args:
        scenario: the scenario.
        boundary: its conditions.
        ranks: the number of slabs.
        costs: cost of each plane; None if all planes cost the same.

    Raises:
        ScenarioError: the grid has too few planes.
    """
    if ranks > 1:
        _check_planes(scenario, boundary)
    planes, group = scenario.grid.cells[2], scenario.grid.groups.size
    if scenario.time.method in MAY_SOLVE:
        group = max(group, cut_multiple(planes, ranks))
    try:
        return slabs(planes, ranks, periodic=boundary.periodic[2], group=group, costs=costs)
    except TooManyRanksError as error:
        raise ScenarioError(scenario.path, [Mistake("domain.cells", str(error))]) from None


def _check_planes(scenario: Scenario, boundary: Boundary) -> None:
    """Check that the method can divide the planes of a periodic z axis."""
    planes, method = scenario.grid.cells[2], scenario.time.method
    if method in SOLVING and boundary.periodic[2] and planes % 2:
        message = (
            f"got {counted(planes, 'cell')} along z, where the body is periodic; "
            f'method = "{method}" on several ranks needs '
            "an even number: change domain.cells, or leave out --ranks"
        )
        raise ScenarioError(scenario.path, [Mistake("domain.cells", message)])


def check_count(scenario: Scenario, ranks: int) -> None:
    """Check that the grid has enough planes, before the ranks are started.

    Raises:
        ScenarioError: the grid has too few planes.
    """
    cut(scenario, Boundary.from_scenario(scenario), ranks)


def resume_advice(folder: Path, ranks: int) -> str:
    """Text that says how to continue a run after a rank was lost."""
    fewer = ", or on fewer ranks" if ranks > 1 else ""
    return f"continue from the last checkpoint with `{resume_command(folder)} --ranks {ranks}`{fewer}"


def complete_advice(folder: Path) -> str:
    """Text that says what to do if a rank was lost after all results were written."""
    return f"the run is complete; draw its pictures with `{render_command(folder)}`"
