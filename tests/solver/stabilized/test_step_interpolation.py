"""Linear combinations of both ends of a step."""

import pytest

from heatsim.solver.stabilized.interpolation import change_of_rate, error_estimate, hermite


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


def test_the_change_of_rate():
    assert combined(change_of_rate(1.5), 2.0, 1.5) == pytest.approx(1.5 * (slope(3.5) - slope(2.0)), rel=1e-14)
