"""Limits of responses: which runs keep them, which is best, and names of linked parameters."""

import csv
import io
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import runs
import study_text
from rich.console import Console

import heatsim
from heatsim.errors import ScenarioError
from heatsim.limits import Limits
from heatsim.study.columns import FAIL, OPEN, PASS
from heatsim.study.definition import read
from heatsim.study.figures import draw
from heatsim.study.model import Response
from heatsim.study.page import build
from heatsim.study.responses import ResponseValues
from heatsim.study.results import limit_state

STUDY = """
[study]
method = "zip"
[[study.linked]]
name = "cold end"
keys = ["boundaries.x_max.value"]
values = ["20 degC", "60 degC", "90 degC"]
[[study.responses]]
name = "last"
probe = "middle"
statistic = "final"
at_most = "100 degC"
at_least = 320.0
[[study.responses]]
name = "cooled"
probe = "middle"
statistic = "time_below"
threshold = "110 degC"
at_most = "5 s"
"""


def test_a_study_names_the_runs_that_keep_limits_and_the_best(tmp_path: Path) -> None:
    path = study_text.write(tmp_path, STUDY)
    study = heatsim.Study.from_scenario(path, output=tmp_path / "out", workers=1)
    study.run()
    with open(tmp_path / "out/results.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    last, times = ([float(row[name] or "inf") for row in rows] for name in ("last (K)", "cooled (s)"))
    kept = [320.0 <= T <= 373.15 and time <= 5.0 for T, time in zip(last, times, strict=True)]
    assert [row["limits"] == PASS for row in rows] == kept
    assert sorted(set(kept)) == [False, True]
    console = Console(file=io.StringIO(), width=200)
    console.print(study.summary())
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert f"{sum(kept)} of 3 runs keep" in text
    best = re.search(r"best +run (\d): cold end", text)
    assert best is not None
    assert kept[int(best[1]) - 1]
    assert "limit ≤ 100 °C and ≥ 46.85 °C" in text
    page = build(tmp_path / "out", study.definition, study._rows)
    assert page.count('<tr class="bad">') == kept.count(False)
    assert "cold end" in page
    draw(tmp_path / "out", study.definition, study._rows, "svg")
    pictures = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "out/figures").glob("*.svg")}
    assert {name for name, text in pictures.items() if "≤ 100 °C" in text} == {"response_1_last"}


@pytest.mark.parametrize(
    ("value", "end", "limits", "state"),
    [
        (4.0, 9.0, {"at_most": "5 s"}, PASS),
        (5.5, 9.0, {"at_most": 5}, FAIL),
        # A run that ends before its limit says nothing.
        (None, 4.0, {"at_most": 5}, OPEN),
        (None, 9.0, {"at_most": 5}, FAIL),
        (None, 9.0, {"at_least": 5}, PASS),
        (None, 4.0, {"at_least": "5 s"}, OPEN),
        (None, 9.0, {"at_least": 1, "at_most": 5}, FAIL),
        (None, 1.0, {}, PASS),
    ],
)
def test_a_time_that_was_not_reached(value: float | None, end: float, limits: dict[str, object], state: str) -> None:
    response = Response(name="r", probe="p", statistic="time_below", threshold=300.0, **limits)  # type: ignore[arg-type]
    assert limit_state(response, value, end) == state


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('at_most = "5 s"', 'at_most = "5 K"', "study.responses.1.at_most: .* cannot be converted to s"),
        ('at_most = "100 degC"', 'at_most = "100 W"', "study.responses.0.at_most: .* cannot be converted to K"),
        ("at_least = 320.0", "at_least = 400.0", "study.responses.0.at_least: got 400.0, above at_most"),
    ],
)
def test_limits_of_other_units_and_contradictions_are_refused(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    assert before in STUDY
    with pytest.raises(ScenarioError, match=message):
        read(study_text.write(tmp_path, STUDY.replace(before, after)))


def test_limits_of_probes_count_for_runs(tmp_path: Path) -> None:
    """Curves show them, over dates if the scenario has a date of its start."""
    plain = 'method = "grid"\n[study.parameters]\n"boundaries.x_max.value" = [300.0, 360.0]\n'
    text = f"[study]\n{plain}"
    base = study_text.BASE.replace("[[probes]]", '[[probes]]\nat_least = "66.85 degC"')
    path = study_text.write(tmp_path, text, base.replace("[time]", "[time]\nstart = 2024-01-31"))
    study = heatsim.Study.from_scenario(path, output=tmp_path / "out", workers=1)
    rows = study.run().to_pylist()
    lowest = [min(row["middle"] for row in runs.probe_rows(tmp_path / f"out/runs/000{number}")) for number in (1, 2)]
    assert [row["limits"] for row in rows] == [PASS if T >= 340.0 else FAIL for T in lowest]
    assert study.definition.start == datetime(2024, 1, 31)
    page = build(tmp_path / "out", study.definition, study._rows)
    assert re.search(r'class="limit".*≥ 66.85 °C</text>', page)
    assert "Time on 2024-01-31</text>" in page


def test_values_beyond_limits_are_those_whose_margin_is_negative() -> None:
    """A time that was not reached is not beyond. Limits far from all values are not drawn."""
    values = np.array([40.0, 90.0, np.nan, 85.0])
    of = ResponseValues("hottest", "°C", values, Limits(at_most=85.0, at_least=-500.0))
    assert of.beyond.tolist() == [False, True, False, False]
    assert of.marks == (("", "≤ 85 °C", 85.0),)
