"""Bodies that exchange heat with nodes alone have a steady state only if something gives these a temperature."""

import tomllib

import pytest
from void_bodies import with_void

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

# Three bodies of one cell, with a room between each two of them, and the air of both rooms.
BODIES = with_void(
    "0.05, 0.01, 0.01",
    "5, 1, 1",
    "clay",
    (1.0, 2000.0, 1000.0),
    front="0.01, 0.0, 0.0 to 0.02, 0.01, 0.01",
    back="0.03, 0.0, 0.0 to 0.04, 0.01, 0.01",
)
BODIES += """
[time]
method = "steady"
[solver]
precision = "float64"
device = "cpu"
[output]
error = "none"
"""
FILM = '[[surfaces]]\nof = "{}"\ntype = "convection"\ncoefficient = {}\nambient = {{ node = "{}" }}\n'
ROOMS = FILM.format("front", 50.0, "front air") + FILM.format("back", 20.0, "back air")
AIR = '[[nodes]]\nname = "front air"\n[[nodes]]\nname = "back air"\n'
LINK = "links = [{ ambient = 310.0, conductance = 2.0 }]\n"
INLET = "flows = [{ inlet = 310.0, mass_flow = 1.0, specific_heat = 1.0 }]\n"
HELD = '[boundaries]\nx_max = { type = "temperature", value = 310.0 }\n'
RADIATES = "emissivity = 0.5\nsurroundings = 310.0\n"


def problem(text: str) -> HeatProblem:
    return HeatProblem.from_scenario(parse(tomllib.loads(text), "bodies.toml"))


@pytest.mark.parametrize(
    "text",
    [
        BODIES + ROOMS + AIR + LINK,
        BODIES + ROOMS + AIR.replace('air"\n', 'air"\n' + LINK, 1),
        BODIES + ROOMS + AIR + INLET,
        BODIES + HELD + ROOMS + AIR,
        BODIES
        + ROOMS.replace("20.0, ", "20.0\n").replace("coefficient = 20.0\n", "coefficient = 20.0\n" + RADIATES)
        + AIR,
    ],
    ids=["link at the back", "link at the front", "inlet", "held", "radiation"],
)
def test_one_given_temperature_reaches_every_body_through_the_air(text: str) -> None:
    simulation = Simulation.from_dict(tomllib.loads(text), in_memory=True)
    simulation.run()
    assert simulation.temperature[0, 0, ::2] == pytest.approx(310.0, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (BODIES + ROOMS + AIR, 'the body (the material "clay" of the domain) is insulated'),
        (BODIES + ROOMS.replace("50.0", "0.0") + AIR + LINK, "with cell [0, 0, 0], is insulated"),
        (BODIES + HELD + ROOMS.replace("50.0", "0.0") + AIR, "with cell [0, 0, 0], is insulated"),
    ],
)
def test_bodies_that_no_given_temperature_reaches_are_refused(text: str, named: str) -> None:
    with pytest.raises(ScenarioError, match="no steady temperature") as caught:
        problem(text)
    assert named in str(caught.value)


def test_a_body_without_void_is_tied_by_the_node_at_its_face() -> None:
    body = BODIES[: BODIES.index("[[regions]]")] + BODIES[BODIES.index("[time]") :]
    body += '[boundaries]\nx_min = { type = "convection", coefficient = 5.0, ambient = { node = "air" } }\n'
    node = '[[nodes]]\nname = "air"\n'
    with pytest.raises(ScenarioError, match="no steady temperature"):
        problem(body + node)
    assert problem(body + node + LINK)
