"""A run with its observers, which it calls at due steps. The time loop or an ensemble does the steps."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from heatsim.observers.checkpoint import Checkpoints
from heatsim.observers.observer import Observer, Values
from heatsim.observers.schedule import Schedule
from heatsim.observers.state import RunState
from heatsim.run.timing import SteppingPeriod, Timing
from heatsim.solver.rows.observables import FoundRow
from heatsim.storage.checkpoint import understanding


class ObservedRun:
    """A run and its observers.

    The time loop (:mod:`heatsim.run.time_loop`) or an ensemble does the steps, at most :attr:`steps_to_due`. Then it
    calls :meth:`stepped` and :meth:`observe`, until the run is :attr:`finished`.

    Args:
        state: the run.
        observers: the last one writes the checkpoints. Their files are opened here; a new run has them handle step 0.
        timing: the seconds are added to it.
        saved: the values of the checkpoint from which the run continues; None for a new run.

    Attributes:
        schedule: when the observers are due.
        warnings: for the user; complete after :meth:`finish`.
    """

    def __init__(self, state: RunState, observers: Sequence[Observer], timing: Timing, saved: Values | None) -> None:
        self.state = state
        self.observers = observers
        self.timing = timing
        self.warnings: list[str] = []
        self.schedule = Schedule([observer.due(state) for observer in observers])
        with self._timed():
            with understanding(state.folder) if saved is not None else nullcontext():
                for observer in observers:
                    observer.start(state, saved)
            if saved is None:
                self._notify()
        self._period = SteppingPeriod(timing)
        self._find_next()

    @property
    def finished(self) -> bool:
        """Whether no steps are left; then call :meth:`finish` and :meth:`end`."""
        return self.state.finished

    @property
    def files(self) -> list[str]:
        """The names of the files that the observers write."""
        return [name for observer in self.observers for name in observer.files]

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

    def stepped(self, step: int, seconds: float) -> None:
        """Record that ``step`` steps are done; the last batch took ``seconds``."""
        self.state.step = step
        self.timing.stepping += seconds
        self.state.wall_time += seconds

    def observe(self, poll: bool = True) -> None:
        """Call the observers that are due.

        Args:
            poll: have all of them check the clock.

        Raises:
            NotFiniteError, StorageError: the run failed.
        """
        with self._timed():
            self.state.writer.check()
            # Due observers come first: a checkpoint counts the rows that they have written.
            if self.due:
                self._notify()
                self._find_next()
            for observer in self.observers if poll else ():
                observer.poll(self.state)

    def observe_rows(self, steps: Sequence[int], read: Callable[[], Sequence[FoundRow]]) -> None:
        """Call the observers that were due at steps before the present one.

        Args:
            steps: the numbers of steps done then.
            read: waits for the sums of these rows, and returns them.
        """
        state = self.state
        with self._timed():
            for step, row in zip(steps, read(), strict=True):
                state.step = step
                row.show(state.observables)
                self._call_due()
            state.field.changed()
            state.ledger.changed()
        self._find_next()

    def move_to(self, step: int) -> None:
        """Continue from another step, with the present field; for plans."""
        self.state.step = step
        self._find_next()

    def make_rows(self) -> None:
        """Have the observers make the rows that they have sampled, as before a checkpoint. Collective."""
        for observer in self.observers:
            observer.save()

    def save(self) -> Values:
        """Write a checkpoint and return its values. Collective."""
        checkpoints = self.observers[-1]
        assert isinstance(checkpoints, Checkpoints)
        with self._timed():
            saved = checkpoints.write(self.state)
            self.state.writer.wait()
        return self.state.team.broadcast({**saved, **checkpoints.records()})

    def finish(self) -> None:
        """Tell the observers that the run is complete; their last writes may go on. Call :meth:`end` afterwards."""
        if not self.state.problem.scenario.steady:
            self.warnings += self._period.end()
        with self._timed():
            for observer in self.observers:
                observer.finish(self.state)

    def end(self) -> None:
        """Wait for the last writes, until they are on the disk."""
        with self._timed():
            self.state.writer.wait()
            if self.state.problem.scenario.steady:  # other runs end with a checkpoint, which does this
                for observer in self.observers:
                    observer.flush()

    def _timed(self) -> AbstractContextManager[None]:
        return self.timing.observed(self.state.writer)

    def _find_next(self) -> None:
        self._next = self.schedule.next_after(self.state.step)

    def _notify(self) -> None:
        self.state.find_row()
        self._call_due()

    def _call_due(self) -> None:
        due = self.schedule.at(self.state.step)
        for is_due, observer in zip(due, self.observers, strict=True):
            if is_due or self.state.stopped:
                observer.handle(self.state)
