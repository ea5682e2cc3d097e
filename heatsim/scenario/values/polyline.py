"""The corners of a table in time: where straight lines through its values change direction or jump."""

from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_CORNERS = 2**20
# Values of a straight line that were rounded once, as a fraction of the range of the table.
_ROUNDING = 1e-12


def vertices(times: Array, values: Array, end: float, error: float = 0.0) -> Array:
    """The corners in (0, ``end``) of straight lines through a table, which is constant beyond its ends.

    A corner is left out if the lines between the other corners miss the table by at most ``error``. Jumps always stay.

    Args:
        times: of the table in s, ascending; a time that occurs twice is a jump.
        values: one for each time.
        end: in s.
        error: in the unit of the values.
    """
    times = np.concatenate(([min(0.0, times[0])], times, [max(end, times[-1])]))
    values = np.concatenate((values[:1], values, values[-1:]))
    kept = _corners(times, values, error)
    return np.unique(kept[(kept > 0.0) & (kept < end)])


def vertices_of_periods(times: Array, values: Array, end: float, error: float = 0.0) -> Array | None:
    """The corners in (0, ``end``) of a table that starts at 0 and is repeated; its last time is the period.

    Returns:
        As :func:`vertices`; None if they are more than 2²⁰.
    """
    period = float(times[-1])
    inner = _corners(times, values, error)
    inner = np.unique(inner[(inner > 0.0) & (inner < period)])
    once = inner if _goes_on(times, values) else np.concatenate(([0.0], inner))
    if len(once) * (end / period + 1.0) > MOST_CORNERS:
        return None
    laps = np.arange(np.ceil(end / period))
    corners = (laps[:, None] * period + once).ravel()
    return corners[(corners > 0.0) & (corners < end)]


def nodes(times: Array, values: Array, repeat: bool, end: float) -> Array:
    """The times of a table from 0 to ``end`` (s), with both sides of each jump; at most 2²⁰ of a repeated one."""
    jumps = times[1:][np.diff(times) == 0.0]
    if not repeat:
        found = np.concatenate((times, np.nextafter(jumps, 0.0)))
    else:
        again = [] if values[0] == values[-1] else [0.0]
        laps = times[-1] * np.arange(min(np.ceil(end / times[-1]) + 1.0, MOST_CORNERS / len(times)))[:, None]
        jumps = (laps + np.append(jumps, again)).ravel()
        jumps = jumps[jumps > 0.0]
        # The time within a period is rounded.
        beside = 4.0 * np.spacing(jumps)
        smooth = np.append(np.setdiff1d(times[1:-1], jumps), [] if again else [0.0])
        found = np.concatenate(((laps + smooth).ravel(), jumps - beside, jumps + beside))
    return np.unique(np.concatenate(([0.0], found[(found > 0.0) & (found < end)], [end])))


def _goes_on(times: Array, values: Array) -> bool:
    """Whether a repeated table is a straight line across the time at which it starts again."""
    twice = np.concatenate((times, times[1:] + times[-1]))
    corners = _corners(twice, np.concatenate((values, values[1:])), 0.0)
    return bool(values[0] == values[-1] and times[-1] not in corners)


def _corners(times: Array, values: Array, error: float) -> Array:
    """The first and last time, all jumps, and the corners between them that are needed to stay within ``error``."""
    allowed = max(error, _ROUNDING * float(values.max() - values.min()))
    jumps = np.flatnonzero(np.diff(times) == 0.0)
    kept: list[float] = []
    for first, last in pairwise((-1, *jumps.tolist(), len(times) - 1)):
        kept += _simplified(times[first + 1 : last + 1].tolist(), values[first + 1 : last + 1].tolist(), allowed)
    return np.array(kept)


def _simplified(times: list[float], values: list[float], allowed: float) -> list[float]:
    """The times that stay of a continuous part of a table, by a cone from the last one that stayed.

    A line from there to a later node misses no node between them by more than ``allowed`` if its slope is in the cone.
    """
    kept, anchor = [times[0]], 0
    low, high = -inf, inf
    for number in range(1, len(times)):
        slope = (values[number] - values[anchor]) / (times[number] - times[anchor])
        if not low <= slope <= high:
            anchor = number - 1
            kept.append(times[anchor])
            low, high = -inf, inf
            slope = (values[number] - values[anchor]) / (times[number] - times[anchor])
        slack = allowed / (times[number] - times[anchor])
        low, high = max(low, slope - slack), min(high, slope + slack)
    return [*kept, times[-1]]
