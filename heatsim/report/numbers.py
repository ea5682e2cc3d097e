"""Format numbers with as many digits as a reader needs."""

from collections.abc import Iterable, Sequence
from math import floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

_DIGITS = 4  # of the range of some temperatures
_FEWEST, _MOST = 2, 9  # decimals of temperatures
_DIGITS_OF_HEATS = 5


def decimals_of_temperatures(span: float) -> int:
    """The number of decimals for temperatures whose highest and lowest differ by ``span`` degrees.

    The last decimal is at most 1/1,000 of the range: 2 decimals for a range of 80 K, 5 for one of 0.05 K.
    """
    if not isfinite(span) or span <= 0.0:
        return _FEWEST
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


def span_of(curves: Sequence[NDArray[np.float64]]) -> float:
    """The highest number minus the lowest; 0 if there are no numbers."""
    if not curves:
        return 0.0
    return float(max(curve.max() for curve in curves) - min(curve.min() for curve in curves))
