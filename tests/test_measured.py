"""Measured values of probes: the deviations of a run, and where they are shown."""

import re
from pathlib import Path

import numpy as np
import pytest
import runs

import heatsim
from heatsim.cli import main
from heatsim.errors import ScenarioError
from heatsim.opened.run import Run
from heatsim.opened.study import StudyResults
from heatsim.report import page
from heatsim.report.answer import measured_table
from heatsim.run.error.comparison import compare
from heatsim.scenario import Scenario, load
from heatsim.scenario.documents.resolved import write_resolved
from heatsim.storage.run_tables import RunTable
from heatsim.storage.summary_file import read_summary
from heatsim.temperature_units import FAHRENHEIT

LOG = "time;hot\n2024-01-31 05:59:58;20,5\n2024-01-31 06:00:01;47,5\n2024-01-31 06:00:07;61\n2024-01-31 06:01:00;99\n"
COLUMNS = 'file="log.csv", time="time", column="hot", unit="degC", delimiter=";", decimal=","'
ROWS = "output.probe_every=0.5"
START = "time.start=2024-01-31T06:00"


def read(tmp_path: Path, *overrides: str, log: str = LOG) -> Scenario:
    (tmp_path / "log.csv").write_text(log, encoding="utf-8")
    return load(runs.write(tmp_path), [ROWS, *overrides])


def test_deviations_count_at_the_measured_times_within_the_run(tmp_path: Path) -> None:
    scenario = read(tmp_path, f"probes.0.measured={{ {COLUMNS} }}", START)
    table = RunTable(np.array([0.0, 2.0, 10.0]), {("inside", "K"): np.array([300.0, 320.0, 400.0])})
    (found,) = compare(scenario, table)
    # Computed: 310 K at 1 s and 370 K at 7 s; measured: 320.65 and 334.15 K.
    differences = np.array([310.0 - 320.65, 370.0 - 334.15])
    assert found["times"] == [1.0, 7.0]
    assert found["values"] == pytest.approx([320.65, 334.15])
    assert found["rms"] == pytest.approx(np.sqrt(np.mean(differences**2)))
    assert found["mean"] == pytest.approx(differences.mean())
    assert (found["largest"], found["time"]) == (pytest.approx(differences[1]), 7.0)
    assert (found["compared"], found["measured"]) == (2, 4)
    shown = measured_table({"measured": [found], "time": 10.0}, FAHRENHEIT)
    assert shown is not None
    assert shown.rows[0] == ("inside", "47.6 °F", "22.7 °F", "64.5 °F", "7 s", "2 of 4")


def test_a_run_that_ends_before_the_first_measured_time_has_no_deviation(tmp_path: Path) -> None:
    scenario = read(tmp_path, "probes.0.measured={ times=[8, 9], values=[300, 300] }")
    assert compare(scenario, RunTable(np.array([0.0, 5.0]), {("inside", "K"): np.full(2, 300.0)})) == []
    (found,) = compare(scenario, RunTable(np.array([0.0, 8.0]), {("inside", "K"): np.array([300.0, 303.0])}))
    assert (found["rms"], found["compared"]) == (3.0, 1)


@pytest.mark.parametrize(
    ("every", "times", "refused"),
    [("10", [0, 10], False), ("10", [0, 4, 10], True), ("2.5", [2.5, 7.5, 10], False), ("2.5", [2.4], True)],
)
def test_measured_times_need_rows_near_them(tmp_path: Path, every: str, times: list[float], refused: bool) -> None:
    measured = f"probes.0.measured={{ times={[-1, *times]}, values={[300] * (1 + len(times))} }}"
    if not refused:
        read(tmp_path, measured, f"output.probe_every={every}")
        return
    with pytest.raises(
        ScenarioError, match=r"between rows of probes.csv, which are .* apart.*probe_every to 0.5 s or less"
    ):
        read(tmp_path, measured, f"output.probe_every={every}")


def test_deviations_say_if_lines_between_rows_are_too_far_off(tmp_path: Path) -> None:
    """The probe is t², with rows at 0, 1, 3, 4 s: twice as long lines are off by 2 K at both inner rows."""
    rows = np.array([0.0, 1.0, 3.0, 4.0])
    table = RunTable(rows, {("inside", "K"): 300.0 + rows**2})
    for times, off in (([0, 1, 4], 0.0), ([0.5, 3], 0.5), ([1, 2], 0.5)):
        values = [301.0 + time**2 for time in times]
        (found,) = compare(read(tmp_path, f"probes.0.measured={{ times={times}, values={values} }}"), table)
        assert found["lines"] == pytest.approx(off)
        shown = measured_table({"measured": [found], "time": 10.0}, FAHRENHEIT)
        assert shown is not None
        assert ("Rows are too far apart for inside" in shown.remark) == (off > 0.0)


@pytest.mark.parametrize("measured", [COLUMNS, 'times=["0 s", 5], values=["20 degC", 300]'])
def test_the_resolved_scenario_has_the_same_measured_values(tmp_path: Path, measured: str) -> None:
    scenario = read(tmp_path, f"probes.0.measured={{ {measured} }}", START)
    write_resolved(scenario, tmp_path / "out")
    assert load(tmp_path / "out/scenario.toml") == scenario


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ("3", r"measured: got 3; \{ file = .* is expected"),
        (
            "{ times=[20, 30], values=[300, 300] }",
            r"times lie from t = 20 s to 30 s, none of them in the run from 0 to 10",
        ),
        ("{ times=[0, 5], values=[300] }", r"measured"),
        ("{ times=[0, 5], values=[300, -1] }", r"values\.1: got -1"),
        ("{ times=[0, 5], values=[300, 300], repeat=true }", r"measured\.repeat: got true; measured values do not"),
        ('{ file="log.csv", time="time", column="cold", delimiter=";" }', r"measured\.column: .*cold"),
        (f"{{ {COLUMNS.replace('degC', 'mm')} }}", r"measured\.unit: got \"mm\""),
        (f"{{ {COLUMNS} }}", r"log\.csv|times lie from"),
    ],
)
def test_values_that_cannot_be_compared_are_refused(tmp_path: Path, measured: str, message: str) -> None:
    start = ["time.start=2024-02-01"] if COLUMNS in measured else []
    with pytest.raises(ScenarioError) as refused:
        read(tmp_path, f"probes.0.measured={measured}", *start)
    assert re.search(rf"probes\.0\..*{message}", str(refused.value))
    assert len(refused.value.mistakes) == 1


LINE = "probes.0.line={ from=[0, 0, 0], to=[0.07, 0, 0], count=3 }"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("time.start=2024-01-31T06:00+01:00", "time.start has a time zone, the dates not"),
        ("time.method=steady", "no time passes"),
        (LINE, "measured values of a line"),
    ],
)
def test_measured_values_need_a_run_and_one_number(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        read(tmp_path, f"probes.0.measured={{ {COLUMNS} }}", override)


def test_a_length_is_compared_as_a_length(tmp_path: Path) -> None:
    probe = '{ name="hot", statistic="extent_x", threshold=300, measured={ times=[0, 5], values=["3 mm", "1 cm"] } }'
    (found,) = compare(
        read(tmp_path, f"probes=[{probe}]"), RunTable(np.array([0.0, 10.0]), {("hot", "m"): np.array([0.003, 0.023])})
    )
    assert (found["unit"], found["rms"]) == ("m", pytest.approx(0.003 / np.sqrt(2.0)))
    shown = measured_table({"measured": [found], "time": 10.0}, FAHRENHEIT)
    assert shown is not None
    assert shown.rows[0][:2] == ("hot", "2.121 mm")


def test_a_run_shows_its_deviations(tmp_path: Path) -> None:
    scenario = read(tmp_path, f"probes.0.measured={{ {COLUMNS} }}", START)
    heatsim.Simulation.from_model(scenario, tmp_path / "out").run()
    (found,) = read_summary(tmp_path / "out")["measured"]
    probes = Run(tmp_path / "out").probes["inside (K)"]
    computed = np.interp([1.0, 7.0], probes.index, probes)
    assert found["rms"] == pytest.approx(np.sqrt(np.mean((computed - [320.65, 334.15]) ** 2)))
    (picture,) = map(Path, Run(tmp_path / "out").plot("probes"))
    html = page.build(tmp_path / "out")
    assert "Probes; circles: measured" in html
    assert "computed − measured" in html
    places = re.findall(r'<circle cx="([\d.]+)" cy="[\d.]+" r="3"', html)
    assert [float(place) for place in places] == pytest.approx([84 + 796 * 0.1, 84 + 796 * 0.7], abs=0.06)
    heatsim.Simulation.from_model(read(tmp_path, START), tmp_path / "none").run()
    (without,) = map(Path, Run(tmp_path / "none").plot("probes"))
    assert picture.read_bytes() != without.read_bytes()
    assert "circles" not in page.build(tmp_path / "none")


def test_a_study_has_a_column_of_deviations(tmp_path: Path) -> None:
    read(tmp_path)
    document = runs.TEXT + "\n[study]\nmethod = 'grid'\n[study.parameters]\n'material.density' = [1000.0, 2000.0]\n"
    path = tmp_path / "study.toml"
    path.write_text(
        document.replace("probe_every = 1.25", 'probe_every = 0.5\ntable_temperature = "degC"')
        .replace('name = "inside"', f'name = "inside"\nmeasured = {{ {COLUMNS} }}')
        .replace("[time]", '[time]\nstart = "2024-01-31T06:00"'),
        encoding="utf-8",
    )
    assert main(["study", str(path), "--output", str(tmp_path / "study")]) == 0
    study = StudyResults(tmp_path / "study")
    for number in (1, 2):
        (found,) = study.run(number).summary["measured"]
        assert study.results["inside rms (K)"][number] == found["rms"] > 0.0
