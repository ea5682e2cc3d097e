"""A study in °C: its tables, figures and terminal are in °C, its runs have the same temperatures as in K."""

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import runs
import study_text

import heatsim
from heatsim.scenario import Scenario
from heatsim.scenario.values.document_quantities import quantity_of
from heatsim.storage import run_tables
from heatsim.study.definition import read
from heatsim.study.report import answers
from heatsim.study.responses import label_of, parameters_of, responses_of

STUDY = """
[study]
method = "zip"
[study.parameters]
"boundaries.x_max.value" = [320, 340]
"domain.size.0" = ["4 cm", 0.05]
[[study.responses]]
name = "cooled"
probe = "middle"
statistic = "time_below"
threshold = "120 degC"
[[study.responses]]
name = "warmest"
probe = "middle"
statistic = "max"
"""


def results(at: Path, *overrides: str) -> "pyarrow.Table":
    path = study_text.write(at, STUDY)
    heatsim.Study.from_scenario(path, overrides, output=at / "out", workers=1).run()
    return pyarrow.parquet.read_table(at / "out" / "results.parquet")


def test_temperatures_are_in_the_unit_and_times_and_runs_are_the_same(tmp_path: Path) -> None:
    kelvins, celsius = results(tmp_path / "K"), results(tmp_path / "C", "output.temperature=degC")
    for name in ("final_min", "middle max", "middle final", "warmest"):
        shifted = np.round(np.array(kelvins.column(name)) - 273.15, 12)
        np.testing.assert_array_equal(celsius.column(name), shifted)
        assert kelvins.schema.field(name).metadata == {b"unit": b"K"}
        assert celsius.schema.field(name).metadata == {b"unit": b"degC"}
    assert celsius.column("boundaries.x_max.value").to_pylist() == [46.85, 66.85]
    assert kelvins.column("boundaries.x_max.value").to_pylist() == [320, 340]
    np.testing.assert_allclose(celsius.column("cooled"), kelvins.column("cooled"), rtol=1e-12)
    for row, expected in zip(*(runs.probe_rows(tmp_path / unit / "out/runs/0001") for unit in "CK"), strict=True):
        assert row == pytest.approx(expected, rel=1e-14)


def test_every_header_of_a_number_has_its_unit(tmp_path: Path) -> None:
    results(tmp_path, "output.temperature=degF")
    with open(tmp_path / "out" / "results.csv", encoding="utf-8", newline="") as lines:
        headers = dict(map(run_tables.split_header, next(csv.reader(lines))))
    assert {name for name, unit in headers.items() if not unit} == {"run", "status", "message", "folder"}
    assert headers["domain.size.0"] == "m"
    assert headers["boundaries.x_max.value"] == headers["middle max"] == "degF"
    assert (headers["cooled"], headers["energy_residual"]) == ("s", "J")


def test_labels_have_the_symbol(tmp_path: Path) -> None:
    results(tmp_path, "output.temperature=degC")
    definition, _ = read(study_text.write(tmp_path, STUDY), ["output.temperature=degC"])
    rows = heatsim.Study.from_scenario(
        study_text.write(tmp_path, STUDY), ["output.temperature=degC"], output=tmp_path / "out", workers=1
    ).run()
    assert [response.label for response in responses_of(definition, rows.to_pylist())] == ["cooled (s)", "warmest (°C)"]
    assert parameters_of(definition, rows.to_pylist())[0].values.tolist() == [46.85, 66.85]


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("boundaries.x_min.ambient", "K"),
        ("boundaries.x_min.coefficient", "W/(m^2 K)"),
        ("material.conductivity", "W/(m K)"),
        ("material.specific_heat.temperatures.1", "K"),
        ("patches.0.value", "W/m^2"),
        ("probes.0.point.2", "m"),
        ("time.end", "s"),
        ("title", None),
        ("patches.0.nothing", None),
    ],
)
def test_the_quantity_of_a_key(key: str, unit: str | None) -> None:
    document = {
        "title": "A",
        "material": {"conductivity": 4.0, "specific_heat": {"temperatures": [1, 2], "values": [3, 4]}},
        "boundaries": {"x_min": {"type": "convection", "coefficient": 5.0, "ambient": "20 degC"}},
        "patches": [{"type": "flux", "value": 3.0}],
        "probes": [{"point": [0.0, 0.0, 0.1]}],
        "time": {"end": 3.0},
    }
    quantity = quantity_of(key, document, Scenario)
    assert (None if quantity is None else quantity.unit) == unit


def test_a_study_written_in_celsius_shows_celsius_and_keeps_kelvins_in_tables(tmp_path: Path) -> None:
    path = study_text.write(
        tmp_path, STUDY.replace("[320, 340]", '["20 degC", "40 degC"]') + 'at_most = "380 K"\nat_least = "60 degC"\n'
    )
    study = heatsim.Study.from_scenario(path, ["initial.temperature='150 degC'"], output=tmp_path / "out", workers=1)
    table, definition = study.run(), read(path, ["initial.temperature='150 degC'"])[0]
    rows = table.to_pylist()
    assert table.schema.field("warmest").metadata == {b"unit": b"K"}
    shown = responses_of(definition, rows)[1]
    assert shown.label == "warmest (°C)"
    np.testing.assert_allclose(shown.values, np.array(table.column("warmest")) - 273.15, atol=1e-9)
    assert parameters_of(definition, rows)[0].values.tolist() == [20.0, 40.0]
    assert dict(answers(tmp_path / "out", definition, rows))["warmest"].endswith("limit ≤ 106.85 °C and ≥ 60 °C")
    assert label_of(definition, "middle") == "Temperature (°C)"
