"""Linear combinations of both ends of a step."""

from collections.abc import Callable
from functools import partial
from math import exp, prod

import pytest

from heatsim.solver.implicit.field_stages import FieldStages
from heatsim.solver.implicit.scheme import GAMMA
from heatsim.solver.stabilized.field_substeps import FieldSubsteps
from heatsim.solver.stabilized.interpolation import change_of_rate, error_estimate, hermite
from heatsim.solver.stabilized.scheme import Stages, all_stages


def cubic(t):
    return 3.0 - 2.0 * t + 0.7 * t**2 + 0.4 * t**3


def slope(t):
    return -2.0 + 1.4 * t + 1.2 * t**2


def combined(weights, t, h):
    ends = cubic(t), slope(t), cubic(t + h), slope(t + h)
    return sum(weight * value for weight, value in zip(weights, ends, strict=True))


def test_a_cubic_is_interpolated_exactly():
    for theta in (0.1, 0.25, 0.5, 0.9):
        assert combined(hermite(theta, 1.5), 2.0, 1.5) == pytest.approx(cubic(2.0 + theta * 1.5), rel=1e-15)


def test_both_ends_are_met_to_the_bit():
    assert hermite(0.0, 1.7) == (1.0, 0.0, 0.0, 0.0)
    assert hermite(1.0, 1.7) == (0.0, 0.0, 1.0, 0.0)


def test_the_error_of_a_cubic_is_a_fifteenth_of_its_third_derivative():
    h = 1.5
    assert combined(error_estimate(h), 2.0, h) == pytest.approx(h**3 * 2.4 / 15, rel=1e-13)


def stabilized(stages: Stages, z: float) -> float:
    pair = stages.pair
    return (1.0 + pair.a * z * (1.0 + pair.b / pair.a * z)) * prod(1.0 + delta * z for delta in stages.deltas)


def implicit(z: float) -> float:
    return (1.0 + (1.0 - 2.0 * GAMMA) * z) / (1.0 - GAMMA * z) ** 2


@pytest.mark.parametrize(
    ("factor", "multiplied"),
    [
        (FieldStages.factor, implicit),
        (FieldSubsteps.factor, partial(stabilized, all_stages()[0])),
        (FieldSubsteps.factor, partial(stabilized, all_stages()[-1])),
    ],
)
def test_the_estimate_of_each_method_is_twice_the_error_of_its_step(
    factor: float, multiplied: Callable[[float], float]
) -> None:
    """For a mode T' = −T from T = 1, of which a step of h leaves R(−h)."""
    h = 1e-3
    left = multiplied(-h)
    estimate = sum(w * value for w, value in zip(error_estimate(h, factor), (1.0, -1.0, left, -left), strict=True))
    assert abs(estimate) == pytest.approx(2.0 * abs(left - exp(-h)), rel=0.1)


def test_the_change_of_rate():
    assert combined(change_of_rate(1.5), 2.0, 1.5) == pytest.approx(1.5 * (slope(3.5) - slope(2.0)), rel=1e-14)
