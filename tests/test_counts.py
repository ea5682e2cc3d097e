"""Numbers of things and time spans in texts, with units that suit them."""

from collections.abc import Callable, Sequence
from math import exp

import pytest

from heatsim.amounts import ENERGIES, SPEEDS, TIMES, choose_unit, format_amount, format_time
from heatsim.counts import TimeLeft, counted, duration, plain
from heatsim.study import progress
from heatsim.study.progress import StudyProgress


@pytest.mark.parametrize(
    ("count", "plural", "expected"),
    [(0, "", "0 rows"), (1, "", "1 row"), (2000, "", "2,000 rows"), (1, "entries", "1 row"), (2, "lines", "2 lines")],
)
def test_the_noun_after_one_is_singular(count: int, plural: str, expected: str) -> None:
    assert counted(count, "row", plural) == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "less than 1 s"),
        (41.0, "about 41 s"),
        (2470.0, "about 41 min"),
        (9000.0, "about 2.5 h"),
        (1e6, "about 12 days"),
        (9.5e9, "about 301 years"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (150.0, 2, "150"),
        (-12345.0, 2, "−12000"),
        (0.8064, 4, "0.8064"),
        (0.00081, 2, "0.00081"),
        (9.996, 3, "10"),
        (1.2e-7, 2, "1.2e-07"),
        (3e9, 2, "3e+09"),
        (0.0, 3, "0"),
        (float("inf"), 3, "inf"),
    ],
)
def test_a_number_has_an_exponent_only_if_it_has_many_zeros(value: float, digits: int, text: str) -> None:
    assert plain(value, digits) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5e-12, "2.5 ps"),
        (0.8064, "806.4 ms"),
        (150.0, "150 s"),
        (86400.0 * 365.0, "365 days"),
        (2.192e10 * 86400.0, "60.01 Myr"),
        (5e4 * 365.25 * 86400.0, "50 kyr"),
        (30.0 * 365.25 * 86400.0, "30 years"),
        (0.0, "0 s"),
    ],
)
def test_a_time_has_a_unit_from_picoseconds_to_millions_of_years(seconds: float, text: str) -> None:
    assert format_time(seconds, choose_unit(TIMES, seconds)) == text


def test_amounts_have_no_exponents_either() -> None:
    assert format_amount(-150.0, ENERGIES, 2) == "−150 J"
    assert format_amount(0.0013, ENERGIES, 2) == "1.3 mJ"
    assert format_amount(-5e-65, ENERGIES, 2) == "0 J"


@pytest.mark.parametrize(
    ("speed", "text"),
    [(0.0, "0 cells/s"), (8.21e4, "82.1 kCells/s"), (2.149e6, "2.15 MCells/s"), (1.35e12, "1350 GCells/s")],
)
def test_speeds_have_no_exponents(speed: float, text: str) -> None:
    assert format_amount(speed, SPEEDS) == text


def told(part: Callable[[float], float], times: Sequence[float]) -> list[str]:
    left = TimeLeft(part(0.0), 0.0)
    return [left.text(part(now), now) for now in times]


def test_the_time_left_of_steady_work_is_told_from_the_second_line_on() -> None:
    texts = told(lambda now: now / 151.0, range(5, 151, 5))
    assert texts[0] == ""
    assert texts[1:4] == ["about 2.3 min left", "about 2.3 min left", "about 2.2 min left"]
    assert all(texts[1:])


def test_the_time_left_of_work_that_gets_faster_is_not_told() -> None:
    """Steps grow by a factor of e each 10.6 s: after 5 s, the mean speed would promise 55 days for a run of 151 s."""

    def part(now: float) -> float:
        return exp((now - 151.0) / 10.6)

    assert duration(5.0 / part(5.0)) == "about 55 days"
    assert set(told(part, range(5, 130, 5))) == {""}


def test_the_time_left_is_told_again_after_a_slow_start() -> None:
    """Compiling takes 20 s; then the work takes 80 s."""
    texts = told(lambda now: max(now - 20.0, 0.0) / 80.0, range(5, 100, 5))
    assert texts[:4] == ["", "", "", ""]
    assert texts[10] == "about 45 s left"


def test_a_study_counts_running_runs_only_if_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = StudyProgress({1: 1.0, 2: 1.0}, {1: 10, 2: 10}, 2, shown=False)
    assert shown._describe() == "2 of 4 runs ended"
    texts = []
    for step in range(1, 10):
        now[0] = 5.0 * step
        shown.advance(1, step)
        texts.append(shown._describe())
    assert texts[0] == "2 of 4 runs ended, 1 running"
    assert texts[4] == "2 of 4 runs ended, 1 running, about 75 s left"
