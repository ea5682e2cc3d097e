"""Runs with a beam that moves far in a step: the track that it leaves, the hottest cell, the energy."""

from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim.errors import Interrupted
from heatsim.physics.problem import HeatProblem
from heatsim.run.simulation import Simulation
from heatsim.scenario import load

RADIUS, SPEED, POWER = 2e-3, 0.1, 20.0
# A plate in void. The way goes from 4 radii before it to 4 radii behind it; it begins and ends within steps.
PLATE = f"""
[domain]
size = [0.036, 0.01, 0.002]
cells = [36, 10, 2]
material = "void"

[materials.plate]
conductivity = 1e-4
density = 8000.0
specific_heat = 500.0

[[regions]]
name = "plate"
material = "plate"
box = {{ min = [0.008, 0.0, 0.0], max = [0.028, 0.01, 0.002] }}

[initial]
temperature = 300.0

[[sources]]
scale = 0.5
[sources.beam]
face = "z_max"
power = {2.0 * POWER}
radius = {RADIUS}
path = [[0.0, 0.005], [0.036, 0.005]]
speed = {SPEED}
start = 0.013

[time]
end = 0.5

[output]
figures = false

[solver]
device = "cpu"
"""


def simulate(at: Path, text: str, *overrides: str) -> Simulation:
    at.mkdir(exist_ok=True)
    simulation = Simulation.from_scenario(runs.write(at, text), overrides, output=at / "run")
    simulation.run()
    return simulation


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_a_poor_conductor_keeps_an_even_track(tmp_path: Path, method: str, precision: str) -> None:
    """E/A = P/v times a Gaussian across, in the upper cells; nearly the whole way is one step of Euler's method."""
    overrides = f"time.method={method}", f"solver.precision={precision}"
    # Steps as long as possible.
    tolerance = [] if method == "euler" else ["time.tolerance=2.0"]
    simulation = simulate(tmp_path, PLATE, *overrides, *tolerance)
    edges = np.arange(11) * 1e-3 - 0.005
    across = np.diff([erf(sqrt(2.0) * edge / RADIUS) / 2.0 for edge in edges]) / 1e-3
    rise = POWER / SPEED * across / (1e-3 * 8000.0 * 500.0)
    # Conduction to the next cells in 0.5 s: a few parts of α·t/d² = 1.3e-5; and float32. Where steps of different
    # lengths meet, the ends of their rows of spots do not cancel: 1.2 % each.
    accurate = 1e-4 if method == "euler" else 0.012
    np.testing.assert_allclose(
        simulation.temperature[1, :, 8:28] - 300.0, np.tile(rise[:, None], 20), rtol=accurate, atol=1e-4
    )
    row = runs.energy_rows(tmp_path / "run")[-1]
    exact = POWER / SPEED * 0.02 * erf(sqrt(2.0) * 0.005 / RADIUS)
    assert row["sources"] == pytest.approx(exact, rel=1e-6 if method == "euler" else 1e-3)
    assert abs(row["residual"]) <= 1e-5 * exact


STEEL = PLATE.replace("1e-4", "15.0").replace("[0.036, 0.005]", "[0.02, 0.005]")


@pytest.mark.quick("implicit", "euler")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_the_hottest_cell_does_not_depend_on_the_steps(tmp_path: Path, method: str) -> None:
    """At the end of the path, against Euler's method in steps in which the spot moves R/40."""
    overrides = "time.end=0.2", "solver.precision=float64"
    reference = simulate(tmp_path / "fine", STEEL, "time.method=euler", "time.dt=0.0005", *overrides)
    hottest = float(np.nanmax(reference.temperature)) - 300.0
    if method == "euler":
        long, short = (
            float(
                np.nanmax(simulate(tmp_path / dt, STEEL, "time.method=euler", f"time.dt={dt}", *overrides).temperature)
            )
            for dt in ("0.04", "0.02")
        )
        # Of first order: in long steps what they bring is not yet conducted away.
        assert 0.0 < short - 300.0 - hottest < 0.6 * (long - 300.0 - hottest)
        return
    found = float(np.nanmax(simulate(tmp_path, STEEL, f"time.method={method}", *overrides).temperature)) - 300.0
    # λ·dt/2 of the reference, with λ ≈ 5α/d² for a cell at the surface: 0.5 %.
    assert found == pytest.approx(hottest, rel=0.005)


def test_pulses_of_a_density_and_of_its_scale_at_different_times_bring_nothing(tmp_path: Path) -> None:
    source = 'power_density = "2e5*where(t%16<8,1,0)*(1+0*x)"\nscale = "where(t%16<8,0,1)"\n'
    beam = PLATE[PLATE.index("[[sources]]") : PLATE.index("[time]")]
    for method in ("euler", "stabilized", "implicit"):
        text = PLATE.replace(beam, f"[[sources]]\n{source}\n")
        simulation = simulate(tmp_path / method, text, f"time.method={method}", "time.end=100.0")
        assert np.nanmax(np.abs(simulation.temperature - 300.0)) <= 1e-6
        assert abs(runs.energy_rows(tmp_path / method / "run")[-1]["sources"]) <= 1e-9


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_beams_that_are_off_change_no_bit(tmp_path: Path, method: str) -> None:
    """Two that are off stand before the one that shines, and another one behind it: numbers of beams must not shift."""
    shining = STEEL[STEEL.index("[[sources]]") : STEEL.index("[time]")]
    after, dark = (
        shining.replace("[[sources]]", "[[sources]]\nduring = [1.0, 2.0]"),
        shining.replace("0.5\n", "0.0\n", 1),
    )
    overrides = f"time.method={method}", "time.end=0.1"
    alone = simulate(tmp_path / "alone", STEEL, *overrides)
    text = STEEL.replace(shining, after + dark + shining + after)
    several = simulate(tmp_path / "several", text, *overrides)
    np.testing.assert_array_equal(several.temperature, alone.temperature)
    assert np.nanmax(alone.temperature) > 305.0
    sources = HeatProblem.from_scenario(load(runs.write(tmp_path, text))).sources
    rows = sources.beam_rows(np.linspace(0.02, 0.09, 3), 0.01)
    assert [each.number for each in rows] == [2]


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_runs_stopped_in_the_dark_and_in_the_light_have_the_same_bits(tmp_path: Path, method: str) -> None:
    """Twenty beams in depth: one from 1.5 to 5 s, 18 from 5.5 s, none before and between them."""
    beam = {"face": "z_max", "power": 50.0, "radius": 2e-3, "absorption_depth": 3e-3}
    ways = np.random.default_rng(5).uniform(2e-3, 8e-3, (20, 1, 2)).tolist()
    spans = [[1.5, 5.0], *[[5.5, 9.0]] * 18, [20.0, 30.0]]
    sources = [{"beam": {**beam, "path": way}, "during": span} for way, span in zip(ways, spans, strict=True)]
    document = {
        "domain": {"size": [0.01, 0.01, 0.01], "cells": [10, 10, 10]},
        "material": {"conductivity": 15.0, "density": 8000.0, "specific_heat": 500.0},
        "initial": {"temperature": 300.0},
        "sources": sources,
        "time": {"end": 8.0, "method": method},
        "output": {"figures": False, "error": "none", "probe_every": 1.0},
        "probes": [{"name": "hottest", "statistic": "max"}],
    }
    Simulation.from_dict(document, tmp_path / "whole").run()
    hottest = [row["hottest"] for row in runs.probe_rows(tmp_path / "whole")]
    assert hottest[1] == 300.0 < hottest[5] < hottest[8]
    parts, times = Simulation.from_dict(document, tmp_path / "parts"), list[float]()
    for number in range(1, 100):
        with pytest.MonkeyPatch.context() as patch:
            if method == "euler":
                runs.after_step(patch, 25 * number, runs.interrupt)
            else:
                runs.after_advance(patch, 6, runs.interrupt)
            try:
                parts.run()
                break
            except Interrupted:
                times.append(parts.state.time)
        parts = Simulation.resume(tmp_path / "parts")
    assert {sum(start < time < stop for start, stop in spans) for time in times} == {0, 1, 18}
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "whole")
