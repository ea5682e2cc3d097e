"""Hints: numbers that are allowed, but were probably meant in degrees."""

from pathlib import Path

import numpy as np
import pytest

from heatsim.cli import main
from heatsim.scenario import load, parse

CELSIUS = 'initial.temperature = "60 degC"\n'
PLATE = """
domain = { size = [0.1, 0.1, 0.1], cells = [4, 4, 4] }
material = { conductivity = 237.0, density = 2700.0, specific_heat = 900.0 }
time.end = 10.0
output.figures = false
"""
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def hints(tmp_path: Path, text: str, end: str = "10 s") -> tuple[str, ...]:
    path = tmp_path / "plate.toml"
    path.write_text(PLATE + text, encoding="utf-8")
    return load(path, [f"time.end={end}"]).hints


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'boundaries.default = { type = "convection", coefficient = 5.0, ambient = 20 }\n',
            "boundaries.default.ambient = 20: 20 K is −253.15 °C; other temperatures of this scenario are in °C: write "
            '"20 degC", or "20 K" if that is meant',
        ),
        (
            'boundaries.z_max = { type = "temperature", value = "10 + 5*sin(t)" }\n',
            'boundaries.z_max.value = "10 + 5*sin(t)": 10 K is −263.15 °C; other temperatures of this scenario are in '
            "°C: the numbers of an expression are in K, so write T + 273.15 for T in °C",
        ),
        (
            'boundaries.x_min = { type = "temperature", value = { times = [0.0, 5.0], values = [300.0, 5.0] } }\n',
            "boundaries.x_min.value.values.1 = 5.0: 5 K is",
        ),
        (
            'boundaries.default = { type = "convection", coefficient = 5.0, ambient = 150.0 }\n',
            "boundaries.default.ambient = 150.0: 150 K is −123.15 °C",
        ),
        (
            'patches = [{ face = "z_max", rectangle = { min = [0, 0], max = [0.05, 0.05] }, type = "radiation", '
            "emissivity = 0.8, ambient = 21.5 }]\n",
            "patches.0.ambient = 21.5",
        ),
    ],
)
def test_a_plain_number_beside_degrees_is_named_with_its_key(text: str, expected: str, tmp_path: Path) -> None:
    (hint,) = hints(tmp_path, CELSIUS + text)
    assert hint.startswith(expected)


def test_a_cold_plain_number_among_warm_kelvins_is_named(tmp_path: Path) -> None:
    """Although no temperature of the scenario is in degrees."""
    (hint,) = hints(
        tmp_path,
        'initial.temperature = 300.0\nboundaries.default = { type = "convection", coefficient = 5.0, ambient = 20 }\n',
    )
    assert hint == (
        "boundaries.default.ambient = 20: 20 K is −253.15 °C; other temperatures of this scenario reach 300 K: write "
        '"20 degC", or "20 K" if that is meant'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('initial.temperature = "20 + 30*x"\n', 'initial.temperature = "20 + 30*x": 20 K is'),
        (
            'initial.temperature = "where(x < 0.05, 320, 40)"\n',
            'initial.temperature = "where(x < 0.05, 320, 40)": 40 K is',
        ),
        ('initial.temperature = { file = "start.npy" }\n', 'initial.temperature: "start.npy" goes down to 25 K; other'),
        (
            'initial.temperature = 300.0\nprobes = [{ name = "p", point = [0, 0, 0], statistic = "time_above", '
            "threshold = 58.0 }]\n",
            "probes.0.threshold = 58.0: 58 K is",
        ),
        (
            'initial.temperature = 300.0\nboundaries.x_min = { type = "temperature", value = "25 + 10*y" }\n',
            'boundaries.x_min.value = "25 + 10*y": 25 K is',
        ),
    ],
)
def test_cold_expressions_files_and_melting_points_are_named(text: str, expected: str, tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", np.full((4, 4, 4), 25.0))
    face = 'boundaries.default = { type = "convection", coefficient = 5.0, ambient = 300.0 }\n'
    (hint,) = hints(tmp_path, face + text)
    assert hint.startswith(expected)


@pytest.mark.parametrize("unit", ["", ', unit = "K"'])
def test_a_cold_column_among_warm_kelvins_is_named(unit: str, tmp_path: Path) -> None:
    (tmp_path / "weather.csv").write_text("s,T\n0,5.0\n10,6.0\n", encoding="utf-8")
    weather = f'{{ file = "weather.csv", time = "s", column = "T"{unit} }}'
    face = f'boundaries.x_min = {{ type = "convection", coefficient = 5.0, ambient = {weather} }}\n'
    found = hints(tmp_path, f"initial.temperature = 300\n{face}")
    assert len(found) == (unit == "")
    assert all(
        "goes down to 5 K, because it has no unit; other temperatures of this scenario reach 300 K" in hint
        for hint in found
    )


@pytest.mark.parametrize(
    "text",
    [
        # A magnet that a bath cools from room temperature.
        "initial.temperature = 300.0\n"
        'boundaries.default = { type = "convection", coefficient = 5.0, ambient = "4.2 K" }\n',
        # Liquid helium, all in K.
        'initial.temperature = 77.0\nboundaries.default = { type = "convection", coefficient = 5.0, ambient = 4.2 }\n',
        CELSIUS + 'boundaries.default = { type = "convection", coefficient = 5.0, ambient = "77 K" }\n',
        CELSIUS + 'boundaries.default = { type = "convection", coefficient = 5.0, ambient = 293.15 }\n',
        CELSIUS + 'boundaries.default = { type = "convection", coefficient = 5.0, ambient = "300 + 5*sin(t)" }\n',
        CELSIUS + 'boundaries.default = { type = "flux", value = 20.0 }\ntime.tolerance = 0.02\n',
    ],
)
def test_what_is_meant_is_not_questioned(text: str, tmp_path: Path) -> None:
    assert hints(tmp_path, text) == ()


def test_a_scenario_without_any_temperature_has_no_hint(tmp_path: Path) -> None:
    path = tmp_path / "plate.toml"
    faces = 'boundaries.x_min = { type = "flux", value = 5.0 }\nboundaries.x_max = { type = "flux", value = -5.0 }\n'
    path.write_text(PLATE.replace("time.end = 10.0", 'time.method = "steady"') + faces, encoding="utf-8")
    assert load(path).hints == ()


def test_tables_of_materials_may_begin_near_absolute_zero(tmp_path: Path) -> None:
    path = tmp_path / "plate.toml"
    path.write_text(f"{PLATE}initial.temperature = 300.0\n", encoding="utf-8")
    assert load(path, ["material.conductivity={ temperatures = [20.0, 400.0], values = [900.0, 390.0] }"]).hints == ()


def test_a_file_in_degrees_makes_plain_numbers_suspect_too(tmp_path: Path) -> None:
    (tmp_path / "weather.csv").write_text("hour,T\n0,5.0\n1,6.0\n", encoding="utf-8")
    weather = '{ file = "weather.csv", time = "hour", time_unit = "h", column = "T", unit = "degC" }'
    face = f'boundaries.x_min = {{ type = "convection", coefficient = 5.0, ambient = {weather} }}\n'
    (hint,) = hints(tmp_path, f"{face}initial.temperature = 20\n")
    assert hint.startswith("initial.temperature = 20: 20 K is −253.15 °C")


@pytest.mark.parametrize(("unit", "count"), [("", 1), (', unit = "K"', 0), (', unit = "degC"', 0)])
def test_a_cold_column_without_a_unit_beside_degrees_is_reported(tmp_path: Path, unit: str, count: int) -> None:
    (tmp_path / "weather.csv").write_text("s,T\n0,5.0\n10,6.0\n", encoding="utf-8")
    weather = f'{{ file = "weather.csv", time = "s", column = "T"{unit} }}'
    face = f'boundaries.x_min = {{ type = "convection", coefficient = 5.0, ambient = {weather} }}\n'
    found = hints(tmp_path, f"{CELSIUS}{face}")
    expected = 'boundaries.x_min.ambient: column "T" of "weather.csv" goes down to 5 K, because it has no unit'
    assert [hint[: len(expected)] for hint in found] == [expected] * count


WEATHER = (
    'boundaries.x_min = { type = "convection", coefficient = 5.0, ambient = { file = "weather.csv", time = "hour", '
)


@pytest.mark.parametrize(
    ("rows", "end", "expected"),
    [
        # Hourly rows of 24 hours: the last holds for an hour.
        (range(24), "1 d", None),
        (range(25), "1 d", None),
        (
            range(20),
            "1 d",
            "end at t = 68400 s (19 h), and the run at 86400 s (24 h); after the data their last value ",
        ),
        (range(2, 30), "1 d", "begin at t = 7200 s (2 h); until then 2 degC holds"),
    ],
)
def test_data_that_end_before_the_run_are_told(tmp_path: Path, rows: range, end: str, expected: str | None) -> None:
    lines = "".join(f"{hour},{hour}\n" for hour in rows)
    (tmp_path / "weather.csv").write_text(f"hour,T\n{lines}", encoding="utf-8")
    weather = f'{WEATHER}time_unit = "h", column = "T", unit = "degC" }} }}\n'
    found = hints(tmp_path, CELSIUS + weather, end)
    if expected is None:
        assert found == ()
        return
    (hint,) = found
    assert hint.startswith(f'boundaries.x_min.ambient: the data of "weather.csv" {expected}')
    assert "holds" in hint
    if "end at" in expected:
        assert "holds, 19 degC: add rows" in hint


def test_data_that_repeat_do_not_end(tmp_path: Path) -> None:
    (tmp_path / "weather.csv").write_text("hour,T\n0,5.0\n6,9.0\n12,5.0\n", encoding="utf-8")
    weather = f'{WEATHER}time_unit = "h", column = "T", unit = "degC", repeat = true }} }}\n'
    assert hints(tmp_path, CELSIUS + weather, "1 d") == ()


def test_results_in_degrees_make_plain_numbers_suspect_too(tmp_path: Path) -> None:
    assert "68 °F" not in hints(tmp_path, "output.temperature = 'degF'\ninitial.temperature = 68\n")[0]
    (hint,) = hints(tmp_path, "output.temperature = 'degF'\ninitial.temperature = 68\n")
    assert hint.startswith("initial.temperature = 68: 68 K is −337.27 °F")
    assert hint.endswith('write "68 degF", or "68 K" if that is meant')


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_no_bundled_scenario_has_a_hint(path: Path) -> None:
    from heatsim.scenario import read_document

    document = {key: table for key, table in read_document(path).items() if key != "study"}
    assert parse(document, path).hints == ()


@pytest.mark.parametrize("command", ["plan", "run"])
def test_plan_and_run_print_hints(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hints(tmp_path, CELSIUS + 'boundaries.default = { type = "temperature", value = 20 }\n')
    output = ["--output", str(tmp_path / "out")]
    assert main([command, str(tmp_path / "plate.toml"), *output, "--device", "cpu"]) == 0
    assert capsys.readouterr().err.count("warning: boundaries.default.value = 20: 20 K is") == 1


def test_a_model_of_a_document_has_hints_too(tmp_path: Path) -> None:
    document = {
        "domain": {"size": [0.1] * 3, "cells": [2, 2, 2]},
        "material": {"conductivity": 1.0, "density": 1.0, "specific_heat": 1.0},
        "initial": {"temperature": 20},
        "boundaries": {"default": {"type": "temperature", "value": "30 °C"}},
        "time": {"end": 1.0},
    }
    assert len(parse(document, tmp_path / "a.toml").hints) == 1
