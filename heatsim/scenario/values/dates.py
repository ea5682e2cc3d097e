"""Tables whose times are dates, counted from the start of a run."""

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def seconds_between(first: datetime, start: datetime) -> float:
    """The time from the first date of a table to the start of the run in s.

    Raises:
        ValueError: only one of them has a time zone; the message is for the user.
    """
    if (first.tzinfo is None) != (start.tzinfo is None):
        zone, none = ("the dates have", "time.start") if first.tzinfo else ("time.start has", "the dates")
        raise ValueError(
            f"its first date is {first.isoformat()}, and time.start is {start.isoformat()}; {zone} a time "
            f"zone, {none} not: write both with it, as in 2024-01-31T00:00+01:00, or both without"
        )
    return (start - first).total_seconds()


def counted_from(times: _Floats, values: _Floats, repeat: bool, start: float) -> tuple[_Floats, _Floats]:
    """A table whose time 0 is a later one: its times in s, and its values.

    Args:
        times: in s after the first one, ascending; a time may occur twice, where the value jumps.
        values: one for each time.
        repeat: whether the table starts again at its last time; then the result begins within the period.
        start: the new time 0 in s after the first time; negative if the table begins later.

    Raises:
        ValueError: the table ends before.
    """
    period = float(times[-1])
    if repeat:
        start %= period
    elif start >= period:
        raise ValueError("ends before")
    if start <= 0.0:
        return times - start, values
    before, after = (int(np.searchsorted(times, start, side)) for side in ("left", "right"))
    if after > before:
        ends = values[before], values[after - 1]
    else:
        part = (start - times[after - 1]) / (times[after] - times[after - 1])
        between = values[after - 1] + part * (values[after] - values[after - 1])
        ends = between, between
    found: list[_Floats] = [np.zeros(1), times[after:] - start]
    numbers: list[_Floats] = [np.array(ends[1:]), values[after:]]
    if repeat:
        found += [times[:before] + (period - start), np.array([period])]
        numbers += [values[:before], np.array(ends[:1])]
    return _without_third(np.concatenate(found), np.concatenate(numbers))


def _without_third(times: _Floats, values: _Floats) -> tuple[_Floats, _Floats]:
    """A table without what is between the first and the last value at one time, and without a jump by nothing."""
    first = np.append(True, times[1:] > times[:-1])
    last = np.append(times[1:] > times[:-1], True)
    begins = values[np.flatnonzero(first)[np.cumsum(first) - 1]]
    kept = first | (last & (values != begins))
    return times[kept], values[kept]
