"""CSV tables that grow by a row at a time: probes.csv and energy.csv.

A header line, then one line of numbers a row, each in the shortest form that reads back the same, lines ending in a
bare newline. A line is handed to the system in one piece as soon as it is appended, so that a killed run leaves at
most one unfinished line at the end, which `read` ignores and `TableWriter.reopen` cuts off.
"""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, StorageError
from heatsim.storage.disk import Closing, reason, writing


def _header(columns: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue().encode()


class TableWriter(Closing):
    """Appends rows to a table; use `create` or `reopen`.

    Attributes:
        rows: number of complete rows in the table.
    """

    def __init__(self, path: Path, file: io.FileIO, columns: int, rows: int) -> None:
        self.path = path
        self.rows = rows
        self._file = file
        self._columns = columns
        self._unsynced = True

    @classmethod
    def create(cls, path: Path, columns: Sequence[str]) -> Self:
        """Start a table with the given column names; an existing file is replaced.

        Raises:
            StorageError: the disk refused.
        """
        with writing(path):
            writer = cls(path, io.FileIO(path, "w"), len(columns), 0)
        try:
            writer._write(_header(columns))
        except StorageError:
            writer.close()
            raise
        return writer

    @classmethod
    def reopen(cls, path: Path, columns: Sequence[str], keep_rows: int) -> Self:
        """Go on after the first `keep_rows` rows; whatever follows them is cut off.

        Raises:
            StorageError: the file is not there, has other columns or fewer complete rows, or the disk refused.
        """
        again = "start again with `heatsim run … --overwrite`"
        if not path.is_file():
            raise StorageError(f"{path}: is missing, the checkpoint counts {keep_rows} rows in it; {again}")
        header = _header(columns)
        with writing(path):
            with open(path, "rb") as lines:
                found = lines.read(len(header))
                if found != header:
                    raise StorageError(f"{path}: begins otherwise, {','.join(columns)} was expected; {again}")
                for row in range(keep_rows):
                    if not lines.readline().endswith(b"\n"):
                        raise StorageError(f"{path}: holds {row} rows, the checkpoint counts {keep_rows}; {again}")
                end = lines.tell()
            os.truncate(path, end)
            return cls(path, io.FileIO(path, "a"), len(columns), keep_rows)

    def append(self, row: Sequence[float]) -> None:
        """Append one row, a number for each column.

        Raises:
            StorageError: the disk refused.
            ValueError: the row has more or fewer numbers than there are columns.
        """
        if len(row) != self._columns:
            raise ValueError(f"{self.path}: a row of {len(row)} numbers for {self._columns} columns")
        self._write((",".join(repr(float(value)) for value in row) + "\n").encode())
        self.rows += 1

    def flush(self) -> None:
        """Wait until every row is on the disk itself, as a checkpoint that counts them needs.

        Raises:
            StorageError: the disk refused.
        """
        if self._unsynced:
            # Rows may be appended by another thread in the meantime: they want another call.
            self._unsynced = False
            try:
                with writing(self.path):
                    os.fsync(self._file.fileno())
            except StorageError:
                self._unsynced = True
                raise

    def close(self) -> None:
        """Close the file; it can be closed twice.

        Raises:
            StorageError: the disk refused.
        """
        with writing(self.path):
            self._file.close()

    def _write(self, line: bytes) -> None:
        try:
            with writing(self.path):
                # A disk that is nearly full takes a part of the line and refuses only the next write.
                while line:
                    line = line[self._file.write(line) :]
        finally:
            self._unsynced = True


def read(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Column names and numbers, shape (rows, columns), of a table; an unfinished last line is ignored.

    Raises:
        FolderError: there is no such file.
        StorageError: the file cannot be read or is not such a table.
    """
    try:
        content = path.read_bytes()
        text = content[: content.rfind(b"\n") + 1].decode()
    except FileNotFoundError:
        raise FolderError(f"{path}: is not there; give the folder of a run that wrote it") from None
    except UnicodeDecodeError as error:
        number = error.object[: error.start].count(b"\n") + 1
        raise StorageError(f"{path}: could not be read: line {number} is no UTF-8 text; it is damaged") from None
    except OSError as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = next(lines, None)
        if columns is None:
            raise StorageError(f"{path}: has no complete header line")
        rows = []
        for line in lines:
            if len(line) != len(columns):
                raise StorageError(f"{path}: line {lines.line_num} has {len(line)} values for {len(columns)} columns")
            rows.append([float(value) for value in line])
    except (ValueError, csv.Error):
        # What stands there may be anything, and is not for a terminal.
        raise StorageError(
            f"{path}: line {lines.line_num}: could not convert its values to numbers; it is damaged"
        ) from None
    return columns, np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
