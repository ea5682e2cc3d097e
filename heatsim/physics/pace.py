"""How fast conditions change in time: steps that see them at a few moments must not step over a change.

Between jumps and kinks a table is a straight line, and sources and given fluxes are averaged. What is left are
expressions for temperatures, film coefficients and emissivities: a step must not be longer than the time in which one
of them changes by half its range.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.boundary import Boundary
from heatsim.physics.condition_terms import time_functions
from heatsim.scenario import Formula, TimeFunction
from heatsim.scenario.timefunction import GOLDEN

Array = NDArray[np.float64]

_PART = 0.5  # of its range, by which a value may change in a step
# Samples are doubled until all changes together grow by less than this part; an oscillation needs several a period.
_FEWEST, _MOST, _GROWTH = 2**12, 2**20, 0.02


@dataclass(frozen=True, eq=False)
class Pace:
    """Changes of functions of time, added up from the start of a run.

    Attributes:
        times: in s, ascending, from 0 to the end of the run; shape (n,).
        changes: sum of the magnitudes of all changes since 0, in parts of the range of each function; shape (n,).
    """

    times: Array
    changes: Array

    @classmethod
    def of_conditions(cls, boundary: Boundary, tolerance: float) -> "Pace":
        """That of the values which steps see at moments.

        Args:
            boundary: the conditions.
            tolerance: the error that a step may have, in K. Temperatures that change by less do not count.
        """
        end = boundary.scenario.time.end
        # Each function once, in the order of the scenario: a set has another order, and other roundings, in each run.
        functions: dict[TimeFunction, None] = {}
        for condition in boundary.conditions:
            film, ambient, _, emissivity, surroundings = time_functions(condition)
            functions |= dict.fromkeys((film, emissivity))
            for temperature in (ambient, surroundings):
                low, high = temperature.extremes(end)
                if high - low > tolerance:
                    functions[temperature] = None
        return cls.of_functions(functions, end)

    @classmethod
    def of_functions(cls, functions: Iterable[TimeFunction], end: float) -> "Pace":
        """That of all expressions among some functions, up to ``end`` (s)."""
        found = [_changes(function, end) for function in functions if isinstance(function, Formula)]
        times = np.unique(np.concatenate([np.array([0.0, end]), *(times for times, _ in found)]))
        changes = [np.interp(times, *pace) for pace in found]
        return cls(times, np.asarray(sum(changes, start=np.zeros(len(times)))))

    def longest(self, time: float) -> float:
        """The longest step in s from a time in s; infinite if nothing changes any more."""
        reached = float(np.interp(time, self.times, self.changes)) + _PART
        if reached >= self.changes[-1]:
            return inf
        # The first of several times if nothing changes for a while.
        number = int(np.searchsorted(self.changes, reached))
        before, after = self.changes[number - 1 : number + 1]
        part = (reached - before) / (after - before)
        return float(self.times[number - 1] + part * (self.times[number] - self.times[number - 1])) - time

    def edges(self) -> Array:
        """The times in s at which the changes since 0 are whole numbers: an oscillation passes one each half period."""
        whole = np.arange(1.0, min(np.floor(self.changes[-1]), _MOST) + 1.0)
        growing = np.concatenate(([True], np.diff(self.changes) > 0.0))
        return np.asarray(np.interp(whole, self.changes[growing], self.times[growing]))


def _changes(function: Formula, end: float) -> tuple[Array, Array]:
    """Times in s, and the sum of the magnitudes of all changes up to each, in parts of the range."""
    count, before = _FEWEST, 0.0
    while True:
        # Not evenly spaced: no oscillation has the same phase at all of them.
        between = np.sort(np.mod(np.arange(1, count + 1) * GOLDEN, 1.0))
        times = np.concatenate(([0.0], between * end, [end]))
        values = function.at(times)
        changes = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(values)))))
        if 2 * count > _MOST or changes[-1] <= before * (1.0 + _GROWTH):
            span = float(np.ptp(values))
            return times, changes / span if span > 0.0 else np.zeros(len(times))
        count, before = 2 * count, float(changes[-1])
