"""Dates in pictures: on axes, in titles and in legends."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
import runs

import heatsim
from heatsim.amounts import TIMES, choose_unit
from heatsim.render.page.dates import label_times, moment
from heatsim.report.page import build

START = datetime(2024, 1, 31, 22, 0)


@pytest.mark.parametrize(
    ("time", "last", "start", "text"),
    [
        (9000.0, 36000.0, None, "2.5 h"),
        (9000.0, 36000.0, START, "2024-02-01 00:30"),
        (90.5, 100.0, datetime(2024, 1, 1), "2024-01-01 00:01:30"),
    ],
)
def test_a_moment_is_a_date_if_the_start_has_one(time: float, last: float, start: datetime | None, text: str) -> None:
    assert moment(time, last, start) == text


@pytest.mark.parametrize("days", [0.001, 0.3, 7.0, 400.0, 20_000.0])
def test_ticks_of_dates_lie_within_the_times_at_round_dates(days: float) -> None:
    from matplotlib.figure import Figure

    end = 86400.0 * days
    unit, axis = choose_unit(TIMES, end), Figure().add_subplot().xaxis
    label_times(axis, unit, (0.0, end), START)
    places = axis.get_ticklocs()
    assert 2 <= len(places) <= 9
    for place in places:
        assert 0.0 <= place * unit.size <= end * (1.0 + 1e-9)
        date = START + timedelta(seconds=place * unit.size)
        assert abs(date.microsecond % 1_000_000 - 500_000) > 499_000
        assert days < 5.0 or abs((date - timedelta(hours=12)).hour - 12) in (0, 12)
    assert all(text.get_text() for text in axis.get_ticklabels())
    last = str((START + timedelta(days=days)).date())
    within = f"Time on {last}" if last == "2024-01-31" else f"Date, from 2024-01-31 to {last}"
    assert axis.get_label_text() == within


def test_times_without_a_date_have_their_unit() -> None:
    from matplotlib.figure import Figure

    axis = Figure().add_subplot().yaxis
    label_times(axis, choose_unit(TIMES, 72000.0), (0.0, 72000.0), None)
    assert axis.get_label_text() == "Time (h)"


def test_charts_of_reports_have_dates(tmp_path: Path) -> None:
    overrides = ["time.start=2024-01-31T22:00"]
    simulation = heatsim.Simulation.from_scenario(runs.write(tmp_path), overrides, output=tmp_path / "out")
    simulation.run()
    text = build(tmp_path / "out")
    assert "Time on 2024-01-31" in text
    assert "Time (s)" not in text
    assert '"start":"2024-01-31T22:00:00Z"' in text.replace(": ", ":")
