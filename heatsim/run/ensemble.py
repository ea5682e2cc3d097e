"""Runs on equal grids, advanced together. Each gets the same bits and the same files as if it ran alone.

The same launches do the steps of all runs. In each round a run does its own steps up to its next due step. If that is
far away, the run does a part of them:

        run 0    ─────┤  row        ─────┤  row
        run 1    ───┤    row        ───┤    row          the steps from row to row differ with dt
        run 2    ────────  half way ────────┤ row
                 round 1            round 2

So runs with rows at the same times read their fields in the same round, although their numbers of steps differ.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from heatsim.errors import Interrupted
from heatsim.kernels.ensemble.launches import MemberSteps
from heatsim.observers.observer import Observer
from heatsim.run.interrupt import Stop, done_unless_stopped, stop_on_signals
from heatsim.run.simulation import Simulation
from heatsim.run.time_loop import Batch, TimeLoop
from heatsim.solver.cuda_stepper import CudaStepper
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.ensemble_stepper import EnsembleStepper
from heatsim.solver.field import Field

# Steps of a run in a round / steps of the run that is due first, at most.
_FARTHEST = 2


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
class _Member:
    simulation: Simulation
    stepper: CudaStepper
    loop: TimeLoop
    stack: ExitStack

    @property
    def steps_to_stop(self) -> int:
        """Steps until an observer is due or the ledger must carry its sums."""
        return min(self.loop.steps_to_due, self.stepper.steps_to_carry)


def run_together(
    simulations: Sequence[Simulation], watchers: Sequence[Sequence[Observer]], stop: Stop | None = None
) -> Iterator[Ended]:
    """Run simulations to their ends, as :meth:`Simulation.run` does. Yield each run when it ends.

    If a run fails, the others continue.

    Args:
        simulations: simulations of linear problems on one GPU with one kernel, and with equal grids, periodic axes,
            precision and scheme.
        watchers: additional observers for each simulation.
        stop: a request to interrupt all runs, as a signal does.
    """
    with ExitStack() as everything:
        wanted = everything.enter_context(stop_on_signals(stop))
        plan = simulations[0].plan
        steppers = [_cuda_stepper(simulation) for simulation in simulations]
        together = EnsembleStepper(steppers, plan.kernel, plan.tuned)
        if not done_unless_stopped(plan.device.elsewhere(together.prepare), wanted):
            for number, simulation in enumerate(simulations):
                yield Ended(number, simulation.interrupted_early())
            return
        members: dict[int, _Member] = {}
        for number, (simulation, stepper) in enumerate(zip(simulations, steppers, strict=True)):
            stack = everything.enter_context(ExitStack())
            try:
                loop = simulation.begin(stack, stepper, wanted, watchers=watchers[number], choice=together.choice)
                members[number] = _Member(simulation, stepper, loop, stack)
            except Exception as error:
                stack.close()
                yield Ended(number, error)
        yield from _over(members)

        batch = Batch()
        while members and not wanted.requested:
            yield from _advance(together, members, batch)
            yield from _over(members)
        yield from _interrupt(members)


def _cuda_stepper(simulation: Simulation) -> CudaStepper:
    stepper = simulation.stepper()
    assert isinstance(stepper, CudaStepper), "ensembles run on a GPU"
    return stepper


def _advance(together: EnsembleStepper, members: dict[int, _Member], batch: Batch) -> Iterator[Ended]:
    """Do one round, and call the observers of runs at due steps."""
    nearest = min(member.loop.steps_to_due for member in members.values())
    most = min(batch.steps, _FARTHEST * nearest, together.most_steps)
    started = time.perf_counter()
    turns: list[tuple[CudaStepper, MemberSteps]] = []
    for number, member in list(members.items()):
        try:
            turns.append((member.stepper, member.stepper.turn(min(member.steps_to_stop, most))))
        except Exception as error:
            yield _drop(members, number, error)
    if not turns:
        return
    together.advance(turns)
    device = next(iter(members.values())).simulation.plan.device
    device.synchronise()
    seconds = time.perf_counter() - started
    lengths = [turn.steps for _, turn in turns]
    batch.took(max(lengths), seconds)
    for member, steps in zip(members.values(), lengths, strict=True):
        member.loop.stepped(member.stepper.step, seconds * steps / sum(lengths))
    _look_ahead([member.loop for member in members.values() if member.loop.due])
    for number, member in list(members.items()):
        try:
            member.loop.look()
        except Exception as error:
            yield _drop(members, number, error)


def _look_ahead(loops: Sequence[TimeLoop]) -> None:
    """Find the data for observers of all runs with the same launches: separate requests would each wait."""
    if loops:
        started = time.perf_counter()
        Field.look_at_all([loop.state.field for loop in loops])
        Ledger.look_at_all([loop.state.ledger for loop in loops])
        for loop in loops:
            loop.timing.observing += (time.perf_counter() - started) / len(loops)


def _over(members: dict[int, _Member]) -> Iterator[Ended]:
    """End the runs that have done their last step."""
    for number, member in list(members.items()):
        if member.loop.finished:
            try:
                member.simulation.end(member.loop)
                yield _drop(members, number, None)
            except Exception as error:
                yield _drop(members, number, error)


def _interrupt(members: dict[int, _Member]) -> Iterator[Ended]:
    for number, member in list(members.items()):
        try:
            member.simulation.interrupt(member.loop)
        except (Interrupted, Exception) as error:
            yield _drop(members, number, error)


def _drop(members: dict[int, _Member], number: int, error: Exception | None) -> Ended:
    members.pop(number).stack.close()
    return Ended(number, error)
