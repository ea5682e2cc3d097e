"""Probes look at what conducts: void has no temperature."""

from pathlib import Path

import pytest
import runs

from heatsim import Simulation

PART = """
title = "a heated block in void, its base on the box"

[domain]
size = [0.012, 0.012, 0.012]
cells = [12, 12, 12]
material = "void"

[materials.aluminium]
conductivity = 150.0
density = 2700.0
specific_heat = 900.0

[[regions]]
name = "part"
material = "aluminium"
box = { min = [0.003, 0.003, 0.0], max = [0.009, 0.009, 0.008] }

[initial]
temperature = "300 + 1e4 * x + 2e4 * y"

[boundaries]
z_min = { type = "temperature", value = 450.0 }

[time]
end = 1e-5

[solver]
precision = "float64"

[output]
every = 1e-5
figures = false
"""


def probe(name: str, *point: float) -> str:
    return f'[[probes]]\nname = "{name}"\npoint = {list(point)}\n'


def first_row(tmp_path: Path, probes: str) -> dict[str, float]:
    (tmp_path / "part.toml").write_text(PART + probes, encoding="utf-8")
    Simulation.from_scenario(tmp_path / "part.toml", output=tmp_path / "run").run()
    return runs.probe_rows(tmp_path / "run")[0]


def test_towards_void_a_probe_has_the_temperature_of_its_cell(tmp_path: Path) -> None:
    found = first_row(
        tmp_path,
        probe("inside", 0.006, 0.006, 0.005)
        + probe("top", 0.006, 0.006, 0.008)
        + probe("under the top", 0.006, 0.006, 0.0079)
        + probe("side", 0.009, 0.006, 0.005)
        + probe("corner", 0.009, 0.009, 0.008)
        + probe("edge of the base", 0.009, 0.006, 0.0),
    )
    inside = 300.0 + 60.0 + 120.0
    assert found["inside"] == pytest.approx(inside, abs=1e-9)
    assert found["top"] == pytest.approx(inside, abs=1e-9)
    assert found["under the top"] == pytest.approx(inside, abs=1e-9)
    assert found["side"] == pytest.approx(300.0 + 85.0 + 120.0, abs=1e-9)
    assert found["corner"] == pytest.approx(300.0 + 85.0 + 170.0, abs=1e-9)
    assert found["edge of the base"] == pytest.approx(450.0, abs=1e-9)  # the face's own
