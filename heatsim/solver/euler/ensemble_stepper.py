"""Advance several fields on equal grids with the same launches; each has its own steps."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from heatsim.kernels import autotune, fitting, structs
from heatsim.kernels.catalog import BRICKED, KernelSpec
from heatsim.kernels.compilation import Build
from heatsim.kernels.ensemble.launches import BodyLaunches, BodySteps, EnsembleLaunches, MemberSteps
from heatsim.kernels.launch_shapes import Choice, Shape, Task
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.kernels.kernel_arguments import STEPS_PER_TABLE, GeneralArguments, tables_fit

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


class BodyEnsemble:
    """Steps several problems with the same grid, periodic axes, precision, scheme and variant on one GPU.

    Args:
        members: the stepper of each problem; no problem is linear.
        task: grid and arithmetic of the members.
        spec: the kernel.
        tuned: whether heatsim may choose another kernel.
    """

    def __init__(self, members: Sequence[CudaStepper], task: Task, spec: KernelSpec, tuned: bool) -> None:
        self._members = members
        self._numbers = {member: number for number, member in enumerate(members)}
        self._task = task
        self._may_be_bricked = tuned or spec == BRICKED

    @property
    def most_steps(self) -> int:
        """The largest number of steps of a member in one call of :meth:`advance`."""
        return min(member.arguments.steps_per_table for member in self._members)

    @property
    def choice(self) -> Choice:
        """The kernel and its launch shape; those of the first member if each member has its own."""
        if self._bricks is not None:
            return Choice(Shape(self._bricks[0].spec), "by rule")
        return self._members[0].choice

    def prepare(self) -> None:
        """Choose the kernels and compile them."""
        if self._launches is None:
            for member in self._members:
                member.prepare()

    def steps_of(self, member: CudaStepper, count: int) -> BodySteps:
        """The next ``count`` steps of a member.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the steps.
        """
        return member.body_steps(count)

    def advance(self, members: Sequence[tuple[CudaStepper, BodySteps]]) -> None:
        """Queue steps of members. They may still be running when this returns."""
        if self._launches is None:
            for stepper, own in members:
                stepper.advance(own.steps)
            return
        buffers = self._launches.advance({self._numbers[stepper]: own for stepper, own in members})
        for stepper, own in members:
            stepper.take(own.steps, *buffers[self._numbers[stepper]])

    @cached_property
    def _bricks(self) -> tuple[Build, int] | None:
        """The build that steps several members with one launch, and their number; None if there is none."""
        task, problems = self._task, [member.problem for member in self._members]
        if not self._may_be_bricked or not all(tables_fit(BRICKED, problem) for problem in problems):
            return None
        arguments = self._members[0].arguments
        assert isinstance(arguments, GeneralArguments)
        return fitting.bricks_of_members(
            task.precision, task.scheme, task.grid, arguments.variant, task.device.room(), len(self._members)
        )

    @cached_property
    def _launches(self) -> BodyLaunches | None:
        if self._bricks is None:
            return None
        build, together = self._bricks
        task = self._task
        return BodyLaunches(task.device, build, task.grid, task.periodic, together, len(self._members))
