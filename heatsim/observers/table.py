"""Base class of observers that write a CSV table."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import RunState
from heatsim.storage import folder
from heatsim.storage.checkpoint import Pieces
from heatsim.storage.tables import TableWriter


class TableObserver(Observer):
    """Writes a row at 0, probe_every, 2·probe_every, … and the end. Resume cuts the table back to the checkpoint.

    A subclass has :meth:`columns`, :meth:`row` and these attributes:

    Attributes:
        file: the name of the table, from heatsim/storage/folder.py.
        saved_as: begins the names of its values in checkpoints.
    """

    file: ClassVar[str]
    saved_as: ClassVar[str]

    _table: TableWriter

    def __init__(self) -> None:
        self._open = ExitStack()

    def columns(self, state: RunState) -> Sequence[str]:
        """The names of the columns; the first is ``time``."""
        raise NotImplementedError

    def row(self, state: RunState) -> Sequence[float]:
        """A number for each column, of the field at this step."""
        raise NotImplementedError

    @property
    def files(self) -> Sequence[str]:
        """The table."""
        return (self.file,)

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def check(self, state: RunState, saved: Values) -> None:
        """Compare the checksums of the rows of the checkpoint with the file."""
        TableWriter.check(state.folder / self.file, self.columns(state), *self._rows(saved))

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or remove the rows after the checkpoint."""
        path, names = state.folder / self.file, self.columns(state)
        if saved is None:
            self._table = TableWriter.create(path, names)
        else:
            self._table = TableWriter.reopen(path, names, *self._rows(saved))
        self._open.callback(self._table.close)

    def handle(self, state: RunState) -> None:
        """Append a row."""
        self._table.append(self.row(state))

    def save(self) -> dict[str, Value]:
        """The number of rows."""
        return {f"{self.saved_as}_rows": self._table.rows}

    def record(self) -> dict[str, Pieces]:
        """The running checksum of the table after each row."""
        rows = self._table.rows
        return {f"{self.saved_as}_checksums": Pieces((rows + 1,), np.uint32, lambda: [self._table.checksums(rows)])}

    def flush(self) -> None:
        """Bring the table to disk."""
        self._table.flush()
        if not self._table.is_in_place:
            raise folder.removed(self._table.path)

    def close(self) -> None:
        """Close the table."""
        self._open.close()

    def _rows(self, saved: Values) -> tuple[int, NDArray[np.uint32]]:
        """The number of rows that a checkpoint counts, and their checksums."""
        return int(saved[f"{self.saved_as}_rows"]), saved[f"{self.saved_as}_checksums"]
