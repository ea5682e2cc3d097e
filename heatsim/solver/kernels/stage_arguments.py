"""What kernels take for stages of different lengths, for the two forms in which kernels know a body.

:func:`make_stage_arguments` chooses the form. Everything else that does stages is the same for both.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import structs
from heatsim.kernels.compilation import Variant
from heatsim.kernels.composite.arrays import SweepTable
from heatsim.kernels.cpu.composite_body import CompositeCall
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.physics.nodes.network import Given
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import StageTimes
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.kernel_arguments import GeneralArguments, LinearArguments
from heatsim.solver.ledger.energy_ledger import Ledger

Numbers = TypeVar("Numbers")


@dataclass(eq=False)
class StageValues(Generic[Numbers]):
    """Conditions and sources of the stages of a step.

    Attributes:
        numbers: of the stages, in the form that their :class:`StageArguments` have.
        increments: of the stages that are added to another field.
        table: the stages on a GPU; None until they are needed there.
        given: of nodes, at the stages and behind them at the increments; None without nodes.
    """

    numbers: Numbers
    increments: StepInputs
    table: SweepTable | None = None
    given: Given | None = None


@dataclass(frozen=True, eq=False)
class StageRun:
    """A request for :meth:`StageKernels.advance`, with its arguments; its result is the reply."""

    T: Any
    T_new: Any
    values: StageValues[Any]
    some: slice
    enters: bool = True


@dataclass(frozen=True, eq=False)
class IncrementRun:
    """A request for :meth:`StageKernels.add_increments`, with its arguments; its result is the reply."""

    base: Any
    T: Any
    out: Any
    values: StageValues[Any]
    number: int


Result = TypeVar("Result")
Work = Generator[StageRun | IncrementRun, Any, Result]


class StageArguments(ABC, Generic[Numbers]):
    """What kernels take for the stages of one problem.

    Attributes:
        variant: the form of the CUDA kernels.
        rates: arguments of the kernels that add increments; they have the general form for every body.
    """

    variant: Variant

    def __init__(self, problem: HeatProblem, rates: GeneralArguments) -> None:
        self.rates = rates
        self._problem = problem

    @abstractmethod
    def evaluate(self, stages: StageTimes, increments: StageTimes) -> StageValues[Numbers]:
        """Evaluate conditions and sources; see :meth:`StageKernels.evaluate`."""

    @abstractmethod
    def source_heat(self, numbers: Numbers, some: slice) -> float:
        """The heat of sources in the body during some of the stages, in J."""

    @abstractmethod
    def coefficients(self) -> NDArray[Any]:
        """Struct Coefficients."""

    @abstractmethod
    def ledger(self, enters: bool) -> NDArray[Any]:
        """Struct Ledger for stages whose heat is entered, or is not."""

    @abstractmethod
    def on_device(self, numbers: Numbers) -> SweepTable:
        """Struct StepData of the stages, on the device."""

    @abstractmethod
    def advance_on_cpu(
        self, kernel: str, T: Any, T_new: Any, numbers: Numbers, some: slice, enters: bool
    ) -> tuple[Any, Any]:
        """Do some of the stages with a CPU kernel; returns the buffer that holds the field, and the other one."""

    def heat_of(self, rows: StepInputs) -> float:
        """The heat of sources in the body during the stages of ``rows``, in J."""
        return self._problem.sources.total(rows.heat, rows.factors, self._problem.precision)

    def rate_coefficients(self) -> NDArray[Any]:
        """Struct Coefficients of the kernel that adds increments."""
        return self.rates.coefficients(self.rates.reference_dt)

    def advance_rows_on_cpu(
        self, kernel: str, T: Any, T_new: Any, rows: StepInputs, enters: bool, base: Any = None
    ) -> tuple[Any, Any]:
        """Do the stages of ``rows`` with the general form of a CPU kernel.

        Args:
            kernel: its name.
            T: the field.
            T_new: the buffer that the first stage writes.
            rows: what changes from stage to stage.
            enters: whether their heat is entered.
            base: the field to which the increments are added, empty for 0; None to add them to T.

        Returns:
            The buffer that holds the field, and the other one.
        """
        problem, rates = self._problem, self.rates
        call = CompositeCall(
            problem.periodic,
            rates.arrays.body,
            rates.tables(rates.reference_dt),
            rates.arrays.steps(rows, len(rows.factors)),
            rates.sums if enters else rates.no_sums,
            "increments",
            base,
        )
        return COMPOSITE_KERNELS[kernel](T, T_new, call)


class LinearStages(StageArguments[NDArray[Any]]):
    """Stages of a body of one constant material whose faces hold f − g·T; their numbers are struct StepData."""

    variant = LinearArguments.stage_variant

    def __init__(self, problem: HeatProblem, field: Field, ledger: Ledger, rates: GeneralArguments) -> None:
        super().__init__(problem, rates)
        self._arguments = LinearArguments(problem, field, ledger)
        self._ledger = ledger

    def evaluate(self, stages: StageTimes, increments: StageTimes) -> StageValues[NDArray[Any]]:
        """Evaluate conditions and sources; see :meth:`StageKernels.evaluate`."""
        sweeps = self._arguments.host_stage_sweeps(stages, self._problem.scheme)
        return StageValues(sweeps, self.rates.stage_rows(increments))

    def source_heat(self, numbers: NDArray[Any], some: slice) -> float:
        """0: a linear problem has no sources."""
        return 0.0

    def coefficients(self) -> NDArray[Any]:
        """Struct Coefficients, without c0…c6: each stage has its own in struct StepData."""
        return self._no_coefficients

    def ledger(self, enters: bool) -> NDArray[Any]:
        """Struct Ledger for stages whose heat is entered, or is not."""
        return self._arguments.ledger if enters else self._no_ledger

    def on_device(self, numbers: NDArray[Any]) -> SweepTable:
        """Struct StepData of the stages, on the device."""
        return self._arguments.on_device(numbers)

    def advance_on_cpu(
        self, kernel: str, T: Any, T_new: Any, numbers: NDArray[Any], some: slice, enters: bool
    ) -> tuple[Any, Any]:
        """Do some of the stages with a CPU kernel; returns the buffer that holds the field, and the other one."""
        problem, sweeps = self._problem, numbers[some]
        c = sweeps["c"][:, [0, 1, 1, 2, 2, 3, 3]]
        faces, planes = (self._ledger.sums if enters else self.rates.no_sums).heats.faces, self._arguments.planes
        return CPU_KERNELS[kernel](
            T, T_new, problem.periodic, c, sweeps["f"], sweeps["g"], faces, problem.scheme, planes
        )

    @cached_property
    def _no_coefficients(self) -> NDArray[Any]:
        return self._arguments.struct_of((0.0,) * 7)

    @cached_property
    def _no_ledger(self) -> NDArray[Any]:
        return np.zeros((), dtype=structs.LEDGER)


class GeneralStages(StageArguments[StepInputs]):
    """Stages of all other bodies; their numbers are rows."""

    def __init__(self, problem: HeatProblem, rates: GeneralArguments) -> None:
        super().__init__(problem, rates)
        self.variant = rates.stage_variant

    def evaluate(self, stages: StageTimes, increments: StageTimes) -> StageValues[StepInputs]:
        """Evaluate conditions and sources; see :meth:`StageKernels.evaluate`."""
        rows, count = self.rates.stage_rows(StageTimes.joined((stages, increments))), len(stages)
        return StageValues(rows[:count], rows[count:])

    def source_heat(self, numbers: StepInputs, some: slice) -> float:
        """The heat of sources in the body during some of the stages, in J."""
        return self.heat_of(numbers[some])

    def coefficients(self) -> NDArray[Any]:
        """Struct Coefficients."""
        return self.rate_coefficients()

    def ledger(self, enters: bool) -> NDArray[Any]:
        """Struct Ledger for stages whose heat is entered, or is not."""
        return self.rates.ledger if enters else self.rates.no_ledger

    def on_device(self, numbers: StepInputs) -> SweepTable:
        """Struct StepData of the stages, on the device."""
        return self.rates.stage_sweeps(numbers)

    def advance_on_cpu(
        self, kernel: str, T: Any, T_new: Any, numbers: StepInputs, some: slice, enters: bool
    ) -> tuple[Any, Any]:
        """Do some of the stages with a CPU kernel; returns the buffer that holds the field, and the other one."""
        return self.advance_rows_on_cpu(kernel, T, T_new, numbers[some], enters)


def make_stage_arguments(
    problem: HeatProblem, field: Field, ledger: Ledger, rates: GeneralArguments
) -> StageArguments[Any]:
    """What kernels take for the stages of a problem.

    Args:
        problem: its ``linear`` decides between the two forms.
        field: what is stepped.
        ledger: gets the heat that passes the surfaces.
        rates: arguments of the kernels that add increments.
    """
    if problem.linear:
        return LinearStages(problem, field, ledger, rates)
    return GeneralStages(problem, rates)
