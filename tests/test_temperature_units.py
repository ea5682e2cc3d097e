"""Temperatures in other units: exact conversions, tables with units, resume of runs with either kind of header."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import FolderError, ScenarioError
from heatsim.scenario import load
from heatsim.scenario.documents.resolved import write_resolved
from heatsim.storage import folder, run_tables, tables
from heatsim.storage.run_settings import read_settings
from heatsim.temperature_units import CELSIUS, FAHRENHEIT, KELVIN, TEMPERATURE_UNITS, TemperatureUnit

ENDS_OF_TABLES = (folder.PROBES, folder.ENERGY)


@pytest.mark.parametrize(
    ("unit", "kelvins", "expected"),
    [
        *((CELSIUS, 293.15, 20.0), (CELSIUS, 300.0, 26.85), (CELSIUS, 0.0, -273.15)),
        *((FAHRENHEIT, 273.15, 32.0), (FAHRENHEIT, 373.15, 212.0), (FAHRENHEIT, 0.0, -459.67)),
        (KELVIN, 293.1500000000001, 293.1500000000001),
    ],
)
def test_temperatures_have_an_offset_and_no_digits_of_rounding(unit, kelvins: float, expected: float) -> None:  # type: ignore[no-untyped-def]
    assert unit.of(kelvins) == expected
    assert unit.kelvins(expected) == kelvins


@pytest.mark.parametrize("unit", TEMPERATURE_UNITS.values(), ids=list(TEMPERATURE_UNITS))
def test_differences_have_no_offset(unit) -> None:  # type: ignore[no-untyped-def]
    low, high = 280.0, 350.0
    assert unit.of_difference(high - low) == pytest.approx(unit.of(high) - unit.of(low), rel=1e-14)
    np.testing.assert_allclose(unit.kelvins(unit.of(np.array([low, high]))), [low, high], rtol=1e-15)


def test_texts_have_the_symbol_of_a_temperature_or_of_a_difference() -> None:
    assert [unit.text(293.15) for unit in TEMPERATURE_UNITS.values()] == ["293.15 K", "20 °C", "68 °F"]
    assert [unit.difference_text(1.0) for unit in TEMPERATURE_UNITS.values()] == ["1 K", "1 K", "1.8 °F"]


@pytest.mark.parametrize("text", ["time (s)", "centre (degC)", "a (b) (J)", "void", "die (left)"])
def test_headers_are_read_as_they_are_written(text: str) -> None:
    assert run_tables.header(*run_tables.split_header(text)) == text


def test_a_table_in_degrees_is_that_in_kelvins_and_fields_stay_in_kelvins(tmp_path: Path) -> None:
    plain = runs.run(tmp_path, output=tmp_path / "K")
    for unit in (CELSIUS, FAHRENHEIT):
        other = runs.run(tmp_path, f"output.temperature={unit.name}", output=tmp_path / unit.name)
        columns, rows = tables.read(other / folder.PROBES)
        assert columns == ["time (s)", f"inside ({unit.name})", f"warm, side ({unit.name})"]
        _, kelvins = tables.read(plain / folder.PROBES)
        np.testing.assert_array_equal(rows[:, 1:], unit.of(kelvins[:, 1:]))
        np.testing.assert_array_equal(rows[:, 0], kelvins[:, 0])
        assert (other / folder.ENERGY).read_bytes() == (plain / folder.ENERGY).read_bytes()
        assert runs.results(other)["fields"] == runs.results(plain)["fields"]
        summaries = [json.loads((at / folder.SUMMARY).read_text())["temperature"] for at in (plain, other)]
        assert summaries[0] == summaries[1]
        assert read_settings(other).temperature_unit is unit
        read = run_tables.read_probes(other)
        assert read is not None
        np.testing.assert_allclose(read.in_unit("K")["inside"], kelvins[:, 1], rtol=1e-14)


def test_every_header_of_a_run_has_a_unit(tmp_path: Path) -> None:
    done = runs.run(tmp_path)
    for name in ENDS_OF_TABLES:
        columns, _ = tables.read(done / name)
        assert {unit for _, unit in map(run_tables.split_header, columns)} <= {"s", "K", "J", "W"}


def test_heat_flows_times_the_time_between_rows_are_the_heats(tmp_path: Path) -> None:
    """Also of a source that is on for a part of an interval: rows are 1.25 s apart."""
    source = "[[sources]]\npower = 40.0\nduring = [1.0, 2.0]\n"
    Simulation.from_scenario(runs.write(tmp_path, runs.TEXT + source), output=tmp_path / "out").run()
    table = run_tables.read_energy(tmp_path / "out")
    assert table is not None
    heats, flows = table.in_unit("J"), table.of_body("W")
    assert set(heats) - set(flows) == {"residual"}
    for name, flow in flows.items():
        assert math.isnan(flow[0])
        np.testing.assert_allclose(
            flow[1:] * np.diff(table.times), np.diff(heats[name]), rtol=1e-12, atol=1e-12 * np.abs(heats[name]).max()
        )
    assert flows["sources"][1:4] == pytest.approx([40.0 * 0.25 / 1.25, 40.0 * 0.75 / 1.25, 0.0], rel=2.0**-23)
    # A flux of 5 kW/m² through the face y_min of 0.07 m × 0.06 m.
    assert flows["y_min"][1:] == pytest.approx(5e3 * 0.07 * 0.06, rel=1e-6)


@pytest.mark.parametrize("step", [3, 8, 11])
def test_a_run_in_degrees_resumes_to_the_same_bits(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = runs.run(tmp_path, "output.temperature=degC", output=tmp_path / "whole")
    half = _interrupted(tmp_path, step, monkeypatch, "output.temperature=degC")
    Simulation.resume(half).run()
    assert runs.results(half) == runs.results(whole)


def test_the_unit_may_not_change_on_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = _interrupted(tmp_path, 8, monkeypatch)
    text = (half / folder.SCENARIO).read_text(encoding="utf-8")
    (half / folder.SCENARIO).write_text(text.replace('temperature = "K"', 'temperature = "degC"'), encoding="utf-8")
    with pytest.raises(FolderError, match=r'output\.temperature is "degC", was "K"'):
        Simulation.resume(half)


def test_the_terminal_shows_temperatures_in_the_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--set", "output.temperature=degC", "--set", "initial.temperature=20 degC", "--output"]
    assert main(["run", str(runs.write(tmp_path)), *options, str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Probes (°C)" in shown
    assert "hottest cell 34.27 °C after 8.75 s at (5, 5, 5) mm" in shown
    assert " K " not in shown.split("Probes")[1]


def _interrupted(at: Path, step: int, patch: pytest.MonkeyPatch, *overrides: str) -> Path:
    """The folder of a run that was interrupted after a step."""
    with patch.context() as inner:
        runs.after_step(inner, step, runs.interrupt)
        with pytest.raises(BaseException, match="interrupted"):
            runs.run(at, *overrides, output=at / "half")
    return at / "half"


def test_a_plan_shows_temperatures_in_the_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    varying = "material.conductivity={ temperatures = [293.15, 493.15], values = [10.0, 20.0] }"
    options = ["--set", varying, "--set", "time.method=stabilized", "--set", "time.tolerance=0.5"]
    for unit, shown in (
        ("K", "an error of the run in time of 0.5 K"),
        ("degF", "an error of the run in time of 0.9 °F"),
    ):
        assert main(["plan", str(runs.write(tmp_path)), *options, "--set", f"output.temperature={unit}"]) == 0
        plan = capsys.readouterr().out
        assert shown in plan
        assert (" °F: k = " in plan) == (unit == "degF")


@pytest.mark.parametrize(("text", "meant"), [("C", "degC"), ("°C", "degC"), ("Fahrenheit", "degF"), ("kelvins", "K")])
def test_another_spelling_of_the_unit_is_understood_in_the_message(text: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=f'did you mean "{meant}"'):
        load(runs.write(tmp_path, runs.TEXT), [f"output.temperature={text}"])


@pytest.mark.parametrize(
    ("unit", "low", "high", "expected"),
    [
        (CELSIUS, 293.15, 298.15, "20 °C and 25 °C"),
        (KELVIN, 313.4201, 313.42015, "313.4201 K and 313.42015 K"),
        (CELSIUS, 273.15, 273.15 + 3e-7, "0 °C and 3e-07 °C"),
        (FAHRENHEIT, 300.0, 300.0 + 1e-5, "80.33 °F and 80.330018 °F"),
        (KELVIN, 300.0, 300.0, "300 K and 300 K"),
        (KELVIN, 0.0, 0.0, "0 K and 0 K"),
    ],
)
def test_the_ends_of_an_interval_can_be_told_apart(
    unit: TemperatureUnit, low: float, high: float, expected: str
) -> None:
    assert unit.interval_text(low, high) == expected


@pytest.mark.parametrize(
    ("settings", "shown", "tables_in"),
    [
        ([], "K", "K"),
        (["initial.temperature=20 degC"], "degC", "K"),
        (["initial.temperature=20 degC", "output.table_temperature=degF"], "degC", "degF"),
        (["initial.temperature=20 degC", "output.temperature=degF"], "degF", "degF"),
        (
            ["initial.temperature=68 degF", "boundaries.x_min.value=280 K", "boundaries.x_max.ambient=68 °F"],
            "degF",
            "K",
        ),
        (["initial.temperature=20 degC", "boundaries.x_min.value=280 K", "boundaries.x_max.ambient=290 K"], "K", "K"),
    ],
)
def test_the_unit_is_that_of_most_temperatures(settings: list[str], shown: str, tables_in: str, tmp_path: Path) -> None:
    """Numbers without a unit do not count; tables stay in K unless a unit is asked for."""
    faces = [
        "boundaries={x_min={type='temperature',value=280.0},x_max={type='convection',coefficient=5.0,ambient=290.0}}"
    ]
    scenario = load(runs.write(tmp_path), [*faces, *settings])
    assert (scenario.output.temperature_unit.name, scenario.output.table_unit.name) == (shown, tables_in)
    write_resolved(scenario, tmp_path / "out")
    again = load(tmp_path / "out" / "scenario.toml")
    assert again == scenario
    read = read_settings(tmp_path / "out")
    assert (read.temperature_unit.name, read.table_unit.name) == (shown, tables_in)


def test_tables_have_no_unit_to_choose_from_the_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match='table_temperature: got "auto"; one of "K", "degC", "degF"'):
        load(runs.write(tmp_path), ["output.table_temperature=auto"])


def test_a_unit_that_is_no_text_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "T.csv").write_text("t,T\n0,1\n10,2\n")
    column = "{file='T.csv',time='t',column='T',unit=['degC']}"
    with pytest.raises(ScenarioError, match=r'x_min.value.unit: got \["degC"\]; a text in quotes is expected'):
        load(runs.write(tmp_path), [f"boundaries.x_min={{type='temperature',value={column}}}"])
