"""A tolerance that rounding hides is refused."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.errors import ScenarioError

SCENARIO = """
[domain]
size = [0.01, 0.01, 0.01]
cells = [6, 5, 4]
[material]
conductivity = 20.0
density = 7000.0
specific_heat = 500.0
[initial]
temperature = 300.0
[boundaries]
x_max = { type = "temperature", value = 400.0 }
[time]
method = "stabilized"
end = 1.0
tolerance = 2e-6
[output]
figures = false
"""


@pytest.mark.parametrize("method", ["stabilized", "implicit"])
def test_it_is_refused_before_the_first_step(tmp_path: Path, method: str) -> None:
    """The start is uniform, so nothing is rounded yet; beside the held face 100 K are."""
    path = runs.write(tmp_path, SCENARIO)
    changes = [f"time.method={method}", "solver.precision=float32"]
    simulation = Simulation.from_scenario(path, changes, output=tmp_path / "out")
    with pytest.raises(ScenarioError, match=r"got 2e-06 K; float32 resolves errors of .* by 100 K .*float64"):
        simulation.run()
    assert simulation.state.method is not None
    assert simulation.state.method.reached == 0.0


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", ["stabilized", "implicit"])
def test_heat_that_makes_rounding_large_ends_no_run(tmp_path: Path, method: str) -> None:
    """One half rises by 350 K, where float32 shows 3.3 mK: the run goes on with what it shows, and says so."""
    source = """
[[sources]]
power = 700.0
box = { min = [0, 0, 0], max = [0.005, 0.01, 0.01] }
[solver]
precision = "float32"
"""
    text = SCENARIO.replace("tolerance = 2e-6", "tolerance = 2e-3").replace("value = 400.0", "value = 300.0") + source
    simulation = Simulation.from_scenario(
        runs.write(tmp_path, text), [f"time.method={method}"], output=tmp_path / "out"
    )
    simulation.run()
    assert simulation.state.method is not None
    assert 3e-3 < simulation.state.method.tolerance < 4e-3
    (warning,) = simulation.warnings
    assert "was not kept to the end: float32 resolves errors of" in warning
    exact = Simulation.from_scenario(
        runs.write(tmp_path, text.replace("float32", "float64")), [f"time.method={method}"], output=tmp_path / "exact"
    )
    exact.run()
    assert not exact.warnings
    difference = np.abs(simulation.temperature - exact.temperature).max()
    assert difference < 2.0 * (simulation.state.method.tolerance + 2e-3)


def test_float64_resolves_it(tmp_path: Path) -> None:
    text = SCENARIO + '[solver]\nprecision = "float64"\n'
    simulation = Simulation.from_scenario(runs.write(tmp_path, text), ["time.end=0.1"], output=tmp_path / "out")
    simulation.run()
    assert simulation.state.method is not None
    assert simulation.state.method.work.steps > 10


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", ["stabilized", "implicit"])
def test_a_fast_beam_on_a_poor_conductor_is_followed(tmp_path: Path, method: str) -> None:
    """Its pulses last 1 µs where heat takes seconds from cell to cell, so all of it stays where it falls.

    Steps pass the corner. Power and place are those of the path: P·2 µs, around its middle.
    """
    path = [[2e-3, 2e-3], [3e-3, 2e-3], [3e-3, 3e-3]]
    table = tomllib.loads(SCENARIO) | {
        "domain": {"size": [5e-3, 5e-3, 5e-3], "cells": [20, 20, 2]},
        "material": {"conductivity": 0.1, "density": 2000.0, "specific_heat": 1000.0},
        "boundaries": {},
        "time": {"method": method, "end": 2e-6},
        "sources": [{"beam": {"face": "z_max", "power": 1e4, "radius": 5e-4, "path": path, "speed": 1000.0}}],
    }
    simulation = Simulation.from_dict(table, output=tmp_path / "out")
    simulation.run()
    heat = (simulation.temperature - 300.0).sum(axis=0) * 2e6 * 2.5e-3 * 2.5e-4**2
    assert heat.sum() == pytest.approx(1e4 * 2e-6, rel=1e-5)
    at = 2.5e-4 * (np.arange(20) + 0.5)
    assert heat.sum(axis=0) @ at / heat.sum() == pytest.approx(2.75e-3, rel=1e-5)
    assert heat.sum(axis=1) @ at / heat.sum() == pytest.approx(2.25e-3, rel=1e-5)


def test_rounding_of_float32_hardly_shortens_steps_at_a_quarter_of_the_default(tmp_path: Path) -> None:
    """The estimate of single cells is mostly rounding there; steps must not shrink until it is below the tolerance.

    Until a quarter of it is: that costs a fifth of the stages.
    """
    stages = {}
    for precision in ("float32", "float64"):
        path = Path(__file__).parents[3] / "scenarios" / "cube.toml"
        changes = ["domain.cells=[24, 24, 24]", "time.method=stabilized", "time.tolerance=0.004", "time.end=60"]
        output = ["output.every=60", "output.probe_every=60", "output.figures=false", "output.fields=false"]
        where = ["solver.device=cpu", f"solver.precision={precision}"]
        simulation = Simulation.from_scenario(path, [*changes, *output, *where], output=tmp_path / precision)
        simulation.run()
        assert simulation.state.method is not None
        stages[precision] = simulation.state.method.work.stages
    assert stages["float32"] <= 1.3 * stages["float64"]
