"""Advance a field by whole steps on a GPU."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from heatsim.kernels import autotune, launch
from heatsim.kernels.autotune import Choice, Shape, Task
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.kernels.cuda_graphs import CudaGraphs, Sweeps
from heatsim.kernels.ensemble.launches import MemberSteps
from heatsim.kernels.temporal_composite.correction import correct
from heatsim.solver.corrected_trial import is_faster
from heatsim.solver.kernel_arguments import GeneralArguments, LinearArguments
from heatsim.solver.stepper import Stepper


@dataclass(frozen=True)
class Prepared:
    """Kernels that together do any number of steps.

    Attributes:
        choice: the first of them, and why it was chosen.
        kernels: compiled, with the launches of a sweep; the one of most steps a sweep comes first.
    """

    choice: Choice
    kernels: list[tuple[launch.CudaKernel, list[launch.Launch]]]


class CudaStepper(Stepper):
    """Steps of one problem on one field with a CUDA kernel."""

    @property
    def choice(self) -> Choice:
        """The kernel that does nearly all steps, and its launch shape. Trying out writes to the spare buffer."""
        return self._prepared.choice

    def _prepare(self) -> None:
        _ = self._prepared

    def _advance(self, until: int) -> None:
        field, arguments, timeline = self.field, self.arguments, self.problem.timeline
        dt = timeline.dt(self.step)
        coefficients, sweeps, step = arguments.coefficients(dt), arguments.sweeps(self.step, until), self.step
        for kernel, launches in self._prepared.kernels:
            reach = kernel.build.spec.steps
            steps = (until - step) // reach * reach
            run = Sweeps(kernel, launches, coefficients, arguments.ledger)
            part = sweeps.part(step - self.step, steps)
            field.deviation, field.spare = self._graphs.advance(run, field.deviation, field.spare, part)
            step += steps

    @cached_property
    def _graphs(self) -> CudaGraphs:
        return CudaGraphs(self.field.device, self.problem.grid.cell_count)

    @cached_property
    def _prepared(self) -> Prepared:
        """The fastest kernels where that is to be found out, else those of the kernel asked for."""
        arguments = self.arguments
        if isinstance(arguments, LinearArguments):
            choice = self._tune(arguments) if self._tuned else Choice(Shape(self._spec), "asked for")
            # The shape is that of the first kernel, which does nearly all steps; others take their own tile.
            first, *rest = self._builds(choice.shape.spec)
            kernels = [self._launched(first, choice.shape.planes, arguments.recorded)]
            return Prepared(choice, kernels + [self._launched(build, None, arguments.recorded) for build in rest])
        return self._prepare_general(arguments)

    def _prepare_general(self, arguments: GeneralArguments) -> Prepared:
        """One step a sweep, or several and a correction where that is possible and, if tuned, faster."""
        problem, field, arrays = self.problem, self.field, arguments.arrays
        cells, steps = problem.grid.cell_count, problem.timeline.last_step
        worth_trying = cells >= autotune.LARGE_GRID and autotune.is_worth_trying(cells, steps)
        *several, single = self._builds(SINGLE_STEP if self._tuned and not worth_trying else self._spec)
        one, tried = self._launched(single), False
        for build in several:
            kernel = correct(build, arrays.medium, problem.periodic, arrays.open_faces, field.device)
            if kernel is None:
                continue
            many, tried = (kernel, self._launches(build)), self._tuned
            if not tried or is_faster(many, one, problem, field, arguments):
                return Prepared(Choice(Shape(build.spec), "tried" if tried else "by rule"), [many, one])
        return Prepared(Choice(Shape(single.spec), "tried" if tried else "by rule"), [one])

    def _builds(self, spec: KernelSpec) -> tuple[launch.Build, ...]:
        problem = self.problem
        return launch.builds(
            *(spec, problem.precision, problem.scheme, problem.grid, problem.periodic),
            self.field.device.block_memory(),
            self.arguments.variant,
        )

    def _launched(
        self, build: launch.Build, planes: int | None = None, recorded: bool = False
    ) -> tuple[launch.CudaKernel, list[launch.Launch]]:
        return launch.compile_kernel(build), self._launches(build, planes, recorded)

    def _launches(self, build: launch.Build, planes: int | None = None, recorded: bool = False) -> list[launch.Launch]:
        problem, processors = self.problem, self.field.device.multiprocessors()
        return launch.launches(build, problem.grid, problem.periodic, processors, planes, recorded)

    def _tune(self, arguments: LinearArguments) -> Choice:
        problem, field, timeline = self.problem, self.field, self.problem.timeline
        dt = timeline.dt(self.step)
        task = Task(field.device, problem.grid, problem.periodic, problem.precision, problem.scheme)
        steps = timeline.last_step - self.step
        return autotune.choose(task, steps, field.deviation, field.spare, arguments.coefficients(dt))

    # What an ensemble needs of its members.

    def turn(self, steps: int) -> MemberSteps:
        """What the next steps need, for launches that step several fields.

        Args:
            steps: all before the next due time, ``steps_to_carry`` at most.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        problem, field, arguments, timeline = self.problem, self.field, self.arguments, self.problem.timeline
        assert isinstance(arguments, LinearArguments)
        alike = arguments.constant and problem.scheme != "stochastic"
        dt = timeline.dt(self.step)
        sweeps = arguments.host_sweeps(self.step, self.step + (1 if alike else steps))
        return MemberSteps(field.deviation, field.spare, arguments.coefficients(dt), arguments.ledger, sweeps, steps)

    def take(self, steps: int, T: Any, T_new: Any) -> None:
        """Record that others have queued ``steps`` steps, which end in buffer T."""
        self.step += steps
        self.field.deviation, self.field.spare = T, T_new
        self.field.changed()
        self._ledger.changed()
        self._carry()
