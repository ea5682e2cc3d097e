"""Runs on ranks that are threads, and bodies for them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from thread_team import on_ranks

from heatsim.observers.state import RunState
from heatsim.parallel.slab import Share
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.run.ranks import held_planes
from heatsim.scenario import Scenario, parse
from heatsim.solver.make_stepper import make_stepper

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def scenario_of(text: str, **tables: Any) -> Scenario:
    return parse(tomllib.loads(text) | tables, SCENARIOS / "here.toml")


def problem_of(text: str, **tables: Any) -> HeatProblem:
    return HeatProblem.from_scenario(scenario_of(text, **tables))


LINEAR = """
[domain]
size = [0.2, 0.08, 0.13]
cells = [20, 8, 13]
[material]
conductivity = [20.0, 12.0, 16.0]
density = 2000.0
specific_heat = 500.0
[initial]
temperature = "320 + 30*sin(60*x)*cos(40*y) + 100*z"
[boundaries]
default = { type = "convection", coefficient = 300.0, ambient = "300 + t" }
x_min = { type = "temperature", value = 300.0 }
z_max = { type = "flux", value = 5e3 }
[time]
end = 100.0
method = "euler"
"""

# z wraps; a beam moves over the ends of it, and the body changes with temperature.
AROUND = """
[domain]
size = [0.012, 0.01, 0.015]
cells = [12, 10, 15]
material = "steel"
[materials.steel]
conductivity = { temperatures = [300.0, 900.0], values = [60.0, 30.0] }
density = 7800.0
specific_heat = 470.0
[materials.tin]
conductivity = 65.0
density = 7000.0
specific_heat = 230.0
solidus = 330.0
liquidus = 340.0
latent_heat = 6e4
[[regions]]
name = "hole"
material = "void"
cylinder = { from = [0.0, 0.004, 0.006], to = [0.012, 0.004, 0.008], radius = 0.002 }
[[regions]]
name = "ball"
material = "tin"
sphere = { centre = [0.008, 0.006, 0.012], radius = 0.0025 }
[[contacts]]
between = ["steel", "tin"]
resistance = 1e-4
[[surfaces]]
of = "ball"
type = "convection"
coefficient = "10*abs(T - 290)**0.25"
ambient = 290.0
[initial]
temperature = "320 + 2000*x + 1000*y"
[boundaries]
default = { type = "convection", coefficient = "9 + 2e3*exp(-((T - 330)/15)^2)", ambient = 290.0, emissivity = 0.7 }
x_max = { type = "flux", value = "1e4 + 3e6*y" }
z_min = { type = "periodic" }
z_max = { type = "periodic" }
void = { type = "convection", coefficient = 30.0, ambient = 300.0 }
[[patches]]
face = "x_min"
rectangle = { min = [0.0013, 0.0007], max = [0.0057, 0.0132] }
type = "temperature"
value = 350.0
[[sources]]
[sources.beam]
face = "y_max"
power = 40.0
radius = 1e-3
path = [[0.002, 0.001], [0.002, 0.014]]
speed = 0.4
[time]
end = 0.05
method = "euler"
"""

# A ball in void above a plate. Beams pass void and cuts; sources heat single cells.
LIT = """
[domain]
size = [0.012, 0.01, 0.02]
cells = [12, 10, 20]
material = "void"
[materials.steel]
conductivity = 40.0
density = 8000.0
specific_heat = 500.0
[[regions]]
name = "ball"
material = "steel"
sphere = { centre = [0.006, 0.005, 0.011], radius = 0.0041 }
[[regions]]
name = "plate"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.012, 0.01, 0.004] }
[initial]
temperature = "320 + 1000*x + 1000*z"
[boundaries]
void = { type = "convection", coefficient = 200.0, ambient = 300.0, emissivity = 0.5 }
x_max = { type = "convection", coefficient = 50.0, ambient = 300.0 }
[[sources]]
power_density = "1e8*x*(1 + sin(t)) + 2e7*exp(-t)*cos(600*z)"
[[sources]]
region = "ball"
power = 3.0
distribution = "exp(-z/0.004)"
scale = "1 + t"
[[sources]]
power_density = "2e7*(1 + 0.01*(T - 300))"
box = { min = [0.0, 0.0, 0.0], max = [0.006, 0.01, 0.02] }
[[sources]]
beam = { face = "z_max", power = 5.0, radius = 2e-3, path = [[0.006, 0.005], [0.011, 0.005]], speed = 0.1 }
[[sources]]
beam = { face = "z_max", power = 5.0, radius = 3e-3, path = [[0.006, 0.004]], absorption_depth = 4e-3 }
[[sources]]
beam = { face = "z_min", power = 5.0, radius = 1e-3, path = [[0.003, 0.004]] }
[[sources]]
beam = { face = "x_min", power = 5.0, radius = 3e-3, path = [[0.005, 0.011], [0.005, 0.02]], speed = 0.1 }
[[sources]]
beam = { face = "y_max", power = 5.0, radius = 2e-3, path = [[0.006, 0.002], [0.006, 0.018]], speed = 0.2, \
absorption_depth = 1e-3 }
[time]
end = 0.05
method = "euler"
"""


def stepped(problem: HeatProblem, team: Team, batches: tuple[int, ...] = (1, 2, 7, 13)) -> RunState:
    """A run after some steps, in batches of different lengths."""
    plan = Plan.of(problem, team)
    state = initial_state(plan, Path("nowhere"))
    if state.method is not None:
        state.method.prepare()
        for _ in range(6):
            if not state.finished:
                state.method.advance(1)
                state.step = state.method.step
        return state
    stepper = make_stepper(plan.part, state.field, state.ledger, plan.kernel, arrays=state.arrays)
    for steps in batches:
        stepper.advance(min(steps, problem.timeline.last_step - stepper.step))
    state.step = stepper.step
    return state


def joined(team: Team, shares: Mapping[str, Share]) -> dict[str, Any]:
    """The whole arrays. Each share, apart from empty ones, must begin where the previous one ends."""
    whole = {}
    for name, share in shares.items():
        of_ranks = team.gathered((share.first, share.values.copy()))
        some = [(first, values) for first, values in of_ranks if len(values)]
        assert [first for first, _ in some] == [sum(len(of) for _, of in some[:number]) for number in range(len(some))]
        whole[name] = np.concatenate([values for _, values in some])
        assert whole[name].shape == share.shape
    return whole


def found(problem: HeatProblem, team: Team) -> dict[str, Any]:
    return of_run(stepped(problem, team))


def of_run(state: RunState) -> dict[str, Any]:
    """The field, the ledger and what a checkpoint keeps of the method."""
    team = state.team
    own = state.field.team.gathered(state.field.device.to_host(state.field.own).copy())
    saved = {} if state.method is None else {"work": state.method.work, "reached": state.method.reached}
    if state.method is not None:
        point = state.method.restart_point()
        saved |= {"roundings": state.method.roundings, **joined(team, point.sums), "counts": state.method.counts}
        saved |= {name: np.concatenate(state.team.gathered(of.copy())) for name, of in point.planes.items()}
    return {
        "T": np.concatenate(own),
        **joined(team, state.ledger.save()),
        "heats": state.ledger.heats().numbers,
        **saved,
    }


def painted(problem: HeatProblem, team: Team) -> HeatProblem:
    """The problem as a rank of a run has it: with its planes only."""
    return HeatProblem.from_scenario(problem.scenario, held_planes(problem.scenario, team))


def same(problem: HeatProblem, ranks: int) -> None:
    equal(found(problem, ALONE), on_ranks(ranks, lambda team: found(painted(problem, team), team)))


def equal(alone: dict[str, Any], ranks: list[dict[str, Any]]) -> None:
    for team in ranks:
        assert alone.keys() == team.keys()
        for name, value in alone.items():
            if isinstance(value, np.ndarray):
                assert value.tobytes() == team[name].tobytes(), name
            elif isinstance(value, dict):
                equal(value, [team[name]])
            else:
                assert value == team[name], name
