"""Responses from a run's curves, and the table in its two formats."""

import numpy as np
import pytest

from heatsim.study.model import Response
from heatsim.study.responses import rank_correlation
from heatsim.study.results import cell, evaluate

TIMES = np.array([0.0, 1.0, 3.0, 4.0])
VALUES = np.array([300.0, 320.0, 360.0, 340.0])


@pytest.mark.parametrize(
    ("statistic", "threshold", "expected"),
    [
        ("final", None, 340.0),
        ("max", None, 360.0),
        ("min", None, 300.0),
        # Trapezoids of 310, 2 · 340 and 350 over 4 s.
        ("mean", None, 335.0),
        ("time_above", 300.0, 0.0),
        ("time_above", 330.0, 1.5),
        ("time_above", 360.0, 3.0),
        ("time_above", 361.0, None),
        ("time_below", 310.0, 0.0),
        ("time_below", 299.0, None),
    ],
)
def test_statistics(statistic: str, threshold: float | None, expected: float | None) -> None:
    assert evaluate(Response(name="r", probe="p", statistic=statistic, threshold=threshold), TIMES, VALUES) == expected


def test_the_first_time_below_is_between_rows() -> None:
    assert (
        evaluate(Response(name="r", probe="p", statistic="time_below", threshold=350.0), TIMES[2:], VALUES[2:]) == 3.5
    )


def test_one_row_is_its_own_mean() -> None:
    assert evaluate(Response(name="r", probe="p", statistic="mean"), TIMES[:1], VALUES[:1]) == 300.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (2.5, 2.5),
        ("5 mm", 0.005),
        ("20 degC", 293.15),
        ("7.85 g/cm^3", 7850.0),
        ("500 W/(m^2 K)", 500.0),
        ("300 + t", "300 + t"),
        ("silicon", "silicon"),
        (True, "true"),
        ([8, 4, 1], "[8, 4, 1]"),
    ],
)
def test_parameters_stand_in_si_in_the_table(value: object, expected: object) -> None:
    assert cell(value) == expected


def test_ranks_follow_order_and_not_size() -> None:
    x = np.arange(10.0)
    assert rank_correlation(x, np.exp(x)) == pytest.approx(1.0)
    assert rank_correlation(x, -(x**3)) == pytest.approx(-1.0)
    assert rank_correlation(x, np.ones(10)) is None
    assert rank_correlation(x[:4], x[:4]) is None
    # Ties share their mean rank: 1 − 6·Σd²/(n³ − n) with d = ±½ for each would be near it.
    pairs = np.repeat(np.arange(5.0), 2)
    assert rank_correlation(x, pairs) == pytest.approx(np.sqrt(80.0 / 82.5))
    with_gap = np.where(x == 3.0, np.nan, x)
    assert rank_correlation(with_gap, x) == pytest.approx(1.0)
