"""The course of an expression: where it jumps, its nodes, extremes and means, against values at many times."""

from math import erf, pi
from time import perf_counter

import numpy as np
import pytest
from random_expressions import random_expression

from heatsim.scenario.values.course import course_of
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.quantities import COEFFICIENT, FLUX
from heatsim.scenario.values.timefunction import Formula

YEAR = 3.15e7


def formula(text: str, end: float | None = None) -> Formula:
    return Formula(Expression(text, ("t",)), end)


def jumps(text: str, end: float) -> list[float]:
    found = formula(text).jumps(end)
    assert found is not None
    return found.tolist()


@pytest.mark.parametrize(
    ("text", "end", "times"),
    [
        ("exp(-t)*sin(9*t) + 3", 10.0, []),
        ("where(2 < 1, t, 5)", 10.0, []),
        ("t % 2.5", 10.0, [2.5, 5.0, 7.5]),
        ("where(t % 4 < 1, 1, 0)", 10.0, [1.0, 4.0, 5.0, 8.0, 9.0]),
        ("where(1 < t and t <= 3 and not (t > 2), 1, 0)", 10.0, [1.0, 2.0, 3.0]),
        ("where(t^2 > 2, 1, 0)", 10.0, [2.0**0.5]),
        ("min(t, 3, 5 - t/2)", 6.0, [3.0, 4.0]),
        ("where(t < 3, 1/(5 - t), floor(t/2))", 7.0, [3.0, 4.0, 6.0]),  # floor jumps only where it is taken
        ("where(abs(t - 4.321) < 1e-9, 900, 5)", 10.0, [4.321 - 1e-9, 4.321, 4.321 + 1e-9]),
        (
            "where(exp(-((t - 2137)/1e-3)^2) > 0.5, 1, 0)",
            4e3,
            [2137 - 1e-3 * np.log(2) ** 0.5, 2137 + 1e-3 * np.log(2) ** 0.5],
        ),
        ("where(sin(t) > 0.9999999, 1, 0)", 3.0, [np.arcsin(0.9999999), pi - np.arcsin(0.9999999)]),
        ("where(t/pi < asin(t), exp(t), 1)", 10.0, [1.0]),  # asin is undefined from there on: the condition is false
        ("sin(1e9*t)", 1e-9, []),
        ("where(t < 3e11, 1, 2)", 1e12, [3e11]),
    ],
)
def test_jumps_are_those_of_every_operation_that_jumps(text: str, end: float, times: list[float]) -> None:
    assert jumps(text, end) == pytest.approx(times, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "end", "low", "high"),
    [
        *(("40 + 25*sin(t/777)", end, 40.0, 65.0) for end in (2e3,)),
        *(("40 + 25*sin(t/777)", end, 15.0, 65.0) for end in (2e4, 1e5, 1e6)),
        ("300 + 80*exp(-((t - 2137)/1e-3)^2)", 4e3, 300.0, 380.0),
        ("where(t % 1000 < 0.05, 900, 5)", 3e3, 5.0, 900.0),
        ("abs(sin(t))", 1e3, 0.0, 1.0),
        ("max(0, sin(t), cos(t)) + min(t/100, 0.5)", 100.0, pi / 100.0, 1.5),
        ("t^0.5 + log(t + 1)", 9.0, 0.0, 3.0 + np.log(10.0)),
        ("where(t < 0.001, 0, t/(t - 0.0005))", 1.0, 0.0, 2.0),  # the pole lies in a branch that is not taken
        ("where(t == 3, 900, 5)", 10.0, 5.0, 900.0),
        ("where(t - 3, 5, 900)", 10.0, 5.0, 900.0),
        ("sin(1e6*t)", 1e7, -1.0, 1.0),  # too fast to be followed: bounds
        ("2 + (t % 1e-9)", 10.0, 2.0, 2.0 + 1e-9),
        ("tan(t/10)*atan2(t, 3)*tanh(t - 5)", 10.0, None, None),
        ("+".join(f"sin({1.37 * k}*t)" for k in range(1, 21)), 20.0, None, None),
    ],
)
def test_extremes_are_those_of_all_times(text: str, end: float, low: float | None, high: float | None) -> None:
    found = formula(text).extremes(end)
    if low is None or high is None:
        values = formula(text).at(np.linspace(0.0, end, 400_001))
        assert found == (pytest.approx(values.min(), rel=1e-7), pytest.approx(values.max(), rel=1e-7))
    else:
        assert found == (pytest.approx(low, rel=1e-9, abs=1e-9), pytest.approx(high, rel=1e-9))


@pytest.mark.parametrize("steps", [1, 3, 400, 20_000])
@pytest.mark.parametrize(
    ("text", "end", "exact"),
    [
        ("exp(-((t - 2137)/30)^2)", 4e3, 30.0 * pi**0.5),
        ("exp(-((t - 2137)/1e-3)^2)", 4e3, 1e-3 * pi**0.5),
        ("1e-3 + exp(-((t - 2137)/1e-3)^2)", 4e3, 4.0 + 1e-3 * pi**0.5),
        ("exp(-(t/3)^2)", 3.0, 1.5 * pi**0.5 * erf(1.0)),
        ("abs(sin(t))", 100.0 * pi, 200.0),
        ("t^0.5", 9.0, 18.0),
        ("where(t > 1, abs(t - 1)^(1/3), 0)", 9.0, 12.0),
        ("log(t + 1e-9)", 1.0, (1.0 + 1e-9) * np.log(1.0 + 1e-9) - 1e-9 * np.log(1e-9) - 1.0),
        ("1/(1 + t^2)", 1e3, np.arctan(1e3)),
        ("1e8*(1 + sin(t))^2", 10.0 * pi, 1e8 * 15.0 * pi),
    ],
)
def test_means_bring_the_integral(text: str, end: float, exact: float, steps: int) -> None:
    """For steps of any length, to a millionth."""
    dt = end / steps
    assert formula(text, end).mean(np.arange(steps) * dt, dt).sum() * dt == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("first", "count"), [(0, 40), *(pytest.param(seed, 200, marks=pytest.mark.slow) for seed in range(0, 2000, 200))]
)
def test_random_expressions_rise_or_fall_between_their_nodes(first: int, count: int) -> None:
    """Up to a millionth of their range; no value is beyond the extremes."""
    resolved = 0
    for seed in range(first, first + count):
        expression, end = random_expression(seed, ("t",)), [1.0, 10.0, 1e-6, 1e3][seed % 4]
        course = course_of(expression, 0.0, end)
        at_nodes = expression.evaluate(t=course.nodes)
        if not course.resolved or not np.isfinite(at_nodes).all() or len(course.poles):
            continue
        resolved += 1
        times = np.linspace(0.0, end, 20_001)
        edges = np.concatenate(([0.0], course.jumps, [end]))
        place = np.searchsorted(edges, times).clip(1, len(edges) - 1)
        times = times[np.minimum(times - edges[place - 1], edges[place] - times) > 1e-9 * end]
        values = expression.evaluate(t=times)
        place = np.searchsorted(course.nodes, times, "right").clip(1, len(course.nodes) - 1)
        low, high = (pick(at_nodes[place - 1], at_nodes[place]) for pick in (np.minimum, np.maximum))
        allowed = 3e-6 * (course.high - course.low) + 1e-13 * max(abs(course.low), abs(course.high))
        off = np.maximum(low - values, values - high)
        worst = int(np.argmax(off))
        assert off[worst] <= allowed, (seed, expression.text, end, times[worst], values[worst], off[worst], allowed)
    assert resolved > 0.5 * count


@pytest.mark.parametrize(
    "text",
    [
        "280 + 10*sin(2*pi*t/86400) + where(t % 3600 < 1800, 5, 0)",
        "280 + 10*sin(2*pi*t/86400)*(t % 3600 < 1800)",
        "where(t % 86400 < 28800, 290, 285 + 2*(t % 3600 < 1800))",
    ],
)
def test_a_year_of_daily_and_hourly_periods_is_found_quickly(text: str) -> None:
    function = formula(text, YEAR)
    start = perf_counter()
    nodes, _ = function.nodes(YEAR), function.mean(np.zeros(1), YEAR)
    took = perf_counter() - start
    assert len(nodes) > 10_000
    assert took < 1.5  # 0.1 s on a quiet machine


def test_a_value_out_of_range_is_found_however_short_it_is() -> None:
    message = formula("5 - 10*exp(-((t - 2137)/1e-3)^2)").fault(COEFFICIENT, 4e3)
    assert message is not None
    assert "which is -" in message
    assert "at t = 2136.999" in message
    assert formula("5 - 4.999*exp(-((t - 2137)/1e-3)^2)").fault(COEFFICIENT, 4e3) is None
    assert formula("where(t < 3, 0, log(t - 2))").fault(FLUX, 4e3) is None
    message = formula("sqrt(t*(t - 1))").fault(FLUX, 1.0)
    assert message is not None  # it is defined at both ends
    assert "which is nan" in message
