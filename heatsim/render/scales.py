"""Scales of pictures: units that give readable ticks, and offsets for temperatures with a tiny range."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


@dataclass(frozen=True)
class Unit:
    """A unit for numbers: its symbol, its size in SI, and the smallest SI value for which it is used."""

    symbol: str
    size: float
    least: float


LENGTHS = (
    Unit("nm", 1e-9, 0.0),
    Unit("µm", 1e-6, 1e-6),
    Unit("mm", 1e-3, 1e-3),
    Unit("m", 1.0, 3.0),
    Unit("km", 1e3, 5e3),
)
TIMES = (
    Unit("ns", 1e-9, 0.0),
    Unit("µs", 1e-6, 1e-6),
    Unit("ms", 1e-3, 1e-3),
    Unit("s", 1.0, 1.0),
    Unit("min", 60.0, 1200.0),
    Unit("h", 3600.0, 3.0 * 3600.0),
    Unit("days", 86400.0, 3.0 * 86400.0),
)
_PREFIXES = ("p", -12), ("n", -9), ("µ", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12)
POWERS = tuple(Unit(f"{prefix}W", 10.0**power, 10.0**power) for prefix, power in _PREFIXES)
ENERGIES = tuple(Unit(f"{prefix}J", 10.0**power, 10.0**power) for prefix, power in _PREFIXES)
_KELVINS = tuple(Unit(f"{prefix}K", 10.0**power, 10.0**power) for prefix, power in _PREFIXES if power <= 0)

# A range smaller than this fraction of the temperature is shown as a difference: 300.00041 K is unreadable.
_SMALL_RANGE = 1e-4


def choose_unit(units: Sequence[Unit], largest: float) -> Unit:
    """The most readable unit for the magnitude of ``largest`` (in SI); joules or metres for 0."""
    if largest == 0.0:
        return next(unit for unit in units if unit.size == 1.0)
    fitting = [unit for unit in units if abs(largest) >= unit.least]
    return fitting[-1] if fitting else units[0]


def ticks(low: float, high: float, most: int) -> dict[float, str]:
    """About ``most`` round numbers from ``low`` to ``high``, at least two, with their texts."""
    from matplotlib.ticker import MaxNLocator

    margin = 1e-9 * (high - low)
    values = np.asarray(MaxNLocator(nbins=max(most, 1), steps=[1, 2, 5, 10]).tick_values(low, high))
    values = values[(values >= low - margin) & (values <= high + margin)]
    decimals = max(0, -floor(log10(values[1] - values[0]) + 1e-9))
    texts = (f"{round(float(value), decimals) + 0.0:.{decimals}f}".replace("-", "−") for value in values)
    return dict(zip(values.tolist(), texts, strict=True))


def format_time(time: float, unit: Unit) -> str:
    """A time in s as text in a unit: ``"2.5 min"``."""
    return f"{time / unit.size + 0.0:.4g} {unit.symbol}"


@dataclass(frozen=True)
class TemperatureScale:
    """The scale of drawn temperatures: in K or, if their range is tiny, as a difference from ``offset``.

    Attributes:
        low: lower end of the scale in K.
        high: upper end of the scale in K; above ``low`` also for a uniform field.
        uniform: whether the temperatures differ only by rounding.
        offset: the subtracted temperature in K.
        unit: the unit of the difference.
    """

    low: float
    high: float
    uniform: bool = False
    offset: float = 0.0
    unit: Unit = _KELVINS[-1]

    @classmethod
    def spanning(cls, low: float, high: float, dtype: DTypeLike = np.float64) -> "TemperatureScale":
        """The scale for temperatures from ``low`` to ``high`` in K that were stored as ``dtype``."""
        largest = max(abs(low), abs(high))
        span = high - low
        if span <= 4.0 * float(np.finfo(dtype).eps) * largest:
            return cls(low - 0.5, high + 0.5, uniform=True)
        if span >= _SMALL_RANGE * largest:
            return cls(low, high)
        offset = round(0.5 * (low + high), -floor(log10(span)) - 1)
        return cls(low, high, False, offset, choose_unit(_KELVINS, max(abs(low - offset), abs(high - offset))))

    @property
    def label(self) -> str:
        """The label of axes and colour bars."""
        if self.offset == 0.0:
            return "Temperature (K)"
        return f"Temperature − {self.offset!r} K ({self.unit.symbol})".replace(".0 K", " K")

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the scale as drawn."""
        return (self.low - self.offset) / self.unit.size, (self.high - self.offset) / self.unit.size

    def drawn(self, temperature: ArrayLike) -> NDArray[np.float64]:
        """Convert temperatures in K to drawn numbers, in float64 so that small differences are kept."""
        return (np.asarray(temperature, dtype=np.float64) - self.offset) / self.unit.size

    def colours(self, temperature: ArrayLike) -> NDArray[np.uint8]:
        """RGB of temperatures in K, shape of ``temperature`` + (3,)."""
        low, high = self.limits
        fraction = (self.drawn(temperature) - low) / (high - low)
        return np.asarray(colour_map()(fraction, bytes=True)[..., :3], dtype=np.uint8)


def colour_map() -> Any:
    """The colour map of all pictures: perceptually uniform, and readable in grey."""
    import matplotlib

    return matplotlib.colormaps["inferno"]
