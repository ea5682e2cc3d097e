"""Advance a field by whole steps: what steppers of all backends share."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from functools import cached_property

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.kernels.launch_shapes import Choice
from heatsim.physics.nodes.network import Given
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import StageTimes
from heatsim.physics.time.steps_ahead import StepsAhead
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.kernel_arguments import GeneralArguments, make_arguments
from heatsim.solver.ledger.energy_ledger import STEPS_TO_CARRY, Ledger
from heatsim.solver.nodes.node_stages import NodeStages, node_stages

# Steps of a body with nodes for which conditions and sources are evaluated at a time.
_STEPS_AT_ONCE = 1024


class Stepper(ABC):
    """Steps of one problem on one field with one kernel.

    Attributes:
        problem: coefficients, faces and times.
        field: what is advanced.
        step: number of steps done, or queued on the device.
        arguments: what the kernels take besides the field.
    """

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        ledger: Ledger,
        spec: KernelSpec,
        step: int = 0,
        arrays: CompositeArrays | None = None,
        tuned: bool = False,
    ) -> None:
        """Compile nothing yet.

        Args:
            problem: coefficients, faces and times.
            field: what is advanced.
            ledger: gets the heat that passes the surfaces.
            spec: the kernel.
            step: number of steps that the field has behind it.
            arrays: the body's arrays on the field's device; made here if missing.
            tuned: on a GPU, take the fastest kernel and launch shape, whatever ``spec`` says.
        """
        self.problem = problem
        self.field = field
        self.step = step
        self._ledger = ledger
        self._spec = spec
        self._tuned = tuned
        self._overlaps = False  # whether exchanges of halo planes overlap with kernels
        self.arguments = make_arguments(problem, field, ledger, arrays)
        self._nodes = node_stages(problem, field)

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """The kernel that does nearly all steps, and its launch shape."""

    @abstractmethod
    def _prepare(self) -> None:
        """Choose the kernel and compile it."""

    @abstractmethod
    def _advance(self, until: int) -> None:
        """Do the steps before ``until``, all of one interval between due times and one table of arguments."""

    @abstractmethod
    def _step(self, inputs: StepInputs, dt: float) -> None:
        """Do one step of ``dt`` s of a body whose nodes move on the host."""

    def _advance_with_nodes(self, nodes: NodeStages, until: int) -> None:
        """Do the steps before ``until``, and those of the nodes."""
        for step in range(self.step, until):
            (inputs, given), some = self._inputs.of(step, step + 1)
            own, dt = inputs[some], self.problem.timeline.dt(step)
            nodes.begin(self.field.deviation, own, given.at(some.start))
            self._step(own, dt)
            nodes.move(dt)

    @cached_property
    def _inputs(self) -> StepsAhead[tuple[StepInputs, Given]]:
        arguments, most = self.arguments, min(_STEPS_AT_ONCE, self.arguments.steps_per_table)
        assert isinstance(arguments, GeneralArguments)
        return StepsAhead(
            self.problem.timeline, most, lambda first, until: (arguments.rows(first, until), self._given(first, until))
        )

    def _given(self, first: int, until: int) -> Given:
        """What the nodes are given at steps ``first`` … ``until`` − 1, all of one length."""
        timeline, nodes = self.problem.timeline, self._nodes
        assert nodes is not None
        return nodes.network.given(StageTimes.of_steps(timeline.step_times(first, until), timeline.dt(first)))

    def advance(self, steps: int) -> None:
        """Do ``steps`` more steps; on a GPU they are queued and may still be running at return.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the steps.
        """
        last = self.step + steps
        self.field.changed()
        self._ledger.changed()
        halo = self.field.halo
        if self._nodes is not None:
            self._nodes.network.resume()
        field, sweeps = self.field, None if halo.slab.alone else self._sweeps
        self._overlaps = sweeps is not None and halo.prepare(field.deviation, field.spare, sweeps)
        while self.step < last:
            self._ledger.leave(self.step)
            together = halo.most if self._nodes is None or halo.slab.alone else 1
            most = min(self.arguments.steps_per_table, self.steps_to_carry, together)
            until = min(last, self.problem.timeline.interval_end(self.step), self.step + most)
            halo.reach(self.field.deviation, until - self.step)
            if self._nodes is None:
                self._advance(until)
            else:
                self._advance_with_nodes(self._nodes, until)
            halo.stepped(until - self.step)
            self.step = until
            self._carry()
        halo.end(self.field.deviation)
        if self._nodes is not None:
            self._nodes.show(self.field.deviation, self.problem.timeline.time(self.step))

    def prepare(self) -> None:
        """Compile the kernel. Without this call the first step does."""
        self._prepare()

    @property
    def _sweeps(self) -> Hashable:
        """Identifies the sweeps for other ranks, if exchanges may overlap with kernels; else None."""
        return None

    @property
    def steps_a_sweep(self) -> int:
        """The most steps that the kernel can do per read and write of a large field."""
        return 1

    @property
    def steps_to_carry(self) -> int:
        """How many steps may follow before the ledger is carried over."""
        return STEPS_TO_CARRY - self._ledger.steps_since_row(self.step) % STEPS_TO_CARRY

    def _carry(self) -> None:
        since = self._ledger.steps_since_row(self.step)
        if since and since % STEPS_TO_CARRY == 0:
            self._ledger.carry()
