"""The date of the start: dates in CSV files count from it."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim.errors import ScenarioError
from heatsim.scenario import Scenario, load
from heatsim.scenario.documents.resolved import write_resolved
from heatsim.scenario.values.dates import counted_from
from heatsim.scenario.values.timefunction import Table

FACE = (
    "boundaries.x_max={ type='convection', coefficient=5.0, ambient={ file='air.csv', time='when', column='T', "
    "unit='degC'%s } }"
)
DAY = 86400.0


def weather(folder: Path, rows: list[tuple[str, float]]) -> Path:
    """A scenario beside a file with temperatures in °C at some dates."""
    (folder / "air.csv").write_text("when,T\n" + "".join(f"{date},{T}\n" for date, T in rows))
    return runs.write(folder)


def ambient(scenario: Scenario) -> Table:
    """The ambient temperature over time."""
    found = scenario.boundaries.x_max.ambient  # type: ignore[union-attr]
    assert isinstance(found, Table)
    return found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("repeat", [False, True])
def test_a_shifted_table_has_the_values_of_later_times(seed: int, repeat: bool) -> None:
    """Between rows, at rows and at jumps, also in later periods; against the table itself."""
    random = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(random.integers(0, 3, 12))]).astype(float)
    times = times[np.append([True, True], (times[2:] > times[:-2]))]
    times = np.append(times, times[-1] + 1.0)
    values = random.integers(0, 4, len(times)).astype(float)
    start = float(random.choice([-3.0, 0.0, random.random() * times[-1], random.choice(times[:-1])]))
    table = Table(times, values, repeat)
    shifted = Table(*counted_from(times, values, repeat, start), repeat)
    assert (np.diff(shifted.times) >= 0.0).all()
    assert (np.asarray(shifted.times)[2:] > np.asarray(shifted.times)[:-2]).all()
    assert len(shifted.times) > 1
    assert shifted.times[0] == (0.0 if repeat else max(0.0, -start))
    if repeat:
        assert shifted.times[-1] == table.times[-1]
    moments = random.random(200) * 3.0 * times[-1] if repeat else random.random(200) * times[-1] + max(-start, 0.0)
    expected = table.at(np.mod(moments + start, times[-1])) if repeat else table.at(moments + start)
    np.testing.assert_allclose(shifted.at(moments), expected, atol=1e-9)


def test_dates_count_from_the_start_and_the_resolved_scenario_is_equal(tmp_path: Path) -> None:
    path = weather(tmp_path, [("2024-01-30", 0.0), ("2024-02-01", 20.0), ("2024-02-03T12:00", 10.0)])
    scenario = load(path, [FACE % "", "time.start=2024-01-31"])
    assert scenario.time.start == "2024-01-31T00:00:00"
    np.testing.assert_allclose(ambient(scenario).times, [0.0, DAY, 3.5 * DAY])
    np.testing.assert_allclose(ambient(scenario).values, [283.15, 293.15, 283.15])
    write_resolved(scenario, tmp_path / "out")
    assert load(tmp_path / "out" / "scenario.toml") == scenario
    assert ambient(load(path, [FACE % ""])).times == (0.0, 2 * DAY, 4.5 * DAY)


@pytest.mark.parametrize(
    "start", ["2024-01-31T06:30", "'2024-01-31 06:30'", '"2024-01-31T06:30"', "2024-01-31T06:30:00"]
)
def test_a_start_is_a_text_or_a_date_of_toml(start: str, tmp_path: Path) -> None:
    assert load(runs.write(tmp_path), [f"time.start={start}"]).time.start_date == datetime(2024, 1, 31, 6, 30)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("2024-02-03", "reach from 2024-01-30T00:00:00 to 2024-02-03T00:00:00, and the run starts at 2024-02-03T00"),
        ("2024-01-31T00:00+01:00", "time.start has a time zone, the dates not: write both with it"),
        ("tomorrow", 'got "tomorrow"; a date is expected, as in start = "2024-01-31T00:00"'),
        ("2024", "got 2024; a date is expected"),
        ("9999-12-31T23:59:59", "the run would end after the year 9999"),
    ],
)
def test_starts_that_fit_nothing_are_refused(start: str, message: str, tmp_path: Path) -> None:
    path = weather(tmp_path, [("2024-01-30", 0.0), ("2024-02-03", 20.0)])
    with pytest.raises(ScenarioError) as caught:
        load(path, [FACE % "", f"time.start={start}"])
    assert message in str(caught.value)


def test_a_repeated_year_begins_at_the_day_of_the_start(tmp_path: Path) -> None:
    first = datetime(2023, 1, 1)
    rows = [((first + timedelta(days=day)).isoformat(), float(day % 365)) for day in range(366)]
    scenario = load(weather(tmp_path, rows), [FACE % ", repeat=true", "time.start=2024-10-01T12:00", "time.end=10"])
    # 2024-10-01 is 639 days after 2023-01-01, and 639 = 365 + 274.
    assert ambient(scenario).at(np.array([0.0]))[0] == pytest.approx(273.15 + 274.5)


def test_the_hint_on_data_that_end_early_counts_from_the_start(tmp_path: Path) -> None:
    path = weather(tmp_path, [("2024-01-30", 0.0), ("2024-02-02", 20.0)])
    (hint,) = load(path, [FACE % "", "time.start=2024-01-31", "time.method=implicit", "time.end=10 days"]).hints
    assert "end at t = 172800 s (2 days), and the run at 864000 s (10 days)" in hint
