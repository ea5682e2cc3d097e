"""What every observer is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import RunState
from heatsim.storage.checkpoint import Pieces

Value = int | float | str | bool
# What a checkpoint says: values, and arrays about the files that it counts on.
Values = Mapping[str, Any]


class Observer:
    """Something that looks at a run. Methods that a kind of observer has no use for do nothing.

    ``due`` is known in whole steps beforehand, so that kernels run uninterrupted in between; ``poll`` is called between
    batches, where only the clock may be looked at: nothing that is calculated may depend on where a batch ended.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """The steps, ascending, after which :meth:`handle` is to be called."""
        return np.empty(0, dtype=np.int64)

    def prepare(self) -> None:
        """The kernel is about to be compiled, which can take some seconds; called before :meth:`start`."""

    def check(self, state: RunState, saved: Values) -> None:
        """See that the files hold what the checkpoint counts, before :meth:`start` changes any of them.

        Raises:
            StorageError: one does not; says which, where, and what to do.
        """

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open what is needed.

        ``saved`` is what :meth:`save` and :meth:`record` gave to the checkpoint that the run resumes from, or None.
        """

    def handle(self, state: RunState) -> None:
        """Look at the field; called after each due step, step 0 included."""

    def poll(self, state: RunState) -> None:
        """Look at the clock."""

    def save(self) -> dict[str, Value]:
        """What a checkpoint has to keep for this observer, under names of its own."""
        return {}

    def record(self) -> dict[str, Pieces]:
        """Arrays that a checkpoint keeps about this observer's files, under names of its own.

        They are read in a thread of the writer's, after all that was handed to the writer before is on the disk.
        """
        return {}

    def flush(self) -> None:
        """Bring to disk what a checkpoint is about to rely on; called in a thread of the writer's, beside the run.

        Raises:
            StorageError: the disk refused, or a file was removed.
        """

    def finish(self, state: RunState) -> None:
        """The run is complete."""

    def close(self) -> None:
        """Let go of files and terminal, whatever happened."""
