"""The kernels of methods with stages of different lengths, on one field: substeps and rates."""

from abc import ABC, abstractmethod
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import fitting, launch, structs
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays, address
from heatsim.kernels.composite.cell_heat import compile_kernel
from heatsim.kernels.cuda_graphs import Sweeps
from heatsim.kernels.ensemble.launches import MemberSteps
from heatsim.kernels.launch_shapes import Choice, Shape
from heatsim.kernels.nodes.node_stage import MOST_STAGES
from heatsim.physics.matter.coefficients import derive
from heatsim.physics.nodes.network import Given
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import StageTimes
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.corrected_trial import TrialSteps
from heatsim.solver.kernels.cpu_codes import codes_of_steps
from heatsim.solver.kernels.cuda_kernels import CudaKernels, Wanted
from heatsim.solver.kernels.kernel_arguments import GeneralArguments
from heatsim.solver.kernels.stage_arguments import (
    IncrementRun,
    Result,
    StageRun,
    StageValues,
    Work,
    make_stage_arguments,
)
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.nodes.node_stages import NodeStages, node_stages

# Trying out kernels pays if they do many stages: about a tenth of the steps that Euler's method would do.
_STAGES_A_STEP = 0.1


class StageKernels(ABC):
    """Stages of one problem. The heat that passes surfaces is added to the ledger given to the constructor.

    Attributes:
        nodes: beside the field; each stage moves their state, one without ``base`` from the field whose rate it finds.
            None without nodes.

    Args:
        problem: boundary, sources, scheme.
        field: whose device and reference are used.
        entered: gets the heat through surfaces.
        spec: the kernel.
        arrays: the body's arrays on the field's device.
        tuned: on a GPU, take the fastest kernel and launch shape, whatever ``spec`` says.
    """

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        entered: Ledger,
        spec: KernelSpec,
        arrays: CompositeArrays,
        tuned: bool,
    ) -> None:
        self._problem = problem
        self._field = field
        self._entered = entered
        self._spec = spec
        self._tuned = tuned
        self._rates = GeneralArguments(problem, field, entered, arrays)
        self._arguments = make_stage_arguments(problem, field, entered, self._rates)
        self.nodes = node_stages(problem, field)

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """The kernel that does nearly all stages."""

    @abstractmethod
    def prepare(self, T: Any, out: Any) -> None:
        """Compile the kernels. ``T`` is read; ``out`` is overwritten."""

    def evaluate(self, stages: StageTimes, increments: StageTimes) -> StageValues[Any]:
        """Evaluate conditions and sources.

        Args:
            stages: those for :meth:`advance`.
            increments: those for :meth:`add_increments`.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the stages.
        """
        values = self._arguments.evaluate(stages, increments)
        if self.nodes is not None:
            values.given = self.nodes.network.given(StageTimes.joined((stages, increments)))
        return values

    def do(self, work: Work[Result]) -> Result:
        """Do all requests of a work, one after the other; return the result of the work."""
        reply: Any = None
        while True:
            try:
                request = work.send(reply)
            except StopIteration as end:
                result: Result = end.value
                return result
            reply = self.reply(request)

    def reply(self, request: StageRun | IncrementRun) -> Any:
        """Do one request and return its reply."""
        if isinstance(request, IncrementRun):
            return self.add_increments(request.base, request.T, request.out, request.values, request.number)
        return self.advance(request.T, request.T_new, request.values, request.some, enters=request.enters)

    def advance(
        self, T: Any, T_new: Any, values: StageValues[Any], some: slice, *, enters: bool = True
    ) -> tuple[Any, Any, float]:
        """Do stages T' = T + size·F(T), one after the other.

        Args:
            T: the field, a device array. It keeps its values if there is one stage.
            T_new: the buffer that the first stage writes.
            values: from :meth:`evaluate`.
            some: which of the stages.
            enters: whether their heat is entered.

        Returns:
            The buffer that holds the result, the other one, and the heat of sources in the body in J.
        """
        if some.start == some.stop:
            return T, T_new, 0.0
        heat = self._arguments.source_heat(values.numbers, some)
        if self.nodes is not None and values.given is not None:
            return *self._advance_with_nodes(self.nodes, values.given, T, T_new, values, some, enters), heat
        halo = self._field.halo
        for first in range(some.start, some.stop, halo.most):
            halo.exchange(T)
            own = slice(first, min(first + halo.most, some.stop))
            T, T_new = self._advance(T, T_new, values, own, enters)
        return T, T_new, heat

    def add_increments(self, base: Any, T: Any, out: Any, values: StageValues[Any], number: int) -> float:
        """Set out = base + size·F(T); its heat is entered.

        Args:
            base: a field, or None for 0.
            T: the field whose rate is found.
            out: another field.
            values: from :meth:`evaluate`.
            number: of the stage among the increments.

        Returns:
            The heat of sources in the body in J.
        """
        rows = values.increments[number : number + 1]
        self._field.halo.exchange(T)
        if self.nodes is not None and values.given is not None:
            self.nodes.begin(T, rows, values.given.at(len(values.numbers.factors) + number))
            self.nodes.move(self._size(rows))
        self._add_increments(base, T, out, rows)
        return self._arguments.heat_of(rows)

    def _advance_with_nodes(
        self, nodes: NodeStages, given: Given, T: Any, T_new: Any, values: StageValues[Any], some: slice, enters: bool
    ) -> tuple[Any, Any]:
        """As :meth:`_advance`, stage by stage: conditions follow the nodes."""
        for number in range(some.start, some.stop):
            alone = StageValues(values.numbers[number : number + 1], values.increments)
            self._field.halo.exchange(T)
            nodes.begin(T, alone.numbers, given.at(number))
            T, T_new = self._advance(T, T_new, alone, slice(0, 1), enters)
            nodes.move(self._size(alone.numbers))
        return T, T_new

    def _size(self, rows: StepInputs) -> float:
        """The length in s of a single stage."""
        return float(rows.factors[0]) * self._rates.reference_dt

    @abstractmethod
    def _advance(self, T: Any, T_new: Any, values: StageValues[Any], some: slice, enters: bool) -> tuple[Any, Any]: ...

    @abstractmethod
    def _add_increments(self, base: Any, T: Any, out: Any, rows: StepInputs) -> None: ...


class CpuStageKernels(StageKernels):
    """Stages on the CPU."""

    @property
    def choice(self) -> Choice:
        """The kernel asked for."""
        return Choice(Shape(self._spec), "asked for")

    def prepare(self, T: Any, out: Any) -> None:
        """Have numba compile; nothing is entered."""
        from heatsim.kernels.cpu.compiling import compile_all

        compile_all(codes_of_steps(self._problem, self._rates.arrays, self._spec))
        moment = StageTimes(*(np.array([value]) for value in (0.0, 0.0, self._rates.reference_dt, 0.0)))
        values = self.evaluate(moment, moment)
        self.advance(T, out, values, slice(0, 1), enters=False)
        self.add_increments(None, T, out, values, 0)

    def _advance(self, T: Any, T_new: Any, values: StageValues[Any], some: slice, enters: bool) -> tuple[Any, Any]:
        return self._arguments.advance_on_cpu(self._spec.name, T, T_new, values.numbers, some, enters)

    def _add_increments(self, base: Any, T: Any, out: Any, rows: StepInputs) -> None:
        nothing = np.zeros((0, 0, 0), dtype=self._problem.precision)
        self._arguments.advance_rows_on_cpu(self._spec.name, T, out, rows, True, nothing if base is None else base)


class CudaStageKernels(StageKernels):
    """Stages on a GPU."""

    @property
    def choice(self) -> Choice:
        """The kernel that does nearly all stages, and its launch shape. Trying out writes to the spare buffer."""
        return self._kernels.prepared.choice

    def prepare(self, T: Any, out: Any) -> None:
        """Choose the kernels and compile them."""
        _ = self._kernels.prepared
        self.prepare_increments()

    def prepare_increments(self) -> None:
        """Compile the kernel that adds increments."""
        _ = self._rate_kernel

    # For ensembles, whose members are linear.

    @property
    def recorded(self) -> bool:
        """Whether the ledger sums anything."""
        return self._entered.recorded

    @property
    def likely_stages(self) -> int:
        """About how many stages the run will do."""
        limit = self._problem.limit.dt
        return max(int(_STAGES_A_STEP * self._problem.scenario.time.end / limit) if isfinite(limit) else 1, 1)

    def member_steps(self, request: StageRun) -> MemberSteps:
        """The stages of a request, for launches that step several fields."""
        own, sweeps = self._arguments, request.values.numbers[request.some]
        return MemberSteps(
            request.T, request.T_new, own.coefficients(), own.ledger(request.enters), sweeps, len(sweeps)
        )

    def at_rest(self, T: Any, out: Any) -> MemberSteps:
        """A member without steps, for autotuning: ``T`` is read; ``out`` is overwritten."""
        sweeps = np.zeros(0, dtype=structs.sweep_dtype(self._problem.precision))
        no_ledger = np.zeros((), dtype=structs.LEDGER)
        return MemberSteps(T, out, self._trial_coefficients(), no_ledger, sweeps, 0)

    def _advance(self, T: Any, T_new: Any, values: StageValues[Any], some: slice, enters: bool) -> tuple[Any, Any]:
        own = self._arguments
        if values.table is None:
            values.table = own.on_device(values.numbers)
        return self._kernels.advance(T, T_new, own.coefficients(), values.table, own.ledger(enters), some)

    def _advance_with_nodes(
        self, nodes: NodeStages, given: Given, T: Any, T_new: Any, values: StageValues[Any], some: slice, enters: bool
    ) -> tuple[Any, Any]:
        if not nodes.queues:
            return super()._advance_with_nodes(nodes, given, T, T_new, values, some, enters)
        own, halo = self._arguments, self._field.halo
        table = values.table = values.table or own.on_device(values.numbers)
        together = MOST_STAGES if halo.slab.alone else 1
        for first in range(some.start, some.stop, together):
            halo.exchange(T)
            part = slice(first, min(first + together, some.stop))
            sizes = values.numbers.factors[part] * self._rates.reference_dt
            before = nodes.begin_queue(values.numbers, table.conditions(part), sizes, given.part(part))
            T, T_new = self._kernels.advance(
                T, T_new, own.coefficients(), table, own.ledger(enters), part, before=before
            )
            nodes.end_queue()
        return T, T_new

    def _add_increments(self, base: Any, T: Any, out: Any, rows: StepInputs) -> None:
        rates, (kernel, launches) = self._rates, self._rate_kernel
        sweeps = rates.rate_sweeps(rows, base)
        run = Sweeps(kernel, launches, self._arguments.rate_coefficients(), rates.ledger)
        run.queue(1, T, out, sweeps.address(0))

    @cached_property
    def _kernels(self) -> CudaKernels:
        variant = self._arguments.variant
        wanted = Wanted(self._spec, self._tuned, variant, self.likely_stages, self.recorded)
        return CudaKernels(self._problem, self._field, wanted, self._trial_coefficients, self._trial_steps)

    @cached_property
    def _rate_kernel(self) -> tuple[launch.CudaKernel, list[launch.Launch]]:
        problem, device = self._problem, self._field.device
        (build,) = fitting.builds(
            SINGLE_STEP,
            problem.precision,
            "increments",
            problem.grid,
            problem.periodic,
            device.room(),
            self._rates.rate_variant,
        )
        launches = launch.launches(build, problem.grid, problem.periodic, device.multiprocessors())
        return compile_kernel(build, problem.grid, len(problem.materials.heated)), launches

    def _trial_coefficients(self) -> NDArray[Any]:
        """Struct Coefficients of Euler's kernels, which are tried in place of those with stages."""
        problem = self._problem
        own = derive(problem.grid, problem.rates, self._rates.reference_dt, problem.precision, problem.scheme)
        return structs.coefficients_struct(own.c, problem.precision, address(self._rates.arrays.planes))

    def _trial_steps(self, count: int) -> TrialSteps:
        """Steps with the conditions at t = 0."""
        rates = self._rates
        dt = np.full(count, rates.reference_dt)
        rows = rates.stage_rows(StageTimes(np.zeros(count), np.zeros(count), dt, dt))
        return TrialSteps(self._arguments.rate_coefficients(), rates.stage_sweeps(rows))
