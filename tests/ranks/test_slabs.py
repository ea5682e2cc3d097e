"""Slabs on several ranks give the bits of the whole grid: the field, the ledger, what observers read."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bodies
import numpy as np
import pytest
from thread_team import on_ranks

from heatsim.observers.parts import ContactFlows, RegionHeats
from heatsim.observers.regions import RegionStatistic
from heatsim.observers.snapshots import heat_flux_in_own_planes
from heatsim.observers.state import RunState
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.interpolation import Interpolation
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.scenario import load, parse
from heatsim.solver.field_copy import FieldCopy
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
    equal(found(problem, ALONE), on_ranks(ranks, lambda team: found(problem, team)))


def equal(alone: dict[str, Any], ranks: list[dict[str, Any]]) -> None:
    for team in ranks:
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
    "house_wall": [],
}


def bundled(name: str, *more: str) -> HeatProblem:
    overrides = [*BUNDLED[name], "solver.device=cpu", "time.method=euler", *more]
    return HeatProblem.from_scenario(load(SCENARIOS / f"{name}.toml", overrides))


def problem_of(text: str, **tables: Any) -> HeatProblem:
    document = tomllib.loads(text) | tables
    return HeatProblem.from_scenario(parse(document, SCENARIOS / "here.toml"))


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_scenarios(name: str) -> None:
    same(bundled(name), 2)


def test_thin_layers() -> None:
    text = (SCENARIOS / "circuit_board.toml").read_text()
    time, solver = {"end": 0.1, "method": "euler"}, {"device": "cpu"}
    problem = problem_of(text, time=time, solver=solver, initial={"temperature": "300 + 1e3*x"}, output={})
    assert len(problem.materials.layering.cells)
    same(problem, 2)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("solver", [{}, {"precision": "float32"}, {"precision": "float32", "rounding": "stochastic"}])
def test_everything_at_once(ranks: int, solver: dict[str, str]) -> None:
    same(problem_of(bodies.EVERYTHING, solver={"device": "cpu"} | solver), ranks)


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
default = { type = "convection", coefficient = "5*abs(T - Tamb)**0.3", ambient = 290.0, emissivity = 0.7 }
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


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("solver", [{}, {"precision": "float32"}, {"precision": "float32", "rounding": "stochastic"}])
def test_a_ring_of_slabs(ranks: int, solver: dict[str, str]) -> None:
    same(problem_of(AROUND, solver={"device": "cpu"} | solver), ranks)


def observed(problem: HeatProblem, team: Team) -> dict[str, Any]:
    """What observers read of a run."""
    state = stepped(problem, team)
    field, numbers, scenario = state.field, dict[str, Any](), problem.scenario
    for probe in scenario.probes:
        if probe.statistic is not None:
            numbers[probe.name] = RegionStatistic(probe, state).of(field, state.time)
    points = Interpolation(problem, [point for probe in scenario.probes for point in probe.points])
    numbers["points"] = points.of(field.points(*points.cells).temperatures(), state.step)
    of = state.statistics
    numbers |= {"heat": of.heat(), "absolute heat": of.heat(absolute=True), "mean": of.mean()}
    numbers |= {"extremes": of.extremes(), "deviations": of.deviations(), "statistics": field.statistics()}
    numbers |= {"by type": np.array(of.extremes_by_type()), "lowest": of.lowest_cell(0), "coldest": field.coldest()}
    numbers |= {"region heats": RegionHeats(state, None).initial, "contacts": ContactFlows(state).row()}
    numbers["change"] = field.statistics(field.own * 0.5).largest_change
    numbers["T"] = field.temperature()
    copy = FieldCopy(field)
    numbers["flux"] = np.concatenate(field.team.gathered(np.concatenate(list(heat_flux_of(state, copy)))))
    return numbers


def heat_flux_of(state: RunState, field_copy: FieldCopy) -> Iterator[Any]:
    return heat_flux_in_own_planes(state.problem, state.step, field_copy, state.field.beside())


PROBES = """
[[probes]]
name = "hot length"
statistic = "extent_z"
threshold = 335.0
[[probes]]
name = "mean"
statistic = "mean"
[[probes]]
name = "liquid"
region = "ball"
statistic = "liquid_fraction"
[[probes]]
name = "hot ball"
region = "ball"
statistic = "extent_z"
threshold = 336.0
[[probes]]
name = "long line"
line = { from = [0.001, 0.009, 0.0], to = [0.011, 0.0075, 0.015], count = 9 }
[output]
region_heat = true
"""


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("text", [bodies.EVERYTHING, AROUND + PROBES], ids=["everything", "around"])
def test_what_observers_read(ranks: int, text: str) -> None:
    problem = problem_of(text, solver={"device": "cpu"})
    equal(observed(problem, ALONE), on_ranks(ranks, lambda team: observed(problem, team)))
