"""Due times are hit exactly, whatever their decimals, and equal intervals have equal steps."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatsim.physics.time.time_steps import Timeline, TimelineError, build


def auto(end: float, *intervals: float, limit: float = 0.013, safety: float = 0.9) -> Timeline:
    return build(end, intervals, "auto", safety, limit)


def test_due_times_are_the_multiples_and_the_end() -> None:
    timeline = auto(1.0, 0.3, 0.4)
    assert timeline.times.tolist() == [0.0, 0.3, 0.4, 0.6, 0.8, 0.9, 1.0]
    assert timeline.time(timeline.last_step) == 1.0


def test_multiples_of_a_tenth_are_the_numbers_one_would_write() -> None:
    """Not 0.30000000000000004, which 3·0.1 is in floating point."""
    timeline = auto(10.0, 0.1)
    assert timeline.times.tolist() == [float(f"{i // 10}.{i % 10}") for i in range(101)]
    assert len(timeline.step_lengths) == 1


def test_equal_intervals_have_the_same_dt_to_the_bit() -> None:
    timeline = auto(7.0, 0.7, limit=0.0123)
    (dt,) = timeline.step_lengths
    assert timeline.dts.tolist() == [dt] * 10
    assert timeline.last_step % 10 == 0
    assert dt <= 0.9 * 0.0123
    # and no more steps than necessary
    assert 0.7 / (timeline.last_step // 10 - 1) > 0.9 * 0.0123


def test_a_third_of_a_second_in_sixteen_digits_ends_at_the_end() -> None:
    timeline = auto(1.0, 1.0 / 3.0)
    assert timeline.times.tolist() == [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]
    assert len(set(np.diff(timeline.steps).tolist())) == 1
    np.testing.assert_allclose(timeline.dts, timeline.dts[0], rtol=1e-14)


def test_an_interval_longer_than_the_run_leaves_start_and_end() -> None:
    timeline = auto(1.0, 5.0)
    assert timeline.times.tolist() == [0.0, 1.0]
    assert timeline.steps_at(5.0).tolist() == [0, timeline.last_step]


def test_step_times_start_at_the_due_time_and_are_never_summed_up() -> None:
    timeline = auto(2.0, 0.1, limit=0.003)
    for interval in (0, 7, 19):
        first, last = (int(step) for step in timeline.steps[interval : interval + 2])
        times = timeline.step_times(first, last)
        start, dt = timeline.times[interval], timeline.dts[interval]
        assert times.tolist() == [start + j * dt for j in range(last - first)]
        assert [timeline.time(step) for step in range(first, last)] == times.tolist()
        assert timeline.interval(first) == timeline.interval(last - 1) == interval


def test_step_times_go_over_due_times_as_far_as_steps_have_one_length() -> None:
    timeline = auto(1.05, 0.1, limit=0.003)
    for first in (0, 5, timeline.last_step - 3):
        last = timeline.end_of_length(first, timeline.last_step)
        lengths = [timeline.dt(step) for step in range(first, last)]
        assert len(set(lengths)) == 1
        assert last == timeline.last_step or timeline.dt(last) != lengths[0]
        assert timeline.step_times(first, last).tolist() == [timeline.time(step) for step in range(first, last)]
        assert timeline.end_of_length(first, first + 2) == first + 2
    assert timeline.end_of_length(0, timeline.last_step) > int(timeline.steps[1])


def test_steps_at_an_interval_are_those_of_its_multiples() -> None:
    timeline = auto(1.0, 0.25, 0.1)
    for every, times in ((0.25, [0.0, 0.25, 0.5, 0.75, 1.0]), (0.1, [i / 10 for i in range(11)])):
        assert [timeline.time(step) for step in timeline.steps_at(every).tolist()] == times


def test_without_a_limit_an_interval_is_one_step() -> None:
    assert auto(2.0, 0.5, limit=inf).last_step == 4


def test_step_lengths_count_the_steps() -> None:
    timeline = build(1.0, [0.3], 0.05, 0.9, 1.0)
    assert timeline.step_lengths == {0.05: 20}
    timeline = auto(1.0, 0.3, limit=0.02)
    assert sum(timeline.step_lengths.values()) == timeline.last_step
    total = sum(dt * steps for dt, steps in timeline.step_lengths.items())
    assert total == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize(
    ("dt", "nearest"),
    # The longest time not above dt that divides 0.3 s and 0.1 s, the intervals that multiples of 0.3 s leave of 1 s.
    [(0.03, 0.025), (0.07, 0.05), (0.0999, 0.05), (0.3, 0.1), (0.011, 0.01)],
)
def test_a_dt_that_does_not_divide_is_refused_with_one_that_does(dt: float, nearest: float) -> None:
    with pytest.raises(TimelineError, match=rf"does not divide .* nearest that divides them all is {nearest!r} s"):
        build(1.0, [0.3], dt, 0.9, 1.0)
    assert build(1.0, [0.3], nearest, 0.9, 1.0).step_lengths.keys() == {nearest}


def test_a_dt_that_divides_but_for_its_last_digit_is_taken() -> None:
    timeline = build(1.0, [0.5], 1.0 / 6.0, 0.9, 1.0)
    assert timeline.last_step == 6
    assert timeline.times.tolist() == [0.0, 0.5, 1.0]


def test_more_due_times_than_can_be_counted_are_refused() -> None:
    with pytest.raises(TimelineError, match=r"more than 1,000,000 due times"):
        build(1.0, [1e-7], "auto", 0.9, 1.0)
    with pytest.raises(TimelineError, match="steps are more than can be counted"):
        build(1e9, [1e9], "auto", 0.9, 1e-9)


decimals = st.builds(lambda digits, exponent: float(f"{digits}e{exponent}"), st.integers(1, 99_999), st.integers(-4, 1))


@given(end=decimals, every=decimals, probe_every=decimals, divisions=st.floats(0.7, 200.0))
def test_any_decimal_times_are_met_exactly(end: float, every: float, probe_every: float, divisions: float) -> None:
    every, probe_every = (max(interval, float(f"{end / 300:.3g}")) for interval in (every, probe_every))
    limit = min(end, every, probe_every) / divisions
    timeline = auto(end, every, probe_every, limit=limit)

    exact = {Fraction(repr(end)), Fraction(0)}
    for interval in (every, probe_every):
        step = Fraction(repr(interval))
        exact.update(step * i for i in range(int(Fraction(repr(end)) / step) + 1))
    assert timeline.times.tolist() == [float(time) for time in sorted(exact)]

    assert timeline.steps[0] == 0
    assert (np.diff(timeline.steps) >= 1).all()
    assert (timeline.dts <= 0.9 * limit * (1.0 + 1e-12)).all()
    np.testing.assert_allclose(
        timeline.dts * np.diff(timeline.steps), np.diff(timeline.times), rtol=0, atol=1e-13 * end
    )
    by_length: dict[Fraction, float] = {}
    for before, after, dt in zip(sorted(exact)[:-1], sorted(exact)[1:], timeline.dts.tolist(), strict=True):
        assert by_length.setdefault(after - before, dt) == dt
    for every_, interval in ((every, Fraction(repr(every))), (probe_every, Fraction(repr(probe_every)))):
        expected = [float(interval * i) for i in range(int(Fraction(repr(end)) / interval) + 1)]
        expected += [] if expected[-1] == end else [end]
        assert [timeline.time(int(step)) for step in timeline.steps_at(every_)] == expected


def test_moments_are_due_too() -> None:
    timeline = build(1.0, (0.4,), "auto", 0.9, 0.013, moments=(0.1, 0.8, 0.35))
    assert timeline.times.tolist() == [0.0, 0.1, 0.35, 0.4, 0.8, 1.0]
    assert timeline.steps_at(0.4).tolist() == [timeline.steps[i] for i in (0, 3, 4, 5)]


def test_a_dt_that_misses_a_moment_is_refused() -> None:
    with pytest.raises(TimelineError, match=r"does not divide the 0.25 s between two due times.*0.0833"):
        build(1.0, (), 0.1, 0.9, 0.2, moments=(0.25,))


def test_multiples_that_are_the_same_float_are_one_due_time_of_a_method_that_chooses_its_steps() -> None:
    """3 · 0.3666666666666667 is 1.1000000000000001 in decimals and 1.1 as a float."""
    timeline = Timeline.adaptive_to(2.0, (1.1, 0.3666666666666667))
    assert (timeline.dts > 0.0).all()
    assert timeline.times.tolist().count(1.1) == 1
    assert timeline.steps_at(1.1).tolist() == [0, 3, timeline.last_step]
    assert [timeline.time(step) for step in timeline.steps_at(0.3666666666666667)][3] == 1.1
