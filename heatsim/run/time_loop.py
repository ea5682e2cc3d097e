"""A run under way: from one due step to the next, whoever does the steps in between."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.checkpoint import Checkpoints
from heatsim.observers.observer import Observer, RunState, Values
from heatsim.storage.checkpoint import understanding

# Device work is queued for about this long before the clock and signals are looked at.
BATCH_SECONDS = 0.25


@dataclass
class Timing:
    """Wall-clock seconds of a run's parts.

    Attributes:
        preparing: reading the initial field and compiling.
        stepping: the kernels.
        observing: summing, copying the field for what is written beside the run, writing rows.
        waiting: for fields and checkpoints that were still being written.
    """

    preparing: float = 0.0
    stepping: float = 0.0
    observing: float = 0.0
    waiting: float = 0.0

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count what is done inside to one of the parts."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, part, getattr(self, part) + time.perf_counter() - started)


class Batch:
    """How many steps are queued before the clock and signals are looked at; no result depends on it.

    Attributes:
        steps: at the most.
    """

    def __init__(self) -> None:
        self.steps = 1

    def took(self, steps: int, seconds: float) -> None:
        """Learn from what has been queued."""
        if steps == self.steps or seconds > BATCH_SECONDS:
            self.steps = max(1, min(2 * steps, int(steps * BATCH_SECONDS / max(seconds, 1e-9))))


class Course:
    """Observers of a run, and what is due.

    The last of the observers writes the checkpoints. Whoever drives the run does some steps, at most
    ``steps_to_due``, tells :meth:`stepped` and calls :meth:`look`, until it is ``finished``.

    Args:
        state: the run.
        observers: their files are opened, and step 0 of a run that is not resumed is theirs to handle.
        timing: is added to.
        saved: what the checkpoint says that the run goes on from.
    """

    def __init__(self, state: RunState, observers: Sequence[Observer], timing: Timing, saved: Values | None) -> None:
        self.state = state
        self.timing = timing
        self._observers = observers
        self._due = [observer.due(state) for observer in observers]
        with self._observing():
            with understanding(state.folder) if saved is not None else nullcontext():
                for observer in observers:
                    observer.start(state, saved)
            if saved is None:
                self._notify()
        self._begun = replace(timing)
        self._find_next()

    @property
    def finished(self) -> bool:
        """Whether there is nothing left but :meth:`end`."""
        return self.state.finished

    @property
    def due(self) -> bool:
        """Whether an observer wants to look now."""
        return self.state.step == self._next

    @property
    def steps_to_due(self) -> int:
        """Steps until an observer wants to look."""
        return self._next - self.state.step

    def stepped(self, step: int, seconds: float) -> None:
        """So many steps are done in all, the last of them in so many seconds."""
        self.state.step = step
        self.timing.stepping += seconds
        self.state.wall_time += seconds

    def look(self) -> None:
        """Have observers look at the field if they are due, and at the clock.

        Raises:
            NotFiniteError, StorageError: the run failed.
        """
        with self._observing():
            self.state.writer.check()
            # At a due step observers are notified first: a checkpoint counts what has been written.
            if self.due:
                self._notify()
                self._find_next()
            for observer in self._observers:
                observer.poll(self.state)

    def save(self) -> Values:
        """Write a checkpoint and return what it says."""
        checkpoints = self._observers[-1]
        assert isinstance(checkpoints, Checkpoints)
        with self._observing():
            saved = checkpoints.write(self.state)
            self.state.writer.wait()
        return {**saved, **checkpoints.records()}

    def end(self) -> tuple[float, float]:
        """Tell the observers that the run is complete; returns the seconds of its steps and of all between them."""
        now, begun = replace(self.timing), self._begun
        with self._observing():
            for observer in self._observers:
                observer.finish(self.state)
            self.state.writer.wait()
        between = now.observing - begun.observing + now.waiting - begun.waiting
        return now.stepping - begun.stepping, between

    @contextmanager
    def _observing(self) -> Iterator[None]:
        """Time what happens between steps, waiting for the writer apart from the rest."""
        started, waited = time.perf_counter(), self.state.writer.waited
        try:
            yield
        finally:
            waited = self.state.writer.waited - waited
            self.timing.waiting += waited
            self.timing.observing += time.perf_counter() - started - waited

    def _find_next(self) -> None:
        self._next = min(_next_after(self.state.step, steps) for steps in self._due)

    def _notify(self) -> None:
        for observer, steps in zip(self._observers, self._due, strict=True):
            if self.state.stopped or _next_after(self.state.step - 1, steps) == self.state.step:
                observer.handle(self.state)


def _next_after(step: int, due: NDArray[np.int64]) -> int:
    """The first due step after ``step``; far away if there is none."""
    i = int(np.searchsorted(due, step, side="right"))
    return int(due[i]) if i < len(due) else 1 << 62
