"""The time loop of a run: from one due step to the next, with the observers in between.

while not finished:
    queue steps to the next due step             at most a batch, after which the clock and signals are checked
    queue the sums of its row                    on a GPU
    queue the steps after it                     on a GPU, with the field of leading.py
    wait for the row, call the observers
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from heatsim.run.batch_size import BatchSize
from heatsim.run.observed_run import ObservedRun
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.rows.leading import Leading
from heatsim.solver.rows.observables import FoundRow
from heatsim.solver.rows.rows_ahead import RowsAhead
from heatsim.solver.stabilized.stepper import AdaptiveStepper

_MOST_EXTREMES = 64  # whose cells are searched in every row


class Batch(NamedTuple):
    """Steps that were queued.

    Attributes:
        steps: their number.
        end: the number of steps done after them.
        wait: waits until they are done, and returns the seconds that they took.
        due: whether a row is due after them.
        rows: the due steps before, whose sums are queued between the steps.
        read: waits for these sums, and returns them.
    """

    steps: int
    end: int
    wait: Callable[[], float]
    due: bool
    rows: Sequence[int]
    read: Callable[[], Sequence[FoundRow]]


class TimeLoop:
    """Does the steps of a run in batches, and has its observers called.

    Args:
        run: the run and its observers.
        stepper: does the steps.
        leading: what the stepper advances, if that is not the field of the run. Then steps are queued before the row
            of the steps before is read.
    """

    def __init__(self, run: ObservedRun, stepper: Stepper | AdaptiveStepper, leading: Leading | None = None) -> None:
        self._run, self._stepper, self._leading = run, stepper, leading
        self._ahead: Batch | Exception | None = None
        self._rows_ahead = None if leading is None else _rows_ahead(run, leading)

    def advance(self, size: BatchSize) -> None:
        """Do the next batch of steps and call the observers that are due until then.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the steps.
            NotFiniteError, StorageError: the run failed.
        """
        run = self._run
        batch = self._take_ahead() or self._queue(size)
        if self._leading is not None:
            self._leading.show()
        if batch.due:
            run.state.queue_row()  # so the GPU starts with the row at once
        if self._leading is not None:
            self._queue_ahead(size)
        seconds = batch.wait()
        size.took(batch.steps, seconds)
        if batch.rows:
            run.observe_rows(batch.rows, batch.read)
        run.stepped(batch.end, seconds)
        run.observe()

    def move_to(self, step: int) -> None:
        """Continue from another step, with the present field; for plans. Steps that were queued ahead do not count."""
        self._ahead = None
        self._stepper.step = step
        self._run.move_to(step)

    def _queue(self, size: BatchSize) -> Batch:
        """Queue the next batch of steps: to the next due step, or to a later one if sums of the rows before suffice."""
        stepper, rows = self._stepper, list[int]()
        first, end = stepper.step, stepper.step + size.steps
        wait = self._run.state.field.device.timed(lambda: self._queue_steps(end, rows))
        due = self._run.schedule.is_due(stepper.step) and stepper.step not in rows[-1:]
        read = self._rows_ahead.close() if rows and self._rows_ahead is not None else tuple
        return Batch(stepper.step - first, stepper.step, wait, due, rows, read)

    def _queue_steps(self, end: int, rows: list[int]) -> None:
        """Queue steps to ``end`` or to a due step before it. The due steps on the way are added to ``rows``."""
        stepper = self._stepper
        while True:
            until = min(end, self._run.schedule.next_after(stepper.step))
            try:
                stepper.advance(until - stepper.step)
            except Exception:
                if not rows:
                    raise
                return  # rows before the error come first; then these steps are tried again
            if stepper.step < until or stepper.step == end or not self._queue_sums():
                return
            rows.append(stepper.step)

    def _queue_sums(self) -> bool:
        """Queue the sums of the row that is due, if observers need nothing else. Returns whether they are queued."""
        run, step = self._run, self._stepper.step
        if self._rows_ahead is None or not run.schedule.only_sums(step) or step == run.state.problem.timeline.last_step:
            return False
        return self._rows_ahead.add()

    def _queue_ahead(self, size: BatchSize) -> None:
        """Queue the batch after the one that observers will read. An error is raised when its turn comes."""
        if self._stepper.step < self._run.state.problem.timeline.last_step:
            try:
                self._ahead = self._queue(size)
            except Exception as error:
                self._ahead = error

    def _take_ahead(self) -> Batch | None:
        """The batch that was queued ahead, or its error."""
        ahead, self._ahead = self._ahead, None
        if isinstance(ahead, Exception):
            raise ahead
        return ahead


def _rows_ahead(run: ObservedRun, leading: Leading) -> RowsAhead | None:
    """Finds the sums of rows between steps; None if observers may ask for cells that it cannot search."""
    state = run.state
    reads = [observer.reads(state) for observer in run.observers]
    extremes = [extreme for of_one in reads for extreme in of_one.extremes]
    if len(extremes) > _MOST_EXTREMES or not all(map(state.statistics.extreme_cells.can_search, extremes)):
        return None
    run.schedule.read_sums([not of_one.field for of_one in reads])
    return RowsAhead(state.observables, leading, list(dict.fromkeys(extremes)))
