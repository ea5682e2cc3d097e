"""Rooms on several ranks, and in runs that are interrupted: the bits of one rank, and the same refusals."""

from pathlib import Path

import pytest
import runs
from slab_runs import painted, problem_of, same, scenario_of, stepped
from thread_team import on_ranks

from heatsim import Simulation
from heatsim.errors import Interrupted, ScenarioError
from heatsim.observers.surfaces import SurfaceStatistic
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan_model import describe_for_report, describe_model
from heatsim.run.ranks import divide, held_planes

# Rooms at the cuts of two and three ranks: a box, a sphere, and one at an end of z, which wraps. Values vary in space
# on one of them; a layer lies on the held surface of another.
BODY = """
[domain]
size = [0.08, 0.06, 0.16]
cells = [8, 6, 16]
material = "plaster"
[materials.plaster]
conductivity = 0.5
density = 1200.0
specific_heat = 1000.0
[materials.copper]
conductivity = 390.0
density = 8900.0
specific_heat = 385.0
[[regions]]
name = "hall"
material = "void"
box = { min = [0.0, 0.0, 0.02], max = [0.03, 0.06, 0.13] }
[[regions]]
name = "dome"
material = "void"
sphere = { centre = [0.06, 0.03, 0.08], radius = 0.025 }
[[regions]]
name = "ends"
material = "void"
box = { min = [0.05, 0.0, 0.14], max = [0.08, 0.03, 0.16] }
[[regions]]
name = "stove"
material = "copper"
box = { min = [0.0, 0.02, 0.06], max = [0.02, 0.04, 0.09] }
[[layers]]
material = "copper"
thickness = "0.2 mm"
plane = { axis = "z", at = 0.14, rectangle = { min = [0.04, 0.0], max = [0.08, 0.06] } }
[initial]
temperature = "300 + 100*z"
[boundaries]
void = { type = "convection", coefficient = 3.0, ambient = 290.0 }
z_min = { type = "periodic" }
z_max = { type = "periodic" }
[[surfaces]]
of = "stove"
type = "flux"
power = 1.0
[[surfaces]]
between = ["plaster", "hall"]
type = "convection"
coefficient = 8.0
ambient = "300 + 50*z"
emissivity = 0.9
[[surfaces]]
of = "dome"
type = "convection"
coefficient = 20.0
ambient = 280.0
[[surfaces]]
of = "ends"
type = "temperature"
value = 305.0
[[probes]]
name = "dome"
surface = "dome"
statistic = "min"
[[probes]]
name = "stove"
surface = "hall"
region = "stove"
statistic = "mean"
[[probes]]
name = "ends"
surface = "ends"
statistic = "max"
[time]
end = 100.0
method = "euler"
[solver]
device = "cpu"
"""


@pytest.mark.quick("3")
@pytest.mark.parametrize("ranks", [2, 3])
def test_euler(ranks: int) -> None:
    problem = problem_of(BODY)
    assert [*problem.boundary.named] == ["stove", "plaster to hall", "dome", "ends", "hall"]
    same(problem, ranks)


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", ["implicit", "stabilized"])
def test_steps_that_follow_a_tolerance(method: str) -> None:
    same(problem_of(BODY.replace("euler", method)), 3)


def test_probes_of_rooms() -> None:
    problem = problem_of(BODY)

    def read(of: HeatProblem, team: Team) -> list[object]:
        state = stepped(of, team)
        statistics = [SurfaceStatistic(probe, state) for probe in of.scenario.probes]
        return [(each.now(), each.place() if each.point() is None else each.point()) for each in statistics]

    alone = read(problem, ALONE)
    assert on_ranks(3, lambda team: read(painted(problem, team), team)) == [alone] * 3


def test_refusals_count_the_faces_of_all_ranks() -> None:
    scenario = problem_of(BODY).scenario
    both = scenario.model_copy(
        update={"surfaces": (*scenario.surfaces, scenario.surfaces[2].model_copy(update={"of": "hall"}))}
    )

    def refused(team: Team) -> str:
        with pytest.raises(ScenarioError) as caught:
            painted_of(team)
        return str(caught.value)

    def painted_of(team: Team) -> HeatProblem:
        return HeatProblem.from_scenario(both, held_planes(both, team))

    alone = refused(ALONE)
    assert "boundary faces" in alone
    assert on_ranks(3, refused) == [alone] * 3


@pytest.mark.quick("x_min")
@pytest.mark.parametrize("side", ["x_min", "z_max"])
def test_channels_and_nodes(side: str) -> None:
    """Along the planes of ranks, and across their cuts; the air of another room has a heat capacity."""
    text = BODY[: BODY.index("[[surfaces]]")] + BODY[BODY.index("[time]") :]
    text += '[[surfaces]]\nof = "dome"\ntype = "convection"\ncoefficient = 20.0\nambient = { node = "air" }\n'
    text += '[[nodes]]\nname = "air"\nheat_capacity = 5.0\ninitial_temperature = 310.0\n'
    text += f'[[channels]]\nname = "water"\nregion = "hall"\nfrom = "{side}"\ninlet = 290.0\n'
    problem = problem_of(text + "mass_flow = 1e-3\nspecific_heat = 4000.0\ncoefficient = 90.0\n")

    def nodes(of: HeatProblem, team: Team) -> bytes:
        state = stepped(of, team)
        assert of.boundary.network is not None
        assert abs(of.boundary.network.temperatures - 310.0).min() > 1e-6
        return of.boundary.network.state.tobytes() + state.field.temperature().tobytes()

    alone = nodes(problem, ALONE)
    assert on_ranks(2, lambda team: nodes(painted(problem, team), team)) == [alone] * 2


@pytest.mark.parametrize("link", [1, 2, 3])
def test_nodes_tie_bodies_of_other_ranks(link: int) -> None:
    """Three bodies in a row, with two rooms of air; where no link ties the air, all ranks refuse them."""
    text = BODY[: BODY.index("[[regions]]")]
    for number, z in ((1, 0.04), (2, 0.11)):
        text += f'[[regions]]\nname = "r{number}"\nmaterial = "void"\n'
        text += f"box = {{ min = [0.0, 0.0, {z}], max = [0.08, 0.06, {z + 0.02}] }}\n"
        text += f'[[surfaces]]\nof = "r{number}"\ntype = "convection"\ncoefficient = 8.0\n'
        text += f'ambient = {{ node = "{number}" }}\n[[nodes]]\nname = "{number}"\n'
        text += "links = [{ ambient = 300.0, conductance = 2.0 }]\n" * (number == link)
    scenario = scenario_of(text + '[time]\nmethod = "steady"\n')

    def says(team: Team) -> str:
        try:
            divide(HeatProblem.from_scenario(scenario, held_planes(scenario, team)), team)
        except ScenarioError as error:
            return str(error)
        return ""

    assert on_ranks(3, says) == [says(ALONE)] * 3
    assert ("no steady temperature" in says(ALONE)) == (link == 3)


def test_the_report_of_ranks_describes_the_whole_model() -> None:
    """Each rank has painted its planes only."""
    scenario = scenario_of(BODY)

    def told(team: Team) -> list[str]:
        problem = HeatProblem.from_scenario(scenario, held_planes(scenario, team))
        return describe_for_report(problem) if team.first else []

    assert on_ranks(3, told) == [describe_model(problem_of(BODY)), [], []]


def test_an_interrupted_run_goes_on_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = BODY + '[output]\nprobe_every = 10.0\nevery = 50.0\nfigures = false\nerror = "none"\n'
    path = runs.write(tmp_path, text)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    Simulation.from_scenario(path, output=whole).run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, 7, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, output=parts).run()
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(whole)
