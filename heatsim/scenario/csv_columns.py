"""Columns of a CSV file as text; its mistakes are reported with the file, the line and the column.

Python's reader is used because it knows the line of each row. A year of hourly rows takes 10 ms.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from heatsim.counts import counted
from heatsim.scenario.files import is_utf_16, one_line
from heatsim.scenario.messages import did_you_mean, fault, refuse, show

LONGEST = 2**28  # bytes
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SHOWN_NAMES = 12


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


def read_columns(path: Path, delimiter: str, wanted: Mapping[str, str]) -> CsvColumns:
    """Columns of a CSV file whose first row names them. Empty lines do not count.

    Args:
        path: the file; UTF-8 text, with or without a byte order mark.
        delimiter: the character between columns.
        wanted: the names of the columns, by the keys of the scenario that name them.

    Raises:
        ValidationError: the mistakes in the file, each at the key of the scenario.
        OSError: the file cannot be read.
    """
    rows = _rows(path, delimiter)
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


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the lines in which they end; entries have no blanks at their ends."""
    reader = csv.reader(_lines(path), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            entries = [entry.strip() for entry in row]
            if any(entries):
                yield reader.line_num, entries
    except csv.Error as error:
        _refuse_file(path, f"cannot be read as a table at line {reader.line_num} ({one_line(error)})")


def _lines(path: Path) -> Iterable[str]:
    if path.stat().st_size > LONGEST:
        _refuse_file(path, f"has {path.stat().st_size:,} bytes; at most {LONGEST:,} are allowed")
    content = path.read_bytes()
    if is_utf_16(content):  # spreadsheets save "Unicode text" like this
        _refuse_file(path, "is UTF-16 text; save it as CSV in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        _refuse_file(path, f"has a byte {content[error.start]:#04x} in line {line} that is not UTF-8; save it as UTF-8")
    return (f"{line}\n" for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


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
