"""Probes look at what conducts: void has no temperature."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.interpolation import Interpolation
from heatsim.scenario import parse

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


Value = tuple[float, float] | None  # the temperature in K and the conductivity; None in void


def between(first: Value, second: Value, s: float) -> Value:
    """What is s of the way from one centre to the next: heat passes both half cells; nothing passes void."""
    if first is None or second is None:
        return first or second
    (a, k), (b, other) = first, second
    if k == other:
        return a + s * (b - a), k
    to_border = 1.0 / k / (1.0 / k + 1.0 / other)  # the part of the difference in the first half cell
    if s < 0.5:
        return a + 2.0 * s * to_border * (b - a), k
    return b - 2.0 * (1.0 - s) * (1.0 - to_border) * (b - a), other


@pytest.mark.parametrize("seed", range(6))
def test_probes_among_random_materials_and_void_follow_the_half_cells(seed: int) -> None:
    """Along x, y and z one after the other, with the material that is left; what void cells hold does not count."""
    random, n = np.random.default_rng(seed), 5
    conductivities = {"one": 1.0, "two": 10.0, "three": 300.0}
    regions, names = [], np.full((n, n, n), "one", dtype=object)
    for number in range(12):
        low = random.integers(0, n - 1, 3)
        high = low + random.integers(1, 3, 3)
        name = str(random.choice(["void", "void", *conductivities]))
        regions.append({"name": f"r{number}", "material": name, "box": {"min": low.tolist(), "max": high.tolist()}})
        names[tuple(slice(a, b) for a, b in zip(low[::-1], high[::-1], strict=True))] = name
    document = {
        "domain": {"size": [float(n)] * 3, "cells": [n] * 3, "material": "one"},
        "materials": {
            name: {"conductivity": k, "density": 1e3, "specific_heat": 1e3} for name, k in conductivities.items()
        },
        "regions": regions,
        "initial": {"temperature": 300.0},
        "time": {"end": 1.0},
        "solver": {"device": "cpu"},
    }
    points = random.uniform(0.5, n - 0.5, (400, 3))
    points = points[[names[tuple(cell)] != "void" for cell in points[:, ::-1].astype(int)]]
    field = random.uniform(300.0, 900.0, (n, n, n))
    expected, beside_void = [], 0
    for point in points:
        low = np.floor(point - 0.5).astype(int)
        s, cells = point - 0.5 - low, {}
        for x, y, z in product((0, 1), repeat=3):
            place = low[2] + z, low[1] + y, low[0] + x
            name = names[place]
            cells[x, y, z] = None if name == "void" else (field[place], conductivities[name])
        beside_void += None in cells.values()
        rows = {(y, z): between(cells[0, y, z], cells[1, y, z], s[0]) for y, z in product((0, 1), repeat=2)}
        low_z, high_z = (between(rows[0, z], rows[1, z], s[1]) for z in (0, 1))
        found = between(low_z, high_z, s[2])
        assert found is not None
        expected.append(found[0])
    assert beside_void > 20
    problem = HeatProblem.from_scenario(parse(document, "case.toml"))
    interpolation = Interpolation(problem, [(x, y, z) for x, y, z in points.tolist()])
    x, y, z = interpolation.cells
    field[names == "void"] = np.nan
    np.testing.assert_allclose(interpolation.of(field[z, y, x][None], [0])[0], expected, rtol=1e-12)
