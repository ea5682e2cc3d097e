"""Extreme temperatures of all rows, and materials beyond their tables: exact in insulated cells that sources heat."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import runs
from conftest import Simulate

import heatsim
from heatsim import Simulation
from heatsim.errors import Interrupted, RunError
from heatsim.storage import folder

# Four cells along x, two of each material; nothing passes between them: the contact insulates.
TEXT = """
[domain]
size = [0.04, 0.01, 0.01]
cells = [4, 1, 1]
material = "steel"

[materials.steel]
conductivity = { temperatures = [300.0, 400.0], values = [20.0, 30.0] }
density = 2000.0
specific_heat = 500.0

[materials.wax]
conductivity = "0.2 + T/1e5"
density = 1000.0
specific_heat = 1000.0
temperature_range = [250.0, 350.0]

[[regions]]
name = "wax"
material = "wax"
box = { min = [0.02, 0.0, 0.0], max = [0.04, 0.01, 0.01] }

[[contacts]]
between = ["steel", "wax"]
resistance = 1e20

[initial]
temperature = 320.0

[time]
end = 300.0
method = "euler"

[solver]
device = "cpu"
kernel = "numpy"
precision = "float64"

[output]
probe_every = 50.0
fields = false
figures = false

[[sources]]
region = "wax"
power_density = WAX
during = [0.0, 100.0]

[[sources]]
region = "wax"
power_density = -WAX
during = [100.0, 200.0]
"""
BOX = "box = { min = [0.0, 0.0, 0.0], max = [0.02, 0.01, 0.01] }\n"


def summary_of(simulation: Simulation) -> dict[str, object]:
    found = json.loads((simulation.folder / folder.SUMMARY).read_text())
    assert isinstance(found, dict)
    return found


def extreme(simulation: Simulation, name: str) -> tuple[float, float, list[int]]:
    """The temperature in K, the time in s and the cell of an extreme in summary.json."""
    found = summary_of(simulation)[name]
    assert isinstance(found, dict)
    return found["temperature"], found["time"], found["cell"]


def change(text: str, power: float) -> str:
    return text.replace("-WAX", repr(-power)).replace("WAX", repr(power))


HOTTEST = '\n[[probes]]\nname = "hottest"\nstatistic = "max"\n'


def hottest_row(at: Path) -> float:
    return max(row["hottest"] for row in runs.probe_rows(at))


def test_rounding_of_a_uniform_body_leaves_the_time_and_the_place(simulate: Simulate) -> None:
    """A power that warms the wax by 6e-7 of its temperature in all: the temperature follows, the place does not."""
    simulation = simulate(change(TEXT, 2.0) + HOTTEST)
    assert simulation.temperature.max() == pytest.approx(320.0, abs=1e-9)
    temperature, time, cell = extreme(simulation, "highest_temperature")
    assert (time, cell) == (0.0, [0, 0, 0])
    assert temperature == hottest_row(simulation.folder) == pytest.approx(320.0002, abs=1e-9)


def test_a_slow_rise_has_a_new_time_and_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wax warms by 8e-7 of its temperature between two rows, and by 1.6e-6 until 100 s; resumed after 50 s."""
    path = runs.write(tmp_path, change(TEXT, 5.0) + HOTTEST)
    whole = Simulation.from_scenario(path, output=tmp_path / "whole")
    whole.run()
    temperature, time, cell = extreme(whole, "highest_temperature")
    assert (time, cell) == (100.0, [2, 0, 0])
    assert temperature == hottest_row(whole.folder) == pytest.approx(320.0005, abs=1e-9)
    step = int(np.searchsorted(whole.plan.problem.timeline.times, 60.0))
    with monkeypatch.context() as patch:
        runs.after_step(patch, step, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, output=tmp_path / "broken").run()
    resumed = Simulation.resume(tmp_path / "broken")
    resumed.run()
    assert extreme(resumed, "highest_temperature") == (temperature, time, cell)


def test_a_temperature_below_0_K_during_a_run_ends_it(simulate: Simulate) -> None:
    """Robbed of 400 K, before they are given back."""
    message = (
        "falls below 0 K: -80 K at t = 100 s in cell [2, 0, 0]; sources or fluxes take out more heat than there is; "
    )
    message += "check the signs and units of their powers, or take a shorter time.dt"
    with pytest.raises(RunError, match=re.escape(message)):
        simulate(change(TEXT, -4e6))


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_the_lowest_of_a_body_of_one_material(simulate: Simulate, kernel: str) -> None:
    """40 W/m² out of a cell of 1 cm make 4 K/s; a table gives them back."""
    text = f"""
[domain]
size = [0.02, 0.01, 0.03]
cells = [2, 1, 3]
[material]
conductivity = 1e-12
density = 1.0
specific_heat = 1000.0
[initial]
temperature = "400 + 1e3*z"
[boundaries]
x_max = {{ type = "flux", value = {{ times = [0.0, 99.0, 101.0, 200.0], values = [-40.0, -40.0, 40.0, 40.0] }} }}
[time]
end = 200.0
method = "euler"
dt = 1.0
[solver]
device = "cpu"
kernel = "{kernel}"
precision = "float64"
[output]
probe_every = 100.0
figures = false
"""
    # The lowest plane begins at 405 K. It loses 4 K/s for 99 s, then 2 K in the step in which the flux falls to 0.
    lowest = extreme(simulate(text), "lowest_temperature")
    assert lowest == (pytest.approx(405.0 - 398.0, abs=1e-3), 100.0, [1, 0, 0])


def test_a_material_beyond_its_table_is_reported(simulate: Simulate) -> None:
    simulation = simulate(change(TEXT, 1e6))
    (warning,) = simulation.warnings
    assert warning == (
        'material "wax" reached 420 K at t = 100 s, but its conductivity ends at 350 K: outside, the run used '
        "the nearest known value; extend the table or the temperature_range"
    )
    (found,) = summary_of(simulation)["beyond_tables"]  # type: ignore[misc]
    assert found == {"material": "wax", "temperature": pytest.approx(420.0, abs=1e-9), "time": 100.0}


def test_both_ends_of_a_table_are_told_in_one_warning(simulate: Simulate) -> None:
    """The wax cools from 360 K to 60 K; its table reaches from 250 K to 350 K."""
    text = change(TEXT, -3e6).replace("320.0", "360.0")
    (warning,) = [one for one in simulate(text).warnings if "wax" in one]
    assert "reached 360 K at t = 0 s and 60 K at t = 100 s" in warning
    assert "its conductivity ends at 350 K and its conductivity begins at 250 K: outside" in warning


def test_temperatures_within_the_tables_are_not_reported(simulate: Simulate) -> None:
    """The wax comes to the very end of its range, 350 K; that steel has the other ends is no matter."""
    simulation = simulate(change(TEXT, 3e5))
    assert not simulation.warnings
    assert "beyond_tables" not in summary_of(simulation)
    assert extreme(simulation, "lowest_temperature") == (320.0, 0.0, [0, 0, 0])


# The source heats the wax with 1 W/cm³ at any temperature; it does not heat the steel.
HEATED_IN_A_RANGE = (
    change(TEXT, 0.0)
    .replace('"0.2 + T/1e5"', "0.2")
    .replace("temperature_range = [250.0, 350.0]\n", "")
    .replace("{ temperatures = [300.0, 400.0], values = [20.0, 30.0] }", "20.0")
    + """
[[sources]]
name = "current"
region = "wax"
power_density = "1e6 + 0*T"
temperature_range = [250.0, 350.0]
during = [0.0, 100.0]
"""
)


def test_a_source_beyond_its_range_is_reported(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = simulate(HEATED_IN_A_RANGE)
    assert simulation.warnings == [
        'source "current" reached 420 K at t = 100 s, but its power_density ends at 350 K: outside, the run used '
        "the nearest known value; extend the table or the temperature_range"
    ]
    assert summary_of(simulation)["beyond_tables"] == [
        {"source": "current", "temperature": pytest.approx(420.0, abs=1e-9), "time": 100.0}
    ]
    last = simulation.plan.problem.timeline.last_step
    with monkeypatch.context() as patch:
        runs.after_step(patch, last - 1, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(simulation.plan.problem.scenario.path, output=tmp_path / "broken").run()
    resumed = Simulation.resume(tmp_path / "broken")
    resumed.run()
    assert resumed.warnings == simulation.warnings


@pytest.mark.parametrize(("during", "time"), [([20.0, 50.0], 50.0), ([0.0, 10.0], None)])
def test_a_source_that_is_off_has_no_range(during: list[float], time: float | None, simulate: Simulate) -> None:
    """Both sources warm the wax by 1 K/s each, from 320 K on; the other one is always on. The range ends at 350 K."""
    text = HEATED_IN_A_RANGE.replace("during = [0.0, 100.0]", f"during = {during}")
    text += '[[sources]]\nname = "heater"\nregion = "wax"\npower_density = 1e6\n'
    simulation = simulate(text)
    found = summary_of(simulation).get("beyond_tables", [])
    assert [each["time"] for each in found] == ([] if time is None else [time])  # type: ignore[attr-defined]
    assert len(simulation.warnings) == len(found)  # type: ignore[arg-type]


def test_cells_that_a_source_does_not_heat_may_be_beyond_its_range(simulate: Simulate) -> None:
    """The steel stays at 500 K; the wax warms from 320 K to 345 K."""
    steel = '[[regions]]\nname = "steel"\nmaterial = "steel"\ninitial_temperature = 500.0\n'
    text = HEATED_IN_A_RANGE.replace("[[contacts]]", steel + BOX + "\n[[contacts]]").replace("100.0]", "25.0]")
    assert not simulate(text).warnings


@pytest.mark.each_value
@pytest.mark.parametrize("empty", [210.0, 900.0])
@pytest.mark.parametrize("varies", [True, False])
def test_void_has_no_extreme_temperature(simulate: Simulate, empty: float, varies: bool) -> None:
    """Void keeps its initial temperature, which is neither the body's nor beyond anything; 0.1 K/s heat the wax."""
    void = f'[[regions]]\nname = "hole"\nmaterial = "void"\ninitial_temperature = "{empty} K"\n'
    box = "box = { min = [0.03, 0.0, 0.0], max = [0.04, 0.01, 0.01] }\n"
    text = change(TEXT, 1e5).replace("[[contacts]]", void + box + "\n[[contacts]]")
    if not varies:
        text = text.replace("{ temperatures = [300.0, 400.0], values = [20.0, 30.0] }", "20.0")
        text = text.replace('"0.2 + T/1e5"', "0.2").replace("temperature_range = [250.0, 350.0]\n", "")
    simulation = simulate(text)
    assert not simulation.warnings
    assert extreme(simulation, "highest_temperature") == (pytest.approx(330.0, abs=1e-9), 100.0, [2, 0, 0])
    assert extreme(simulation, "lowest_temperature") == (320.0, 0.0, [0, 0, 0])


def test_the_hottest_place_has_its_point_material_and_region(simulate: Simulate) -> None:
    """1 K/s heat the wax for 100 s, and cool it again: 420 K, which the last row does not show."""
    simulation = simulate(change(TEXT, 1e6))
    found = heatsim.open(simulation.folder).summary["highest_temperature"]  # type: ignore[union-attr]
    assert found == {
        "temperature": pytest.approx(420.0, abs=1e-9),
        "time": 100.0,
        "cell": [2, 0, 0],
        "point": pytest.approx([0.025, 0.005, 0.005]),
        "material": "wax",
        "region": "wax",
    }
    assert summary_of(simulation)["temperature"]["max"] == pytest.approx(320.0, abs=1e-9)  # type: ignore[index]


def test_a_resumed_run_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = runs.write(tmp_path, change(TEXT, -3e6))
    whole = Simulation.from_scenario(path, output=tmp_path / "whole")
    whole.run()
    last = whole.plan.problem.timeline.last_step
    with monkeypatch.context() as patch:
        runs.after_step(patch, last - 1, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, output=tmp_path / "broken").run()
    resumed = Simulation.resume(tmp_path / "broken")
    resumed.run()
    assert resumed.warnings == whole.warnings
    for name in ("lowest_temperature", "highest_temperature", "beyond_tables"):
        assert summary_of(resumed)[name] == summary_of(whole)[name]
