"""Statistics of regions and of the body: the liquid part, lengths of hot places, times above a threshold."""

import math
from pathlib import Path

import pytest
import runs

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.observers import regions
from heatsim.scenario import load
from heatsim.storage import run_tables

# A body that is heated evenly: all cells have one temperature, which is known.
RHO, CP, LATENT, SOLIDUS, LIQUIDUS, START = 2000.0, 500.0, 1e5, 340.0, 350.0, 300.0
SIDE, POWER = 0.1, 1e4
HEATED = f"""
domain = {{ size = [{SIDE}, {SIDE}, {SIDE}], cells = [3, 2, 4] }}
material.conductivity = 20.0
material.density = {RHO}
material.specific_heat = {CP}
material.latent_heat = {LATENT}
material.solidus = {SOLIDUS}
material.liquidus = {LIQUIDUS}
initial.temperature = {START}
sources = [{{ power = {POWER} }}]
time = {{ end = 16.0, method = "euler" }}
solver = {{ device = "cpu", precision = "float64" }}
output = {{ probe_every = 1.0, figures = false, fields = false }}
"""
HEAT_CAPACITY = RHO * CP * SIDE**3  # J/K
# A field that stays as it is for the row at t = 0.
FIELD = """
domain = { size = [0.1, 0.1, 0.1], cells = CELLS }
material = { conductivity = 20.0, density = 2000.0, specific_heat = 500.0 }
initial.temperature = "INITIAL"
time = { end = 1e-3, method = "euler" }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false }
"""


def table_of(at: Path, text: str, *overrides: str) -> dict[str, list[float]]:
    Simulation.from_scenario(runs.write(at, text), overrides, output=at / "out").run()
    table = run_tables.read_probes(at / "out")
    assert table is not None
    return {"time": table.times.tolist()} | {name: values.tolist() for (name, _), values in table.columns.items()}


def first_row(at: Path, cells: list[int], initial: str, probes: str) -> dict[str, float]:
    text = FIELD.replace("CELLS", str(cells)).replace("INITIAL", initial) + probes
    return {name: values[0] for name, values in table_of(at, text).items()}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_liquid_part_is_that_of_the_heat(precision: str, tmp_path: Path) -> None:
    """From solidus to liquidus, the heat L + cp·ΔT melts evenly."""
    probe = '[[probes]]\nname = "melt"\nstatistic = "liquid_fraction"\n'
    found = table_of(tmp_path, HEATED + probe, f"solver.precision={precision}")
    melting = HEAT_CAPACITY * (LIQUIDUS - SOLIDUS) + LATENT * RHO * SIDE**3
    for time, part in zip(found["time"], found["melt"], strict=True):
        heat = POWER * time - HEAT_CAPACITY * (SOLIDUS - START)
        assert part == pytest.approx(min(max(heat / melting, 0.0), 1.0), abs=1e-5)
    assert 0.0 < found["melt"][-1] < 1.0


@pytest.mark.parametrize("place", ["", f"point = [{SIDE / 3}, {SIDE}, 0.0]\n"])
def test_the_time_above_a_threshold_is_exact_for_a_straight_line(place: str, tmp_path: Path) -> None:
    """10 K/s from 300 K on: 325 K are reached after 2.5 s, between two rows; of the body, and of a point."""
    probe = f'[[probes]]\nname = "hot"\nstatistic = "time_above"\nthreshold = 325.0\n{place}'
    found = table_of(tmp_path, HEATED + probe, "time.end=4")
    assert found["hot"] == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.5], abs=1e-9)


@pytest.mark.parametrize("planes", [2**24, 1])
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_an_extent_ends_between_cells_where_the_temperature_is_the_threshold(
    axis: str, planes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T = 300 + 1000·s: hotter than 347 K beyond s = 0.047; the hot part reaches the faces."""
    monkeypatch.setattr(regions, "_CELLS_AT_ONCE", planes)
    probes = "".join(
        f'[[probes]]\nname = "{other}"\nstatistic = "extent_{other}"\nthreshold = 347.0\n' for other in "xyz"
    )
    found = first_row(tmp_path, [10, 8, 9], f"300 + 1000*{axis}", probes)
    for other in "xyz":
        assert found[other] == pytest.approx(0.053 if other == axis else 0.1, rel=1e-9)


def test_an_extent_along_equal_cells_beside_an_axis_with_several_widths() -> None:
    document = {
        "domain": {"size": [0.05, 0.04], "cells": [5, 8], "x": {"widths": [0.01, 0.02, 0.03]}},
        "material": {"conductivity": 1.0, "density": 1.0, "specific_heat": 1.0},
        "initial": {"temperature": "300 + 1000*z"},
        "time": {"end": 1e-3},
        "solver": {"device": "cpu"},
        "probes": [{"name": axis, "statistic": f"extent_{axis}", "threshold": 313.0} for axis in "xyz"],
    }
    simulation = Simulation.from_dict(document, in_memory=True)
    assert [simulation.probe(axis) for axis in "xyz"] == pytest.approx([0.06, 0.05, 0.027])


@pytest.mark.parametrize("planes", [2**24, 1])
def test_the_extent_of_a_hot_ball_converges_with_the_square_of_the_cells(
    planes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "_CELLS_AT_ONCE", planes)
    ball = "300 + 100*exp(-((x - 0.043)^2 + 4*(y - 0.05)^2 + 2*(z - 0.06)^2)/0.0008)"
    probes = "".join(f'[[probes]]\nname = "{axis}"\nstatistic = "extent_{axis}"\nthreshold = 350.0\n' for axis in "xyz")
    widths = {"x": 0.0008, "y": 0.0002, "z": 0.0004}
    exact = {axis: 2.0 * math.sqrt(width * math.log(2.0)) for axis, width in widths.items()}
    errors = []
    for cells in (16, 32):
        (tmp_path / str(cells)).mkdir()
        found = first_row(tmp_path / str(cells), [cells] * 3, ball, probes)
        errors.append(max(abs(found[axis] - exact[axis]) for axis in "xyz"))
    # A line of centres beside the axis of the ball cuts it at a shorter length.
    assert errors[0] < (0.1 / 16) ** 2 / 0.01
    assert errors[1] < 0.4 * errors[0]


def test_nothing_hot_has_no_extent_and_a_melt_is_measured_from_the_liquidus(tmp_path: Path) -> None:
    probes = '[[probes]]\nname = "none"\nstatistic = "extent_x"\nthreshold = 900.0\n'
    probes += '[[probes]]\nname = "melt"\nstatistic = "extent_x"\n'
    probes += '[[probes]]\nname = "hot"\nstatistic = "max"\n'
    found = table_of(tmp_path, HEATED.replace(f"{START}\n", '"310 + 500*x"\n') + probes, "time.end=0.1")
    assert found["none"][0] == 0.0
    assert found["melt"][0] == pytest.approx(0.1 - 0.08, rel=0.02)


@pytest.mark.parametrize("step", [3, 8])
def test_statistics_resume_to_the_same_bits(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes = '[[probes]]\nname = "hot"\nstatistic = "time_above"\nthreshold = 335.0\n'
    probes += '[[probes]]\nname = "wide"\nstatistic = "extent_y"\nthreshold = 320.0\n'
    probes += '[[probes]]\nname = "at"\npoint = [0.0, 0.02, 0.03]\nstatistic = "time_above"\nthreshold = 335.0\n'
    scenario = runs.write(tmp_path, runs.TEXT + probes)
    Simulation.from_scenario(scenario, output=tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, step, runs.interrupt)
        with pytest.raises(BaseException, match="interrupted"):
            Simulation.from_scenario(scenario, output=tmp_path / "half").run()
    Simulation.resume(tmp_path / "half").run()
    assert runs.results(tmp_path / "half") == runs.results(tmp_path / "whole")


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ('statistic = "liquid_fraction"', 'probes.0.statistic: got "liquid_fraction"; no material has a latent_heat'),
        ('statistic = "extent_x"', 'probes.0.threshold: missing; "extent_x" needs a threshold'),
        ('statistic = "time_above"', "probes.0.threshold: missing"),
        ('statistic = "mean"\nthreshold = 3.0', "probes.0.threshold: got 3.0; only the statistics"),
        ('point = [0, 0, 0]\nstatistic = "mean"', 'probes.0.statistic: got "mean" of points'),
        (
            'line = { from = [0, 0, 0], to = [1, 0, 0], count = 2 }\nstatistic = "time_above"\nthreshold = 300.0',
            'probes.0.statistic: got "time_above" of points',
        ),
        ('region = "die"', "probes.0.statistic: missing; a region needs a statistic"),
        ("", "probes.0.point: missing"),
    ],
)
def test_what_a_statistic_needs_is_said(probe: str, expected: str, tmp_path: Path) -> None:
    text = FIELD.replace("CELLS", "[2, 2, 2]").replace("INITIAL", "300") + f'[[probes]]\nname = "a"\n{probe}\n'
    with pytest.raises(ScenarioError) as raised:
        load(runs.write(tmp_path, text))
    assert expected in str(raised.value)
