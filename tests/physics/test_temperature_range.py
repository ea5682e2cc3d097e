"""Which temperatures a run can come to, and what that means for materials that change."""

import tomllib
from math import inf

import pytest

from heatsim.errors import ScenarioError
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.temperature_range import bounds, span
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import Scenario, parse

TEXT = """
title = "range"
[domain]
size = [0.1, 0.1, 0.1]
cells = [5, 4, 2]
[material]
conductivity = "20 + 0.01*T"
density = 1000.0
specific_heat = "300 + T"
[initial]
temperature = "300 + 1000*x"
[time]
end = 40.0
"""


def scenario(*changes: tuple[str, str], extra: str = "") -> Scenario:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse(tomllib.loads(text + extra), "range.toml")


def followed(read: Scenario) -> tuple[float, float]:
    body = HeatProblem.from_scenario(read)
    enthalpy = body.materials.palette[0].enthalpy
    assert enthalpy is not None
    return enthalpy.followed


def test_without_heat_set_free_it_stays_between_field_and_surroundings() -> None:
    assert followed(scenario()) == pytest.approx((310.0, 390.0))
    faces = """
[boundaries]
x_min = { type = "convection", coefficient = 10.0, ambient = "280 + 20*sin(t)" }
x_max = { type = "temperature", value = { times = [0.0, 10.0], values = [350.0, 450.0] } }
y_min = { type = "radiation", emissivity = 0.5, ambient = 600.0 }
"""
    assert followed(scenario(extra=faces)) == pytest.approx((260.0, 600.0), abs=1e-3)


def test_a_source_heats_no_cell_beyond_what_it_gives() -> None:
    source = "[[sources]]\npower_density = 5e6\nduring = [0.0, 10.0]\n"
    low, high = followed(
        scenario(('[initial]\ntemperature = "300 + 1000*x"', "[initial]\ntemperature = 300.0"), extra=source)
    )
    # 1000·(300·u + (T² − 300²)/2) = 5e7 J/m³ with T = 300 + u; the grid on which it is found is within 0.6 %.
    exact = (600.0**2 + 2.0 * 5e4) ** 0.5 - 600.0
    assert low == 300.0
    assert exact <= high - 300.0 + 1e-9 <= 1.01 * exact


def test_fluxes_cool_and_heat() -> None:
    faces = '[boundaries]\nx_min = { type = "flux", value = "1e4*sin(t)" }\n'
    low, high = followed(scenario(extra=faces))
    # At the most 1e4 W/m² into 2 cm for 40 s: 2e7 J/m³ at no less than 600 kJ/(m³ K).
    assert 390.0 + 2e7 / 1000.0 / 720.0 < high < 390.0 + 2e7 / 1000.0 / 690.0
    assert 310.0 - 2e7 / 1000.0 / 580.0 < low < 310.0 - 2e7 / 1000.0 / 620.0


def test_tables_are_followed_no_further_than_they_go() -> None:
    table = ('"20 + 0.01*T"', "{ temperatures = [320.0, 330.0, 5000.0], values = [10.0, 20.0, 30.0] }")
    number = ('"300 + T"', "500.0")
    assert followed(scenario(table, number)) == pytest.approx((320.0, 390.0))
    beam = '[[sources]]\nbeam = { face = "z_max", power = 1e6, radius = 1e-3, path = [[0.05, 0.05]] }\n'
    assert followed(scenario(table, number, extra=beam)) == pytest.approx((320.0, 5000.0))
    melting = ("density = 1000.0", "density = 1000.0\nlatent_heat = 1e5\nsolidus = 300.0\nliquidus = 315.0")
    assert followed(scenario(table, number, melting)) == pytest.approx((310.0, 390.0))


@pytest.mark.parametrize(
    ("change", "extra", "words"),
    [
        (
            ("20 + 0.01*T", "0.1*(T - 350)"),
            "",
            ["material.conductivity", "at 310.0 K", "the initial field or the surroundings"],
        ),
        (("300 + T", "1/(T - 310)"), "", ["material.specific_heat", "is inf at 310.0 K", "must be finite"]),
        (
            ("20 + 0.01*T", "20 - 0.01*T"),
            "[[sources]]\npower_density = 1e9\n",
            [
                "material.conductivity",
                "sources, beams and fluxes could cause",
                "temperature_range = [lowest, highest]",
            ],
        ),
        (
            ("20 + 0.01*T", "20"),
            "[[sources]]\npower_density = 1e12\n",
            ["material.specific_heat", "must be valid up to", "or use a table"],
        ),
    ],
)
def test_an_expression_must_make_sense_at_every_temperature_that_can_occur(
    change: tuple[str, str], extra: str, words: list[str]
) -> None:
    with pytest.raises(ScenarioError) as caught:
        HeatProblem.from_scenario(scenario(change, extra=extra))
    for word in words:
        assert word in str(caught.value)


def test_a_range_says_how_far_an_expression_holds() -> None:
    limited = ("density = 1000.0", 'density = 1000.0\ntemperature_range = ["40 degC", 800.0]')
    read = scenario(("20 + 0.01*T", "20 - 0.01*T"), limited, extra="[[sources]]\npower_density = 1e9\n")
    assert followed(read) == pytest.approx((313.15, 800.0))
    body = HeatProblem.from_scenario(read)
    enthalpy = body.materials.palette[0].enthalpy
    assert enthalpy is not None
    assert enthalpy.conductivity_range == pytest.approx((12.0, 20.0 - 3.1315))
    assert enthalpy.specific_heat_range == pytest.approx((300.0 + 313.15, 1100.0))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("temperature_range = 300.0", "a list of two temperatures is expected"),
        ("temperature_range = [500.0, 400.0]", "the second temperature must be above the first"),
        ("temperature_range = [-5.0, 400.0]", "temperature_range.0: got -5.0"),
    ],
)
def test_a_range_is_two_temperatures(line: str, words: str) -> None:
    with pytest.raises(ScenarioError, match="temperature_range") as caught:
        scenario(("density = 1000.0", f"density = 1000.0\n{line}"))
    assert words in str(caught.value)


def test_a_range_without_an_expression_is_refused() -> None:
    numbers = (('"20 + 0.01*T"', "20.0"), ('"300 + T"', "500.0"))
    with pytest.raises(ScenarioError, match="there is no expression in T to limit: remove this key"):
        scenario(*numbers, ("density = 1000.0", "density = 1000.0\ntemperature_range = [300.0, 400.0]"))


def extremes(extra: str) -> tuple[float, tuple[float, float]]:
    read = scenario(extra=extra)
    start, conditions = InitialField.from_scenario(read), Boundary.from_scenario(read)
    return span(start, conditions), bounds(start, conditions)


def test_the_span_and_the_bounds_of_field_and_surroundings() -> None:
    assert extremes("") == (pytest.approx(80.0), pytest.approx((310.0, 390.0)))
    faces = """
[boundaries]
x_min = { type = "convection", coefficient = 10.0, ambient = "280 + 20*sin(t)" }
x_max = { type = "temperature", value = { times = [0.0, 10.0], values = [350.0, 450.0] } }
y_min = { type = "radiation", emissivity = 0.5, ambient = 600.0 }
"""
    whole, (low, high) = extremes(faces)
    assert (whole, low, high) == (pytest.approx(340.0, abs=1e-3), pytest.approx(260.0, abs=1e-3), 600.0)


@pytest.mark.parametrize(
    ("extra", "cooled", "heated"),
    [
        ("[[sources]]\npower = 5.0\n", False, True),
        ("[[sources]]\npower_density = -5.0\n", True, False),
        ('[[sources]]\npower = 5.0\nscale = "sin(t)"\n', True, True),
        ("[[sources]]\npower = 0.0\n", False, False),
        ('[[sources]]\nbeam = { face = "z_max", power = 1.0, radius = 0.01, path = [[0.05, 0.05]] }\n', False, True),
        ('[boundaries]\nx_min = { type = "flux", value = -3.0 }\n', True, False),
        ('[boundaries]\nx_min = { type = "flux", value = "3*floor(t/39.5)" }\n', False, True),
    ],
)
def test_heat_that_is_given_or_taken_leaves_no_bound(extra: str, cooled: bool, heated: bool) -> None:
    """The span is that of the temperatures, whatever is given."""
    whole, (low, high) = extremes(extra)
    assert whole == pytest.approx(80.0)
    assert low == (0.0 if cooled else pytest.approx(310.0))
    assert high == (inf if heated else pytest.approx(390.0))
