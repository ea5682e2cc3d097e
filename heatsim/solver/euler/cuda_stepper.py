"""Advance a field by whole steps on a GPU."""

from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np

from heatsim.kernels.composite.arrays import SweepTable
from heatsim.kernels.ensemble.launches import BodySteps, MemberSteps
from heatsim.kernels.launch_shapes import Choice
from heatsim.kernels.nodes.node_stage import MOST_STAGES
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.time.steps_ahead import StepsAhead
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.kernels.corrected_trial import TrialSteps
from heatsim.solver.kernels.cuda_kernels import CudaKernels, Wanted
from heatsim.solver.kernels.kernel_arguments import GeneralArguments, LinearArguments
from heatsim.solver.nodes.node_stages import NodeStages

# Steps for which conditions and sources are evaluated and sent to the device at a time. A copy to the device waits for
# the kernels that were queued before it.
_STEPS_AT_ONCE = 4096


class CudaStepper(Stepper):
    """Steps of one problem on one field with a CUDA kernel."""

    @property
    def choice(self) -> Choice:
        """The kernel that does nearly all steps, and its launch shape. Trying out writes to the spare buffer."""
        return self._kernels.prepared.choice

    @property
    def recorded(self) -> bool:
        """Whether the ledger sums anything."""
        return self._ledger.recorded

    def _prepare(self) -> None:
        _ = self._kernels.prepared

    def _advance(self, until: int) -> None:
        field, arguments = self.field, self.arguments
        coefficients = arguments.coefficients(self.problem.timeline.dt(self.step))
        sweeps, some = self._ahead.of(self.step, until)
        field.deviation, field.spare = self._kernels.advance(
            field.deviation,
            field.spare,
            coefficients,
            sweeps,
            arguments.ledger,
            some,
            exchange=field.halo.begin if self._overlaps else None,
        )

    def _advance_with_nodes(self, nodes: NodeStages, until: int) -> None:
        if not nodes.queues:
            super()._advance_with_nodes(nodes, until)
            return
        field, arguments, dt = self.field, self.arguments, self.problem.timeline.dt(self.step)
        for first in range(self.step, until, MOST_STAGES):
            last = min(first + MOST_STAGES, until)
            sweeps, some = self._ahead.of(first, last)
            sizes, given = np.full(last - first, dt), self._given(first, last)
            before = nodes.begin_queue(self._first_inputs, sweeps.conditions(some), sizes, given)
            field.deviation, field.spare = self._kernels.advance(
                *(field.deviation, field.spare, arguments.coefficients(dt)),
                *(sweeps, arguments.ledger, some),
                before=before,
            )
            nodes.end_queue()

    def _step(self, inputs: StepInputs, dt: float) -> None:
        field, arguments = self.field, self.arguments
        assert isinstance(arguments, GeneralArguments)
        sweeps = arguments.arrays.sweeps(inputs, 1)
        field.deviation, field.spare = self._kernels.advance(
            field.deviation, field.spare, arguments.coefficients(dt), sweeps, arguments.ledger, slice(0, 1)
        )

    @property
    def _sweeps(self) -> Hashable:
        return self._kernels.sweeps

    @cached_property
    def _first_inputs(self) -> StepInputs:
        assert isinstance(self.arguments, GeneralArguments)
        return self.arguments.rows(0, 1)

    @cached_property
    def _ahead(self) -> StepsAhead[SweepTable]:
        arguments = self.arguments
        most = min(_STEPS_AT_ONCE, arguments.steps_per_table)
        return StepsAhead(self.problem.timeline, most, arguments.sweeps)

    @cached_property
    def _kernels(self) -> CudaKernels:
        problem, arguments, step = self.problem, self.arguments, self.step
        wanted = Wanted(
            self._spec,
            self._tuned,
            arguments.variant,
            problem.timeline.last_step - step,
            self.recorded,
        )
        return CudaKernels(
            problem, self.field, wanted, lambda: arguments.coefficients(problem.timeline.dt(step)), self._trial_steps
        )

    def _trial_steps(self, count: int) -> TrialSteps:
        """Steps with the conditions of the very first."""
        arguments = self.arguments
        assert isinstance(arguments, GeneralArguments)
        sweeps = arguments.arrays.sweeps(arguments.rows(0, 1), count)
        return TrialSteps(arguments.coefficients(self.problem.timeline.dt(0)), sweeps)

    # For ensembles.

    def member_steps(self, steps: int) -> MemberSteps:
        """The next steps, for launches that step several fields.

        Args:
            steps: their number, at most ``steps_to_carry``; none lies beyond the next due time.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        field, arguments, timeline = self.field, self.arguments, self.problem.timeline
        assert isinstance(arguments, LinearArguments)
        self._ledger.leave(self.step)
        dt = timeline.dt(self.step)
        sweeps = arguments.host_sweeps(self.step, self.step + (1 if arguments.constant else steps))
        return MemberSteps(field.deviation, field.spare, arguments.coefficients(dt), arguments.ledger, sweeps, steps)

    def body_steps(self, steps: int) -> BodySteps:
        """The next ``steps`` steps of a composite body, for a launch that steps several bodies.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the steps.
        """
        field, arguments = self.field, self.arguments
        self._ledger.leave(self.step)
        coefficients = arguments.coefficients(self.problem.timeline.dt(self.step))
        table, some = self._ahead.of(self.step, self.step + steps)
        return BodySteps(field.deviation, field.spare, coefficients, arguments.ledger, table, some)

    def take(self, steps: int, T: Any, T_new: Any) -> None:
        """Record that others have queued ``steps`` steps, which end in buffer T."""
        self.step += steps
        self.field.deviation, self.field.spare = T, T_new
        self.field.changed()
        self._ledger.changed()
        self._carry()
