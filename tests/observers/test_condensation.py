"""Condensation on surfaces: temperature factors, dew points, and the time below them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import NotFiniteError, ScenarioError
from heatsim.observers.time_beyond import TimeBeyond
from heatsim.scenario import load, write_resolved
from heatsim.scenario.values.dew_point import dew_point
from heatsim.storage import folder, run_tables


def column(at: Path, name: str, unit: str) -> list[float]:
    table = run_tables.read_probes(at)
    assert table is not None
    return [float(value) for value in table.columns[name, unit]]


def saturation(kelvin: float) -> float:
    """The pressure in Pa that ISO 13788 gives."""
    celsius = kelvin - 273.15
    a, b = (17.269, 237.3) if celsius >= 0.0 else (21.875, 265.5)
    return 610.5 * math.exp(a * celsius / (b + celsius))


def test_the_dew_point_is_the_inverse_of_saturation() -> None:
    """Above and below 0 °C, and where the air is above and its dew point below; tables of the standard at 20 °C."""
    for kelvin in np.linspace(223.15, 323.15, 41):
        for humidity in (1e-3, 0.2, 0.6, 0.999, 1.0):
            (found,) = dew_point(np.array([kelvin]), np.array([humidity]))
            assert saturation(found) == pytest.approx(humidity * saturation(kelvin), rel=1e-12)
            assert found <= kelvin + 1e-12
    assert dew_point(np.array([293.15]), np.array([0.5])) - 273.15 == pytest.approx([9.3], abs=0.05)


# Mean temperatures of a wall of two halves that conduct differently; both have four cells across.
WALL = """
title = "Two walls side by side"
domain = { size = [0.2, 0.2, 1.0], cells = [4, 2, 1], material = "good" }
materials.good = { conductivity = 0.2, density = 1.0, specific_heat = 1.0 }
materials.bad = { conductivity = [1.0, 1e-12, 1.0], density = 1.0, specific_heat = 1.0 }
regions = [{ name = "bad", material = "bad", box = { min = [0.0, 0.1, 0.0], max = [0.2, 0.2, 1.0] } }]
time = { method = "steady" }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false, error = "none" }
[boundaries]
x_min = { type = "convection", coefficient = 25.0, ambient = "-5 degC" }
x_max = { type = "convection", coefficient = 4.0, ambient = "20 degC" }
[[probes]]
name = "f"
surface = "x_max"
statistic = "temperature_factor"
outside = "x_min"
"""
OF_BAD = 1.0 - 0.25 / (0.04 + 0.2 + 0.25)  # 1 − U·R_si


@pytest.mark.parametrize("outside", ["-5 degC", "35 degC"])
def test_the_factor_of_a_plain_wall_is_exact(outside: str, tmp_path: Path) -> None:
    """It does not depend on the temperatures. Its place is the worse wall, the warmer one in summer."""
    text = WALL.replace("-5 degC", outside).replace("[boundaries]", 'contacts = [{ between = ["good", "bad"], '
                                                    "resistance = 1e12 }]\n[boundaries]")  # fmt: skip
    Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out").run()
    assert column(tmp_path / "out", "f", "1") == pytest.approx([OF_BAD], rel=1e-6)
    place = json.loads((tmp_path / "out" / folder.SUMMARY).read_text())["probe_extremes"]["f"]
    outside_kelvin = 268.15 if outside == "-5 degC" else 308.15
    assert place["point"] == pytest.approx([0.2, 0.15, 0.5])
    assert place["temperature"] == pytest.approx(outside_kelvin + OF_BAD * (293.15 - outside_kelvin), rel=1e-6)


def test_the_factor_of_a_corner_is_that_of_its_edge(tmp_path: Path) -> None:
    """The coldest place lies on the edge between two walls, not at the middle of a face."""
    text = """
    title = "Corner"
    domain = { size = [0.4, 0.4, 1.0], cells = [16, 16, 1], material = "a" }
    materials.a = { conductivity = 1.0, density = 1.0, specific_heat = 1.0 }
    regions = [{ name = "walls", material = "a", box = { min = [0, 0, 0], max = [0.4, 0.4, 1] } },
               { name = "air", material = "void", box = { min = [0.1, 0.1, 0], max = [0.4, 0.4, 1] } }]
    time = { method = "steady" }
    output = { figures = false, fields = false, error = "none" }
    surfaces = [{ of = "walls", type = "convection", coefficient = 4.0, ambient = "20 degC" }]
    boundaries = { x_min = { type = "convection", coefficient = 25.0, ambient = "0 degC" }, \
y_min = { type = "convection", coefficient = 25.0, ambient = "0 degC" } }
    probes = [{ name = "f", surface = "void", region = "walls", statistic = "temperature_factor", outside = "y_min" },
              { name = "all", surface = "void", region = "walls", statistic = "min" }]
    """
    Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out").run()
    (f,), (coldest,) = (column(tmp_path / "out", *of) for of in (("f", "1"), ("all", "K")))
    assert f == pytest.approx((coldest - 273.15) / 20.0, rel=1e-9)
    place = json.loads((tmp_path / "out" / folder.SUMMARY).read_text())["probe_extremes"]["f"]
    assert place["point"][:2] == pytest.approx([0.1, 0.1])
    assert f < 1.0 - 0.25 / (0.04 + 0.1 + 0.25) - 0.05


# One cell so light that its surfaces follow both ambient temperatures at once: T_si = (1 − U·R_si)·T_i + U·R_si·T_e.
AT_ONCE = """
title = "Light wall"
domain = { size = [0.1, 1.0, 1.0], cells = [1, 1, 1] }
material = { conductivity = 0.25, density = 1.0, specific_heat = 100.0 }
initial.temperature = "15 degC"
time = { end = "2 days", method = "euler" }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false, error = "none", every = "1 day", probe_every = "PERIOD" }
[boundaries]
x_min = { type = "convection", coefficient = 10.0, ambient = "281.15 + 10*sin(2*pi*t/86400 + 0.7)" }
x_max = { type = "convection", coefficient = 4.0, ambient = "20 degC" }
[[probes]]
name = "f"
surface = "x_max"
statistic = "temperature_factor"
outside = "x_min"
[[probes]]
name = "wet"
surface = "x_max"
statistic = "time_below"
threshold = { air = "20 degC", humidity = 0.75 }
"""
LIGHT = 0.25 / (0.1 + 0.4 + 0.25)  # U·R_si


@pytest.mark.quick("2 h-0.002", "1 h-0.0001")
@pytest.mark.parametrize(("period", "part"), [("2 h", 2e-3), ("1 h", 1e-4), ("15 min", 1e-5)])
def test_the_time_below_the_dew_point_hardly_depends_on_rows(period: str, part: float, tmp_path: Path) -> None:
    """Errors in parts of the period: those of straight lines between rows of an hour would be 2e-3."""
    text = AT_ONCE.replace("PERIOD", period)
    Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out").run()
    limit = float(dew_point(np.array([293.15]), np.array([0.75]))[0])
    times = np.linspace(0.0, 2.0, 2_000_001)
    kelvins = 293.15 - LIGHT * (12.0 - 10.0 * np.sin(2.0 * np.pi * times + 0.7))
    exact = 86400.0 * 2.0 * float(np.mean(kelvins < limit))
    assert 0.2 < exact / 172800.0 < 0.8
    assert abs(column(tmp_path / "out", "wet", "s")[-1] - exact) < 2.0 * part * 86400.0
    factors = column(tmp_path / "out", "f", "1")
    assert factors[1:] == pytest.approx([1.0 - LIGHT] * (len(factors) - 1), abs=2e-3)


def test_a_dew_point_from_files_and_tables(tmp_path: Path) -> None:
    """The threshold is known between rows: humid air of 2/3 of the time lies between two rows of a day."""
    (tmp_path / "room.csv").write_text("h,T\n0,20\n48,20\n")
    air = '{ file = "room.csv", time = "h", time_unit = "h", column = "T", unit = "degC" }'
    humidity = '{ times = ["0 h", "2 h", "2 h", "6 h"], values = [0.4, 0.4, 0.9, 0.9], repeat = true }'
    text = AT_ONCE[: AT_ONCE.index("[boundaries]")].replace("PERIOD", "24 h").replace("15 degC", "13 degC")
    text += 'boundaries.x_max = { type = "convection", coefficient = 4.0, ambient = "13 degC" }\n'
    text += '[[probes]]\nname = "wet"\nsurface = "x_max"\nstatistic = "time_below"\n'
    text += f"threshold.air = {air}\nthreshold.humidity = {humidity}\n"
    Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out").run()
    assert column(tmp_path / "out", "wet", "s") == pytest.approx([0.0, 16 * 3600.0, 32 * 3600.0], abs=1e-3)
    again = load(tmp_path / "out" / folder.SCENARIO)
    assert again.probes == load(tmp_path / "mixed.toml").probes
    write_resolved(again, tmp_path / "copy")
    assert (tmp_path / "copy" / "room.csv").exists()


def seconds(values: list[float], threshold: float, times: list[float] | None = None, below: bool = True) -> list[float]:
    beyond = TimeBeyond(threshold, 1e9, below)
    at = [float(n) for n in range(len(values))] if times is None else times
    return [beyond.at(value, time) for value, time in zip(values, at, strict=True)]


def test_the_time_of_cubics_is_exact_and_steps_do_not_overshoot() -> None:
    cubic = [(t - 1.5) * (t - 3.25) * (t - 6.5) for t in (0.0, 1.0, 2.5, 4.0, 5.0, 7.0, 8.0)]
    found = seconds(cubic, 0.0, [0.0, 1.0, 2.5, 4.0, 5.0, 7.0, 8.0])
    assert found[-1] == pytest.approx(
        1.5 + 3.25, abs=0.02
    )  # its first interval is a parabola until four rows are known
    step = [300.0] * 5 + [310.0] * 6
    assert seconds(step, 310.0 + 1e-9, below=False) == [0.0] * 11
    assert seconds(step, 300.0 - 1e-9)[-1] == 0.0
    assert seconds(step, 305.0)[-1] == pytest.approx(4.5, abs=1e-9)
    falling = [float(value) for value in np.cumsum(-np.random.default_rng(1).uniform(0.1, 5.0, 40))]
    for row in (0, 1, 7, 38):
        time = seconds(falling, 0.5 * (falling[row] + falling[row + 1]))[-1]
        assert row_of(time) == row


def row_of(time_below: float) -> int:
    """The interval in which a falling temperature of 40 rows passes its threshold."""
    return int(39.0 - time_below)


def test_condensation_resumes_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = AT_ONCE.replace("PERIOD", "1 h").replace("2 days", "6 h")
    text = text.replace("density = 1.0", "density = 3000.0")
    scenario = runs.write(tmp_path, text.replace("1 day", "3 h").replace("fields = false, ", ""))
    Simulation.from_scenario(scenario, output=tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, 5, runs.interrupt)
        with pytest.raises(BaseException, match="interrupted"):
            Simulation.from_scenario(scenario, output=tmp_path / "half").run()
    Simulation.resume(tmp_path / "half").run()
    assert runs.results(tmp_path / "half") == runs.results(tmp_path / "whole")


def test_temperatures_that_meet_end_the_run(tmp_path: Path) -> None:
    text = AT_ONCE.replace("PERIOD", "6 h").replace(
        "281.15 + 10*sin(2*pi*t/86400 + 0.7)", "272.15 + t/2057.142857142857"
    )
    with pytest.raises(NotFiniteError, match='probe "f" has no temperature factor at t = 43200'):
        Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out").run()


def test_a_plan_names_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(runs.write(tmp_path, AT_ONCE.replace("PERIOD", "6 h")))]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert 'probe f: temperature_factor of the surface at x_max against "x_min"' in text
    assert "probe wet: time_below the dew point of the surface at x_max" in text


FACTOR = 'statistic = "temperature_factor"\noutside = "x_min"'


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('outside = "x_min"', ""), 'probes.0.outside: missing; write for example outside = "x_min"'),
        (('surface = "x_max"', ""), "probes.0.surface: missing"),
        (('"temperature_factor"', '"min"'), 'probes.0.outside: got "x_min"; only the statistic "temperature_factor"'),
        (('outside = "x_min"', 'outside = "x_mn"'), 'probes.0.outside: got "x_mn"; one of "x_min", "x_max" is'),
        (('outside = "x_min"', 'outside = "y_min"'), 'got "y_min"; boundaries.y_min has the type "insulated", which'),
        (('outside = "x_min"', 'outside = "x_max"'), 'got "x_max"; it has the temperature of the room'),
        (('"-5 degC"', '"20 degC"'), 'got "x_min"; it has the temperature of the room'),
        (('"-5 degC"', '"270 + y"'), 'got "x_min"; boundaries.x_min must have one ambient temperature'),
        (('surface = "x_max"', 'surface = "y_min"'), 'got "y_min"; boundaries.y_min must have one ambient temperature'),
        (
            ("[boundaries]", 'patches = [{ face = "x_max", rectangle = { min = [0, 0], max = [0.1, 1] }, '
             'type = "convection", coefficient = 9, ambient = 290 }]\n[boundaries]'),
            'probes.0.surface: got "x_max"; boundaries.x_max and patches.0 must have one ambient',
        ),
        (('"temperature_factor"', '"time_below"'), "probes.0.threshold: missing"),
        (('outside = "x_min"', "threshold = 3"), "probes.0.threshold: got 3; only the statistics"),
        (
            (FACTOR, 'statistic = "time_below"\nthreshold = { air = 20, '
             "humidity = 0.5 }"),
            "probes.0.threshold.air: got 20; a temperature of air must be at least 173.15 K",
        ),
        (
            (FACTOR, 'statistic = "time_below"\nthreshold = { air = 290, '
             'humidity = "60 %" }'),
            'probes.0.threshold.humidity: got "60 %"; write 0.6',
        ),
        (
            (FACTOR, 'statistic = "time_below"\nthreshold = { air = 290 }'),
            "probes.0.threshold.humidity: missing",
        ),
        (
            ('surface = "x_max"\nstatistic = "temperature_factor"\noutside = "x_min"', 'statistic = "extent_x"\n'
             "threshold = { air = 290, humidity = 0.5 }"),
            "the dew point is a threshold of time_below and time_above only",
        ),
    ],
)  # fmt: skip
def test_misuse_is_said(change: tuple[str, str], expected: str, tmp_path: Path) -> None:
    text = WALL.replace(*change)
    assert text != WALL
    with pytest.raises(ScenarioError) as raised:
        load(runs.write(tmp_path, text))
    assert expected in str(raised.value)
