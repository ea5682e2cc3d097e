"""CSV tables that grow row by row, such as probes.csv.

A header line, then one line of numbers for each row. Each number has the shortest form that reads back as the same
number; lines end with a newline. The lines of one call of `append` are passed to the system in one call, so a killed
run leaves at most one incomplete line at the end. `read` ignores it, and `TableWriter.reopen` removes it.

The writer keeps checksums: the CRC-32 of the file after the header and after every row. A checkpoint stores them, so
that a resumed run can name the first row that was changed.
"""

import csv
import io
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted
from heatsim.errors import FolderError, StorageError
from heatsim.storage.disk import AGAIN, Closing, reason, writing
from heatsim.storage.system import File

# Beginnings of names of columns in energy.csv, before the name of a region, contact or surface. The balance of a
# body does not add up these heats: the heat through the surface of a region towards void is a part of that through all.
REGION, CONTACT, SURFACE = PARTS = "region ", "contact ", "surface "
# Beginnings of names of heat flows into a body and out of it, before the name of a surface or source.
ENTERING, LEAVING = GROSS = "in ", "out "
SOURCE = "source "  # of the heat flows of sources in a steady state


def _header(columns: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(columns)
    return text.getvalue().encode()


class TableWriter(Closing):
    """Appends rows to a table; use `create` or `reopen`."""

    def __init__(self, path: Path, file: File, columns: int, end: int, sums: Sequence[int]) -> None:
        self.path = path
        self._file = file
        self._columns = columns
        self._end = end
        self._sums = array("I", sums)
        self._unsynced = True

    @property
    def rows(self) -> int:
        """Number of complete rows in the table."""
        return len(self._sums) - 1

    def checksums(self, rows: int) -> NDArray[np.uint32]:
        """CRC-32 of the file up to its header, and up to each of the first rows, shape (rows + 1,)."""
        return np.array(self._sums[: rows + 1], np.uint32)

    @property
    def is_in_place(self) -> bool:
        """Whether the file still has its path."""
        return self._file.is_in_place

    @classmethod
    def create(cls, path: Path, columns: Sequence[str]) -> Self:
        """Start a table with column names; an existing file is replaced.

        Raises:
            StorageError: the disk refused.
        """
        with writing(path):
            writer = cls(path, File.create(path), len(columns), 0, ())
        try:
            writer._write(_header(columns))
        except StorageError:
            writer.close()
            raise
        return writer

    @classmethod
    def reopen(
        cls, path: Path, columns: Sequence[str], keep_rows: int, checksums: NDArray[np.uint32] | None = None
    ) -> Self:
        """Continue after the first `keep_rows` rows; later rows are removed.

        Args:
            path: the table.
            columns: names of its columns.
            keep_rows: number of rows to keep.
            checksums: the result of `checksums` for these rows, to compare; None: do not compare.

        Raises:
            StorageError: the file is missing, has other columns, fewer complete rows or changed rows, or the disk
                refused; the file is unchanged.
        """
        end, sums = cls.check(path, columns, keep_rows, checksums)
        with writing(path):
            file = File(path)
            try:
                if file.length != end:
                    file.truncate(end)
            except OSError:
                file.close()
                raise
        return cls(path, file, len(columns), end, sums)

    @staticmethod
    def check(
        path: Path, columns: Sequence[str], keep_rows: int, checksums: NDArray[np.uint32] | None = None
    ) -> tuple[int, list[int]]:
        """Raise the errors that `reopen` would raise; the file is not changed.

        Returns:
            The end of the last row to keep in the file, in bytes, and the checksums.
        """
        if not path.is_file():
            raise StorageError(f"{path}: is missing, the checkpoint counts {counted(keep_rows, 'row')} in it; {AGAIN}")
        header, sums = _header(columns), list[int]()
        try:
            with open(path, "rb") as lines:
                found = lines.read(len(header))
                if found != header:
                    raise StorageError(f"{path}: has another header, {','.join(columns)} was expected; {AGAIN}")
                sums.append(zlib.crc32(header))
                for row in range(keep_rows):
                    line = lines.readline()
                    if not line.endswith(b"\n"):
                        raise StorageError(
                            f"{path}: holds {counted(row, 'row')}, the checkpoint counts {keep_rows}; {AGAIN}"
                        )
                    sums.append(zlib.crc32(line, sums[-1]))
                    if checksums is not None and sums[-1] != checksums[row + 1]:
                        raise StorageError(
                            f"{path}: row {row + 1} differs from what was written: its checksum has changed; put "
                            f"a good copy of the file there, or {AGAIN}"
                        )
                return lines.tell(), sums
        except OSError as error:
            raise StorageError(f"{path}: could not be read: {reason(error)}; check the disk, or {AGAIN}") from error

    def append(self, *rows: Sequence[float]) -> None:
        """Append rows with a number for each column, in one write.

        Raises:
            StorageError: the disk refused.
            ValueError: a row has more or fewer numbers than there are columns.
        """
        lines = []
        for row in rows:
            if len(row) != self._columns:
                raise ValueError(
                    f"{self.path}: a row of {counted(len(row), 'number')} for {counted(self._columns, 'column')}"
                )
            lines.append((",".join(map(repr, map(float, row))) + "\n").encode())
        self._write(*lines)

    def flush(self) -> None:
        """Wait until every row is on the disk; a checkpoint that counts them needs this.

        Raises:
            StorageError: the disk refused.
        """
        if self._unsynced:
            # Another thread may append rows meanwhile; they need another call.
            self._unsynced = False
            try:
                with writing(self.path):
                    self._file.sync()
            except StorageError:
                self._unsynced = True
                raise

    def close(self) -> None:
        """Close the file; a second call does nothing.

        Raises:
            StorageError: the disk refused.
        """
        with writing(self.path):
            self._file.close()

    def _write(self, *lines: bytes) -> None:
        text = b"".join(lines)
        try:
            with writing(self.path):
                self._file.write(self._end, text)
        finally:
            self._unsynced = True
        self._end += len(text)
        for line in lines:
            self._sums.append(zlib.crc32(line, self._sums[-1] if self._sums else 0))


def checksum(path: Path) -> int:
    """CRC-32 of a whole table.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        return zlib.crc32(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error


def read(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """Column names and numbers of a table, shape (rows, columns); an incomplete last line is ignored.

    Raises:
        FolderError: there is no such file.
        StorageError: the file cannot be read or is not such a table.
    """
    try:
        content = path.read_bytes()
        text = content[: content.rfind(b"\n") + 1].decode()
    except FileNotFoundError:
        raise FolderError(f"{path}: is not there; give the folder of a run that wrote it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = next(lines, None)
        if not columns:
            raise StorageError(f"{path}: has no complete header line; the file is damaged")
        rows = []
        for line in lines:
            if len(line) != len(columns):
                found = f"line {lines.line_num} has {counted(len(line), 'value')} for {counted(len(columns), 'column')}"
                raise StorageError(f"{path}: {found}; the file is damaged")
            rows.append([float(value) for value in line])
    except (ValueError, csv.Error):
        # The values may be anything, so do not print them to a terminal.
        raise StorageError(f"{path}: line {lines.line_num}: its values are not numbers; the file is damaged") from None
    return columns, np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
