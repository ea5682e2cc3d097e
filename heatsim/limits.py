"""Limits of values: whether a curve keeps them, by how much, and when it first passes one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.temperature_units import TemperatureUnit

AT_MOST, AT_LEAST = LIMITS = ("at_most", "at_least")
SIGNS = {AT_MOST: "≤", AT_LEAST: "≥"}
# The units of extents and of times above or below a threshold, which begin at 0 in most runs.
FROM_ZERO = ("m", "s")

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Limits:
    """The limits of a value in SI units; None where there is none."""

    at_most: float | None = None
    at_least: float | None = None

    @property
    def given(self) -> Mapping[str, float]:
        """The limits that there are, by their keys."""
        both = zip(LIMITS, (self.at_most, self.at_least), strict=True)
        return {key: value for key, value in both if value is not None}

    def in_unit(self, unit: TemperatureUnit | None) -> "Limits":
        """Limits of temperatures in K in a unit; those of other values, for which it is None, stay as they are."""
        return self if unit is None else Limits(**{key: unit.of(value) for key, value in self.given.items()})

    def margin(self, value: float) -> float:
        """How far a value is within the nearer limit, below 0 if it is beyond; NaN of NaN."""
        return min(value - limit if key == AT_LEAST else limit - value for key, limit in self.given.items())


@dataclass(frozen=True)
class LimitVerdict:
    """Whether a curve keeps a limit. All numbers are in SI units.

    Attributes:
        probe: the name of the probe.
        unit: of the values, such as "K" or "m".
        key: "at_most" or "at_least".
        limit: the limit.
        value: the value nearest to the limit, or farthest beyond it; the largest, if that alone has to reach the limit.
        time: when it is reached, in s.
        passed_at: the time in s at which the limit is first passed, interpolated between rows; None if it is kept, or
            if the largest value does not reach it.
        passed_between: the times in s of the rows around that; None without it.
    """

    probe: str
    unit: str
    key: str
    limit: float
    value: float
    time: float
    passed_at: float | None
    passed_between: tuple[float, float] | None = None

    @property
    def kept(self) -> bool:
        """Whether the limit is kept."""
        return not self.margin < 0.0

    @property
    def margin(self) -> float:
        """How far the value is within the limit; below 0 if it is beyond."""
        return Limits(**{self.key: self.limit}).margin(self.value)


def first_time(times: _Floats, beyond: _Floats, *, touching: bool = False) -> float | None:
    """The first time at which a curve is above 0, or with ``touching`` at least 0; linear between rows, else None."""
    there = np.flatnonzero(beyond >= 0.0 if touching else beyond > 0.0)
    if not len(there):
        return None
    i = int(there[0])
    if i == 0 or not np.isfinite(beyond[i - 1]):
        return float(times[i])
    fraction = beyond[i - 1] / (beyond[i - 1] - beyond[i])
    return float(times[i - 1] + fraction * (times[i] - times[i - 1]))


def judge(
    limits: Mapping[str, Limits], curves: Mapping[str, Mapping[tuple[str, str], _Floats]], times: _Floats
) -> list[LimitVerdict]:
    """A verdict for each limit of each probe; none for a probe without a finite value.

    All rows must keep a limit. But an extent, or a time above or below a threshold, is 0 at first, and an extent often
    at the end: its largest value must reach `at_least`.

    Args:
        limits: by the names of probes.
        curves: the columns of each probe by name and unit, shape (rows,); the points of a line are several.
        times: in s, shape (rows,).
    """
    return [
        verdict
        for probe, its in limits.items()
        for key, limit in its.given.items()
        for verdict in _of_limit(probe, key, limit, curves.get(probe, {}), times)
    ]


def _of_limit(
    probe: str, key: str, limit: float, columns: Mapping[tuple[str, str], _Floats], times: _Floats
) -> Iterator[LimitVerdict]:
    """The verdict on the worst of some columns, with the time at which the first of them passes the limit."""
    sign, found = 1.0 if key == AT_MOST else -1.0, list[LimitVerdict]()
    for (_, unit), values in columns.items():
        beyond = sign * (values - limit)
        if np.isfinite(beyond).any():
            once = key == AT_LEAST and unit in FROM_ZERO
            row = int(np.nanargmin(beyond) if once else np.nanargmax(beyond))
            passed = None if once else first_time(times, beyond)
            found.append(LimitVerdict(probe, unit, key, limit, float(values[row]), float(times[row]), passed))
    if found:
        passed_at = min((each.passed_at for each in found if each.passed_at is not None), default=None)
        rows = None if passed_at is None else _rows_around(times, passed_at)
        yield replace(min(found, key=lambda each: each.margin), passed_at=passed_at, passed_between=rows)


def _rows_around(times: _Floats, time: float) -> tuple[float, float]:
    """The last row at a time or before it, and the first one at it or after it."""
    before, after = int(np.searchsorted(times, time, "right")) - 1, int(np.searchsorted(times, time))
    return float(times[max(before, 0)]), float(times[min(after, len(times) - 1)])
