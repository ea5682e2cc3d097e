"""Measured values of a probe, with which a run is compared at the end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.messages import fault, refuse, show
from heatsim.scenario.values.csv_table import CsvOrigin, read_csv_table
from heatsim.scenario.values.dates import seconds_between
from heatsim.scenario.values.function_tables import Numbers, read_table
from heatsim.scenario.values.quantities import Quantity


@dataclass(frozen=True)
class MeasuredValues:
    """Values at times.

    Attributes:
        times: ascending, in s; of dates those after the first one.
        values: one for each time, in SI units.
        origin: the columns of a CSV file that they were read from; None if the scenario has the numbers.
    """

    times: Numbers
    values: Numbers
    origin: CsvOrigin | None = field(default=None, compare=False)

    def since(self, start: datetime | None) -> NDArray[np.float64]:
        """The times in s of a run that starts at a date; without one, dates count from the first of them.

        Raises:
            ValueError: only the dates, or only the start, have a time zone; the message is for the user.
        """
        first = None if self.origin is None else self.origin.first
        shift = 0.0 if first is None or start is None else seconds_between(first, start)
        return self.times.array - shift


def read_measured(value: object, quantity: Quantity, folder: Path) -> MeasuredValues:
    """Measured values from TOML: columns of a CSV file, or times and values.

    Args:
        value: the value in the file.
        quantity: of the values.
        folder: where relative paths start.

    Raises:
        ValueError: it is no such table; the message is for the user.
        ValidationError: mistakes inside the table, each at its key.
    """
    if not isinstance(value, Mapping):
        raise ValueError(
            f'got {show(value)}; {{ file = "….csv", time = "…", column = "…" }} or {{ times = […], values = […] }} is '
            "expected"
        )
    if "repeat" in value:
        refuse([fault(f"got {show(value['repeat'])}; measured values do not repeat: remove this key", ("repeat",))])
    if "file" in value or "column" in value:
        times, values, _, origin = read_csv_table(value, quantity, folder)
        return MeasuredValues(times, values, origin)
    numbers = read_table(value, quantity)
    return MeasuredValues(Numbers(numbers[0]), Numbers(numbers[1]))
