"""The kernels of methods with stages of different lengths, on one field: substeps and rates."""

from abc import ABC, abstractmethod
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import compilation, launch, structs
from heatsim.kernels.autotune import Choice, Shape
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.cuda_graphs import Sweeps
from heatsim.kernels.ensemble.launches import MemberSteps
from heatsim.physics.coefficients import derive
from heatsim.physics.problem import HeatProblem
from heatsim.physics.rows import Rows
from heatsim.physics.stage_times import StageTimes
from heatsim.solver.corrected_trial import TrialSteps
from heatsim.solver.cuda_kernels import CudaKernels, Wanted
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field
from heatsim.solver.kernel_arguments import GeneralArguments, LinearArguments
from heatsim.solver.stage_work import IncrementRun, Result, StageRun, StageValues, Work

# Trying out kernels pays if they do many stages: about a tenth of the steps that Euler's method would do.
_STAGES_A_STEP = 0.1


class StageKernels(ABC):
    """Stages of one problem. The heat that passes surfaces is added to the ledger given to the constructor.

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
        self._linear = LinearArguments(problem, field, entered) if problem.linear else None
        self._general = GeneralArguments(problem, field, entered, arrays)

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """The kernel that does nearly all stages."""

    @abstractmethod
    def prepare(self, T: Any, out: Any) -> None:
        """Compile the kernels. ``T`` is read; ``out`` is overwritten."""

    def evaluate(self, stages: StageTimes, increments: StageTimes) -> StageValues:
        """Evaluate conditions and sources.

        Args:
            stages: those for :meth:`advance`.
            increments: those for :meth:`add_increments`.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the stages.
        """
        if self._linear is not None:
            sweeps = self._linear.host_stage_sweeps(stages, self._problem.scheme)
            return StageValues(None, sweeps, self._general.stage_rows(increments))
        rows = self._general.stage_rows(StageTimes.joined((stages, increments)))
        count = len(stages)
        return StageValues(rows[:count], None, rows[count:])

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
        self, T: Any, T_new: Any, values: StageValues, some: slice, *, enters: bool = True
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
        T, T_new = self._advance(T, T_new, values, some, enters)
        return T, T_new, 0.0 if values.rows is None else self._heat(values.rows[some])

    def add_increments(self, base: Any, T: Any, out: Any, values: StageValues, number: int) -> float:
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
        self._add_increments(base, T, out, rows)
        return self._heat(rows)

    @abstractmethod
    def _advance(self, T: Any, T_new: Any, values: StageValues, some: slice, enters: bool) -> tuple[Any, Any]: ...

    @abstractmethod
    def _add_increments(self, base: Any, T: Any, out: Any, rows: Rows) -> None: ...

    def _heat(self, rows: Rows) -> float:
        return self._problem.sources.total(rows.heat, rows.factors, self._problem.precision)


class CpuStageKernels(StageKernels):
    """Stages on the CPU."""

    @property
    def choice(self) -> Choice:
        """The kernel asked for."""
        return Choice(Shape(self._spec), "asked for")

    def prepare(self, T: Any, out: Any) -> None:
        """Have numba compile; nothing is entered."""
        moment = StageTimes(*(np.array([value]) for value in (0.0, 0.0, self._general.reference_dt, 0.0)))
        values = self.evaluate(moment, moment)
        self.advance(T, out, values, slice(0, 1), enters=False)
        self.add_increments(None, T, out, values, 0)

    def _advance(self, T: Any, T_new: Any, values: StageValues, some: slice, enters: bool) -> tuple[Any, Any]:
        problem = self._problem
        if values.rows is not None:
            for stage in range(some.start, some.stop):
                self._step(T, T_new, values.rows, stage, enters)
                T, T_new = T_new, T
            return T, T_new
        assert values.sweeps is not None
        sweeps = values.sweeps[some]
        c = sweeps["c"][:, [0, 1, 1, 2, 2, 3, 3]]
        faces = self._entered.faces if enters else self._general.no_entries.faces
        return CPU_KERNELS[self._spec.name](
            T, T_new, problem.periodic, c, sweeps["f"], sweeps["g"], 0, faces, problem.scheme
        )

    def _add_increments(self, base: Any, T: Any, out: Any, rows: Rows) -> None:
        nothing = np.zeros((0, 0, 0), dtype=self._problem.precision)
        self._step(T, out, rows, 0, True, nothing if base is None else base)

    def _step(self, T: Any, T_new: Any, rows: Rows, stage: int, enters: bool, base: Any = None) -> None:
        problem, general = self._problem, self._general
        row = general.arrays.row(rows, stage, problem.grid)
        entries = general.entries if enters else general.no_entries
        COMPOSITE_KERNELS[self._spec.name](
            *(T, T_new, problem.periodic, general.arrays.body, general.tables(general.reference_dt), row),
            *(0, entries, "increments", base),
        )


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

    # What an ensemble needs of its members, which are linear.

    @property
    def recorded(self) -> bool:
        """Whether the ledger sums the heat through some face."""
        return self._linear is not None and self._linear.recorded

    @property
    def likely_stages(self) -> int:
        """About how many stages the run will do."""
        limit = self._problem.limit.dt
        return max(int(_STAGES_A_STEP * self._problem.scenario.time.end / limit) if isfinite(limit) else 1, 1)

    def member_steps(self, request: StageRun) -> MemberSteps:
        """What launches that step several fields need for the stages of a request."""
        assert self._linear is not None
        assert request.values.sweeps is not None
        ledger = self._linear.ledger if request.enters else self._linear.no_ledger
        sweeps = request.values.sweeps[request.some]
        return MemberSteps(request.T, request.T_new, self._linear.no_coefficients, ledger, sweeps, len(sweeps))

    def at_rest(self, T: Any, out: Any) -> MemberSteps:
        """A member without steps, for autotuning: ``T`` is read; ``out`` is overwritten."""
        sweeps = np.zeros(0, dtype=structs.sweep_dtype(self._problem.precision))
        no_ledger = np.zeros((), dtype=structs.LEDGER)
        return MemberSteps(T, out, self._trial_coefficients(), no_ledger, sweeps, 0)

    def _advance(self, T: Any, T_new: Any, values: StageValues, some: slice, enters: bool) -> tuple[Any, Any]:
        linear, general = self._linear, self._general
        if values.table is None:
            if values.rows is not None:
                values.table = general.stage_sweeps(values.rows)
            elif linear is not None and values.sweeps is not None:
                values.table = linear.on_device(values.sweeps)
        assert values.table is not None
        own = general if linear is None else linear
        coefficients = general.coefficients(general.reference_dt) if linear is None else linear.no_coefficients
        ledger = own.ledger if enters else own.no_ledger
        return self._kernels.advance(T, T_new, coefficients, values.table, ledger, some)

    def _add_increments(self, base: Any, T: Any, out: Any, rows: Rows) -> None:
        general, (kernel, launches) = self._general, self._rate_kernel
        sweeps = general.rate_sweeps(rows, base)
        run = Sweeps(kernel, launches, general.coefficients(general.reference_dt), general.ledger)
        run.queue(1, T, out, sweeps.address(0))

    @cached_property
    def _kernels(self) -> CudaKernels:
        problem, linear, general = self._problem, self._linear, self._general
        variant = general.stage_variant if linear is None else linear.stage_variant
        return CudaKernels(
            *(problem, self._field, Wanted(self._spec, self._tuned, variant, self.likely_stages, self.recorded)),
            *(self._trial_coefficients, self._trial_steps),
        )

    @cached_property
    def _rate_kernel(self) -> tuple[launch.CudaKernel, list[launch.Launch]]:
        problem, device = self._problem, self._field.device
        (build,) = compilation.builds(
            *(SINGLE_STEP, problem.precision, "increments", problem.grid, problem.periodic),
            *(device.block_memory(), self._general.rate_variant),
        )
        launches = launch.launches(build, problem.grid, problem.periodic, device.multiprocessors())
        return launch.compile_kernel(build), launches

    def _trial_coefficients(self) -> NDArray[Any]:
        """Struct Coefficients of Euler's kernels, which are tried in place of those with stages."""
        problem = self._problem
        own = derive(problem.grid, problem.rates, self._general.reference_dt, problem.precision, problem.scheme)
        return structs.coefficients_struct(own, problem.precision)

    def _trial_steps(self, count: int) -> TrialSteps:
        """Steps with the conditions at t = 0."""
        general = self._general
        dt = np.full(count, general.reference_dt)
        rows = general.stage_rows(StageTimes(np.zeros(count), np.zeros(count), dt, dt))
        return TrialSteps(general.coefficients(general.reference_dt), general.stage_sweeps(rows))
