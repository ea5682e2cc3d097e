"""Runs on equal grids, advanced together. Each gets the same bits and the same files as if it ran alone.

The same launches do the steps of all runs. :mod:`heatsim.run.ensemble_rounds` says what a run does in a round.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from heatsim.errors import Interrupted
from heatsim.observers.observer import Observer
from heatsim.run.ensemble_rounds import EulerRounds, Failures, StabilizedRounds
from heatsim.run.execution import Execution
from heatsim.run.interrupt import Stop, done_unless_stopped, stop_on_signals
from heatsim.run.observed_run import ObservedRun
from heatsim.run.simulation import Simulation
from heatsim.storage.summary_file import write_summary

# Folders of runs in which files are brought to the disk at the same time.
_FOLDERS_AT_ONCE = 16

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Ended:
    """A run that has ended.

    Attributes:
        number: its index among the simulations.
        error: the reason for a failure; :class:`Interrupted` if a checkpoint was saved; None if the run is complete.
    """

    number: int
    error: Exception | None = None


@dataclass(frozen=True)
class _Run:
    execution: Execution
    observed: ObservedRun
    stack: ExitStack


def run_together(
    simulations: Sequence[Simulation], watchers: Sequence[Sequence[Observer]], stop: Stop | None = None
) -> Iterator[Ended]:
    """Run simulations to their ends, as :meth:`Simulation.run` does. Yield each run when it ends.

    If a run fails, the others continue.

    Args:
        simulations: simulations on one GPU with equal grids, periodic axes, precision, scheme, kernel and method:
            "euler", or "stabilized" for linear problems. Either all problems are linear, or none is. In the second case
            all need the same variant of the kernels.
        watchers: additional observers for each simulation.
        stop: a request to interrupt all runs, as a signal does.
    """
    with ExitStack() as everything:
        wanted = everything.enter_context(stop_on_signals(stop))
        executions = [simulation.execution for simulation in simulations]
        plan = executions[0].plan
        steppers = [execution.stepper() for execution in executions]
        kind = StabilizedRounds if plan.problem.timeline.adaptive else EulerRounds
        rounds = kind(plan, steppers, lambda: wanted.requested)
        if not done_unless_stopped(plan.device.elsewhere(rounds.prepare), wanted):
            for number, execution in enumerate(executions):
                yield Ended(number, execution.interrupted_early())
            return
        runs: dict[int, _Run] = {}
        stacks = [everything.enter_context(ExitStack()) for _ in executions]
        taken = _at_a_time(
            [partial(execution.take_folder, stack) for execution, stack in zip(executions, stacks, strict=True)]
        )
        rounds.find_rows([execution.state for execution in executions])
        for number, (execution, stepper, stack) in enumerate(zip(executions, steppers, stacks, strict=True)):
            try:
                taken[number].result()
                observed = execution.begin(stack, stepper, wanted, watchers=watchers[number], choice=rounds.choice)
                runs[number] = _Run(execution, observed, stack)
            except Exception as error:
                stack.close()
                yield Ended(number, error)
        yield from _over(runs)
        while runs and not wanted.requested:
            yield from _dropped(runs, rounds.advance({number: run.observed for number, run in runs.items()}))
            yield from _over(runs)
        yield from _interrupt(runs)


def _over(runs: dict[int, _Run]) -> Iterator[Ended]:
    """End the runs that have done their last step, some at a time: while one waits for the disk, others write."""
    over = [number for number, run in runs.items() if run.observed.finished]
    for first in range(0, len(over), _FOLDERS_AT_ONCE):
        some = {number: runs[number] for number in over[first : first + _FOLDERS_AT_ONCE]}
        finished, failed = _of_each(lambda run: run.observed.finish(), some)
        summaries, unwritten = _of_each(_summary, {number: some[number] for number in finished})
        written = dict(zip(summaries, _at_a_time(list(summaries.values())), strict=True))
        _, unsaved = _of_each(lambda future: future.result(), written)
        errors = failed | unwritten | unsaved
        for number in some:
            yield _drop(runs, number, errors.get(number))


def _summary(run: _Run) -> Callable[[], None]:
    """Writes summary.json of a run."""
    return partial(write_summary, run.execution.folder, run.execution.summary(run.observed))


def _of_each(work: Callable[[T], U], each: Mapping[int, T]) -> tuple[dict[int, U], Failures]:
    """The results of a work by the numbers of the runs, and the errors of the runs for which it failed."""
    done: dict[int, U] = {}
    failed: Failures = {}
    for number, one in each.items():
        try:
            done[number] = work(one)
        except Exception as error:
            failed[number] = error
    return done, failed


def _at_a_time(works: Sequence[Callable[[], None]]) -> "list[Future[None]]":
    """Do works that mostly wait for the disk in several threads; returns when all are done."""
    with ThreadPoolExecutor(_FOLDERS_AT_ONCE, "heatsim-folders") as threads:
        return [threads.submit(work) for work in works]


def _interrupt(runs: dict[int, _Run]) -> Iterator[Ended]:
    for number, run in list(runs.items()):
        try:
            run.execution.interrupt(run.observed)
        except (Interrupted, Exception) as error:
            yield _drop(runs, number, error)


def _dropped(runs: dict[int, _Run], failures: Failures) -> Iterator[Ended]:
    for number, error in failures.items():
        yield _drop(runs, number, error)


def _drop(runs: dict[int, _Run], number: int, error: Exception | None) -> Ended:
    runs.pop(number).stack.close()
    return Ended(number, error)
