"""The numbers of a column of results as texts, for tables and maps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.report.numbers import decimals_of_heats, decimals_of_temperatures, fixed
from heatsim.temperature_units import TEMPERATURE_UNITS

_FEWEST_UNITS = 100  # of the last decimal in the smallest number of a column
_TEMPERATURES = frozenset(unit.symbol for unit in TEMPERATURE_UNITS.values())


def column_texts(values: NDArray[np.float64], unit: str, categories: Sequence[str] = ()) -> list[str]:
    """The numbers of a column, "–" for NaN: with equal decimals, or with five digits each if they differ too much.

    Args:
        values: numbers, or the indices of categories.
        unit: its symbol; the decimals of temperatures follow from their range, those of others from the largest.
        categories: texts.
    """
    if categories:
        return [categories[int(value)] for value in values]
    finite = values[np.isfinite(values)]
    if unit in _TEMPERATURES:
        decimals = decimals_of_temperatures(float(np.ptp(finite)) if finite.size else 0.0)
    else:
        decimals, sizes = decimals_of_heats(finite.tolist()), np.abs(finite)
        if np.any((sizes > 0.0) & (sizes < _FEWEST_UNITS * 10.0**-decimals)):
            return [f"{value:.5g}" if np.isfinite(value) else "–" for value in values]
    return [text if np.isfinite(value) else "–" for text, value in zip(fixed(values, decimals), values, strict=True)]
