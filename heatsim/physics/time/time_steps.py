"""When things are due, and the time steps that lead there.

Due times are 0, the end, all multiples of the intervals between outputs, and the moments at which sources are switched
on and off. Each interval Δ between two of them is cut
into equal steps. Times are counted exactly, in whole ticks of a common
denominator of the decimal numbers given, so that equal intervals have the same dt to the bit and nothing is summed up:
the time of a step is the interval's start + j·dt.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, gcd, inf, lcm, log10

import numpy as np
from numpy.typing import NDArray

MAXIMUM_DUE_TIMES = 1_000_000
MAXIMUM_STEPS = 2**53
# What changes in time is averaged over this many s from t = 0 on where no time passes.
INSTANT = 1e-9
_SAME = 1e-9  # times that differ by less than this part of a step are the same


class TimelineError(ValueError):
    """Time steps that cannot be made; the text says why.

    Attributes:
        key: of the scenario, at which the mistake is reported.
    """

    def __init__(self, message: str, key: str = "time.dt") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class Timeline:
    """The steps of a run.

    A method that chooses its own steps has one "step" from each due time to the next: what is due is known in time, and
    the number of these steps counts due times.

    Attributes:
        times: due times in s, ascending, shape (n + 1,); the first is 0, the last the end.
        steps: the number of steps done at each due time, shape (n + 1,), int64.
        dts: the length of the steps in s that lead from each due time to the next, shape (n,).
        adaptive: whether the method chooses the lengths of its steps. Then ``dts`` are those between due times, and
            rows show values that change in time as they are at the row's time.
        changes: the intervals in s at whose multiples values may be set during the run.
    """

    times: NDArray[np.float64]
    steps: NDArray[np.int64]
    dts: NDArray[np.float64]
    adaptive: bool = False
    changes: tuple[float, ...] = ()

    @classmethod
    def instant(cls) -> "Timeline":
        """Of a steady state: everything is due at t = 0, after no steps. What asks for a length gets ``INSTANT``."""
        return cls(np.zeros(1), np.zeros(1, dtype=np.int64), np.array([INSTANT]))

    @classmethod
    def adaptive_to(cls, end: float, intervals: Iterable[float]) -> "Timeline":
        """For a method that chooses its own steps: the due times alone.

        Args:
            end: in s.
            intervals: whose multiples are due times, in s.

        Raises:
            TimelineError: more due times than can be counted.
        """
        ticks, ticks_per_second = _due_ticks(end, intervals)
        # Multiples of two intervals may be different decimal numbers and the same float: that is one due time.
        times = np.unique([tick / ticks_per_second for tick in ticks])
        return cls(times, np.arange(len(times)), np.diff(times), adaptive=True)

    @property
    def last_step(self) -> int:
        """Number of steps in all."""
        return int(self.steps[-1])

    @cached_property
    def step_lengths(self) -> dict[float, int]:
        """Every dt of the run, in the order of first use, with the number of steps that have it."""
        return self.lengths_until(self.last_step)

    def lengths_until(self, step: int) -> dict[float, int]:
        """Every dt of the first ``step`` steps, in the order of first use, with the number of those that have it."""
        done = np.clip(step - self.steps[:-1], 0, np.diff(self.steps))
        lengths, first, inverse = np.unique(self.dts[done > 0], return_index=True, return_inverse=True)
        counts = np.bincount(inverse, weights=done[done > 0])
        return {float(lengths[i]): int(counts[i]) for i in np.argsort(first)}

    def interval(self, step: int) -> int:
        """Index of the interval that the step after ``step`` steps belongs to."""
        return min(bisect_right(self._due_steps, step) - 1, len(self.dts) - 1)

    @cached_property
    def _due_steps(self) -> list[int]:
        """``steps`` as integers of Python, in which single numbers are found faster."""
        found: list[int] = self.steps.tolist()
        return found

    @cached_property
    def change_steps(self) -> list[int]:
        """The numbers of steps done, ascending, when values may be set during the run."""
        return sorted({step for every in self.changes for step in self.steps_at(every).tolist()})

    def dt(self, step: int) -> float:
        """Length in s of the step after ``step`` steps."""
        return float(self.dts[self.interval(step)])

    def shown_over(self, step: int) -> float:
        """Seconds from the time of a row over which values that change in time are averaged in what the row shows."""
        return INSTANT if self.adaptive else self.dt(step)

    def interval_end(self, step: int) -> int:
        """Number of steps done at the first due time after ``step`` steps; until then all steps are of one length."""
        return self._due_steps[self.interval(step) + 1]

    def time(self, step: int) -> float:
        """Time in s after ``step`` steps."""
        due = bisect_left(self._due_steps, step)
        if self._due_steps[due] == step:
            return float(self.times[due])
        i = due - 1
        return float(self.times[i] + (step - self.steps[i]) * self.dts[i])

    def step_at(self, time: float) -> int | None:
        """The number of steps done at a time in s; None if no step ends there, up to rounding."""
        last = len(self.dts) - 1
        i = min(max(bisect_right(self.times, time) - 1, 0), last)
        start, length = float(self.times[i]), float(self.dts[i])
        count = self._due_steps[i + 1] - self._due_steps[i]
        step = count * round((time - start) / (count * length)) if self.adaptive else round((time - start) / length)
        same = abs(start + step * length - time) <= _SAME * length and 0 <= step <= count
        return self._due_steps[i] + step if same else None

    def step_times(self, first: int, last: int) -> NDArray[np.float64]:
        """Times in s at which steps ``first`` … ``last`` − 1 start."""
        steps = np.arange(first, last)
        i = np.minimum(np.searchsorted(self.steps, steps, side="right") - 1, len(self.dts) - 1)
        times: NDArray[np.float64] = self.times[i] + (steps - self.steps[i]) * self.dts[i]
        return times

    def end_of_length(self, step: int, most: int) -> int:
        """Number of steps, at most ``most``, until a step has another length than the step after ``step`` steps.

        They end where values may be set, because the values of the next steps are not known yet.
        """
        most = min([most, *self.change_steps[bisect_right(self.change_steps, step) :][:1]])
        i = self.interval(step)
        others = np.flatnonzero(self.dts[i : i + most - step] != self.dts[i])
        end = self.steps[i + int(others[0])] if len(others) else self.steps[min(i + most - step, len(self.dts))]
        return min(int(end), most)

    def equal_intervals(self, step: int, until: int, most: int, longest: int) -> tuple[int, int]:
        """The number of steps to the next due time, and how many intervals in a row have as many steps of this length.

        Args:
            step: number of steps done.
            until: no interval goes beyond this step.
            most: steps of all these intervals, if there are several.
            longest: the largest number of steps to return.
        """
        i = self.interval(step)
        count = min(self._due_steps[i + 1], until) - step
        if count > longest or step != self._due_steps[i]:
            return min(count, longest), 1
        together = max(1, most // count)
        last = bisect_right(self._due_steps, until) - 1
        steps = np.diff(self.steps[i : min(i + together, last) + 1])
        others = np.flatnonzero((steps != count) | (self.dts[i : i + len(steps)] != self.dts[i]))
        return count, int(others[0]) if len(others) else max(1, len(steps))

    def steps_at(self, every: float) -> NDArray[np.int64]:
        """The steps at which something is due that happens at 0, ``every``, 2·``every``, … and at the end."""
        if not self.last_step:
            return self.steps
        step = Fraction(repr(every))
        count = _multiples(step, Fraction(repr(float(self.times[-1]))))
        # Python rounds the quotient of two integers correctly, as float(Fraction) does.
        wanted = [number * step.numerator / step.denominator for number in range(count)]
        due = np.searchsorted(self.times, wanted)
        return np.unique(np.append(self.steps[due], self.steps[-1]))


def build(
    end: float,
    intervals: Iterable[float],
    dt: float | str,
    safety: float,
    limit: float,
    moments: Iterable[float] = (),
) -> Timeline:
    """Cut the time from 0 to ``end`` (s) into steps.

    Args:
        end: in s.
        intervals: whose multiples are due times, in s.
        dt: "auto", or the time step asked for in s.
        safety: with "auto", steps are at most this fraction of the limit.
        limit: the largest stable time step in s.
        moments: further due times in s, between 0 and the end.

    Raises:
        TimelineError: a dt that does not divide every interval, or more due times or steps than can be counted.
    """
    ticks, ticks_per_second = _due_ticks(end, intervals, moments)
    lengths = [after - before for before, after in pairwise(ticks)]
    cuts = _cuts(set(lengths), ticks_per_second, dt, safety * limit)

    counts = [cuts[length] for length in lengths]
    if sum(counts) > MAXIMUM_STEPS:
        raise TimelineError(
            f"{sum(counts):.3g} steps are more than can be counted; use coarser cells or a shorter time"
        )
    dts = {length: float(Fraction(length, ticks_per_second * cuts[length])) for length in cuts}
    return Timeline(
        times=np.array([tick / ticks_per_second for tick in ticks]),
        steps=np.concatenate(([0], np.cumsum(np.array(counts, dtype=np.int64)))),
        dts=np.array([dts[length] for length in lengths]),
    )


def _due_ticks(end: float, intervals: Iterable[float], moments: Iterable[float] = ()) -> tuple[list[int], int]:
    """Due times in whole ticks, ascending, and the ticks of a second: exact, and quick for millions of due times."""
    stop = Fraction(repr(end))
    due = {Fraction(0), stop, *(Fraction(repr(moment)) for moment in moments)}
    counts: dict[Fraction, int] = {}
    for every in intervals:
        if end / every > MAXIMUM_DUE_TIMES:
            raise TimelineError(
                f"got {end!r} s; multiples of {every!r} s until then are more than {MAXIMUM_DUE_TIMES:,} due times: "
                f"make output.every and output.probe_every at least {_round_up(end / MAXIMUM_DUE_TIMES):g} s, "
                "or the run shorter",
                "time.end",
            )
        step = Fraction(repr(every))
        counts[step] = _multiples(step, stop)
        if counts[step] > 1:
            due.add(step)
    ticks_per_second = lcm(*(time.denominator for time in due))
    ticks = {time.numerator * (ticks_per_second // time.denominator) for time in due}
    for step, count in counts.items():
        if count > 1:
            ticks.update(range(0, count * (length := int(step * ticks_per_second)), length))
    return sorted(ticks), ticks_per_second


def _round_up(value: float) -> float:
    """The next number of two significant digits."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return ceil(value / step) * step


def _multiples(every: Fraction, end: Fraction) -> int:
    """The number of times 0, every, 2·every, … before the end. A time within rounding of the end does not count."""
    return int((end - every / 10**9) / every) + 1


def _cuts(lengths: set[int], ticks_per_second: int, dt: float | str, longest: float) -> dict[int, int]:
    """Into how many steps an interval of each length (ticks) is cut."""
    if isinstance(dt, str):
        if longest == inf:
            return dict.fromkeys(lengths, 1)
        step = Fraction(longest)
        return {length: ceil(Fraction(length, ticks_per_second) / step) for length in lengths}
    asked = Fraction(repr(dt))
    cuts = {}
    for length in lengths:
        ratio = Fraction(length, ticks_per_second) / asked
        cuts[length] = round(ratio)
        if cuts[length] < 1 or abs(ratio - cuts[length]) > ratio * Fraction(1, 10**9):
            raise TimelineError(
                f"{dt!r} s does not divide the {float(Fraction(length, ticks_per_second))!r} s between two due times; "
                f"the nearest that divides them all is {_nearest_divisor(lengths, ticks_per_second, asked)!r} s"
            )
    return cuts


def _nearest_divisor(lengths: set[int], ticks_per_second: int, asked: Fraction) -> float:
    """The longest time not above ``asked`` that divides all intervals."""
    common = Fraction(gcd(*lengths), ticks_per_second)
    return float(common / ceil(common / asked))
