"""The rounds of an ensemble: how far each run goes in a round.

Euler's method: in each round a run does its own steps up to its next due step. If that step is far away in simulated
time, the run does only a part of these steps:

        run 0    ─────┤  row        ─────┤  row
        run 1    ───┤    row        ───┤    row          the steps from row to row differ with dt
        run 2    ────────  half way ────────┤ row
                 round 1            round 2

So runs with rows at the same times read their fields in the same round, although their numbers of steps differ. If a
round is cut short to read the clock, all runs do the same part of their steps. So they stay at about the same time.

Stabilized steps: in each round a run tries one step; then its observers handle the due times within the step.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heatsim.kernels.launch_shapes import Choice, Task
from heatsim.observers.state import RunState
from heatsim.run import batch_size
from heatsim.run.batch_size import BatchSize
from heatsim.run.observed_run import ObservedRun
from heatsim.run.plan import Plan
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.euler.ensemble_stepper import BodyEnsemble, EnsembleStepper
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.rows.row_sums import RowSums
from heatsim.solver.stabilized.ensemble import StabilizedEnsemble
from heatsim.solver.stabilized.stepper import AdaptiveStepper

# Largest ratio of the simulated time to the end of a round to the time until the first run is due.
_FARTHEST = 2
# Observers check the clock this many times in the longest batch of steps, not at each row.
_POLLS_A_BATCH = 5

# By the numbers of the runs.
Failures = dict[int, Exception]


class Rounds(ABC):
    """Rounds of an ensemble of one method.

    Args:
        plan: of one of the runs; device, kernel, grid and arithmetic are those of all.
        steppers: of each run.
        stopped: returns whether a signal came.
    """

    _together: EnsembleStepper | BodyEnsemble | StabilizedEnsemble

    def __init__(self, plan: Plan, steppers: Sequence[Stepper | AdaptiveStepper], stopped: Callable[[], bool]) -> None:
        self._device = plan.device
        self._sums = RowSums()
        self._polled_at: dict[int, float] = {}

    def find_rows(self, states: Sequence[RunState]) -> None:
        """Find the sums that the observers of these runs read, with one wait for the GPU."""
        self._sums.find([state.observables for state in states])

    def _find_rows(self, runs: Sequence[ObservedRun]) -> None:
        if runs:
            started = time.perf_counter()
            self.find_rows([run.state for run in runs])
            for run in runs:
                run.timing.observing += (time.perf_counter() - started) / len(runs)

    @property
    def choice(self) -> Choice:
        """The kernel of the steps or stages, and its launch shape."""
        return self._together.choice

    def prepare(self) -> None:
        """Find the fastest kernel and compile it."""
        self._together.prepare()

    @abstractmethod
    def advance(self, runs: Mapping[int, ObservedRun]) -> Failures:
        """Do one round, and call the observers of runs at due times. Returns the errors of runs that failed."""

    def _observe(self, runs: Mapping[int, ObservedRun]) -> Failures:
        """Call the observers of some runs. The same launches find the data for all runs that are due."""
        self._find_rows([run for run in runs.values() if run.due])
        now, failed = time.monotonic(), Failures()
        for number, run in runs.items():
            poll = now - self._polled_at.get(number, 0.0) >= batch_size.BATCH_SECONDS / _POLLS_A_BATCH
            if poll:
                self._polled_at[number] = now
            try:
                run.observe(poll)
            except Exception as error:
                failed[number] = error
        return failed


class EulerRounds(Rounds):
    """Rounds of runs whose steps have lengths known beforehand."""

    _together: EnsembleStepper | BodyEnsemble

    def __init__(self, plan: Plan, steppers: Sequence[Stepper | AdaptiveStepper], stopped: Callable[[], bool]) -> None:
        super().__init__(plan, steppers, stopped)
        self._steppers = [_cuda_stepper(stepper) for stepper in steppers]
        kind = EnsembleStepper if plan.problem.linear else BodyEnsemble
        self._together = kind(self._steppers, _task(plan, len(steppers)), plan.kernel, plan.tuned)
        self._size = BatchSize()

    def advance(self, runs: Mapping[int, ObservedRun]) -> Failures:
        """Do steps of each run up to its next due step, or a part of them."""
        wanted = self._wanted_steps(runs)
        part = min(1.0, min(self._size.steps, self._together.most_steps) / max(wanted.values()))
        started = time.perf_counter()
        members: dict[int, Any] = {}
        failed: Failures = {}
        for number, steps in wanted.items():
            stepper = self._steppers[number]
            try:
                count = min(max(1, round(part * steps)), stepper.steps_to_carry)
                members[number] = self._together.steps_of(stepper, count)
            except Exception as error:
                failed[number] = error
        if not members:
            return failed
        self._together.advance([(self._steppers[number], own) for number, own in members.items()])
        self._device.synchronise()
        seconds = time.perf_counter() - started
        lengths = [own.steps for own in members.values()]
        self._size.took(max(lengths), seconds)
        for number, own in members.items():
            runs[number].stepped(self._steppers[number].step, seconds * own.steps / sum(lengths))
        return failed | self._observe({number: runs[number] for number in members})

    @staticmethod
    def _wanted_steps(runs: Mapping[int, ObservedRun]) -> dict[int, int]:
        """The number of steps of each run in a complete round."""
        now = min(run.state.time for run in runs.values())
        farthest = now + _FARTHEST * (min(run.time_of_due for run in runs.values()) - now)
        wanted = {}
        for number, run in runs.items():
            steps, time_now, due = run.steps_to_due, run.state.time, run.time_of_due
            if due > farthest:
                steps = max(1, int(steps * (farthest - time_now) / (due - time_now)))
            wanted[number] = steps
        return wanted


class StabilizedRounds(Rounds):
    """Rounds of runs of the method "stabilized"."""

    _together: StabilizedEnsemble

    def __init__(self, plan: Plan, steppers: Sequence[Stepper | AdaptiveStepper], stopped: Callable[[], bool]) -> None:
        super().__init__(plan, steppers, stopped)
        self._steppers = [_adaptive_stepper(stepper) for stepper in steppers]
        for stepper in self._steppers:
            stepper.stopped = stopped
        self._together = StabilizedEnsemble(self._steppers, _task(plan, len(steppers)), plan.kernel, plan.tuned)

    def advance(self, runs: Mapping[int, ObservedRun]) -> Failures:
        """Try one step of each run, and write its rows that are due within the step."""
        started = time.perf_counter()
        failed = self._together.advance([number for number in runs if not self._steppers[number].at_due])
        running = {number: run for number, run in runs.items() if number not in failed}
        self._stepped(running, time.perf_counter() - started)
        failed |= self._observe({number: running[number] for number in running if not self._steppers[number].at_due})
        while due := {number: running[number] for number in running if self._is_due(running, number, failed)}:
            started = time.perf_counter()
            for number in due:
                self._steppers[number].show()
            self._device.synchronise()
            self._stepped(due, time.perf_counter() - started)
            failed |= self._observe(due)
        return failed

    def _is_due(self, runs: Mapping[int, ObservedRun], number: int, failed: Failures) -> bool:
        return number not in failed and not runs[number].finished and self._steppers[number].at_due

    def _stepped(self, runs: Mapping[int, ObservedRun], seconds: float) -> None:
        for number, run in runs.items():
            run.stepped(self._steppers[number].step, seconds / len(runs))


def _task(plan: Plan, members: int) -> Task:
    problem = plan.problem
    return Task(plan.device, problem.grid, problem.periodic, problem.precision, problem.scheme, members)


def _cuda_stepper(stepper: Stepper | AdaptiveStepper) -> CudaStepper:
    assert isinstance(stepper, CudaStepper), "ensembles run on a GPU"
    return stepper


def _adaptive_stepper(stepper: Stepper | AdaptiveStepper) -> AdaptiveStepper:
    assert isinstance(stepper, AdaptiveStepper)
    return stepper
