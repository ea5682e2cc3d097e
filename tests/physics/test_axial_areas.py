"""Areas of bodies that are turned around an axis: smooth surfaces, and patches whose edges lie within cells."""

import tomllib
from math import exp, pi

import pytest

from heatsim import Simulation
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

TEXT = """
domain.symmetry = "axial"
domain.material = "void"
domain.origin = [0.0, -0.02]
domain.z.intervals = [{ to = 0.02, cells = 20, growth = 1.03 }]
domain.x.intervals = [{ to = 0.03, cells = 20, growth = 0.98 }]
materials.steel = { conductivity = 15.0, density = 7900.0, specific_heat = 500.0 }
materials.wool = { conductivity = 0.04, density = 100.0, specific_heat = 800.0 }
contacts = [{ between = ["steel", "wool"], resistance = 1e-3 }]
boundaries.x_max = { type = "temperature", value = 300.0 }
boundaries.void = { type = "convection", coefficient = 500.0, ambient = 290.0 }
time.method = "steady"

[[regions]]
name = "around"
material = "wool"
box = { min = [0.0, -0.5, -0.02], max = [0.03, 0.5, 0.02] }

[[regions]]
name = "body"
material = "steel"
"""


@pytest.mark.parametrize("beside", ["wool", "void"])
@pytest.mark.parametrize(
    ("shape", "area"),
    [
        ("sphere = { centre = [0, 0, 0], radius = 0.015 }", 4.0 * pi * 0.015**2),
        (
            "cylinder = { from = [0, 0, -0.0123], to = [0, 0, 0.0101], radius = 0.0177 }",
            2.0 * pi * 0.0177 * (0.0177 + 0.0224),
        ),
        (
            "box = { min = [0.0111, -0.5, -0.0123], max = [0.02, 0.5, 0.0101] }",
            2.0 * pi * (0.0111 + 0.02) * (0.02 - 0.0111 + 0.0224),
        ),
    ],
)
def test_contacts_and_surfaces_towards_void_are_contours_times_their_circumference(
    shape: str, area: float, beside: str
) -> None:
    text = TEXT + shape
    if beside == "void":
        text = text.replace('"wool"\nbox', '"void"\nbox')
    materials = HeatProblem.from_scenario(parse(tomllib.loads(text), "body.toml")).materials
    (found,) = materials.surface_areas.values()
    assert found == pytest.approx(area, rel=3e-4 if "sphere" in shape else 1e-12)


@pytest.mark.parametrize(
    ("face", "low", "high", "area"),
    [
        ("z_max", [0.0213, -0.5], [0.0537, 0.5], pi * (0.0537**2 - 0.0213**2)),
        ("z_min", [0.01, -0.5], [0.0301, 0.5], pi * (0.0301**2 - 0.01**2)),
        ("x_max", [-0.5, 0.0123], [0.5, 0.0411], 2.0 * pi * 0.1 * 0.0288),
        ("x_min", [-0.5, 0.0], [0.5, 0.0411], 2.0 * pi * 0.01 * 0.0411),
    ],
)
@pytest.mark.parametrize("cells", ["cells = [9, 6]", "cells = [9]\nz = { widths = [0.01, 0.02, 0.005, 0.015] }"])
def test_the_flux_of_a_ring_enters_through_its_area(
    face: str, low: list[float], high: list[float], area: float, cells: str
) -> None:
    size = "size = [0.09]" if "widths" in cells else "size = [0.09, 0.05]"
    text = f"""
[domain]
symmetry = "axial"
origin = [0.01, 0.0]
{size}
{cells}
[material]
conductivity = 10.0
density = 1000.0
specific_heat = 500.0
[boundaries]
{"x_min" if face != "x_min" else "x_max"} = {{ type = "temperature", value = 300.0 }}
[[patches]]
name = "ring"
face = "{face}"
rectangle = {{ min = {low}, max = {high} }}
type = "flux"
value = 1000.0
[time]
method = "steady"
[solver]
device = "cpu"
precision = "float64"
"""
    simulation = Simulation.from_dict(tomllib.loads(text), in_memory=True)
    simulation.run()
    (patch,) = simulation.plan.problem.scenario.patches
    assert simulation.state.steady is not None
    assert simulation.state.steady.flows.patches["ring"] == pytest.approx(1000.0 * area, rel=1e-9)
    assert patch.area(simulation.plan.problem.grid) == pytest.approx(area, rel=1e-12)
    assert patch.area_on_grid(simulation.plan.problem.grid) == pytest.approx(area, rel=1e-9)


@pytest.mark.parametrize(
    ("value", "power"),
    [
        ("1000*x", 2000.0 * pi * 0.1**3 / 3.0),
        ("1000*exp(-x/0.02)", 2000.0 * pi * (4e-4 - (4e-4 + 0.002) * exp(-5.0))),
        ("where(x < 0.033, 1000, 0)", 1000.0 * pi * 0.033**2),
    ],
)
def test_a_flux_that_varies_along_the_radius_has_its_integral(value: str, power: float) -> None:
    document = {
        "domain": {"symmetry": "axial", "size": [0.1, 0.05], "cells": [7, 3]},
        "material": {"conductivity": 10.0, "density": 1000.0, "specific_heat": 500.0},
        "boundaries": {
            "z_min": {"type": "temperature", "value": 300.0},
            "z_max": {"type": "flux", "value": value},
        },
        "time": {"method": "steady"},
        "solver": {"device": "cpu", "precision": "float64"},
    }
    simulation = Simulation.from_dict(document, in_memory=True)
    simulation.run()
    assert simulation.state.steady is not None
    assert simulation.state.steady.flows.faces["z_max"] == pytest.approx(power, rel=1e-6)
