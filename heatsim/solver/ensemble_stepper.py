"""Advance several fields on equal grids by the same launches, each by steps of its own."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from heatsim.kernels import autotune, structs
from heatsim.kernels.autotune import Choice, Shape, Task
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.ensemble.launches import EnsembleLaunches, MemberSteps
from heatsim.solver.cuda_stepper import CudaStepper
from heatsim.solver.kernel_arguments import STEPS_PER_TABLE, LinearArguments

# Bytes of what changes from step to step that are made and sent to the device together.
_BYTES_PER_TABLE = 1 << 26


class EnsembleStepper:
    """Steps of several problems that share grid, periodic axes, precision and scheme, on one GPU.

    Args:
        members: a stepper of each; none of a composite body.
        spec: the kernel.
        tuned: take the kernel and the launch shape that are fastest for all of them together, whatever ``spec`` says.
    """

    def __init__(self, members: Sequence[CudaStepper], spec: KernelSpec, tuned: bool) -> None:
        self._members = members
        self._spec = spec
        self._tuned = tuned
        problem, field = members[0].problem, members[0].field
        self._task = Task(
            *(field.device, problem.grid, problem.periodic, problem.precision, problem.scheme), members=len(members)
        )

    @property
    def most_steps(self) -> int:
        """How many steps of each member :meth:`advance` may be asked for at a time."""
        size = self._task.builds(self._spec)[0].sweep_dtype.itemsize
        return max(1, min(STEPS_PER_TABLE, _BYTES_PER_TABLE // (size * len(self._members))))

    def prepare(self) -> None:
        """Find the fastest kernel and compile it."""
        _ = self._launches

    def advance(self, turns: Sequence[tuple[CudaStepper, MemberSteps]]) -> None:
        """Queue members' turns; they may still be running at return."""
        buffers = self._launches.advance([turn for _, turn in turns])
        for (member, turn), (T, T_new) in zip(turns, buffers, strict=True):
            member.take(turn.steps, T, T_new)

    @cached_property
    def choice(self) -> Choice:
        """The kernel and its launch shape; where it is still to be tried out, the spare buffers are written to."""
        if not self._tuned:
            return Choice(Shape(self._spec), "asked for")
        left = [member.problem.timeline.last_step - member.step for member in self._members]
        return autotune.choose_for_members(
            self._task, sum(left) / len(left), [_at_rest(member) for member in self._members]
        )

    @cached_property
    def _launches(self) -> EnsembleLaunches:
        task, shape = self._task, self.choice.shape
        recorded = any(
            isinstance(of, LinearArguments) and of.recorded for of in (member.arguments for member in self._members)
        )
        return EnsembleLaunches(
            task.device, task.builds(shape.spec), task.grid, task.periodic, shape.planes, task.members, recorded
        )


def _at_rest(member: CudaStepper) -> MemberSteps:
    """A turn without steps, for trying out."""
    problem, field = member.problem, member.field
    dt = problem.timeline.dt(member.step)
    nobody = np.zeros((), dtype=structs.LEDGER)
    sweeps = np.zeros(0, dtype=structs.sweep_dtype(problem.precision))
    return MemberSteps(field.deviation, field.spare, member.arguments.coefficients(dt), nobody, sweeps, 0)
