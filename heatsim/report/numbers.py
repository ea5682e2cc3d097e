"""Format numbers with as many digits as a reader needs."""

from collections.abc import Iterable
from math import floor, isfinite, log10

_DIGITS = 4  # of the range of some temperatures
_FEWEST, _MOST = 2, 9  # decimals of temperatures
_DIGITS_OF_HEATS = 5
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
    return [f"{value:.{needed}f}" for value in rounded]
