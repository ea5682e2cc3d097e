"""Sums over the steps between due times have the same bits, whichever intervals are summed together."""

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.physics.time import interval_sums, time_steps
from heatsim.physics.time.interval_sums import IntervalSums

# Intervals of 3, 7, 1, 9 or 10 steps; their lengths differ too.
TIMELINE = time_steps.build(2.0, (0.1, 0.25), "auto", 1.0, 0.0105, (0.73,))
NUMBERS = np.random.default_rng(1).random(TIMELINE.last_step)


def make(first: int, until: int) -> NDArray[np.float64]:
    assert len({TIMELINE.dt(step) for step in range(first, until)}) == 1
    return NUMBERS[first:until]


def sums(first: int, until: int) -> IntervalSums:
    return interval_sums.interval_sums(TIMELINE, first, until, make)


@pytest.mark.parametrize("together", [1, 16, 4_096])
@pytest.mark.parametrize("longest", [4, 16_384])
def test_each_interval_is_summed_by_itself(monkeypatch: pytest.MonkeyPatch, together: int, longest: int) -> None:
    monkeypatch.setattr(interval_sums, "_STEPS_TOGETHER", together)
    monkeypatch.setattr(interval_sums, "_LONGEST_PIECE", longest)
    ends, values, dts = [], [], []
    for first, until in zip(TIMELINE.steps[:-1].tolist(), TIMELINE.steps[1:].tolist(), strict=True):
        for piece in range(first, until, longest):
            ends.append(min(piece + longest, until))
            values.append(float(NUMBERS[piece : ends[-1]].sum()))
            dts.append(TIMELINE.dt(piece))
    found = sums(0, TIMELINE.last_step)
    assert (found.ends.tolist(), found.sums.tolist(), found.dts.tolist()) == (ends, values, dts)


def test_parts_of_a_run_have_the_sums_of_the_whole() -> None:
    whole = sums(0, TIMELINE.last_step)
    for middle in TIMELINE.steps.tolist():
        parts = [*sums(0, middle).sums, *sums(middle, TIMELINE.last_step).sums]
        assert parts == whole.sums.tolist()
