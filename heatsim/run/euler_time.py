"""Measure the time of a step of "euler" with the time loop of a run.

A run with little work is timed as a whole, with all that its first steps need: memory, CUDA graphs, launches of sums.
Of a longer run, batches at several places are timed. What a run counts as stepping counts here: on a GPU also the sums
of rows that are queued between steps.
"""

import time
from pathlib import Path

from heatsim.run import work_time
from heatsim.run.batch_size import BatchSize
from heatsim.run.execution import Execution
from heatsim.run.initial_state import initial_state
from heatsim.run.make_observers import make_readers
from heatsim.run.observed_run import ObservedRun
from heatsim.run.plan import Plan
from heatsim.run.time_loop import TimeLoop
from heatsim.solver.euler.stepper import Stepper

# Steps are timed at this number of places of a run: beams and switched sources cost time while they act.
_PLACES = 8


def measure_step(plan: Plan) -> float:
    """The mean seconds of a step.

    Raises:
        ScenarioError, NotFiniteError: the first steps fail.
    """
    run = _TimedRun(plan)
    try:
        return _measure(run)
    finally:
        plan.device.synchronise()  # steps ahead still fill memory that later work may get


def _measure(run: "_TimedRun") -> float:
    """The mean seconds of a step: of all steps if there is time, else of steps at several places."""
    started = time.perf_counter()
    mean = run.mean(work_time.SECONDS, started + work_time.LONGEST)
    if run.step == run.last:
        return mean
    means, short, end = list[float](), run.batch.steps // 4, started + work_time.LONGEST + work_time.SECONDS
    for number, place in enumerate(_spread(_PLACES)):
        left = end - time.perf_counter()
        if means and left < 0.0:
            break
        run.move_to(run.last * place // _PLACES, short)
        means.append(run.mean(work_time.SECONDS / _PLACES, end - left + left / (_PLACES - number)))
    return sum(means) / len(means)


class _TimedRun:
    """A run that writes nothing, and the time of its steps.

    Attributes:
        last: the number of steps of the run.
        batch: the size of the next batch.
    """

    def __init__(self, plan: Plan) -> None:
        execution = Execution(plan, Path(), initial_state(plan, Path()))
        leading = execution.leading()
        stepper = execution.stepper(leading)
        assert isinstance(stepper, Stepper)
        stepper.prepare()
        self._run = ObservedRun(execution.state, make_readers(plan.problem.scenario), execution.timing, saved=None)
        self._loop = TimeLoop(self._run, stepper, leading)
        self._steps_a_sweep = stepper.steps_a_sweep
        self.last = plan.problem.timeline.last_step
        self.batch = BatchSize(self._steps_a_sweep)

    @property
    def step(self) -> int:
        """Number of steps done."""
        return self._run.state.step

    def move_to(self, step: int, batch: int) -> None:
        """Continue from another step, with batches of this many steps at first.

        The field is not that of the run at this time, but steps of other fields take as long.
        """
        self._loop.move_to(step)
        self.batch.steps = max(self._steps_a_sweep, batch)

    def mean(self, seconds: float, until: float) -> float:
        """The mean seconds of the next steps, in a batch or more.

        Args:
            seconds: the time of stepping after which it stops, unless batches are still too short for the kernel.
            until: the time by the clock after which it stops.
        """
        first, before, timing = self.step, self._run.timing.stepping, self._run.timing
        while self.step < self.last:
            self._loop.advance(self.batch)
            full = self.batch.steps >= self._steps_a_sweep
            if (timing.stepping - before > seconds and full) or time.perf_counter() > until:
                break
        return (timing.stepping - before) / (self.step - first)


def _spread(places: int) -> list[int]:
    """The numbers 0 to ``places`` − 1, in an order that spreads the first few evenly; ``places``: a power of 2."""
    digits = places.bit_length() - 1
    return [int(f"{number:0{digits}b}"[::-1], 2) for number in range(places)]
