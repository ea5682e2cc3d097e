"""Slabs on several ranks give the bits of the whole grid: the field, the ledger, what observers read."""

import tomllib
from pathlib import Path
from typing import Any

import bodies
import numpy as np
import pytest
from thread_team import on_ranks

from heatsim.observers.state import RunState
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.scenario import load, parse
from heatsim.solver.make_stepper import make_stepper

STEPS = 23


def stepped(problem: HeatProblem, team: Team, batches: tuple[int, ...] = (1, 2, 7, 13)) -> RunState:
    """A run after some steps, in batches of different lengths."""
    plan = Plan.of(problem, team)
    state = initial_state(plan, Path("nowhere"))
    stepper = make_stepper(plan.part, state.field, state.ledger, plan.kernel, arrays=state.arrays)
    for steps in batches:
        stepper.advance(min(steps, problem.timeline.last_step - stepper.step))
    state.step = stepper.step
    return state


def found(problem: HeatProblem, team: Team) -> dict[str, Any]:
    state = stepped(problem, team)
    own = state.field.team.gathered(np.array(state.field.own))
    return {"T": np.concatenate(own), **state.ledger.save(), "heats": state.ledger.heats()}


def same(problem: HeatProblem, ranks: int) -> None:
    alone = found(problem, ALONE)
    for team in on_ranks(ranks, lambda team: found(problem, team)):
        assert alone.keys() == team.keys()
        for name, value in alone.items():
            if isinstance(value, np.ndarray):
                assert value.tobytes() == team[name].tobytes(), name
            else:
                assert value == team[name], name


SCENARIOS = Path(__file__).parents[2] / "scenarios"
# Scenarios with few cells.
BUNDLED = {
    "cube": ["domain.cells=[10, 9, 13]"],
    "anisotropic_block": ["domain.cells=[12, 9, 12]"],
    "periodic_cosine": ["domain.cells=[8, 9, 10]"],
    "laser_track": ["domain.cells=[24, 20, 9]"],
    "melting_block": ["domain.cells=[12, 12, 12]"],
    "power_module": [],
    "cooling_gear": [],
    "circuit_board": [],
    "house_wall": [],
}


def bundled(name: str, *more: str) -> HeatProblem:
    overrides = [*BUNDLED[name], "solver.device=cpu", "time.method=euler", *more]
    return HeatProblem.from_scenario(load(SCENARIOS / f"{name}.toml", overrides))


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_scenarios(name: str) -> None:
    same(bundled(name), 2)


@pytest.mark.parametrize("ranks", [2, 3])
def test_everything_at_once(ranks: int) -> None:
    same(HeatProblem.from_scenario(parse(tomllib.loads(bodies.EVERYTHING), "everything.toml")), ranks)
