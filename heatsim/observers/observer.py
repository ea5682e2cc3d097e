"""The interface of observers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import RunState
from heatsim.solver.field.extreme_cells import Extreme
from heatsim.storage.checkpoint_draft import Pieces

Value = int | float | str | bool
# The data of a checkpoint: values, and arrays that describe the files of the run.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Reads:
    """What :meth:`Observer.handle` reads.

    Attributes:
        field: whether it reads the field itself, writes it, or ends the run by ``state.stopped``. Else it reads only
            the sums of a row: the statistics of the field and of the ledger, and the temperatures of
            ``state.field.points`` that were asked for in :meth:`Observer.start`. On a GPU it may then be called when
            the field is some rows further.
        extremes: those whose cells it may ask for, if it reads only the sums of a row.
    """

    field: bool = False
    extremes: Sequence[Extreme] = ()


FIELD = Reads(field=True)
SUMS = Reads()


class Observer:
    """Reads or writes during a run. Every method does nothing unless a subclass overrides it.

    ``due`` is known before the run, so kernels run without interruption between due steps. ``poll`` is called between
    batches of steps. It may use the clock only: no result may depend on where a batch ends.
    """

    @property
    def files(self) -> Sequence[str]:
        """The names of the files in the folder of the run that it has written when the run is complete."""
        return ()

    def due(self, state: RunState) -> NDArray[np.int64]:
        """The numbers of the steps after which :meth:`handle` is called, in ascending order."""
        return np.empty(0, dtype=np.int64)

    def reads(self, state: RunState) -> Reads:
        """What :meth:`handle` reads; the field itself, unless a subclass overrides this method."""
        return FIELD

    def prepare(self) -> None:
        """Called before the kernel is compiled, which can take some seconds, and before :meth:`start`."""

    def check(self, state: RunState, saved: Values) -> None:
        """Check that the files hold the data of the checkpoint. No file has been changed yet.

        Raises:
            StorageError: data are missing or changed; the message says in which file, where, and what to do.
        """

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open files.

        Args:
            state: the run.
            saved: the values of :meth:`save` and :meth:`record` in the checkpoint; None if the run does not resume.
        """

    def handle(self, state: RunState) -> None:
        """Read the field. Called after each due step, including step 0."""

    def poll(self, state: RunState) -> None:
        """Act by the clock, such as showing progress."""

    def save(self) -> dict[str, Value]:
        """Values for the checkpoint. No other observer may use the same names."""
        return {}

    def record(self) -> dict[str, Pieces]:
        """Arrays for the checkpoint that describe this observer's files. No other observer may use the same names.

        They are read in a thread of the writer, when all earlier writes are on the disk.
        """
        return {}

    def flush(self) -> None:
        """Write to the disk everything that the next checkpoint relies on. Called in a thread of the writer.

        Raises:
            StorageError: writing failed, or a file was removed.
        """

    def finish(self, state: RunState) -> None:
        """Called when the run is complete."""

    def close(self) -> None:
        """Close files and release the terminal. Always called, also after an error."""
