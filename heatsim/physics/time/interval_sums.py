"""Sums over the steps between due times, for many intervals together.

An interval is summed in an order that depends only on its number of steps. So the bits do not depend on which intervals
are summed together.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.time.time_steps import Timeline

Array = NDArray[np.float64]

# Steps that are made together. With fewer steps, calls take longer than the arithmetic.
_STEPS_TOGETHER = 4_096
# A longer interval is summed in pieces.
_LONGEST_PIECE = 16_384


class IntervalSums(NamedTuple):
    """The sums over intervals, or over pieces of long intervals.

    Attributes:
        ends: the number of steps done at the end of each.
        sums: over the steps of each.
        dts: the length in s of these steps.
    """

    ends: NDArray[np.int64]
    sums: Array
    dts: Array


def interval_sums(timeline: Timeline, first: int, until: int, make: Callable[[int, int], Array]) -> IntervalSums:
    """The sums over all intervals between two due times, which are numbers of steps done.

    Args:
        timeline: the steps.
        first: the first due time.
        until: the last due time.
        make: returns a number for each of steps ``first`` … ``until`` − 1, all of one length.

    Raises:
        ScenarioError: from ``make``.
    """
    ends, sums, dts, step = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)], first
    while step < until:
        steps, count = timeline.equal_intervals(step, until, _STEPS_TOGETHER, _LONGEST_PIECE)
        values = make(step, step + steps * count)
        sums.append(values.reshape(count, steps).sum(axis=1))
        ends.append(step + steps * np.arange(1, count + 1))
        dts.append(np.full(count, timeline.dt(step)))
        step += steps * count
    return IntervalSums(np.concatenate(ends), np.concatenate(sums), np.concatenate(dts))
