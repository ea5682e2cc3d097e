"""Means over time steps: the heat of a function with jumps is right for steps of any length."""

from math import acos, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatsim.scenario import Constant, Table, TimeFunction
from heatsim.scenario.values.averages import magnitudes, mean_of_product
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.timefunction import Formula


def formula(text: str, end: float | None) -> Formula:
    return Formula(Expression(text, ("t",)), end)


def total(function: Formula | Table, end: float, steps: int) -> float:
    """∫ f dt from the means over equal steps."""
    dt = end / steps
    return float(function.mean(np.arange(steps) * dt, dt).sum() * dt)


# The expression, the end, ∫ f dt up to the end, and the tolerance for the sum of the means.
TRAINS = [
    ("where(t % 0.7 < 0.2, 1, 0)", 70.0, 20.0, 1e-12),
    ("where(t % 0.7 < 0.2, 1, 0)", 7e4, 2e4, 1e-10),
    ("where((t + 0.3) % 0.7 < 1e-3, 1000, 0)", 70.0, 100.0, 1e-8),
    ("5*(t % 2 < 0.5) - (t % 2 >= 1.5)", 40.0, 40.0, 1e-12),
    ("where(sin(2*pi*t/0.7) > 0.9, 1, 0)", 70.0, 70.0 * acos(0.9) / pi, 1e-12),
    ("floor(t/3) % 2", 60.0, 30.0, 1e-12),
    ("1 + sign(cos(2*pi*t/5))", 50.0, 50.0, 1e-12),
    ("max(0, sin(2*pi*t/3))", 30.0, 30.0 / pi, 1e-7),
    ("abs(t % 2 - 1)", 50.0, 25.0, 1e-12),
    ("where((t % 10 < 5) and (t % 1 < 0.3), 2, 0)", 40.0, 12.0, 1e-12),
    ("where(t < 3.21, 0, (t - 3.21)^2)", 9.21, 72.0, 1e-12),
    ("pi + atan2(sin(2*pi*t/3), cos(2*pi*t/3))", 60.0, 60.0 * pi, 1e-7),
]


@pytest.mark.parametrize("steps", [7, 137, 3001])
@pytest.mark.parametrize(("text", "end", "exact", "accuracy"), TRAINS)
def test_a_train_of_pulses_brings_its_energy(text: str, end: float, exact: float, accuracy: float, steps: int) -> None:
    assert total(formula(text, end), end, steps) == pytest.approx(exact, rel=accuracy)


@pytest.mark.parametrize("steps", [100, 1000, 10_000])
def test_pulses_too_many_to_be_told_apart_are_sampled(steps: int) -> None:
    """A million periods in a hundred steps: ten thousand whole periods in each step."""
    end = 7e5
    text = "where(sin(2*pi*t/0.7) > 0.9, 1, 0)"
    assert formula(text, end).jumps(end) is None
    assert total(formula(text, end), end, steps) == pytest.approx(end * acos(0.9) / pi, rel=1e-3)
    assert formula("t % 1e-9", end).jumps(end) is None


@given(cuts=st.lists(st.integers(0, 40), max_size=4), steps=st.integers(1, 40))
def test_a_mean_does_not_depend_on_which_others_are_asked_for_with_it(cuts: list[int], steps: int) -> None:
    functions = (
        formula("where(t % 0.7 < 0.2, sin(t), 2)", 20.0),
        formula("t % 1e-8", 20.0),
        Table((0.0, 1.0, 1.0, 4.0), (1.0, 2.0, 5.0, 0.0), repeat=True),
    )
    dt = 20.0 / steps
    times = np.arange(steps) * dt
    for function in functions:
        parts = np.split(times, sorted(min(cut, steps) for cut in cuts))
        found = np.concatenate([function.mean(part, dt) for part in parts])
        assert found.tobytes() == function.mean(times, dt).tobytes()


def test_steps_of_different_lengths_have_the_means_of_each_alone() -> None:
    functions = (
        formula("where(t % 0.7 < 0.2, sin(t), 2)", 20.0),
        formula("t % 1e-8", 20.0),  # its jumps are too many: it is sampled, more often in longer steps
        Table((0.0, 1.0, 1.0, 4.0), (1.0, 2.0, 5.0, 0.0), repeat=True),
        Constant(3.0),
    )
    times, lengths = np.array([0.0, 0.1, 3.0, 7.5, 7.5]), np.array([0.1, 2.9, 1e-3, 12.5, 12.5])
    for function in functions:
        alone = [float(function.mean(times[i : i + 1], float(lengths[i]))[0]) for i in range(len(times))]
        assert function.mean(times, lengths).tolist() == alone


def test_an_expression_without_a_known_end_is_sampled() -> None:
    assert formula("where(t % 1 < 0.25, 1, 0)", None).mean(np.zeros(1), 5.0) == pytest.approx([0.25], abs=0.1)
    assert formula("7", None).mean(np.zeros(2), 5.0).tolist() == [7.0, 7.0]
    assert Constant(0.7).mean(np.zeros(2), 0.1).tolist() == [0.7, 0.7]


@pytest.mark.parametrize("steps", [1, 7, 400])
@pytest.mark.parametrize(
    ("factors", "end", "exact"),
    [
        # In the first and in the last half of each period: 0 at all times.
        ((formula("where(t % 16 < 8, 2e5, 0)", 4e3), formula("where(t % 16 < 8, 0, 1)", 4e3)), 4e3, 0.0),
        ((formula("sin(t)", 10 * pi), formula("sin(t)", 10 * pi)), 10 * pi, 5 * pi),
        ((formula("exp(-((t - 2137)/1e-3)^2)", 4e3), formula("t/2137", 4e3), Constant(2.0)), 4e3, 2e-3 * pi**0.5),
        ((Table((0.0, 1.0), (0.0, 1.0)), Table((0.0, 1.0), (0.0, 1.0)), Table((0.0, 1.0), (0.0, 1.0))), 1.0, 0.25),
        ((Table((0.0, 1.0), (0.0, 2.0), repeat=True), Table((0.0, 2.0, 2.0, 3.0), (1.0, 1.0, 4.0, 4.0))), 3.0, 6.0),
        ((Table((0.0, 4.0), (0.0, 4.0)), formula("where(t < 1.5, 1, 0)", 4.0)), 4.0, 1.125),
        ((Constant(3.0), Constant(0.5)), 2.0, 3.0),
    ],
)
def test_the_mean_of_a_product_is_that_of_its_values(
    factors: tuple[TimeFunction, ...], end: float, exact: float, steps: int
) -> None:
    """Not the product of the means."""
    dt = end / steps
    found = mean_of_product(factors, np.arange(steps) * dt, dt).sum() * dt
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-6)


TABLES = {
    "held": (Table((1.0, 2.0, 4.0), (0.0, 2.0, -1.0)), lambda t: np.interp(t, [1.0, 2.0, 4.0], [0.0, 2.0, -1.0])),
    "repeated": (
        Table((0.0, 1.0, 2.0), (0.0, 4.0, 1.0), repeat=True),
        lambda t: np.interp(t % 2.0, [0.0, 1.0, 2.0], [0.0, 4.0, 1.0]),
    ),
    "stepped": (
        Table((0.0, 5.0, 5.0, 9.0), (1.0, 1.0, 3.0, 7.0)),
        lambda t: np.where(t < 5, 1, 3 + np.clip(t - 5, 0, 4)),
    ),
    "pulses": (
        Table((0.0, 0.2, 0.2, 0.7), (1.0, 1.0, 0.0, 0.0), repeat=True),
        lambda t: (t % 0.7 < 0.2).astype(float),
    ),
}


@pytest.mark.parametrize("dt", [0.01, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("name", TABLES)
def test_the_mean_of_a_table_is_exact(name: str, dt: float) -> None:
    """Compared with 20,000 values per step, whose error is that of a jump within one interval."""
    table, exact = TABLES[name]
    times = np.array([0.0, 0.5, 0.9, 1.9, 2.5, 3.7, 17.3])
    middles = (np.arange(20_000) + 0.5) / 20_000 * dt
    jumps = 4.0 * (1.0 + dt / 0.7)
    expected = [float(exact(t + middles).mean()) for t in times]
    assert table.mean(times, dt) == pytest.approx(expected, abs=jumps / 20_000)


@pytest.mark.parametrize("steps", [1, 10, 333])
def test_a_table_with_steps_brings_its_integral(steps: int) -> None:
    stepped, pulses = TABLES["stepped"][0], TABLES["pulses"][0]
    assert total(stepped, 12.0, steps) == pytest.approx(5.0 + 20.0 + 21.0, rel=1e-13)
    assert total(pulses, 70.0, steps) == pytest.approx(20.0, rel=1e-12)


def test_a_value_steps_at_the_time_that_stands_twice() -> None:
    table = TABLES["stepped"][0]
    before = np.nextafter(5.0, 0.0)
    assert table.at(np.array([before, 5.0, 9.0])).tolist() == [1.0, 3.0, 7.0]
    assert table.mean(np.array([4.0, 5.0]), 1.0) == pytest.approx([1.0, 3.5], rel=1e-14)
    falls = Table((0.0, 5.0, 5.0, 9.0), (0.0, 8.0, 1.0, 1.0))
    assert falls.at(falls.nodes(20.0)).max() == pytest.approx(8.0, rel=1e-14)


# A function, between which times it acts, and ∫ |f| dt between the edges 0, 1.5, 4 and 6 s.
MAGNITUDES = [
    ([formula("sin(pi*t)", 6.0)], (0.0, 9.0), [3.0 / pi, 5.0 / pi, 4.0 / pi]),
    ([formula("sin(pi*t)", 6.0)], (1.0, 4.5), [1.0 / pi, 5.0 / pi, 1.0 / pi]),
    ([formula("(t - 2)/1e-3*exp(-((t - 2)/1e-3)^2)", 6.0)], (0.0, 9.0), [0.0, 1e-3, 0.0]),
    ([Table((2.0, 2.5, 3.5, 4.0), (0.0, 1.0, -1.0, 0.0)), Constant(-2.0)], (0.0, 9.0), [0.0, 2.0, 0.0]),
    ([formula("sign(t - 5)", 6.0), formula("cos(pi*t)", 6.0)], (0.0, 9.0), [3.0 / pi, 5.0 / pi, 4.0 / pi]),
    ([Constant(-3.0)], (2.0, 9.0), [0.0, 6.0, 6.0]),
    ([formula("2*sin(1e9*t)", 6.0)], (0.0, 9.0), [6.0 / pi, 10.0 / pi, 8.0 / pi]),
]


@pytest.mark.parametrize(("functions", "during", "exact"), MAGNITUDES)
def test_what_comes_and_goes_counts_by_magnitude(
    functions: list[TimeFunction], during: tuple[float, float], exact: list[float]
) -> None:
    """At least ∫ |f| dt, but for 1e-6, and at most twice as much, where f passes 0 or cannot be resolved."""
    found = magnitudes(functions, np.array([0.0, 1.5, 4.0, 6.0]), during, 6.0)
    assert (found >= np.array(exact) * (1.0 - 1e-6)).all()
    assert (found <= np.array(exact) * 2.0 + 1e-12).all()
