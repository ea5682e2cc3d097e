"""When what drives a body jumps or has a kink: steps that follow a tolerance end there.

A step of second order across a kink has an error that its estimate does not see in full: for a wall in hourly weather,
steps that ignored the kinks were off by up to 19 times the tolerance, and a quarter of them was rejected. So kinks
count, with one exception: a kink of a table is left out where a straight line beside it differs from the table by no
more than half the tolerance. By the maximum principle the temperatures then differ by no more than that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import Grid
from heatsim.physics.boundary import Boundary
from heatsim.scenario import Beam, Source, TimeFunction, radiates
from heatsim.scenario.functions import functions_in_time
from heatsim.scenario.quantities import TEMPERATURE
from heatsim.scenario.timefunction import NEAR_JUMP

Array = NDArray[np.float64]

MOST_JUMPS = 100_000
# A table of temperatures may be simplified by this part of the tolerance.
_PART = 0.5
# Where values in space and time are looked at, in parts of the domain.
_PLACES = (0.0, 0.234, 0.5, 0.618, 1.0)
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


def find_jumps(boundary: Boundary, tolerance: float, span: float) -> Jumps:
    """The jumps of all conditions, sources and beams of a scenario.

    Values that have no effect do not count: the power of a source while it is off, surroundings without radiation.

    Args:
        boundary: the conditions, with their scenario.
        tolerance: the error that a step may have, in K.
        span: between the extremes of initial and boundary temperatures, in K; see ``temperature_range.span``. For
            tables of other quantities than temperatures, half the tolerance counts as the same part of their range.

    Raises:
        ScenarioError: a value has too many jumps; says which.
    """
    end = boundary.scenario.time.end
    allowed = _Allowed(_PART * tolerance, _PART * min(tolerance / span, 1.0) if span > 0.0 else 0.0)
    found = [*_of_conditions(boundary, allowed)]
    for number, source in enumerate(boundary.scenario.sources):
        found += _of_source(boundary, number, source, allowed)
    times = np.concatenate([np.zeros(0), *(times for _, times, _ in found)])
    kinks = np.concatenate([np.zeros(0, dtype=bool), *(kinks for _, _, kinks in found)])
    merged = _merged(times, kinks, end)
    if len(merged.times) > MOST_JUMPS:
        raise _too_many(boundary, max(found, key=lambda some: len(some[1]))[0])
    return merged


def passing_times(beam: Beam) -> Array:
    """When the spot of a beam is at each point of its path, in s; a spot that does not move starts and never ends."""
    if beam.speed is None or len(beam.path) == 1:
        return np.array([beam.start])
    lengths = [hypot(*step) for step in np.diff(np.array(beam.path), axis=0)]
    return np.asarray(beam.start + np.concatenate(([0.0], np.cumsum(lengths))) / beam.speed)


def some_points(grid: Grid) -> list[tuple[float, float, float]]:
    """Points of a domain in m: what a(t) + b(t)·f(x, y, z) does in time shows at some of them."""
    parts = [[origin + part * size for part in _PLACES] for origin, size in zip(grid.origin, grid.size, strict=True)]
    return [(x, y, z) for x, y, z in zip(*parts, strict=True)]


_Found = tuple[str, Array, NDArray[np.bool_]]


class _Allowed(NamedTuple):
    """By how much tables may be simplified: temperatures in K, other quantities in parts of their range."""

    kelvin: float
    part: float


def _of_conditions(boundary: Boundary, allowed: _Allowed) -> Iterator[_Found]:
    end, seen = boundary.scenario.time.end, set()
    for key, condition in zip(boundary.keys, boundary.conditions, strict=True):
        for name, function, quantity in functions_in_time(condition):
            # Faces share the condition `default`, and surroundings are the ambient if they are not set.
            if function.constant or id(function) in seen:
                continue
            if name == "surroundings" and not radiates(condition):
                continue
            seen.add(id(function))
            error = allowed.kelvin if quantity == TEMPERATURE else _part_of_range(function, allowed, end)
            yield f"{key}.{name}", *_of_function(boundary, f"{key}.{name}", function, error, (0.0, end))


def _of_source(boundary: Boundary, number: int, source: Source, allowed: _Allowed) -> Iterator[_Found]:
    end = boundary.scenario.time.end
    start, stop = source.during or (0.0, end)
    edges = [start, stop] if source.during is not None else []
    key = f"sources.{number}"
    if source.beam is not None:
        passing = passing_times(source.beam)
        moves = len(passing) > 1
        start, stop = max(start, source.beam.start), min(stop, float(passing[-1])) if moves else stop
        edges += [float(passing[0]), float(passing[-1])] if moves else [float(passing[0])]
        corners = passing[1:-1][_turns(source.beam)] if moves else np.zeros(0)
        corners = corners[(corners > start) & (corners < stop)]
        yield f"{key}.beam.path", corners, np.ones(len(corners), dtype=bool)
    yield f"{key}.during", np.array(edges), np.zeros(len(edges), dtype=bool)
    for name, function in source.functions_in_time(some_points(boundary.scenario.grid)):
        if not function.constant:
            error = _part_of_range(function, allowed, end)
            yield f"{key}.{name}", *_of_function(boundary, f"{key}.{name}", function, error, (start, stop))


def _part_of_range(function: TimeFunction, allowed: _Allowed, end: float) -> float:
    low, high = function.extremes(end)
    return allowed.part * (high - low)


def _of_function(
    boundary: Boundary, key: str, function: TimeFunction, error: float, during: tuple[float, float]
) -> tuple[Array, NDArray[np.bool_]]:
    """Jumps of a function between two times in s, and which of them are kinks."""
    end = boundary.scenario.time.end
    times = function.jumps(end, error)
    if times is None:
        raise _too_many(boundary, key)
    times = times[(times > during[0]) & (times < during[1])]
    before, after = function.at(times - NEAR_JUMP * end), function.at(times + NEAR_JUMP * end)
    low, high = function.extremes(end)
    return times, np.abs(after - before) <= _SMALLEST * (high - low)


def _turns(beam: Beam) -> NDArray[np.bool_]:
    """At which inner points of its path a beam changes its direction."""
    steps = np.diff(np.array(beam.path), axis=0)
    steps /= np.hypot(steps[:, 0], steps[:, 1])[:, None]
    return np.asarray(np.abs(np.diff(steps, axis=0)).max(axis=1) > _SMALLEST)


def _merged(times: Array, kinks: NDArray[np.bool_], end: float) -> Jumps:
    """Times within the run, each once; one is a kink if all that happens then are kinks."""
    inside = (times > NEAR_JUMP * end) & (times < end - NEAR_JUMP * end)
    order = np.argsort(times[inside], kind="stable")
    times, kinks = times[inside][order], kinks[inside][order]
    if not len(times):
        return Jumps(times, kinks)
    first = np.flatnonzero(np.concatenate(([True], np.diff(times) > _ONE * end)))
    return Jumps(times[first], np.logical_and.reduceat(kinks, first))


def _too_many(boundary: Boundary, key: str) -> ScenarioError:
    message = (
        f"jumps or has a kink more than {MOST_JUMPS:,} times during the run, and steps of time.method = "
        f'"{boundary.scenario.time.method}" end at each of them; write its mean over time, or time.method = "euler"'
    )
    return ScenarioError(boundary.scenario.path, [Mistake(key, message)])
