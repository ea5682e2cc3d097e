"""The same run on a coarser grid, where the time of its work is measured."""

from math import prod

from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.scenario import Scenario


def coarser_plan(plan: Plan, most: int) -> Plan:
    """On a CPU, the plan of the same run on a grid with at most ``most`` cells; on a GPU, the plan itself."""
    scenario = plan.problem.scenario
    coarser = on_coarser_grid(scenario, most)
    if plan.device.backend != "cpu" or coarser is scenario:
        return plan
    try:
        return Plan.of(HeatProblem.from_scenario(coarser))
    except ScenarioError:  # such as a region without cells
        return plan


def on_coarser_grid(scenario: Scenario, most: int) -> Scenario:
    """A scenario on a grid with at most ``most`` cells; the scenario itself if its grid has no more."""
    cells = scenario.domain.cells
    while prod(cells) > most:
        nx, ny, nz = cells
        cells = (-(-nx // 2), -(-ny // 2), -(-nz // 2))
    if cells == scenario.domain.cells:
        return scenario
    return scenario.model_copy(update={"domain": scenario.domain.model_copy(update={"cells": cells})})
