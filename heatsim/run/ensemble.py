"""Runs on equal grids, advanced together. Each gets the same bits and the same files as if it ran alone.

The same launches do the steps of all runs. :mod:`heatsim.run.ensemble_rounds` says what a run does in a round.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from heatsim.errors import Interrupted
from heatsim.observers.observer import Observer
from heatsim.run.ensemble_rounds import EulerRounds, Failures, StabilizedRounds
from heatsim.run.interrupt import Stop, done_unless_stopped, stop_on_signals
from heatsim.run.simulation import Simulation
from heatsim.run.time_loop import TimeLoop


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
    simulation: Simulation
    loop: TimeLoop
    stack: ExitStack


def run_together(
    simulations: Sequence[Simulation], watchers: Sequence[Sequence[Observer]], stop: Stop | None = None
) -> Iterator[Ended]:
    """Run simulations to their ends, as :meth:`Simulation.run` does. Yield each run when it ends.

    If a run fails, the others continue.

    Args:
        simulations: simulations of linear problems on one GPU with one kernel and one method, "euler" or "stabilized",
            and with equal grids, periodic axes, precision and scheme.
        watchers: additional observers for each simulation.
        stop: a request to interrupt all runs, as a signal does.
    """
    with ExitStack() as everything:
        wanted = everything.enter_context(stop_on_signals(stop))
        plan = simulations[0].plan
        steppers = [simulation.stepper() for simulation in simulations]
        kind = StabilizedRounds if plan.problem.timeline.adaptive else EulerRounds
        rounds = kind(plan, steppers, lambda: wanted.requested)
        if not done_unless_stopped(plan.device.elsewhere(rounds.prepare), wanted):
            for number, simulation in enumerate(simulations):
                yield Ended(number, simulation.interrupted_early())
            return
        runs: dict[int, _Run] = {}
        for number, (simulation, stepper) in enumerate(zip(simulations, steppers, strict=True)):
            stack = everything.enter_context(ExitStack())
            try:
                loop = simulation.begin(stack, stepper, wanted, watchers=watchers[number], choice=rounds.choice)
                runs[number] = _Run(simulation, loop, stack)
            except Exception as error:
                stack.close()
                yield Ended(number, error)
        yield from _over(runs)
        while runs and not wanted.requested:
            yield from _dropped(runs, rounds.advance({number: run.loop for number, run in runs.items()}))
            yield from _over(runs)
        yield from _interrupt(runs)


def _over(runs: dict[int, _Run]) -> Iterator[Ended]:
    """End the runs that have done their last step."""
    for number, run in list(runs.items()):
        if run.loop.finished:
            try:
                run.simulation.end(run.loop)
                yield _drop(runs, number, None)
            except Exception as error:
                yield _drop(runs, number, error)


def _interrupt(runs: dict[int, _Run]) -> Iterator[Ended]:
    for number, run in list(runs.items()):
        try:
            run.simulation.interrupt(run.loop)
        except (Interrupted, Exception) as error:
            yield _drop(runs, number, error)


def _dropped(runs: dict[int, _Run], failures: Failures) -> Iterator[Ended]:
    for number, error in failures.items():
        yield _drop(runs, number, error)


def _drop(runs: dict[int, _Run], number: int, error: Exception | None) -> Ended:
    runs.pop(number).stack.close()
    return Ended(number, error)
