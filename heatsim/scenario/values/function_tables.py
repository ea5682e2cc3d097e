"""The lists of numbers in tables of functions of time or temperature."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic_core import InitErrorDetails

from heatsim.counts import counted
from heatsim.scenario.messages import fault, key_faults, refuse, show
from heatsim.scenario.values.quantities import TIME, Quantity


class Numbers(Sequence[float]):
    """Numbers that are not changed, in 8 bytes each; equal to any sequence of the same numbers."""

    def __init__(self, numbers: "Sequence[float] | NDArray[np.float64] | Numbers") -> None:
        self.array: NDArray[np.float64] = np.array(numbers, dtype=np.float64)
        self.array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> float: ...

    @overload
    def __getitem__(self, index: slice) -> "Numbers": ...

    def __getitem__(self, index: int | slice) -> "float | Numbers":
        found = self.array[index]
        return Numbers(found) if isinstance(index, slice) else float(found)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype) if copy else np.asarray(self.array, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and np.array_equal(self.array, np.asarray(other))

    def __hash__(self) -> int:
        return hash((len(self), self[0], self[-1]) if len(self) else 0)

    def __repr__(self) -> str:
        return repr(tuple(self.array.tolist()))


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


def slopes_are_finite(
    times: Sequence[float] | NDArray[np.float64], values: Sequence[float] | NDArray[np.float64]
) -> bool:
    """Whether linear interpolation between the entries of a table stays finite; jumps do not count."""
    apart = np.diff(times) > 0.0
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.diff(values)[apart] / np.diff(times)[apart]).all())


def order_faults(times: Sequence[float], shown: Sequence[str]) -> list[tuple[int, str]]:
    """The mistakes in the order of a table's times: the number of the time, and a message for the user.

    Args:
        times: in s.
        shown: the times as the user wrote them.
    """
    faults = []
    for index in range(1, len(times)):
        if times[index] < times[index - 1]:
            faults.append((index, f"got {shown[index]} after {shown[index - 1]}; times must increase"))
        elif index > 1 and times[index] == times[index - 2]:
            faults.append((index, f"got {shown[index]} a third time; a time may occur twice, where the value jumps"))
    if len(times) == 2 and times[0] == times[1]:
        message = f"got {shown[1]} twice and no other time; a table with a jump needs a time before or after it"
        faults.append((1, message))
    return faults


def repeat_faults(times: Sequence[float]) -> list[str]:
    """The mistake in the times in s of a table with repeat = true, if there is one."""
    if not times or times[0] == 0.0:
        return []
    return [f"got {times[0]!r}; the times of a table with repeat = true must start at 0"]


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
    faults += [fault(message, ("times", index)) for index, message in order_faults(times, list(map(repr, times)))]
    if repeat is True:
        faults += [fault(message, ("times", 0)) for message in repeat_faults(times)]
    lengths = [len(entries) for key in ("times", "values") if isinstance(entries := table.get(key), list | tuple)]
    if len(set(lengths)) == 2 and min(lengths) > 1:
        faults.append(
            fault(f"got {counted(lengths[0], 'time')} and {counted(lengths[1], 'value')}; each time needs one value")
        )
    if not faults and not slopes_are_finite(times, values):
        faults.append(fault(f"got {show(times)}; times are too close to each other for the change of the values"))
    if faults:
        refuse(faults)
    return tuple(times), tuple(values), bool(repeat)
