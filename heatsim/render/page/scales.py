"""Scales of pictures: units that give readable ticks, and offsets for temperatures with a tiny range."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from heatsim.amounts import PREFIXES, Unit, choose_unit
from heatsim.counts import minus
from heatsim.render.page.material_colours import material_colours
from heatsim.temperature_units import KELVIN, TemperatureUnit

# A range smaller than this fraction of the temperature is shown as a difference: 300.00041 K is unreadable.
_SMALL_RANGE = 1e-4
# The part of the colour map "inferno" below this fraction is black or nearly so.
_DARKEST = 0.16
# The colours of values below and above a scale, which the colour map does not have.
BELOW, ABOVE = "#5aa9e6", "#2bd97c"


def ticks(low: float, high: float, most: int) -> dict[float, str]:
    """Round numbers from ``low`` to ``high`` with their texts: at most ``most`` steps between them, at least two."""
    margin, most = 1e-9 * (high - low), max(most, 1)
    power = floor(log10((high - low) / most)) - 1
    values = finer = np.array([low, high])
    for step in (factor * 10.0**exponent for exponent in range(power, power + 4) for factor in (1.0, 2.0, 5.0)):
        values = step * np.arange(ceil((low - margin) / step), floor((high + margin) / step) + 1)
        if len(values) <= most + 1:
            break
        finer = values
    values = values if len(values) > 1 else finer
    decimals = max(0, -floor(log10(values[1] - values[0]) + 1e-9))
    texts = (minus(f"{round(float(value), decimals) + 0.0:.{decimals}f}") for value in values)
    return dict(zip(values.tolist(), texts, strict=True))


def _degrees(symbol: str) -> tuple[Unit, ...]:
    """Units for small differences of temperatures."""
    return tuple(Unit(f"{prefix}{symbol}", 10.0**power, 10.0**power) for prefix, power in PREFIXES if power <= 0)


class _Coloured(ABC):
    """A scale that gives values their colours."""

    @property
    @abstractmethod
    def limits(self) -> tuple[float, float]:
        """The ends of the scale as drawn."""

    @abstractmethod
    def drawn(self, values: ArrayLike) -> NDArray[np.float64]:
        """Convert values in SI to drawn numbers."""

    @property
    @abstractmethod
    def beyond(self) -> tuple[bool, bool]:
        """Whether there are values below the scale, and above it."""

    @property
    def colour_map(self) -> Any:
        """The colour map, with other colours for values beyond the scale, if there are any."""
        below, above = self.beyond
        found = colour_map()
        return found.with_extremes(under=BELOW if below else None, over=ABOVE if above else None)

    @property
    def extend(self) -> str:
        """The arrows of a colour bar, in Matplotlib's words."""
        return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(self.beyond, "neither")

    def colours(self, values: ArrayLike) -> NDArray[np.uint8]:
        """RGB of values in SI, shape of ``values`` + (3,)."""
        low, high = self.limits
        fraction = (self.drawn(values) - low) / (high - low)
        return np.asarray(self.colour_map(fraction, bytes=True)[..., :3], dtype=np.uint8)


@dataclass(frozen=True)
class TemperatureScale(_Coloured):
    """The scale of drawn temperatures: in their unit or, if their range is tiny, as a difference from ``offset``.

    Attributes:
        low: lower end of the scale in K.
        high: upper end of the scale in K; above ``low`` also for a uniform field.
        uniform: whether the temperatures differ only by rounding.
        unit: the unit in which temperatures are shown.
        offset: the subtracted temperature, in the unit.
        difference: the unit of the difference; None without an offset.
        beyond: whether there are temperatures below the scale, and above it.
    """

    low: float
    high: float
    uniform: bool = False
    unit: TemperatureUnit = KELVIN
    offset: float = 0.0
    difference: Unit | None = None
    beyond: tuple[bool, bool] = (False, False)

    @classmethod
    def spanning(
        cls, low: float, high: float, dtype: DTypeLike = np.float64, unit: TemperatureUnit = KELVIN
    ) -> "TemperatureScale":
        """The scale for temperatures from ``low`` to ``high`` in K that were stored as ``dtype``."""
        largest = max(abs(low), abs(high))
        span = high - low
        if span <= 4.0 * float(np.finfo(dtype).eps) * largest:
            return cls(low - 0.5, high + 0.5, True, unit)
        if span >= _SMALL_RANGE * largest:
            return cls(low, high, False, unit)
        bottom, top = unit.of(low), unit.of(high)
        offset = round(0.5 * (bottom + top), -floor(log10(top - bottom)) - 1)
        units = _degrees(unit.difference_symbol)
        return cls(low, high, False, unit, offset, choose_unit(units, max(abs(bottom - offset), abs(top - offset))))

    @property
    def label(self) -> str:
        """The label of axes and colour bars."""
        if self.difference is None:
            return f"Temperature ({self.unit.symbol})"
        sign = "−" if self.offset >= 0.0 else "+"
        return f"Temperature {sign} {abs(self.offset):.12g} {self.unit.symbol} ({self.difference.symbol})"

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the scale as drawn."""
        low, high = self.drawn([self.low, self.high]).tolist()
        return low, high

    def drawn(self, values: ArrayLike) -> NDArray[np.float64]:
        """Convert temperatures in K to drawn numbers, in float64 so that small differences are kept."""
        shown = self.unit.of(np.asarray(values, dtype=np.float64)) - self.offset
        return np.asarray(shown if self.difference is None else shown / self.difference.size)


@dataclass(frozen=True)
class PlainScale(_Coloured):
    """The scale of another quantity.

    Attributes:
        low: lower end of the scale in SI.
        high: upper end of the scale in SI; above ``low``.
        name: of the quantity.
        unit: in which it is shown.
        uniform: whether the values differ only by rounding.
        categories: the names of the values 0, 1, 2, …; empty for a quantity with an amount.
        beyond: whether there are values below the scale, and above it.
    """

    low: float
    high: float
    name: str
    unit: Unit
    uniform: bool = False
    categories: tuple[str, ...] = ()
    beyond: tuple[bool, bool] = (False, False)

    @property
    def label(self) -> str:
        """The label of axes and colour bars."""
        return f"{self.name} ({self.unit.symbol})" if self.unit.symbol else self.name

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the scale as drawn."""
        return self.low / self.unit.size, self.high / self.unit.size

    def drawn(self, values: ArrayLike) -> NDArray[np.float64]:
        """Convert values in SI to drawn numbers."""
        return np.asarray(np.asarray(values, dtype=np.float64) / self.unit.size)

    @property
    def colour_map(self) -> Any:
        """The colour map: one colour for each category, if there are categories."""
        from matplotlib.colors import ListedColormap

        return ListedColormap(material_colours(self.categories)) if self.categories else super().colour_map


Scale = TemperatureScale | PlainScale


def colour_map() -> Any:
    """The colour map of amounts: perceptually uniform, readable in grey, and without black, on which edges vanish."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    return ListedColormap(matplotlib.colormaps["inferno"](np.linspace(_DARKEST, 1.0, 256)), "heat")
