"""Base class of observers that write a CSV table.

If several ranks do a run, all of them calculate the rows, and rank 0 writes the table.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import HeatsimError
from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import RunState
from heatsim.storage import folder
from heatsim.storage.checkpoint_draft import Pieces
from heatsim.storage.run_tables import SECOND, TIME, header
from heatsim.storage.tables import TableWriter

# A column's name and unit.
Column = tuple[str, str]
_SECONDS_BETWEEN_WRITES = 1.0
# Bytes of samples that wait to become rows, at most.
_SAMPLED_BYTES = 2**24
_MOST_ROWS = 256  # made together


def samples_at_once(nbytes: int) -> int:
    """How many samples of some bytes each wait, at most, until rows are made of them."""
    return max(1, min(_MOST_ROWS, _SAMPLED_BYTES // max(1, nbytes)))


class TableObserver(Observer):
    """Writes a row at 0, probe_every, 2·probe_every, … and the end. Resume cuts the table back to the checkpoint.

    A subclass has :meth:`columns`, :meth:`row` and these attributes. At a due time it reads what a row needs. It
    makes and writes many rows together: between batches of steps if the last rows were written more than a second ago,
    and before each checkpoint. Until then, what follows from rows is that of the rows before.

    Attributes:
        file: the name of the table, from heatsim/storage/folder.py.
        saved_as: begins the names of its values in checkpoints.
        writes: whether it makes and writes rows; if not, it only reads what they need.
        kept: gets the rows of a table that is kept in memory instead of written; None for a file.
    """

    file: ClassVar[str]
    saved_as: ClassVar[str]
    writes = True
    kept: list[Sequence[float]] | None = None

    _table: TableWriter | None = None  # of rank 0
    _rows_at_once = _MOST_ROWS

    def __init__(self) -> None:
        self._open = ExitStack()
        self._samples: list[Any] = []
        self._written_at = 0.0

    def columns(self, state: RunState) -> Sequence[Column]:
        """The names and units of the columns after the time."""
        raise NotImplementedError

    def row(self, state: RunState) -> Sequence[float]:
        """A number for each column after the time, of the field at this step."""
        raise NotImplementedError

    def sample(self, state: RunState) -> Any:
        """What the row of this step needs of the field; by default the row with its time."""
        return [state.time, *self.row(state)]

    def rows(self, samples: Sequence[Any]) -> Sequence[Sequence[float]]:
        """Make the rows, with their times, from the results of :meth:`sample`."""
        return samples

    @property
    def files(self) -> Sequence[str]:
        """The table."""
        return (self.file,)

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def check(self, state: RunState, saved: Values) -> None:
        """Compare the checksums of the rows of the checkpoint with the file."""
        with state.team.agreeing():
            if state.team.first:
                TableWriter.check(state.folder / self.file, self._headers(state), *self._rows(saved))

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or remove the rows after the checkpoint."""
        path, headers = state.folder / self.file, self._headers(state)
        with state.team.agreeing():
            if state.team.first and self.writes and self.kept is None:
                if saved is None:
                    table = TableWriter.create(path, headers)
                else:
                    table = TableWriter.reopen(path, headers, *self._rows(saved))
                self._open.callback(table.close)
                self._table = table
        self._written_at = time.monotonic()

    def _limit_samples(self, nbytes: int) -> None:
        """Let fewer samples wait if each of them has many bytes."""
        self._rows_at_once = min(self._rows_at_once, samples_at_once(nbytes))

    def handle(self, state: RunState) -> None:
        """Read what a row needs."""
        sample = self.sample(state)
        if self.writes:
            self._samples.append(sample)
        if len(self._samples) >= self._rows_at_once:
            self._write()

    def poll(self, state: RunState) -> None:
        """Write the rows of the last second."""
        if self._samples and time.monotonic() - self._written_at > _SECONDS_BETWEEN_WRITES:
            self._write()

    def finish(self, state: RunState) -> None:
        """Write the last rows."""
        self._write()

    def _write(self) -> None:
        samples, self._samples = self._samples, []
        if samples:
            rows = self.rows(samples)
            if self._table is not None:
                self._table.append(*rows)
            if self.kept is not None:
                self.kept += rows
        self._written_at = time.monotonic()

    def save(self) -> dict[str, Value]:
        """The number of rows."""
        self._write()
        return {} if self._table is None else {f"{self.saved_as}_rows": self._table.rows}

    def record(self) -> dict[str, Pieces]:
        """The running checksum of the table after each row."""
        table = self._table
        if table is None:
            return {}
        rows = table.rows
        return {f"{self.saved_as}_checksums": Pieces((rows + 1,), np.uint32, lambda: [table.checksums(rows)])}

    def flush(self) -> None:
        """Bring the table to disk."""
        if self._table is not None:
            self._table.flush()
            if not self._table.is_in_place:
                raise folder.removed(self._table.path)

    def close(self) -> None:
        """Write the rows before an error, and close the table."""
        with self._open, suppress(HeatsimError):  # the run has failed already
            self._write()

    def _headers(self, state: RunState) -> list[str]:
        return [header(TIME, SECOND), *(header(*column) for column in self.columns(state))]

    def _rows(self, saved: Values) -> tuple[int, NDArray[np.uint32]]:
        """The number of rows that a checkpoint counts, and their checksums."""
        return int(saved[f"{self.saved_as}_rows"]), saved[f"{self.saved_as}_checksums"]
