"""Lengths of steps from errors, without any field."""

import json
from math import inf, nan

import pytest

from heatsim.physics.time.tolerance import Tolerance
from heatsim.solver.stabilized.controller import Controller


def test_the_first_step_expects_a_tenth_of_the_change_that_the_tolerance_allows():
    assert Controller().started(0.1, 1e-4, 1e3).h == pytest.approx(1.0)
    assert Controller().started(0.1, 100.0, 1e3).h == 0.1
    assert Controller().started(0.1, 0.0, 1e3).h == 1e3
    assert Controller().started(0.1, 1e-30, 7.0).h == 7.0
    assert Controller().started(0.1, nan, 7.0).h == 0.1


def test_errors_of_third_order_lead_to_the_longest_step_within_the_tolerance():
    """With error = C·h³ and C constant, the step settles at 0.8 of what the tolerance allows, without rejections."""
    controller, h = Controller(h=0.01), 0.01
    for _ in range(12):
        h = controller.length(1e9, 1e9)
        assert 2.0 * h**3 <= 1
        controller = controller.accepted(h, 2.0 * h**3)
    assert h == pytest.approx(0.8 * 0.5 ** (1 / 3), rel=1e-6)


def test_errors_that_fall_faster_are_foreseen():
    steady = Controller(1.0, 1.0, 0.5).accepted(1.0, 0.5).h
    assert Controller(1.0, 1.0, 1.0).accepted(1.0, 0.5).h == pytest.approx(steady * 2 ** (1 / 3))
    assert Controller(1.0, 1.0, 0.25).accepted(1.0, 0.5).h == pytest.approx(steady * 0.5 ** (1 / 3))
    # A fall by more than a factor is not trusted.
    assert Controller(1.0, 0.1, 0.5).accepted(1.0, 0.5).h == pytest.approx(1.3 * steady)


def test_steps_grow_and_shrink_by_bounded_factors():
    assert Controller(1.0).accepted(1.0, 0.0).h == 5.0
    assert Controller(1.0).accepted(1.0, 1e-12).h == 5.0
    assert Controller(1.0).refused(1.0, 1e9).h == pytest.approx(0.1)
    assert Controller(1.0).refused(1.0, inf).h == pytest.approx(0.1)
    assert Controller(1.0).refused(1.0, 8.0).h == pytest.approx(0.4)


def test_no_step_grows_after_a_rejection():
    after = Controller(1.0, 1.0, 0.5).refused(1.0, 2.0)
    assert after.rejected
    again = after.accepted(0.6, 1e-6)
    assert again.h == pytest.approx(max(0.6, after.h))
    assert not again.rejected


def test_steps_meet_the_end_in_equal_parts():
    assert Controller(1.0).length(1.0, 9.0) == 1.0
    assert Controller(1.0 - 1e-12).length(1.0, 9.0) == 1.0
    assert Controller(1.0).length(1.1, 9.0) == 0.55
    assert Controller(5.0).length(7.0, 2.0) == 1.75
    assert Controller(1.0).length(3.0000000001, 9.0) == pytest.approx(1.0)


@pytest.mark.parametrize("left", [1.0, 1.0 + 2e-16, 1.0 + 1e-10, 1.0 - 1e-16, 1.0 + 1e-9, 3.0])
def test_no_step_is_longer_than_the_longest(left):
    assert Controller(50.0).length(left, 1.0) <= 1.0


def test_a_step_shortened_to_meet_the_end_does_not_shorten_the_next():
    assert Controller(1.0, 1.0, 0.3).accepted(0.2, 0.01).h == 1.0


@pytest.mark.parametrize(
    "controller", [Controller(), Controller(0.1 + 0.2, None, None, True), Controller(1 / 3, 0.7, 1e-4)]
)
def test_a_checkpoint_brings_it_back_to_the_bit(controller):
    assert Controller.from_dict(json.loads(json.dumps(controller.to_dict()))) == controller


def test_the_default_tolerance_follows_the_larger_range():
    assert Tolerance(None, 80.0, 293.0, 293.0).of_run == pytest.approx(0.016)
    assert Tolerance(None, 80.0, 293.0, 293.0).widened(250.0, 450.0).of_run == pytest.approx(0.04)
    assert Tolerance(None, 0.0, 293.0, 293.0).of_run == 1e-3
    assert Tolerance(None, 0.0, 1.0, 3.0).to_dict() == {"low": 1.0, "high": 3.0}


def test_the_error_of_a_step_follows_from_that_of_the_run():
    """The power 3/2 of it; 0.4 of it at the default, and at most 1.6 of it."""
    for given, of_step in ((0.02, 0.008), (0.08, 0.064), (0.005, 0.001), (10.0, 16.0)):
        tolerance = Tolerance(given, 100.0, 293.0, 293.0)
        assert (tolerance.of_run, tolerance.kelvin) == (given, pytest.approx(of_step))
    assert Tolerance(0.005, 100.0, 293.0, 293.0).run_with(0.001) == pytest.approx(0.005)
