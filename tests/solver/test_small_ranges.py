"""The default tolerance of runs whose temperatures all lie within less than 1 K."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from covering import pairwise

from heatsim import Simulation
from heatsim.storage import folder, tables
from heatsim.storage.summary_file import read_summary

# A plate that its first half heats or that begins 10 mK above the fluid.
PLATE = """
domain = { size = [0.1, 0.02, 0.02], cells = [10, 1, 1] }
material = { conductivity = 15.0, density = 8000.0, specific_heat = 500.0 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false, probe_every = 100.0 }
time = { end = 400.0 }
probes = [{ name = "near", point = [0.01, 0.01, 0.01] }, { name = "far", point = [0.09, 0.01, 0.01] }]
"""
COOLING = """
initial.temperature = 300.01
boundaries.x_min = { type = "convection", coefficient = 200.0, ambient = 300.0 }
"""
HEATED = """
initial.temperature = 300.0
sources = [{ power_density = "where(x < 0.05, 500, 0)" }]
"""


def probes(at: Path, text: str, *overrides: str) -> np.ndarray:
    path = at / "case.toml"
    path.write_text(PLATE + text, encoding="utf-8")
    simulation = Simulation.from_scenario(path, overrides, output=at / "run", overwrite=True)
    simulation.run()
    return tables.read(simulation.folder / folder.PROBES)[1][:, 1:]


@cache
def exact_probes(text: str) -> np.ndarray:
    with TemporaryDirectory() as name:
        return probes(Path(name), text, "time.method=stabilized", "time.tolerance=5e-8")


@pytest.mark.quick("cooling-stabilized", "heated-implicit")
@pytest.mark.parametrize("method", ["stabilized", "implicit"])
@pytest.mark.parametrize("text", [COOLING, HEATED], ids=["cooling", "heated"])
def test_the_default_tolerance_is_a_part_of_a_small_range(text: str, method: str, tmp_path: Path) -> None:
    """0.02 % of the widest range of the run: 10 mK at the start, or 50 mK that the heat gives if none flows away."""
    found = probes(tmp_path, text, f"time.method={method}")
    exact = exact_probes(text)
    widest = 0.01 if text == COOLING else 500.0 * 400.0 / (8000.0 * 500.0)
    assert 0.1 * widest < np.ptp(exact) <= widest
    assert np.abs(found - exact).max() < 1.5 * 2e-4 * widest


@pytest.mark.parametrize("dark", ["during = [500.0, 600.0]", "scale = 0.0"])
def test_beams_that_are_off_widen_no_range(dark: str, tmp_path: Path) -> None:
    beam = f'\nsources = [{{ {dark}, beam = {{ face = "z_max", power = 1e3, radius = 0.01, path = [[0.05, 0.01]] }} }}]'
    probes(tmp_path, COOLING + beam, "time.method=implicit")
    assert read_summary(tmp_path / "run")["tolerance"] == pytest.approx(2e-4 * 0.01)


BLOCK = """
domain = { size = [0.1, 0.1, 0.1], cells = [12, 12, 12] }
material = { conductivity = 1.0, density = 1000.0, specific_heat = 1000.0 }
initial.temperature = 350.0
time.method = "steady"
output = { figures = false, fields = false }
probes = [{ name = "low", statistic = "min" }, { name = "high", statistic = "max" }]
"""
CONVECTION = """
boundaries.default = { type = "convection", coefficient = 10.0, ambient = 300.0 }
boundaries.x_min = { type = "convection", coefficient = 10.0, ambient = OTHER }
"""
RADIATION = """
boundaries.default = { type = "radiation", emissivity = 0.9, ambient = 300.0 }
boundaries.x_min = { type = "radiation", emissivity = 0.9, ambient = OTHER }
"""


def extremes(at: Path, text: str, *overrides: str) -> np.ndarray:
    path = at / "case.toml"
    path.write_text(text, encoding="utf-8")
    simulation = Simulation.from_scenario(path, ["solver.device=cpu", *overrides], output=at / "run", overwrite=True)
    simulation.run()
    return tables.read(simulation.folder / folder.PROBES)[1][-1, 1:]


@pytest.mark.parametrize(
    ("range_around", "text", "precision"), pairwise((0.0, 1e-3, 0.1), (CONVECTION, RADIATION), ("float32", "float64"))
)
def test_a_steady_state_with_a_small_range(range_around: float, text: str, precision: str, tmp_path: Path) -> None:
    """The error is below 0.01 % of the range that the state has, also from a guess that is 50 K away, or 0.1 µK.

    In float32 the deviations of 50 K from the first guess are rounded to 4 µK.
    """
    body = BLOCK + text.replace("OTHER", str(300.0 + range_around))
    exact = extremes(tmp_path, body, "solver.precision=float64", "time.tolerance=1e-9")
    found = extremes(tmp_path, body, f"solver.precision={precision}")
    rounding = 0.0 if precision == "float64" else 2.0 * float(np.spacing(np.float32(50.0)))
    assert np.abs(found - exact).max() <= max(1e-7, 1e-4 * np.ptp(exact)) + rounding
