"""Columns of a CSV file as text; its mistakes are reported with the file, the line and the column.

Python's reader is used because it knows the line of each row. A year of hourly rows takes 10 ms. Longer files are read
by Apache Arrow, and only if there is a mistake by Python's reader.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted
from heatsim.scenario.files import InputFile, is_utf_16, one_line
from heatsim.scenario.messages import did_you_mean, fault, refuse, show
from heatsim.scenario.values import units

LONGEST = 2**28  # bytes
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SHOWN_NAMES = 12
NUMBER = re.compile(units.NUMBER)


@dataclass(frozen=True, eq=False)
class CsvColumns:
    """Columns of a CSV file.

    Attributes:
        file: its name.
        names: the name of each column, by the key of the scenario that names it.
        entries: the entries of each column without blanks at their ends, by the same key.
        lines: the line in the file of each row.
    """

    file: str
    names: Mapping[str, str]
    entries: Mapping[str, Sequence[str]]
    lines: Sequence[int]

    def refuse(self, key: str, row: int, message: str, more: int = 0) -> NoReturn:
        """Raise the mistake in an entry.

        Args:
            key: the key of the scenario that names the column.
            row: the number of the entry, from 0.
            message: what is wrong with it.
            more: the number of other entries with mistakes.

        Raises:
            ValidationError: always.
        """
        others = f" (and {counted(more, 'more such row')})" if more else ""
        where = f"{self.file}, line {self.lines[row]}, column {show(self.names[key])}"
        refuse([fault(f"{where}: {message}{others}", (key,))])


def read_columns(file: InputFile, delimiter: str, wanted: Mapping[str, str]) -> CsvColumns:
    """Columns of a CSV file whose first row names them. Empty lines do not count.

    Args:
        file: UTF-8 text, with or without a byte order mark.
        delimiter: the character between columns.
        wanted: the names of the columns, by the keys of the scenario that name them.

    Raises:
        ValidationError: the mistakes in the file, each at the key of the scenario.
        ChangedError: the file was changed since it was read first.
    """
    path = file.path
    rows = _rows(path, _text(file), delimiter)
    _, names = next(rows, (0, []))
    if not names:
        _refuse_file(path, "is empty; a row with the names of the columns and at least two rows below it are expected")
    places = _places(path, names, delimiter, wanted)
    entries: dict[str, list[str]] = {key: [] for key in places}
    lines = []
    for line, row in rows:
        if len(row) != len(names):
            hint = "; numbers with a decimal comma need quotes or another delimiter" if len(row) > len(names) else ""
            _refuse_file(
                path,
                f"has {counted(len(row), 'entry', 'entries')} in line {line} for {counted(len(names), 'column')}{hint}",
            )
        lines.append(line)
        for key, place in places.items():
            entries[key].append(row[place])
    if len(lines) < 2:
        have = "no row" if not lines else "only one row"
        _refuse_file(path, f"has {have} below the names of the columns; at least two are expected")
    return CsvColumns(path.name, wanted, entries, lines)


class LongColumns(NamedTuple):
    """Columns as numbers.

    Attributes:
        entries: those of each column, by the key of the scenario that names it; dates in s after the first one.
        first: the first date; None if the times are numbers.
    """

    entries: Mapping[str, NDArray[np.float64]]
    first: datetime | None


def read_numbers(file: InputFile, delimiter: str, decimal: str, wanted: Mapping[str, str]) -> LongColumns | None:
    """Columns of many rows as numbers, much faster than :func:`read_columns`.

    None if an entry is no number and no date, or anything else is unusual: then :func:`read_columns` reads the file,
    and finds its mistakes. Arguments as there; ``decimal``: the decimal point.
    """
    import pyarrow
    from pyarrow import csv as arrow

    text = _text(file)
    rows = _rows(file.path, text, delimiter)
    (line, names), (_, first) = (next(rows, (0, [])) for _ in range(2))
    content = text.encode()
    del rows, text  # as large as the file
    if not first or len(names) != len(first):
        return None
    places = _places(file.path, names, delimiter, wanted)
    keys = {str(place): key for key, place in places.items()}
    types, date = dict.fromkeys(keys, pyarrow.float64()), date_of(first[places["time"]])
    if len(keys) < len(places):  # one column is asked for twice
        return None
    if date is not None:
        types[str(places["time"])] = pyarrow.timestamp("us", "UTC" if date.tzinfo else None)
    pieces: dict[str, list[NDArray[Any]]] = {key: [] for key in places}
    try:
        for batch in arrow.open_csv(
            pyarrow.BufferReader(content),
            arrow.ReadOptions(
                use_threads=False, block_size=1 << 22, column_names=[*map(str, range(len(names)))], skip_rows=line
            ),
            arrow.ParseOptions(delimiter=delimiter),
            arrow.ConvertOptions(column_types=types, include_columns=list(keys), decimal_point=decimal),
        ):
            if any(column.null_count for column in batch.columns):
                return None
            for column, key in keys.items():
                entries = batch.column(column)  # not with its method to_numpy, which imports pandas
                kind = np.float64 if types[column] == pyarrow.float64() else np.int64
                pieces[key].append(np.frombuffer(entries.buffers()[1], kind)[entries.offset :][: len(entries)])
    except pyarrow.ArrowInvalid:
        return None
    found = {key: np.concatenate(some) for key, some in pieces.items()}
    if date is not None:
        found["time"] = (found["time"] - found["time"][0]) / 1e6
    return LongColumns(found, date) if all(np.isfinite(each).all() for each in found.values()) else None


def date_of(text: str) -> datetime | None:
    """An ISO date; None for any other text. A year alone is a number."""
    try:
        return None if NUMBER.fullmatch(text) else datetime.fromisoformat(text)
    except ValueError:
        return None


def _rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the lines in which they end; entries have no blanks at their ends."""
    reader = csv.reader(_lines(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            entries = [entry.strip() for entry in row]
            if any(entries):
                yield reader.line_num, entries
    except csv.Error as error:
        _refuse_file(path, f"cannot be read as a table at line {reader.line_num} ({one_line(error)})")


def _text(file: InputFile) -> str:
    path = file.path
    if file.size > LONGEST:
        _refuse_file(path, f"has {file.size:,} bytes; at most {LONGEST:,} are allowed")
    content = file.read()
    if is_utf_16(content):  # spreadsheets save "Unicode text" like this
        _refuse_file(path, "is UTF-16 text; save it as CSV in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        _refuse_file(path, f"has a byte {content[error.start]:#04x} in line {line} that is not UTF-8; save it as UTF-8")


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, which may end in CR LF, LF or CR."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _places(path: Path, names: Sequence[str], delimiter: str, wanted: Mapping[str, str]) -> dict[str, int]:
    """The number of each wanted column."""
    if other := _better_delimiter(names, delimiter, wanted):
        message = f"{path.name} divides its columns by {DELIMITERS[other]}: write delimiter = {show(other)}"
        refuse([fault(f"got {show(delimiter)}; {message}", ("delimiter",))])
    faults = []
    for key, name in wanted.items():
        if names.count(name) == 1:
            continue
        if name in names:
            message = f"which is the name of {names.count(name)} columns of {path.name}; give them different names"
        else:
            shown = ", ".join(map(show, names[:_SHOWN_NAMES])) + (", …" if len(names) > _SHOWN_NAMES else "")
            message = f"which {path.name} does not have; its columns are {shown}{did_you_mean(name, names)}"
        faults.append(fault(f"got {show(name)}, {message}", (key,)))
    if faults:
        refuse(faults)
    return {key: names.index(name) for key, name in wanted.items()}


def _better_delimiter(names: Sequence[str], delimiter: str, wanted: Mapping[str, str]) -> str | None:
    """Another delimiter, which finds all wanted columns in the row of names."""
    if all(name in names for name in wanted.values()):
        return None
    text = delimiter.join(names)
    for other in DELIMITERS:
        parts = [part.strip().strip('"') for part in text.split(other)]
        if other != delimiter and all(name in parts for name in wanted.values()):
            return other
    return None


def _refuse_file(path: Path, message: str) -> NoReturn:
    refuse([fault(f"got {show(path.name)}, which {message}", ("file",))])
