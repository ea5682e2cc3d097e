"""A heat flux beside convection or radiation: sun on a wall that exchanges heat with the air."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from covering import mostly_slow
from scipy.optimize import brentq

from heatsim import Simulation
from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN
from heatsim.physics.problem import HeatProblem
from heatsim.run.in_words import condition_in_words, source_in_words
from heatsim.scenario import load
from heatsim.storage import folder, tables
from heatsim.temperature_units import KELVIN

WALL = """
title = "wall"
domain = { size = [0.2, 1.0, 1.0], cells = [40, 1, 1] }
material = { conductivity = 0.8, density = 1000.0, specific_heat = 1000.0 }
initial.temperature = 290.0
boundaries = { x_min = { type = "temperature", value = 293.0 }, x_max = OUTSIDE }
time = { method = "steady" }
output = { figures = false, fields = false }
solver = { device = "cpu", precision = "float64" }
probes = [{ name = "outside", point = [0.2, 0.5, 0.5] }]
"""
METHODS = ["euler", "stabilized", "implicit", "steady"]
WEAK_LAW = '"0.2 + 1e-3*abs(T - Tamb)"'


def run(at: Path, outside: str, method: str, *overrides: str) -> Simulation:
    path = at / "case.toml"
    path.write_text(WALL.replace("OUTSIDE", outside), encoding="utf-8")
    settings = [f"time.method={method}"]
    if method != "steady":
        settings += ["time.end=3000", "output.every=3000", "output.probe_every=300"]
    simulation = Simulation.from_scenario(path, [*settings, *overrides], output=at / "run", overwrite=True)
    simulation.run()
    return simulation


def probes(simulation: Simulation) -> np.ndarray:
    return tables.read(simulation.folder / folder.PROBES)[1][:, 1]


@pytest.mark.parametrize("method", METHODS)
def test_flux_beside_convection_is_convection_to_a_hotter_fluid(tmp_path: Path, method: str) -> None:
    """h·(T∞ − T_s) + q = h·(T∞ + q/h − T_s)."""
    beside = '{ type = "convection", coefficient = 20.0, ambient = 280.0, flux = 600.0 }'
    hotter = '{ type = "convection", coefficient = 20.0, ambient = 310.0 }'
    found, expected = (probes(run(tmp_path, outside, method)) for outside in (beside, hotter))
    # Methods with a tolerance of 0.02 % of the range may choose other steps.
    assert found == pytest.approx(expected, abs=1e-9 if method in ("euler", "steady") else 0.01)
    assert found[-1] > 293.5


LAW = '"5 + 0.1*abs(T - Tamb)"'


@pytest.mark.parametrize(
    ("outside", "leaves"),
    [
        (
            '{ type = "radiation", emissivity = 0.9, ambient = 280.0, flux = 600.0 }',
            lambda T: 0.9 * STEFAN_BOLTZMANN * (T**4 - 280.0**4),
        ),
        (
            '{ type = "convection", coefficient = 8.0, ambient = 280.0, emissivity = 0.9, flux = 600.0 }',
            lambda T: 8.0 * (T - 280.0) + 0.9 * STEFAN_BOLTZMANN * (T**4 - 280.0**4),
        ),
        (
            f'{{ type = "convection", coefficient = {LAW}, ambient = 280.0, flux = "500 + 100*sin(3*t)^0" }}',
            lambda T: (5.0 + 0.1 * abs(T - 280.0)) * (T - 280.0),
        ),
        ('{ type = "convection", coefficient = 8.0, ambient = 280.0, flux = "1200*y" }', lambda T: 8.0 * (T - 280.0)),
    ],
    ids=["radiation", "both", "law", "in space"],
)
def test_the_surface_balances_flux_exchange_and_conduction(tmp_path: Path, outside: str, leaves: object) -> None:
    """600 W/m² = leaves(T_s) + k/L·(T_s − 293 K)."""
    assert callable(leaves)
    expected = brentq(lambda T: 600.0 - leaves(T) - 0.8 / 0.2 * (T - 293.0), 200.0, 500.0)
    assert probes(run(tmp_path, outside, "steady"))[-1] == pytest.approx(expected, abs=2e-3)


@pytest.mark.quick('stabilized-"0.2 + 1e-3*abs(T - Tamb)"', "euler-0.5")
@pytest.mark.parametrize(
    ("method", "coefficient"),
    mostly_slow(
        product(METHODS[:3], ("0.5", WEAK_LAW)), (METHODS[0], "0.5"), *((method, WEAK_LAW) for method in METHODS[1:3])
    ),
)
def test_a_short_pulse_brings_all_its_heat(tmp_path: Path, method: str, coefficient: str) -> None:
    """A flash of √π·5 s with 2e4 W/m² enters a wall that loses little; the balance closes."""
    outside = (
        f'{{ type = "convection", coefficient = {coefficient}, ambient = 290.0, flux = "2e4*exp(-((t-1003)/5)^2)" }}'
    )
    simulation = run(tmp_path, outside, method, "boundaries.x_min={type='insulated'}")
    names, rows = tables.read(simulation.folder / folder.ENERGY)
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text(encoding="utf-8"))
    residual = rows[:, next(n for n, name in enumerate(names) if name.startswith("residual"))]
    assert np.abs(residual).max() <= summary["energy_bound"]
    passed = rows[:, next(n for n, name in enumerate(names) if name.startswith("x_max"))]
    flash = 2e4 * np.sqrt(np.pi) * 5.0
    # In the row at 1,200 s about 1 % of it has left through the film again.
    assert 0.97 * flash < passed[4] < 0.999 * flash
    assert passed[3] == pytest.approx(0.0, abs=1e-6 * flash)


def test_it_stands_in_the_words_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    outside = '{ type = "radiation", emissivity = 0.9, ambient = 280.0, flux = "100 + t" }'
    path.write_text(WALL.replace("OUTSIDE", outside), encoding="utf-8")
    scenario = load(path)
    words = condition_in_words(scenario.boundaries.x_max, KELVIN, 10.0)
    assert words == "radiation to 280 K, emissivity 0.9, and flux 100…110 W/m² (100 + t)"
    assert not HeatProblem.from_scenario(scenario).linear


def test_the_words_of_a_range_have_no_roundings() -> None:
    (sun,) = load(Path(__file__).parents[2] / "scenarios" / "house_wall.toml").sources
    assert source_in_words(sun, 604800.0).endswith(", times 0…1 (max(0, cos(2*pi*(t/86400 - 0.5))))")
