"""The time for which a temperature is above or below a threshold, from the rows of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import RunState
from heatsim.scenario import TIME_BELOW, Probe
from heatsim.scenario.tables.probes import DewPoint

Array = NDArray[np.float64]

_PIECES = 32  # between two rows


@dataclass
class TimeBeyond:
    """The time for which a temperature has been above a threshold, or below it.

    Between two rows the temperature is the polynomial through up to four rows: one before, these two and one behind,
    or two before at the last row, until the next one. Where these rows only rise or only fall, it stays between the
    temperatures of the two. The threshold is known at all times: both are compared at _PIECES + 1 times and at the
    nodes of the threshold, with straight lines between.

    Attributes:
        threshold: a number in K, or a dew point.
        end: of the run in s.
        below: whether the time below the threshold counts.
        seconds: the time in s up to the row before the last one.
        rows: times in s and temperatures in K of the last three rows.
    """

    threshold: float | DewPoint
    end: float
    below: bool = False
    seconds: float = 0.0
    rows: list[tuple[float, float]] = field(default_factory=list)

    @cached_property
    def _nodes(self) -> Array:
        """The nodes of the dew point."""
        return np.zeros(0) if isinstance(self.threshold, float) else self.threshold.nodes(self.end)

    @classmethod
    def of(cls, probe: Probe, state: RunState) -> "TimeBeyond":
        """The time that a probe asks for."""
        assert probe.threshold is not None, "required there"
        return cls(probe.threshold, state.problem.scenario.time.end, probe.statistic == TIME_BELOW)

    def at(self, temperature: float, time: float) -> float:
        """The time in s so far, when the temperature in K is that of a row at ``time``."""
        rows = [*self.rows, (time, temperature)]
        if len(rows) > 2:
            self.seconds += self._within(rows, len(rows) - 3)
        self.rows = rows[-3:]
        return self.seconds + (self._within(rows, len(rows) - 2) if len(rows) > 1 else 0.0)

    def _within(self, rows: Sequence[tuple[float, float]], first: int) -> float:
        """The seconds between the row ``first`` and the next one."""
        times, kelvins = zip(*rows, strict=True)
        (start, one), (stop, other) = rows[first : first + 2]
        lowest, highest = min(kelvins), max(kelvins)
        if isinstance(self.threshold, float) and not (
            2.0 * lowest - highest <= self.threshold <= 2.0 * highest - lowest
        ):
            return stop - start if self.below == (self.threshold > highest) else 0.0  # too far for any overshoot
        at = np.linspace(start, stop, _PIECES + 1)
        limit: float | Array = self.threshold if isinstance(self.threshold, float) else 0.0
        if not isinstance(self.threshold, float):
            at = np.union1d(at, self._nodes[np.searchsorted(self._nodes, start) : np.searchsorted(self._nodes, stop)])
            limit = self.threshold.at(at)
        found = _polynomial(times, kelvins, at)
        slopes = np.diff(kelvins)
        if (slopes >= 0.0).all() or (slopes <= 0.0).all():
            found = np.clip(found, min(one, other), max(one, other))
        excess = limit - found if self.below else found - limit
        return float(np.diff(at) @ _parts_above(excess[:-1], excess[1:]))

    def save(self) -> list[float] | None:
        """What the next row needs from the rows before; None before the first."""
        return [self.seconds, *(number for row in self.rows for number in row)] if self.rows else None

    def restore(self, saved: list[float] | None) -> None:
        """Restore what :meth:`save` returned."""
        if saved is not None:
            self.seconds, self.rows = saved[0], [*zip(saved[1::2], saved[2::2], strict=True)]


def _polynomial(times: Sequence[float], values: Sequence[float], at: Array) -> Array:
    """The polynomial through some values, at other times, in Newton's form."""
    differences = list(values)
    for order in range(1, len(times)):
        for place in range(len(times) - 1, order - 1, -1):
            rise = differences[place] - differences[place - 1]
            differences[place] = rise / (times[place] - times[place - order])
    found = np.full(at.shape, differences[-1])
    for time, difference in zip(times[-2::-1], differences[-2::-1], strict=True):
        found = found * (at - time) + difference
    return found


def _parts_above(before: Array, after: Array) -> Array:
    """The parts of intervals in which lines from ``before`` to ``after`` are above 0."""
    apart = np.abs(after - before)
    crossing = np.maximum(before, after) / np.where(apart > 0.0, apart, 1.0)
    return np.where((before >= 0.0) & (after >= 0.0), 1.0, np.where((before < 0.0) & (after < 0.0), 0.0, crossing))
