"""Advance several fields on equal grids with the same launches; each has its own steps."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from heatsim.kernels import autotune, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.ensemble.launches import EnsembleLaunches, MemberSteps
from heatsim.kernels.launch_shapes import Choice, Shape, Task
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.kernels.kernel_arguments import STEPS_PER_TABLE

# Bytes of step data that are prepared and sent to the device together.
_BYTES_PER_TABLE = 1 << 26


class EnsembleStepper:
    """Steps of several problems that share grid, periodic axes, precision and scheme, on one GPU.

    Args:
        members: the stepper of each problem; all problems are linear.
        task: grid and arithmetic of the members.
        spec: the kernel.
        tuned: whether to autotune kernel and launch shape for all members together; then ``spec`` is not used.
    """

    def __init__(self, members: Sequence[CudaStepper], task: Task, spec: KernelSpec, tuned: bool) -> None:
        self._members = members
        self._spec = spec
        self._tuned = tuned
        self._task = task

    @property
    def most_steps(self) -> int:
        """Most steps of each member in one call of :meth:`advance`."""
        size = self._task.builds(self._spec)[0].sweep_dtype.itemsize
        return max(1, min(STEPS_PER_TABLE, _BYTES_PER_TABLE // (size * len(self._members))))

    def prepare(self) -> None:
        """Find the fastest kernel and compile it."""
        _ = self._launches

    def steps_of(self, member: CudaStepper, count: int) -> MemberSteps:
        """The next ``count`` steps of a member.

        Raises:
            ScenarioError: a value of a face cannot be used at one of the steps.
        """
        return member.member_steps(count)

    def advance(self, members: Sequence[tuple[CudaStepper, MemberSteps]]) -> None:
        """Queue steps of members. They may still be running when this returns."""
        buffers = self._launches.advance([own for _, own in members])
        for (stepper, own), (T, T_new) in zip(members, buffers, strict=True):
            stepper.take(own.steps, T, T_new)

    @cached_property
    def choice(self) -> Choice:
        """The kernel and its launch shape. Autotuning overwrites the spare buffers."""
        if not self._tuned:
            return Choice(Shape(self._spec), "asked for")
        left = [member.problem.timeline.last_step - member.step for member in self._members]
        return autotune.choose_for_members(
            self._task, sum(left) / len(left), [_at_rest(member) for member in self._members]
        )

    @cached_property
    def _launches(self) -> EnsembleLaunches:
        task, shape = self._task, self.choice.shape
        recorded = any(member.recorded for member in self._members)
        return EnsembleLaunches(
            task.device,
            task.builds(shape.spec),
            task.grid,
            task.periodic,
            shape.planes,
            len(self._members),
            recorded,
        )


def _at_rest(member: CudaStepper) -> MemberSteps:
    """A member without steps, for autotuning."""
    problem, field = member.problem, member.field
    dt = problem.timeline.dt(member.step)
    no_ledger = np.zeros((), dtype=structs.LEDGER)
    sweeps = np.zeros(0, dtype=structs.sweep_dtype(problem.precision))
    return MemberSteps(field.deviation, field.spare, member.arguments.coefficients(dt), no_ledger, sweeps, 0)
