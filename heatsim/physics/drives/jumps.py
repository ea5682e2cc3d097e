"""When what drives a body jumps or has a kink: steps that follow a tolerance end there.

A step of second order across a kink has an error that its estimate does not see in full: for a wall in hourly weather,
steps that ignored the kinks were off by up to 19 times the tolerance, and a quarter of them was rejected. So kinks
count, with one exception: a kink of a table is left out where a straight line beside it differs from the table by no
more than half the tolerance. By the maximum principle the temperatures then differ by no more than that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.drives.drives import PART, Drive, Drives
from heatsim.physics.sources.passing import passing_times
from heatsim.physics.time.tolerance import Tolerance
from heatsim.scenario import Scenario, Source, TimeFunction
from heatsim.scenario.values.timefunction import NEAR_JUMP

Array = NDArray[np.float64]

MOST_JUMPS = 100_000
# Times closer than this are one jump, in parts of the end: less than the distance at which both sides are evaluated.
_ONE = 0.1 * NEAR_JUMP
# A change across a jump that is smaller than this part of the range is one of a slope.
_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class Jumps:
    """The times in s between 0 and the end of a run at which steps end, besides the end.

    Attributes:
        times: ascending, shape (n,).
        kinks: where no value jumps and only slopes change, shape (n,).
    """

    times: Array
    kinks: NDArray[np.bool_]

    def next(self, time: float) -> tuple[float, bool] | None:
        """The first jump after a time in s, and whether it is a kink; None if there is none."""
        number = int(np.searchsorted(self.times, time, side="right"))
        return None if number == len(self.times) else (float(self.times[number]), bool(self.kinks[number]))


class _Found(NamedTuple):
    """Jumps of one function.

    Attributes:
        key: where the scenario has it.
        times: in s.
        kinks: which of them are kinks.
    """

    key: str
    times: Array
    kinks: NDArray[np.bool_]


def find_jumps(scenario: Scenario, drives: Drives, tolerance: Tolerance) -> Jumps:
    """The jumps of all conditions, sources and beams of a scenario at which steps must end.

    Values that have no effect do not count: the power of a source while it is off, surroundings without radiation. What
    is set during the run is taken to stay.

    Args:
        scenario: the scenario.
        drives: what drives its body.
        tolerance: of the first step. For tables of other quantities than temperatures, half of it counts as the same
            part of their range.

    Raises:
        ScenarioError: a value has too many jumps; says which.
    """
    found = [of for drive in drives.drives for of in _of_drive(scenario, drive, tolerance)]
    for number, source in enumerate(scenario.sources):
        found += _of_source(scenario, f"sources.{number}", source)
    times = np.concatenate([np.zeros(0), *(of.times for of in found)])
    kinks = np.concatenate([np.zeros(0, dtype=bool), *(of.kinks for of in found)])
    merged = _merged(times, kinks, scenario.time.end)
    if len(merged.times) > MOST_JUMPS:
        raise _too_many(scenario, max(found, key=lambda of: len(of.times)).key)
    return merged


def _of_drive(scenario: Scenario, drive: Drive, tolerance: Tolerance) -> Iterator[_Found]:
    """The jumps of the functions of a drive that matter."""
    allowed = PART * tolerance.of_run
    # What all its functions do together decides which of their jumps are too close to each other to matter.
    foreseen = [(key, of) for key, of in zip(drive.keys, drive.functions, strict=True) if of.foreseen]
    together = [function.jumps(drive.end) for _, function in foreseen]
    for (key, function), times in zip(foreseen, together, strict=True):
        if times is None or not (drive.averaged or function.resolved(drive.end)):
            raise _too_many(scenario, key)
    every = np.unique(np.concatenate([np.zeros(0), *(times for times in together if times is not None)]))
    negligible = every[drive.negligible(every, allowed)]
    for key, function in foreseen:
        low, high = function.extremes(drive.end)
        times = function.jumps(drive.end, drive.straight(low, high, tolerance))
        assert times is not None, "found above"
        times = times[(times > drive.during[0]) & (times < drive.during[1]) & ~np.isin(times, negligible)]
        kinks = _are_kinks(function, times, (low, high), drive.end)
        # After a slope so steep that the heat just before a kink says nothing, the heat after it does: as at a jump.
        yield _Found(key, times, kinks & (drive.lags(times) <= allowed))


def _are_kinks(function: TimeFunction, times: Array, extremes: tuple[float, float], end: float) -> NDArray[np.bool_]:
    """At which times only the slope of a function changes."""
    before, after = function.at(times - NEAR_JUMP * end), function.at(times + NEAR_JUMP * end)
    return np.asarray(np.abs(after - before) <= _SMALLEST * (extremes[1] - extremes[0]))


def _of_source(scenario: Scenario, key: str, source: Source) -> Iterator[_Found]:
    """When a source is switched, and when its beam starts and stops."""
    edges = list(source.during or ())
    if source.beam is not None:
        passing = passing_times(source.beam)
        edges += [float(passing[0]), float(passing[-1])] if len(passing) > 1 else [float(passing[0])]
    yield _Found(f"{key}.during", np.array(edges), np.zeros(len(edges), dtype=bool))


def _merged(times: Array, kinks: NDArray[np.bool_], end: float) -> Jumps:
    """Times within the run, each once; one is a kink if all that happens then are kinks."""
    inside = (times > NEAR_JUMP * end) & (times < end - NEAR_JUMP * end)
    order = np.argsort(times[inside], kind="stable")
    times, kinks = times[inside][order], kinks[inside][order]
    if not len(times):
        return Jumps(times, kinks)
    first = np.flatnonzero(np.concatenate(([True], np.diff(times) > _ONE * end)))
    return Jumps(times[first], np.logical_and.reduceat(kinks, first))


def _too_many(scenario: Scenario, key: str) -> ScenarioError:
    message = (
        f"jumps, has a kink or oscillates more than {MOST_JUMPS:,} times during the run, and steps of time.method = "
        f'"{scenario.time.method}" follow each of them; write its mean over time, or time.method = "euler"'
    )
    return ScenarioError(scenario.path, [Mistake(key, message)])
