"""Format numbers with as many digits as a reader needs."""

from collections.abc import Iterable
from math import floor, isfinite, log10

from heatsim.counts import minus, plain
from heatsim.temperature_units import KELVIN, TemperatureUnit

_DIGITS = 4  # of the range of some temperatures
_FEWEST, _MOST = 2, 9  # decimals of temperatures
_DIGITS_OF_HEATS = 5
_DIGITS_OF_ERRORS = 2
_ROUNDING = 1e-12  # relative: equal temperatures differ by less


def decimals_of_temperatures(values: Iterable[float]) -> int:
    """The number of decimals that show a thousandth of the range of some temperatures, or five digits if all are equal.

    These are 2 decimals for a range of 80 K, 5 for one of 0.05 K.
    """
    finite = [value for value in values if isfinite(value)]
    span = max(finite, default=0.0) - min(finite, default=0.0)
    if span <= _ROUNDING * max(map(abs, finite), default=0.0):
        return max(decimals_of_heats(finite), _FEWEST)
    return min(max(_DIGITS - 1 - floor(log10(span)), _FEWEST), _MOST)


def decimals_of_heats(values: Iterable[float]) -> int:
    """The number of decimals that show five digits of the largest of some heats or heat flows."""
    largest = max((abs(value) for value in values if isfinite(value)), default=0.0)
    return 0 if largest == 0.0 else min(max(_DIGITS_OF_HEATS - 1 - floor(log10(largest)), 0), _MOST)


def fixed(values: Iterable[float], decimals: int) -> list[str]:
    """Numbers with the same number of decimals; zeros at the end of all of them are left out."""
    rounded = [round(value, decimals) + 0.0 for value in values]
    finite = [f"{value:.{decimals}f}" for value in rounded if isfinite(value)]
    needed = max((len(text.rstrip("0").partition(".")[2]) for text in finite), default=0)
    return [minus(f"{value:.{needed}f}") for value in rounded]


def with_error(number: float, error: float | None) -> str:
    """A number with the digits that its error allows; six digits if the error is not known or far smaller."""
    if error is None or not isfinite(error) or error <= 0.0 or number == 0.0:
        return plain(number, 6)
    decimals = _DIGITS_OF_ERRORS - 1 - floor(log10(error))
    most = 8 - floor(log10(abs(number)))
    return minus(f"{number:.{max(min(decimals, most), 0)}f}")


def in_unit(value: float, unit: str, shown: TemperatureUnit) -> float:
    """A value in its unit; temperatures in K in the unit in which they are shown."""
    return float(shown.of(value)) if unit == KELVIN.name else value


def width(error: float, unit: str, shown: TemperatureUnit) -> float:
    """As :func:`in_unit`, of a difference of two values."""
    return float(shown.of_difference(error)) if unit == KELVIN.name else error


def symbol_of(unit: str, shown: TemperatureUnit) -> str:
    """The unit of a value as texts write it."""
    return shown.symbol if unit == KELVIN.name else "" if unit == "1" else unit
