"""Where a table in time jumps or changes its slope."""

import numpy as np
import pytest

from heatsim.scenario import Constant, Expression, Formula, Table


def test_a_straight_table_has_no_corners_but_its_ends():
    table = Table((1.0, 2.0, 3.5, 7.0), (10.0, 12.0, 15.0, 22.0))
    assert table.jumps(10.0).tolist() == [1.0, 7.0]
    assert table.jumps(7.0).tolist() == [1.0]


def test_jumps_and_kinks_are_corners():
    table = Table((0.0, 5.0, 5.0, 9.0, 10.0), (1.0, 1.0, 3.0, 3.0, 0.0))
    assert table.jumps(20.0).tolist() == [5.0, 9.0, 10.0]


def test_constant_values_have_no_corners():
    assert len(Constant(3.0).jumps(10.0)) == 0
    assert len(Table((0.0, 1.0, 2.0), (3.0, 3.0, 3.0)).jumps(10.0)) == 0
    assert len(Formula(Expression("floor(2.5)", ("t",))).jumps(10.0)) == 0


def test_a_repeated_table_has_the_corners_of_all_periods():
    """A saw has one a period, a ramp up and down two, a wave that goes straight on where it starts again none there."""
    saw = Table((0.0, 0.1), (0.0, 1.0), repeat=True)
    np.testing.assert_allclose(saw.jumps(1.0), 0.1 * np.arange(1, 10), rtol=1e-15)
    up_and_down = Table((0.0, 1.0, 4.0), (0.0, 1.0, 0.0), repeat=True)
    assert up_and_down.jumps(9.5).tolist() == [1.0, 4.0, 5.0, 8.0, 9.0]
    wave = Table((0.0, 1.0, 3.0, 4.0), (0.0, 1.0, -1.0, 0.0), repeat=True)
    assert wave.jumps(9.5).tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


def test_too_many_periods_cannot_be_distinguished():
    assert Table((0.0, 1e-6), (0.0, 1.0), repeat=True).jumps(1e3) is None


@pytest.mark.parametrize("within", [0.003, 0.03, 0.2])
def test_lines_between_the_corners_that_stay_are_as_close_as_asked(within):
    """Noisy weather: fewer corners for a larger error, and the lines between those that stay keep to it."""
    hours = np.arange(2001.0)
    rng = np.random.default_rng(3)
    values = 10.0 * np.sin(hours * np.pi / 12.0) + np.cumsum(rng.normal(size=len(hours))) * 0.3
    table = Table(tuple(hours.tolist()), tuple(values.tolist()))
    error = within * np.ptp(values)
    kept = table.jumps(hours[-1], error)
    assert len(kept) < len(table.jumps(hours[-1], error / 3.0)) <= 1999
    ends = np.concatenate(([0.0], kept, hours[-1:]))
    simplified = np.interp(hours, ends, table.at(ends))
    assert np.abs(simplified - values).max() <= error * (1.0 + 1e-12)


def test_jumps_stay_however_small_they_are():
    table = Table((0.0, 5.0, 5.0, 10.0), (0.0, 1.0, 1.001, 2.0))
    assert table.jumps(10.0, error=0.2).tolist() == [5.0]
