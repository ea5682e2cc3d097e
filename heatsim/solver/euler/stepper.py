"""Advance a field by whole steps: what steppers of all backends share."""

from abc import ABC, abstractmethod
from collections.abc import Hashable

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.kernels.launch_shapes import Choice
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.kernel_arguments import make_arguments
from heatsim.solver.ledger.energy_ledger import STEPS_TO_CARRY, Ledger


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

    def advance(self, steps: int) -> None:
        """Do ``steps`` more steps; on a GPU they are queued and may still be running at return.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the steps.
        """
        last = self.step + steps
        self.field.changed()
        self._ledger.changed()
        halo = self.field.halo
        field, sweeps = self.field, None if halo.slab.alone else self._sweeps
        self._overlaps = sweeps is not None and halo.prepare(field.deviation, field.spare, sweeps)
        while self.step < last:
            self._ledger.leave(self.step)
            most = min(self.arguments.steps_per_table, self.steps_to_carry, halo.most)
            until = min(last, self.problem.timeline.interval_end(self.step), self.step + most)
            halo.reach(self.field.deviation, until - self.step)
            self._advance(until)
            halo.stepped(until - self.step)
            self.step = until
            self._carry()
        halo.end(self.field.deviation)

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
