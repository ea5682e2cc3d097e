"""Smooth areas of bodies that are turned around an axis."""

import tomllib
from math import pi

import pytest

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
