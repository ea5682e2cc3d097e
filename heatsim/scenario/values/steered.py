"""A number that is set during the run: its range and the times at which it may change are known before."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.function_of_time import Length, TimeFunction
from heatsim.scenario.values.quantities import Quantity

Array = NDArray[np.float64]

# Times that differ by less than 1/_SAME of an interval or of a step are the same.
_SAME = 10**9


def multiples(every: float, end: float) -> Array:
    """The times ``every``, 2·``every``, … before ``end``, all in s, each rounded once as due times are."""
    step = Fraction(repr(every))
    count = int((Fraction(repr(end)) - step / _SAME) / step)
    return np.array([number * step.numerator / step.denominator for number in range(1, count + 1)])


class Resets(NamedTuple):
    """The temperatures in K that the whole field may be set to during the run, at the multiples of ``every`` (s)."""

    low: float
    high: float
    every: float


class Steered(TimeFunction):
    """A value that a program or a recorded table sets while the run goes on.

    It is constant from one time at which it may change to the next. Steps of ``euler`` end at these times; those of the
    other methods where it has changed. Beyond the last value that was set it is taken to stay; nothing but the range
    says what comes. What depends on the future, such as stable steps and tables, therefore asks for :meth:`extremes`.

    Args:
        key: the path of its key, with numbers for names.
        start: the value at t = 0 until another one is set, in SI units as all others.
        low, high: all values lie between them.
        every: s between the times at which it may change.
        quantity: of the values.
    """

    def __init__(
        self, key: tuple[str, ...], start: float, low: float, high: float, every: float, quantity: Quantity
    ) -> None:
        self.key, self.start, self.low, self.high, self.every = key, start, low, high, every
        self.quantity = quantity
        self._nodes: dict[float, Array] = {}
        self.restore([0.0], [start])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steered) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)

    def __repr__(self) -> str:
        return f"Steered({'.'.join(self.key)}, {self.low!r} to {self.high!r})"

    @property
    def unit(self) -> str:
        """The SI unit of the values."""
        return self.quantity.unit

    @property
    def _settings(self) -> tuple[object, ...]:
        return self.key, self.start, self.low, self.high, self.every

    @property
    def constant(self) -> bool:
        """False."""
        return False

    @property
    def foreseen(self) -> bool:
        """False."""
        return False

    @property
    def now(self) -> float:
        """The value that was set last."""
        return float(self._values[-1])

    @property
    def changed_at(self) -> float:
        """The time in s at which it changed last; 0 if it never did."""
        return float(self._times[-1])

    @property
    def history(self) -> tuple[list[float], list[float]]:
        """The times in s at which it changed, the first of them 0, and the values from then on."""
        return self._times.tolist(), self._values.tolist()

    def restore(self, times: list[float], values: list[float]) -> None:
        """Take a :attr:`history` instead of the present one."""
        self._times, self._values = np.array(times), np.array(values)

    def set(self, time: float, value: float) -> None:
        """Let it have a value from a time in s on, which lies at or after the last change."""
        earlier = len(self._times) - (time == self._times[-1])  # a value that was set at this very time does not count
        if not earlier or value != self._values[earlier - 1]:
            self._times = np.append(self._times[:earlier], time)
            self._values = np.append(self._values[:earlier], value)
        else:
            self._times, self._values = self._times[:earlier], self._values[:earlier]

    def at(self, times: Array) -> Array:
        """The last value that was set until then."""
        return np.asarray(self._values[self._piece(times)])

    def jumps(self, end: float, error: float = 0.0) -> Array:
        """All times at which it may change."""
        return multiples(self.every, end)

    def mean(self, times: Array, dt: Length) -> Array:
        """Exact means; the value itself where a step contains no change but for the rounding of its ends."""
        stops, rounding = times + dt, dt / _SAME
        first, last = self._piece(times + rounding), self._piece(stops - rounding)
        whole = np.concatenate(([0.0], np.cumsum(self._values[:-1] * np.diff(self._times))))

        def heat(pieces: NDArray[np.intp], until: Array) -> Array:
            return np.asarray(whole[pieces] + self._values[pieces] * (until - self._times[pieces]))

        means = (heat(last, stops) - heat(first, times)) / (stops - times)
        return np.where(last > first, means, self._values[first])

    def nodes(self, end: float) -> Array:
        """0, all times at which it may change, and ``end``."""
        if end not in self._nodes:
            self._nodes[end] = np.concatenate(([0.0], multiples(self.every, end), [end]))
        return self._nodes[end]

    def last_change(self, end: float) -> float:
        """The last time before ``end`` at which it may change; 0 if there is none."""
        return float(multiples(self.every, end).max(initial=0.0))

    def extremes(self, end: float) -> tuple[float, float]:
        """The ends of its range."""
        return self.low, self.high

    def _piece(self, times: Array) -> NDArray[np.intp]:
        """The number of the piece of its history in which times lie."""
        return np.asarray(np.maximum(np.searchsorted(self._times, times, "right") - 1, 0))
