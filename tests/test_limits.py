"""Limits of probes and responses: whether they are kept, when they are first passed, and who says so."""

import io
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from heatsim.cli import main
from heatsim.errors import ScenarioError
from heatsim.limits import AT_MOST, LIMITS, Limits, LimitVerdict, judge
from heatsim.render.curves.curves import limit_lines
from heatsim.report import page
from heatsim.report.answer import limit_table
from heatsim.report.terminal import TerminalTable
from heatsim.run.resume import settings
from heatsim.scenario import Scenario, load
from heatsim.temperature_units import CELSIUS

TIMES = np.array([0.0, 1.0, 3.0, 4.0])
LIMITED = ['probes.0.at_most="40 degC"', "probes.1.at_most=400.0", "probes.1.at_least=250.0"]


def read(tmp_path: Path, *overrides: str) -> Scenario:
    return load(runs.write(tmp_path), overrides)


@given(st.lists(st.integers(-9, 9), min_size=2, max_size=8), st.integers(-9, 9), st.sampled_from(LIMITS))
def test_the_first_time_beyond_a_limit_is_that_of_the_straight_lines(rows: list[int], limit: int, key: str) -> None:
    values, times = np.array(rows, dtype=float), np.arange(len(rows), dtype=float)
    (found,) = judge({"p": Limits(**{key: float(limit)})}, {"p": {("p", "K"): values}}, times)
    fine = np.linspace(0.0, times[-1], 997 * (len(rows) - 1) + 1)
    beyond = (np.interp(fine, times, values) - limit) * (1.0 if key == "at_most" else -1.0) > 1e-9
    assert found.kept == (not beyond.any())
    assert found.margin == (limit - max(rows) if key == "at_most" else min(rows) - limit)
    if found.passed_at is not None:
        assert found.passed_at <= fine[beyond.argmax()] <= found.passed_at + 2.0 / 997


@pytest.mark.parametrize(("unit", "least", "kept"), [("m", 0.003, True), ("m", 0.0041, False), ("s", 0.004, True)])
def test_an_extent_has_to_reach_its_least_value_once(unit: str, least: float, kept: bool) -> None:
    """It is 0 before the pool melts and after it has frozen."""
    pool = {"pool": {("pool", unit): np.array([0.0, 0.001, 0.004, 0.0])}}
    (found,) = judge({"pool": Limits(at_least=least)}, pool, TIMES)
    assert (found.kept, found.value, found.time, found.passed_at) == (kept, 0.004, 3.0, None)
    (most,) = judge({"pool": Limits(at_most=0.001)}, pool, TIMES)
    assert (most.kept, most.value, most.passed_at) == (False, 0.004, 1.0)
    table = limit_table([found], {"time": 4.0}, CELSIUS)
    assert table is not None
    assert ("not reached" in table.rows[0]) == (not kept)


def test_a_line_is_judged_at_its_worst_point_and_passes_with_its_first() -> None:
    late, early = np.array([1.0, 1.0, 1.0, 9.0]), np.array([1.0, 5.0, np.nan, 1.0])
    curves = {"line": {("line[0]", "K"): late, ("line[1]", "K"): early}, "none": {("none", "s"): np.full(4, np.nan)}}
    (found,) = judge({"line": Limits(4.0), "none": Limits(1.0)}, curves, TIMES)
    assert (found.value, found.time, found.passed_at, found.passed_between) == (9.0, 4.0, 0.75, (0.0, 1.0))
    table = limit_table([found], {"time": 4.0}, CELSIUS)
    assert table is not None
    assert table.rows[0][-1] == "0 s to 1 s"  # rows are a quarter of the run apart


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (['probes.0.at_most="85 mm"'], '"mm" cannot be converted to K'),
        (['probes.0.at_most="warm"'], "a temperature is expected"),
        (["probes.0.at_most=true"], "a temperature is expected"),
        (["probes.0.at_least=-1"], "at least 0 K"),
        (['probes.0.at_least="90 degC"', "probes.0.at_most=350"], 'got "90 degC", above at_most = 350; no value keeps'),
        (['probes.0.statistic="time_above"', "probes.0.threshold=300", 'probes.0.at_most="5 K"'], "converted to s"),
    ],
)
def test_limits_that_say_nothing_are_refused(tmp_path: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(tmp_path, *overrides)
    assert re.search(rf"probes\.0\.at_(most|least): .*{re.escape(message)}", str(refused.value))
    assert len(refused.value.mistakes) == 1


def test_equal_limits_and_other_units_are_allowed_and_do_not_change_a_run(tmp_path: Path) -> None:
    free = read(tmp_path)
    limited = read(tmp_path, 'probes.0.at_most="85 degC"', 'probes.0.at_least="185 degF"')
    assert limited.probes[0].limits.given == pytest.approx({"at_most": 358.15, "at_least": 358.15})
    assert settings(limited) == settings(free)
    length = ['probes.0={ name = "hot", statistic = "extent_x", threshold = 330, at_most = "5 mm" }']
    assert read(tmp_path, *length).probes[0].limits.at_most == 0.005


def test_a_run_says_which_limits_it_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    sets = [f"--set={each}" for each in [*LIMITED, "output.temperature=degC"]]
    assert main(["run", str(runs.write(tmp_path)), "--output", str(folder), *sets]) == 0
    failed, *kept = runs.results(folder)["summary"]["limits"]
    assert [each["kept"] for each in (failed, *kept)] == [False, True, True]
    inside = np.array([row["inside"] for row in runs.probe_rows(folder)])
    assert failed["value"] == pytest.approx(inside.max(), abs=1e-9)
    assert failed["passed_at"] == 0.0
    shown = " ".join(capsys.readouterr().out.split())
    above = f"{failed['value'] - 313.15:.3g}"
    assert "Limits: 1 of 3 not kept" in shown
    assert re.search(rf"inside FAIL \S+ °C ≤ 40 °C {re.escape(above)} K above 0 s", shown)
    assert "warm, side pass" in shown
    text = page.build(folder)
    assert '<li class="bad">1 of 3 limits not kept</li>' in text
    assert text.count('class="limit"') == 2  # 400 K is far from the curves
    assert '<tr class="bad"><td>inside</td><td>FAIL</td>' in text


def test_limits_far_from_all_curves_are_not_drawn() -> None:
    curves = {"a": np.array([300.0, 320.0]), "b": np.array([310.0, 310.0])}
    limits = {"a": Limits(339.0, 200.0), "c": Limits(310.0)}
    assert [line[:2] for line in limit_lines(curves, limits, "{:.0f} K".format)] == [("a", "≤ 339 K")]


def test_the_table_of_limits_fits_80_columns_with_dates_and_errors() -> None:
    """Names are broken between words first."""
    verdict = LimitVerdict("junction of the upper transistor", "K", AT_MOST, 358.15, 359.4213, 6e5, 5e5)
    summary = {
        "time": 6e5,
        "error_in_space": {"values": [{"name": verdict.probe, "error": 0.35, "unit": "K"}]},
    }
    table = limit_table([verdict], summary, CELSIUS, datetime(2024, 1, 31, 12))
    assert table is not None
    assert table.rows[0][-1] == "2024-02-06 06:53"
    console = Console(file=io.StringIO(), width=80)
    console.print(TerminalTable(table))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert sum("junction" in line for line in lines) == 1
    (line,) = (line for line in lines if "FAIL" in line)
    for text in (*table.rows[0][1:], "junction"):
        assert text in line
