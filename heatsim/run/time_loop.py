"""The time loop of a run: from one due step to the next, with the observers in between."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.checkpoint import Checkpoints
from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.parallel.activity import unforeseen
from heatsim.solver.leading import Leading
from heatsim.solver.row_sums import FoundRow
from heatsim.solver.rows_ahead import RowsAhead
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.stepper import Stepper
from heatsim.storage.checkpoint import understanding

# Seconds of device work that are queued before the clock and signals are checked; twice as many with steps ahead.
BATCH_SECONDS = 0.25
_LONGER = 8
_MOST_EXTREMES = 64  # whose cells are searched in every row
_OBSERVING_WORTH_A_WARNING = 1.0  # s


@dataclass
class Timing:
    """Wall-clock seconds of the parts of a run. A GPU may do steps while the host observes.

    Attributes:
        preparing: reading the initial field and compiling.
        stepping: the steps, on a GPU by its own clock; with them the sums of rows that are queued between steps.
        observing: sums, copies of the field, rows of tables.
        waiting: until fields and checkpoints were written.
    """

    preparing: float = 0.0
    stepping: float = 0.0
    observing: float = 0.0
    waiting: float = 0.0

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the time spent inside to ``part``."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, part, getattr(self, part) + time.perf_counter() - started)


class Batch:
    """The number of steps that are queued before the clock and signals are checked. No result depends on it.

    If several ranks do a run, rank 0 decides.

    Args:
        least: the most steps that the kernel can do per read and write of the field. Batches reach this number even if
            they then take up to 8 times as long.

    Attributes:
        steps: the most steps of the next batch.
    """

    def __init__(self, least: int = 1) -> None:
        self.steps = 1
        self._least = least

    def took(self, steps: int, seconds: float) -> None:
        """Adapt the number to the last batch, which had ``steps`` steps and took ``seconds``."""
        if steps == self.steps or seconds > BATCH_SECONDS:
            in_time = steps * BATCH_SECONDS / max(seconds, 1e-9)
            self.steps = max(1, min(2 * steps, max(int(in_time), min(self._least, int(_LONGER * in_time)))))


class Queued(NamedTuple):
    """Steps that were queued.

    Attributes:
        steps: their number.
        step: the number of steps done after them.
        wait: waits until they are done, and returns the seconds that they took.
        due: whether a row is due after them.
        rows: the due steps before, whose sums are queued between the steps.
        read: waits for these sums, and returns them.
    """

    steps: int
    step: int
    wait: Callable[[], float]
    due: bool
    rows: Sequence[int] = ()
    read: Callable[[], Sequence[FoundRow]] = tuple


class TimeLoop:
    """Advances a run from one due step to the next and calls its observers there.

    A run alone calls :meth:`advance` until it is ``finished``. An ensemble does the steps itself, at most
    ``steps_to_due``, and then calls :meth:`stepped` and :meth:`look` of each member.

    Args:
        state: the run.
        observers: the last one writes the checkpoints. Their files are opened here; a new run has them handle step 0.
        timing: the seconds are added to it.
        saved: the values of the checkpoint from which the run continues; None for a new run.
        leading: what the stepper advances, if that is not the field of ``state``. Then steps are queued before the row
            of the steps before is read.
    """

    def __init__(
        self,
        state: RunState,
        observers: Sequence[Observer],
        timing: Timing,
        saved: Values | None,
        leading: Leading | None = None,
    ) -> None:
        self.state = state
        self.timing = timing
        self._leading = leading
        self._ahead: Queued | Exception | None = None
        self._observers = observers
        # Of several ranks, a watch ends the job if one takes far longer than usual.
        calls = [_unpaced if state.team.size > 1 and not observer.paced else _paced for observer in observers]
        self._handle = [call(observer.handle) for call, observer in zip(calls, observers, strict=True)]
        self._poll = [call(observer.poll) for call, observer in zip(calls, observers, strict=True)]
        self._due = Schedule([observer.due(state) for observer in observers])
        self._rows_ahead: RowsAhead | None = None
        with self._observing():
            with understanding(state.folder) if saved is not None else nullcontext():
                for observer in observers:
                    observer.start(state, saved)
            if saved is None:
                self._notify()
        if leading is not None:
            self._find_rows_ahead(leading)
        self._begun, self._begun_at = replace(timing), time.perf_counter()
        self._find_next()

    def _find_rows_ahead(self, leading: Leading) -> None:
        """Find the due steps whose sums can be queued with the steps after them."""
        state = self.state
        reads = [observer.reads(state) for observer in self._observers]
        found = [[each for each in some if state.statistics.can_search(each)] for some in reads if some is not None]
        extremes = dict.fromkeys(each for some in found for each in some)
        if sum(len(some) for some in reads if some is not None) == sum(map(len, found)) <= _MOST_EXTREMES:
            self._due.read_sums([some is not None for some in reads])
            self._rows_ahead = RowsAhead(state.observables, leading, list(extremes))

    @property
    def finished(self) -> bool:
        """Whether only :meth:`end` is left to be called."""
        return self.state.finished

    @property
    def files(self) -> list[str]:
        """The names of the files that the observers write."""
        return [name for observer in self._observers for name in observer.files]

    @property
    def due(self) -> bool:
        """Whether an observer is due now."""
        return self.state.step == self._next

    @property
    def steps_to_due(self) -> int:
        """Steps until the next observer is due."""
        return self._next - self.state.step

    @property
    def time_of_due(self) -> float:
        """The simulated time in s at which the next observer is due."""
        return self.state.problem.timeline.time(self._next)

    def advance(self, stepper: Stepper | AdaptiveStepper, batch: Batch) -> None:
        """Do the next batch of steps and call the observers that are due until then.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the steps.
            NotFiniteError, StorageError: the run failed.
        """
        with self.state.team.paced():
            ahead, self._ahead = self._ahead, None
            if isinstance(ahead, Exception):
                raise ahead
            queued = ahead or self._queue(stepper, batch)
            if self._leading is not None:
                self._leading.show()
            if queued.due:
                self.state.queue_row()  # so the GPU starts with the row at once
            if self._leading is not None:
                self._queue_ahead(stepper, batch)
            seconds = queued.wait()
            batch.took(queued.steps, seconds)
            self._look_at_rows(queued)
            self.stepped(queued.step, seconds)
            self.look()

    def _queue(self, stepper: Stepper | AdaptiveStepper, batch: Batch) -> Queued:
        """Queue the next batch of steps: to the next due step, or to a later one if sums of the rows before suffice."""
        first, end, rows = stepper.step, stepper.step + batch.steps, list[int]()

        def advance() -> None:
            while True:
                due = self._due.next_after(stepper.step)
                try:
                    stepper.advance(min(end, due) - stepper.step)
                except Exception:
                    if not rows:
                        raise
                    return  # rows before the error come first; then these steps are tried again
                if stepper.step < min(due, end) or stepper.step == end or not self._keep_row(stepper.step):
                    return
                rows.append(stepper.step)

        wait = self.state.field.device.timed(advance)
        due = self._due.is_due(stepper.step) and stepper.step not in rows[-1:]
        if not rows or self._rows_ahead is None:
            return Queued(stepper.step - first, stepper.step, wait, due)
        return Queued(stepper.step - first, stepper.step, wait, due, rows, self._rows_ahead.close())

    def _keep_row(self, step: int) -> bool:
        """Queue the sums of a due step for later, if observers need nothing else."""
        if self._rows_ahead is None or not self._due.only_sums(step) or step == self.state.problem.timeline.last_step:
            return False
        return self._rows_ahead.add()

    def _queue_ahead(self, stepper: Stepper | AdaptiveStepper, batch: Batch) -> None:
        """Queue the batch after the one that observers will read. An error is raised when its turn comes."""
        if stepper.step < self.state.problem.timeline.last_step:
            try:
                self._ahead = self._queue(stepper, batch)
            except Exception as error:
                self._ahead = error

    def _look_at_rows(self, queued: Queued) -> None:
        """Call the observers that are due before the last of the steps that were queued."""
        if not queued.rows:
            return
        state = self.state
        with self._observing():
            for step, found in zip(queued.rows, queued.read(), strict=True):
                state.step = step
                found.show(state.observables)
                self._call_due()
            state.field.changed()
            state.ledger.changed()
        self._find_next()

    def stepped(self, step: int, seconds: float) -> None:
        """Record that ``step`` steps are done; the last batch took ``seconds``."""
        self.state.step = step
        self.timing.stepping += seconds
        self.state.wall_time += seconds

    def look(self, poll: bool = True) -> None:
        """Call the observers that are due.

        Args:
            poll: have all of them check the clock.

        Raises:
            NotFiniteError, StorageError: the run failed.
        """
        with self._observing():
            self.state.writer.check()
            # Due observers come first: a checkpoint counts the rows that they have written.
            if self.due:
                self._notify()
                self._find_next()
            for look_at_clock in self._poll if poll else ():
                look_at_clock(self.state)

    def save(self) -> Values:
        """Write a checkpoint and return its values. Collective."""
        checkpoints = self._observers[-1]
        assert isinstance(checkpoints, Checkpoints)
        with self._observing():
            saved = checkpoints.write(self.state)
            self.state.writer.wait()
        return self.state.team.broadcast({**saved, **checkpoints.records()})

    def finish(self) -> None:
        """Tell the observers that the run is complete; their last writes may go on. Call :meth:`end` afterwards."""
        self._ended, self._seconds = replace(self.timing), time.perf_counter() - self._begun_at
        with self._observing():
            for observer in self._observers:
                observer.finish(self.state)

    def end(self) -> list[str]:
        """Wait for the last writes. Returns a warning if the observers took longer than the steps.

        Only time in which no steps are done counts: a GPU does steps while the host observes, and an observer that
        reads the field itself waits for these steps.
        """
        now, begun = self._ended, self._begun
        with self._observing():
            self.state.writer.wait()
        observing = now.observing - begun.observing + now.waiting - begun.waiting
        stepping = now.stepping - begun.stepping
        without_steps = min(observing, self._seconds - stepping)
        if self.state.problem.scenario.steady or without_steps <= max(stepping, _OBSERVING_WORTH_A_WARNING):
            return []
        return [
            f"fields, rows and checkpoints took {observing:.3g} s, the steps between them {stepping:.3g} s; longer "
            "output.every, output.probe_every and output.checkpoint_wall make the run faster"
        ]

    @contextmanager
    def _observing(self) -> Iterator[None]:
        """Time the observers; waiting for the writer is counted separately."""
        started, waited = time.perf_counter(), self.state.writer.waited
        try:
            yield
        finally:
            waited = self.state.writer.waited - waited
            self.timing.waiting += waited
            self.timing.observing += time.perf_counter() - started - waited

    def _find_next(self) -> None:
        self._next = self._due.next_after(self.state.step)

    def _notify(self) -> None:
        self.state.find_row()
        self._call_due()

    def _call_due(self) -> None:
        """Call the observers that are due."""
        due = self._due.at(self.state.step)
        for is_due, handle in zip(due, self._handle, strict=True):
            if is_due or self.state.stopped:
                handle(self.state)


def _paced(call: Callable[[RunState], None]) -> Callable[[RunState], None]:
    return call


def _unpaced(call: Callable[[RunState], None]) -> Callable[[RunState], None]:
    """The call, which may take any time without ending the job of several ranks."""

    def marked(state: RunState) -> None:
        with unforeseen():
            call(state)

    return marked


class Schedule:
    """The steps at which observers are due.

    Args:
        steps: of each observer, ascending.
    """

    def __init__(self, steps: Sequence[NDArray[np.int64]]) -> None:
        unique = np.unique(np.concatenate(steps))
        self._steps: list[int] = unique.tolist()
        due = np.array([np.isin(unique, of_one) for of_one in steps]).T
        self._due: list[Sequence[bool]] = due.tolist()
        self._none = (False,) * len(steps)
        self._only_sums: set[int] = set()

    def read_sums(self, observers: Sequence[bool]) -> None:
        """Tell which observers read the sums of a row only."""
        others = [number for number, only in enumerate(observers) if not only]
        due = zip(self._steps, self._due, strict=True)
        self._only_sums = {step for step, of_step in due if not any(of_step[number] for number in others)}

    def only_sums(self, step: int) -> bool:
        """Whether all observers that are due after ``step`` steps read the sums of a row only."""
        return step in self._only_sums

    def is_due(self, step: int) -> bool:
        """Whether an observer is due after ``step`` steps."""
        return self.at(step) is not self._none

    def next_after(self, step: int) -> int:
        """The first step after ``step`` at which an observer is due; a very large number if there is none."""
        i = bisect_right(self._steps, step)
        return self._steps[i] if i < len(self._steps) else 1 << 62

    def at(self, step: int) -> Sequence[bool]:
        """Whether each observer is due after ``step`` steps."""
        i = bisect_left(self._steps, step)
        if i == len(self._steps) or self._steps[i] != step:
            return self._none
        return self._due[i]
