"""The lists of numbers in tables of functions of time or temperature."""

from collections.abc import Mapping

import numpy as np
from pydantic_core import InitErrorDetails

from heatsim.scenario.messages import fault, show
from heatsim.scenario.quantities import Quantity


def read_column(
    table: Mapping[str, object], key: str, quantity: Quantity, faults: list[InitErrorDetails]
) -> list[float]:
    """The numbers of a list in a table; empty if any is wrong, and ``faults`` then has the reasons."""
    entries = table.get(key, ())
    if not isinstance(entries, list | tuple) or len(entries) < 2:
        if key in table:
            faults.append(fault(f"got {show(entries)}; a list of two or more entries is expected", (key,)))
        return []
    column = []
    for index, entry in enumerate(entries):
        try:
            column.append(quantity.read(entry))
        except ValueError as error:
            faults.append(fault(str(error), (key, index)))
    return column if len(column) == len(entries) else []


def slopes_are_finite(times: list[float], values: list[float]) -> bool:
    """Whether linear interpolation between the entries of a table stays finite; jumps do not count."""
    apart = np.diff(times) > 0.0
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.diff(values)[apart] / np.diff(times)[apart]).all())
