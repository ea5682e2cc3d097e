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
from heatsim.run import time_loop
from heatsim.run.plan import Plan
from heatsim.run.time_loop import Batch, TimeLoop
from heatsim.solver.body_ensemble import BodyEnsemble
from heatsim.solver.cuda_stepper import CudaStepper
from heatsim.solver.ensemble_stepper import EnsembleStepper
from heatsim.solver.row_sums import RowSums
from heatsim.solver.stabilized.ensemble import StabilizedEnsemble
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.stepper import Stepper

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

    def _find_rows(self, loops: Sequence[TimeLoop]) -> None:
        if loops:
            started = time.perf_counter()
            self.find_rows([loop.state for loop in loops])
            for loop in loops:
                loop.timing.observing += (time.perf_counter() - started) / len(loops)

    @property
    def choice(self) -> Choice:
        """The kernel of the steps or stages, and its launch shape."""
        return self._together.choice

    def prepare(self) -> None:
        """Find the fastest kernel and compile it."""
        self._together.prepare()

    @abstractmethod
    def advance(self, loops: Mapping[int, TimeLoop]) -> Failures:
        """Do one round, and call the observers of runs at due times. Returns the errors of runs that failed."""

    def _look(self, loops: Mapping[int, TimeLoop]) -> Failures:
        """Call the observers of some runs. The same launches find the data for all runs that are due."""
        self._find_rows([loop for loop in loops.values() if loop.due])
        now, failed = time.monotonic(), Failures()
        for number, loop in loops.items():
            poll = now - self._polled_at.get(number, 0.0) >= time_loop.BATCH_SECONDS / _POLLS_A_BATCH
            if poll:
                self._polled_at[number] = now
            try:
                loop.look(poll)
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
        self._batch = Batch()

    def advance(self, loops: Mapping[int, TimeLoop]) -> Failures:
        """Do steps of each run up to its next due step, or a part of them."""
        wanted = self._wanted_steps(loops)
        part = min(1.0, min(self._batch.steps, self._together.most_steps) / max(wanted.values()))
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
        self._batch.took(max(lengths), seconds)
        for number, own in members.items():
            loops[number].stepped(self._steppers[number].step, seconds * own.steps / sum(lengths))
        return failed | self._look({number: loops[number] for number in members})

    @staticmethod
    def _wanted_steps(loops: Mapping[int, TimeLoop]) -> dict[int, int]:
        """The number of steps of each run in a complete round."""
        now = min(loop.state.time for loop in loops.values())
        farthest = now + _FARTHEST * (min(loop.time_of_due for loop in loops.values()) - now)
        wanted = {}
        for number, loop in loops.items():
            steps, time_now, due = loop.steps_to_due, loop.state.time, loop.time_of_due
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

    def advance(self, loops: Mapping[int, TimeLoop]) -> Failures:
        """Try one step of each run, and write its rows that are due within the step."""
        started = time.perf_counter()
        failed = self._together.advance([number for number in loops if not self._steppers[number].at_due])
        running = {number: loop for number, loop in loops.items() if number not in failed}
        self._stepped(running, time.perf_counter() - started)
        failed |= self._look({number: running[number] for number in running if not self._steppers[number].at_due})
        while due := {number: running[number] for number in running if self._is_due(running, number, failed)}:
            started = time.perf_counter()
            for number in due:
                self._steppers[number].show()
            self._device.synchronise()
            self._stepped(due, time.perf_counter() - started)
            failed |= self._look(due)
        return failed

    def _is_due(self, loops: Mapping[int, TimeLoop], number: int, failed: Failures) -> bool:
        return number not in failed and not loops[number].finished and self._steppers[number].at_due

    def _stepped(self, loops: Mapping[int, TimeLoop], seconds: float) -> None:
        for number, loop in loops.items():
            loop.stepped(self._steppers[number].step, seconds / len(loops))


def _task(plan: Plan, members: int) -> Task:
    problem = plan.problem
    return Task(plan.device, problem.grid, problem.periodic, problem.precision, problem.scheme, members)


def _cuda_stepper(stepper: Stepper | AdaptiveStepper) -> CudaStepper:
    assert isinstance(stepper, CudaStepper), "ensembles run on a GPU"
    return stepper


def _adaptive_stepper(stepper: Stepper | AdaptiveStepper) -> AdaptiveStepper:
    assert isinstance(stepper, AdaptiveStepper)
    return stepper
