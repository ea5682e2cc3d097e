"""Advance several composite bodies on equal grids.

If the bricks of several bodies fit the GPU, one launch steps them together (heatsim/kernels/ensemble/body_launches.py).
Otherwise the steps of the bodies are queued one body after the other. In both cases the host waits once for all.
"""

from collections.abc import Sequence
from functools import cached_property

from heatsim.kernels import fitting
from heatsim.kernels.catalog import BRICKED, KernelSpec
from heatsim.kernels.compilation import Build
from heatsim.kernels.ensemble.body_launches import BodyLaunches, BodySteps
from heatsim.kernels.launch_shapes import Choice, Shape, Task
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.kernels.kernel_arguments import GeneralArguments, tables_fit


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
