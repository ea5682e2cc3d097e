"""Tables in time from two columns of a CSV file: times as numbers or ISO dates, values in any unit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.files import ChangedError, InputFile, input_file
from heatsim.scenario.messages import fault, key_faults, refuse, show
from heatsim.scenario.values import units
from heatsim.scenario.values.csv_columns import DELIMITERS, NUMBER, CsvColumns, date_of, read_columns, read_numbers
from heatsim.scenario.values.function_tables import Numbers, order_faults, repeat_faults, slopes_are_finite
from heatsim.scenario.values.quantities import TIME, Quantity

SUFFIXES = (".csv", ".txt", ".tsv")
DECIMALS = (".", ",")
LONG = 1 << 20  # bytes
_REQUIRED = {"file": 'file = "weather.csv"', "time": 'time = "hour"', "column": 'column = "T_out"'}
_TEXTS = ("time", "time_unit", "column", "unit", "delimiter", "decimal")
_OPTIONAL = ("time_unit", "unit", "delimiter", "decimal", "repeat")


@dataclass(frozen=True)
class CsvOrigin:
    """The columns of a CSV file from which a table was read.

    Attributes:
        file: the file, whose first row has the names of the columns.
        keys: the other keys of the table in the scenario, except ``repeat``.
        first: the date of time 0; None if the times are numbers.
    """

    file: InputFile
    keys: tuple[tuple[str, str], ...]
    first: datetime | None = None


def read_csv_table(
    table: Mapping[str, object], quantity: Quantity, folder: Path
) -> tuple[Numbers, Numbers, bool, CsvOrigin]:
    """The times in s, the values in SI units, the key ``repeat``, and the origin of the numbers.

    Args:
        table: the table in the scenario.
        quantity: of the values.
        folder: where relative paths start.

    Raises:
        ValidationError: mistakes in the table or in the file, each at its key.
    """
    file = _check_keys(table, folder)
    keys = tuple((key, str(table[key])) for key in _TEXTS if key in table)
    repeat = bool(table.get("repeat", False))
    try:
        times, values, first = _read(file, keys, quantity, repeat)
    except ChangedError as error:
        refuse([fault(f"got {show(table['file'])}; it {error}", ("file",))])
    return times, values, repeat, CsvOrigin(file, keys, first)


def _check_keys(table: Mapping[str, object], folder: Path) -> InputFile:
    """The file of a table whose keys are right, except for what the file contains."""
    faults, file = key_faults(table, _REQUIRED, _OPTIONAL), None
    if "file" in table:
        try:
            file = input_file(table["file"], folder, SUFFIXES)
        except ValueError as error:
            faults.append(fault(str(error), ("file",)))
    for key in ("time", "column", "time_unit", "unit"):
        if not isinstance(table.get(key, ""), str):
            faults.append(fault(f"got {show(table[key])}; a text in quotes is expected", (key,)))
    for key, allowed in (("delimiter", tuple(DELIMITERS)), ("decimal", DECIMALS)):
        if table.get(key, allowed[0]) not in allowed:
            wanted = ", ".join(map(show, allowed))
            faults.append(fault(f"got {show(table[key])}; one of {wanted} is expected", (key,)))
    if not isinstance(table.get("repeat", False), bool):
        faults.append(fault(f"got {show(table['repeat'])}; true or false is expected", ("repeat",)))
    if faults or file is None:
        refuse(faults)
    return file


@lru_cache(maxsize=32)
def _read(
    file: InputFile, keys: tuple[tuple[str, str], ...], quantity: Quantity, repeat: bool
) -> tuple[Numbers, Numbers, datetime | None]:
    """Times and values, and the date of time 0 if the times are dates.

    A file with the same name and content is read once, for all runs of a study.
    """
    given = dict(keys)
    if file.size > LONG and (found := _of_long_file(file, given, quantity, repeat)) is not None:
        return found
    columns = read_columns(file, given.get("delimiter", ","), {"time": given["time"], "column": given["column"]})
    decimal = given.get("decimal", ".")
    stamps = columns.entries["time"]
    first = date_of(stamps[0])
    if first is not None:
        if "time_unit" in given:
            refuse([fault(f"got {show(given['time_unit'])}; dates have no unit: remove this key", ("time_unit",))])
        times = _dates(columns, first)
    else:
        times = _numbers(columns, "time", given.get("time_unit", TIME.unit), decimal, TIME)
    values = _numbers(columns, "column", given.get("unit", quantity.unit), decimal, quantity)
    for row, message in order_faults(times, [show(stamp) for stamp in stamps]):
        columns.refuse("time", row, message)
    if repeat:
        for message in repeat_faults(times):
            refuse([fault(message, ("repeat",))])
    if not slopes_are_finite(times, values):
        columns.refuse("time", 0, "times are too close to each other for the change of the values")
    return Numbers(times), Numbers(values), first


def _of_long_file(
    file: InputFile, given: Mapping[str, str], quantity: Quantity, repeat: bool
) -> tuple[Numbers, Numbers, datetime | None] | None:
    """As :func:`_read`; None if there is any mistake, which then needs its line."""
    found = read_numbers(
        file,
        given.get("delimiter", ","),
        given.get("decimal", "."),
        {"time": given["time"], "column": given["column"]},
    )
    if found is None or (found.first is not None and "time_unit" in given):
        return None
    times, values = found.entries["time"], found.entries["column"]
    if found.first is None:
        times = _converter(given.get("time_unit", TIME.unit), "time_unit", TIME)[1](times)
    values = _converter(given.get("unit", quantity.unit), "unit", quantity)[1](values)
    ordered = bool((np.diff(times) >= 0.0).all() and (times[2:] > times[:-2]).all()) and times[0] < times[-1]
    ends = [(TIME, times.min()), (TIME, times.max()), (quantity, values.min()), (quantity, values.max())]
    right = ordered and not any(kind.range_fault(float(end)) for kind, end in ends) and slopes_are_finite(times, values)
    return (Numbers(times), Numbers(values), found.first) if right and not (repeat and times[0] != 0.0) else None


def _numbers(columns: CsvColumns, key: str, unit: str, decimal: str, quantity: Quantity) -> list[float]:
    """The entries of a column in SI units."""
    to_si, _ = _converter(unit, "unit" if key == "column" else "time_unit", quantity)
    numbers, wrong, message = [], [], ""
    for row, entry in enumerate(columns.entries[key]):
        text = entry if decimal == "." else entry.replace(".", "?").replace(",", ".")
        if not NUMBER.fullmatch(text):
            message = message or f"got {show(entry)}; {_expected(key, entry, decimal)}"
            wrong.append(row)
            continue
        number = to_si(text)
        outside = quantity.range_fault(number)
        if outside:
            message = message or f"got {entry}{f' {unit}' if unit else ''}; {outside}"
            wrong.append(row)
        numbers.append(number)
    if wrong:
        columns.refuse(key, wrong[0], message, len(wrong) - 1)
    return numbers


def _expected(key: str, entry: str, decimal: str) -> str:
    """The part of a message that says what to write instead of an entry that is no number."""
    if decimal == "." and NUMBER.fullmatch(entry.replace(",", ".", 1)):
        thousands = units.without_thousands(entry)
        first = f"a number is expected{f', as in {thousands[0]}' if thousands else ''}"
        return f'{first}; if the comma is the decimal point, write decimal = ","'
    if key == "time":
        return "a number, or in all rows an ISO date such as 2024-01-31T13:00, is expected"
    return "a number is expected; remove rows without one, the table is linear in between"


def _converter(
    unit: str, key: str, quantity: Quantity
) -> tuple[Callable[[str], float], Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
    """The functions from a number as text, and from many numbers, in a unit, to SI units."""
    if unit == quantity.unit:
        return float, lambda numbers: numbers
    if not quantity.unit:
        refuse([fault(f"got {show(unit)}; {quantity.name} has no unit: remove this key", (key,))])
    try:
        factor, offset = units.linear(unit, quantity.unit)
    except ValueError as error:
        meant = units.respell_unit(unit, quantity.unit)
        advice = f"a unit of {quantity.name} is expected, which is converted to {quantity.unit}"
        refuse([fault(f"got {show(unit)}; {error}; {advice if meant is None else f'write {show(meant)}'}", (key,))])

    def convert(text: str) -> float:
        try:
            return float(Decimal(text) * factor + offset)
        except ArithmeticError:
            return float("inf")

    def convert_all(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        found, left = units.scaled(numbers, factor, offset)
        found[left] = [convert(repr(number)) for number in numbers[left].tolist()]
        return found

    return convert, convert_all


def _dates(columns: CsvColumns, first: datetime) -> list[float]:
    """Times in s after the first date."""
    entries = columns.entries["time"]
    dates = [date_of(entry) for entry in entries]
    times = []
    for row, date in enumerate(dates):
        if date is None:
            columns.refuse("time", row, f"got {show(entries[row])} below {show(entries[0])}; an ISO date is expected")
        if (date.tzinfo is None) != (first.tzinfo is None):
            columns.refuse("time", row, f"got {show(entries[row])}; only some of the dates have a time zone")
        times.append((date - first).total_seconds())
    return times
