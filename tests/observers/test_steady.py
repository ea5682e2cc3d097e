"""A run ends when nothing changes any more, and not while something is still to come."""

import json
from pathlib import Path

import numpy as np
import pytest
import runs
from conftest import Simulate

from heatsim import Simulation
from heatsim.errors import Interrupted
from heatsim.physics.drives.changes import last_change
from heatsim.scenario import load
from heatsim.storage import folder

TEXT = """
[domain]
size = [0.02, 0.01, 0.01]
cells = [2, 1, 1]

[material]
conductivity = 20.0
density = 2000.0
specific_heat = 500.0

[initial]
temperature = 300.0

[time]
end = 400.0
method = "euler"
stop_below = 1e-9

[solver]
device = "cpu"
kernel = "numpy"
precision = "float64"

[output]
probe_every = 5.0
fields = false
figures = false
"""
HEAT = "[[sources]]\npower_density = 1e5\n"
CAPACITY = 2000.0 * 500.0

# What acts, when it changes for the last time in s, and by how much each cell has warmed then in K.
ACTING = [
    ("during = [30.0, 100.0]", 100.0, 1e5 * 70.0 / CAPACITY),
    ("during = [32.5, 97.5]", 97.5, 1e5 * 65.0 / CAPACITY),
    ("scale = { times = [0.0, 40.0, 45.0, 90.0], values = [0.0, 0.0, 1.0, 0.0] }", 90.0, 1e5 * 25.0 / CAPACITY),
    ('scale = "where(abs(t - 65) < 35, 1, 0)"', 100.0, 1e5 * 70.0 / CAPACITY),
]


@pytest.mark.parametrize(("acting", "last", "warming"), ACTING)
def test_a_quiet_start_is_not_the_end(acting: str, last: float, warming: float, simulate: Simulate) -> None:
    """An insulated body keeps all heat that a source brings after a quiet start."""
    simulation = simulate(TEXT + HEAT + acting)
    assert last_change(simulation.plan.problem.scenario) == pytest.approx(last, abs=1e-9)
    # A whole interval between rows, multiples of 5 s, has been quiet since.
    quiet_until = 5.0 * np.ceil(last / 5.0) + 5.0
    assert simulation.time == quiet_until
    np.testing.assert_allclose(simulation.temperature, 300.0 + warming, rtol=0.0, atol=1e-9)
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text())
    assert summary["end_state"] == f"steady at t = {quiet_until:g} s"


def test_the_summary_tells_the_steps_that_were_done(simulate: Simulate) -> None:
    """Beyond 115 s nothing was done: the steps of the interval to 400 s have no place in it."""
    simulation = simulate(TEXT.replace("fields = false", "every = 70.0") + HEAT + ACTING[0][0])
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text())
    assert simulation.state.stopped
    assert sum(row["steps"] for row in summary["coefficients"]) == summary["steps"] == simulation.step
    total = sum(row["steps"] * row["dt"] for row in summary["coefficients"])
    assert total == pytest.approx(simulation.time, rel=1e-12)
    assert summary["dt"] == [row["dt"] for row in summary["coefficients"]]


def test_a_run_that_is_not_steady_says_so(simulate: Simulate) -> None:
    simulation = simulate(TEXT + HEAT)
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text())
    assert simulation.time == 400.0
    assert summary["end_state"] == "not steady"


def test_a_resumed_run_ends_at_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = runs.write(tmp_path, TEXT + HEAT + ACTING[0][0])
    whole = Simulation.from_scenario(path, output=tmp_path / "whole")
    whole.run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, 5, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, output=tmp_path / "broken").run()
    resumed = Simulation.resume(tmp_path / "broken")
    resumed.run()
    assert resumed.step == whole.step
    np.testing.assert_array_equal(resumed.temperature, whole.temperature)


BEAM = '[[sources]]\nbeam = { face = "z_max", power = 1.0, radius = 0.01, start = 12.0, '
PATCH = '[[patches]]\nface = "x_max"\nrectangle = { min = [0.0, 0.0], max = [0.01, 0.01] }\ntype = "radiation"\n'


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ('[boundaries]\nx_min = { type = "flux", value = { times = [3.0, 7.0], values = [0.0, 10.0] } }', 7.0),
        ('[boundaries]\ny_max = { type = "convection", ambient = 300.0, coefficient = "where(t < 8, 1, 2)" }', 8.0),
        (PATCH + "emissivity = 0.5\nambient = { times = [0.0, 9.0], values = [300.0, 301.0] }", 9.0),
        (BEAM + "path = [[0.01, 0.005]] }", 12.0),
        (BEAM + "path = [[0.0, 0.0], [0.003, 0.004]], speed = 1e-3 }", 17.0),
        ("[[sources]]\npower = 1.0\nduring = [11.0, 500.0]", 11.0),
        ('[boundaries]\nx_min = { type = "temperature", value = "300 + sin(t)" }', 400.0),
    ],
)
def test_the_last_change_of_what_acts(tmp_path: Path, text: str, last: float) -> None:
    found = last_change(load(runs.write(tmp_path, TEXT + text)))
    assert last <= found <= last + 1e-9
