"""The lists of numbers in tables of functions of time or temperature."""

from collections.abc import Mapping

import numpy as np
from pydantic_core import InitErrorDetails

from heatsim.scenario.messages import fault, key_faults, refuse, show
from heatsim.scenario.quantities import TIME, Quantity


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


def read_table(table: Mapping[str, object], quantity: Quantity) -> tuple[tuple[float, ...], tuple[float, ...], bool]:
    """The times in s, the values and the key ``repeat`` of a table in time.

    Raises:
        ValidationError: mistakes inside the table, each at its key.
    """
    faults = key_faults(
        table, {"times": "times = [0.0, 60.0]", "values": "values = [1.0, 2.0], one for each time"}, ["repeat"]
    )
    times = read_column(table, "times", TIME, faults)
    values = read_column(table, "values", quantity, faults)
    repeat = table.get("repeat", False)
    if not isinstance(repeat, bool):
        faults.append(fault(f"got {show(repeat)}; true or false is expected", ("repeat",)))
    for index in range(1, len(times)):
        before, after = times[index - 1 : index + 1]
        if after < before:
            faults.append(fault(f"got {after!r} after {before!r}; times must increase", ("times", index)))
        elif index > 1 and after == times[index - 2]:
            message = f"got {after!r} a third time; a time may occur twice, where the value jumps"
            faults.append(fault(message, ("times", index)))
    if len(times) == 2 and times[0] == times[1]:
        message = f"got {times[1]!r} twice and no other time; a table with a jump needs a time before or after it"
        faults.append(fault(message, ("times", 1)))
    if repeat is True and times and times[0] != 0.0:
        message = f"got {times[0]!r}; the times of a table with repeat = true must start at 0"
        faults.append(fault(message, ("times", 0)))
    lengths = [len(entries) for key in ("times", "values") if isinstance(entries := table.get(key), list | tuple)]
    if len(set(lengths)) == 2 and min(lengths) > 1:
        faults.append(fault(f"got {lengths[0]} times and {lengths[1]} values; each time needs one value"))
    if not faults and not slopes_are_finite(times, values):
        faults.append(fault(f"got {show(times)}; times are too close to each other for the change of the values"))
    if faults:
        refuse(faults)
    return tuple(times), tuple(values), bool(repeat)
