"""What `plan` tells of each material."""

import tomllib
from math import inf

import pytest

from heatsim.physics.matter.material_coefficients import material_coefficients
from heatsim.scenario import parse

TEXT = """
[domain]
size = [0.1, 0.2, 0.3]
cells = [10, 10, 1]
material = "steel"
[materials.wood]
conductivity = [0.3, 0.1, 0.1]
density = 600.0
specific_heat = 1600.0
[materials.steel]
conductivity = { temperatures = [300.0, 500.0], values = [60.0, 40.0] }
density = 8000.0
specific_heat = "500 + (T - 300)/2"
[[regions]]
name = "gap"
material = "void"
box = { min = [0.0, 0.0, 0.0], max = [0.05, 0.05, 0.3] }
[initial]
temperature = 400.0
[time]
end = 1.0
"""


def test_each_material_has_its_limit_and_its_coefficients():
    steel, wood = material_coefficients(parse(tomllib.loads(TEXT), "x.toml"))
    assert (steel.name, steel.at, steel.conductivity, steel.specific_heat) == ("steel", 400.0, (50.0,) * 3, 550.0)
    assert (wood.name, wood.at, wood.conductivity) == ("wood", None, (0.3, 0.1, 0.1))
    # α/d² with spacings of 1 and 2 cm; one cell along z conducts nothing
    x, y = 0.3 / 960e3 / 1e-4, 0.1 / 960e3 / 4e-4
    assert wood.rates == pytest.approx((x, y, 0.0), rel=1e-12)
    assert wood.limit == pytest.approx(1.0 / (2.0 * (x + y)), rel=1e-12)
    assert wood.coefficients(10.0) == pytest.approx((1 - 20 * (x + y), *[10 * x] * 2, *[10 * y] * 2, 0, 0), rel=1e-12)
    assert wood.coefficients(wood.limit)[0] == pytest.approx(0.0, abs=1e-12)


def test_one_cell_sets_no_limit():
    text = TEXT.replace("cells = [10, 10, 1]", "cells = [1, 1, 1]").replace("[0.05, 0.05, 0.3]", "[0.06, 0.11, 0.3]")
    assert material_coefficients(parse(tomllib.loads(text), "x.toml"))[0].limit == inf


def test_a_field_that_is_no_number_is_looked_at_at_room_temperature():
    text = TEXT.replace("temperature = 400.0", 'temperature = "400 + x"')
    assert material_coefficients(parse(tomllib.loads(text), "x.toml"))[0].conductivity == (60.0,) * 3


def test_of_a_law_the_largest_diffusivity_counts():
    from heatsim.physics.problem import HeatProblem

    scenario = parse(tomllib.loads(TEXT.replace("temperature = 400.0", 'temperature = "300 + 2000*x"')), "x.toml")
    body = HeatProblem.from_scenario(scenario)
    steel, wood = material_coefficients(scenario, body.materials.palette, body.reference)
    # From 310 to 490 K: k from 59 to 41 W/(m K), cp from 505 to 595 J/(kg K); the middle is 400 K.
    assert (steel.at, steel.conductivity, steel.specific_heat) == (400.0, (50.0,) * 3, 550.0)
    assert steel.enthalpy is not None
    assert steel.enthalpy.followed == pytest.approx((310.0, 490.0))
    assert steel.rates[0] == pytest.approx(59.0 / (8000.0 * 505.0) / 1e-4, rel=2e-3)
    assert steel.coefficients(1.0)[1] == pytest.approx(steel.rates[0])
    assert steel.least_coefficients(1.0)[1] == pytest.approx(41.0 / (8000.0 * 595.0) / 1e-4, rel=2e-3)
    assert wood.least_coefficients(1.0) == wood.coefficients(1.0)
