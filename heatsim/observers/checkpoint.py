"""Saves everything that is needed to resume, by the wall clock, at the end and when the run is interrupted."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import RunState
from heatsim.parallel.slab import Share
from heatsim.solver.field.field_copy import Download, FieldCopy, slabs
from heatsim.storage import checkpoint, folder
from heatsim.storage.checkpoint_draft import Pieces


class Checkpoints(Observer):
    """Writes checkpoint.h5, in which every other observer says how far its files have come.

    If several ranks do a run, each writes its planes; rank 0 writes the rest, and its clock counts.

    Args:
        observers: the others.
        identity: what a resumed run must share or is told about: kernel, device, precision, ….
        files: names of the files that the run needs in its folder besides those of the observers.
    """

    def __init__(self, observers: Sequence[Observer], identity: Values, files: Sequence[str] = ()) -> None:
        self._observers = observers
        self._identity = identity
        self._files = files
        self._written_at = time.monotonic()

    @property
    def files(self) -> Sequence[str]:
        """The last checkpoint."""
        return (folder.CHECKPOINT,)

    def start(self, state: RunState, saved: Values | None) -> None:
        """The clock starts."""
        self._written_at = time.monotonic()
        self._team = state.team.branch("checkpoints")

    def poll(self, state: RunState) -> None:
        """Write one if the last is older than checkpoint_wall."""
        waited = time.monotonic() - self._written_at
        if state.team.broadcast(waited >= state.problem.scenario.output.checkpoint_wall):
            self.write(state)

    def finish(self, state: RunState) -> None:
        """The last state is kept too."""
        self.write(state)

    def write(self, state: RunState) -> Values:
        """Have one written for the current step and return what it says beside the arrays; the run can go on.

        What it counts is brought to disk before it takes the place of the one before.

        Raises:
            NotFiniteError: the field is not finite; the checkpoints that were there stay.
            StorageError: the disk refused what was to be written before.
        """
        # Rows come first: making them adds up what the ledger saves.
        of_observers: dict[str, Value] = {}
        for observer in self._observers:
            of_observers.update(observer.save())
        point = state.restart_point()
        # Nothing is saved unchecked.
        if point.field is state.field:
            state.check()
        else:
            state.check_finite(point.field)
        values: dict[str, Value] = {
            **self._identity,
            "step": point.step,
            "reference": state.field.reference,
            "initial_heat": state.initial_heat,
            "wall_time": state.wall_time,
            "stopped": state.stopped,
            **point.values,
            **of_observers,
        }
        files = self._records()
        saved, sums = checkpoint.Checkpoint({}, values), {name: _pieces(share) for name, share in point.sums.items()}
        planes = {name: of.copy() for name, of in point.planes.items()}
        download, compared = Download(state.field.device), None
        if state.compared is not None:
            values["compared_step"], compared = state.compared

        def write(field_copy: FieldCopy, wait_for_the_rest: Callable[[], None]) -> None:
            shape, dtype, first = state.field.grid.shape, field_copy.precision, field_copy.slab.first
            large = {**sums, "deviation": Pieces(shape, dtype, field_copy.deviations, first)}
            for name, of in planes.items():
                large[name] = Pieces(shape, str(of.dtype), partial(iter, (of,)), first)
            if compared is not None:
                large["compared"] = Pieces(shape, dtype, lambda: slabs(download, compared), first)

            def before() -> None:
                wait_for_the_rest()
                self._flush(state.folder)

            checkpoint.write(state.folder, saved, large, before, files, self._team)

        state.write_beside(point.field, write)
        self._written_at = time.monotonic()
        return values

    def records(self) -> dict[str, NDArray[Any]]:
        """What the checkpoint says about the files, once all that was handed to the writer is done; of rank 0."""
        return {name: pieces.whole() for name, pieces in self._records().items()}

    def _records(self) -> dict[str, Pieces]:
        return {name: pieces for observer in self._observers for name, pieces in observer.record().items()}

    def _flush(self, at: Path) -> None:
        for observer in self._observers:
            observer.flush()
        if self._team.first:
            folder.require_files(at, self._files)


def _pieces(share: Share) -> Pieces:
    """A copy of a rank's share of an array: one piece, or none if the share is empty."""
    pieces = (share.values.copy(),) if len(share.values) else ()
    return Pieces(share.shape, share.values.dtype, partial(iter, pieces), share.first)
