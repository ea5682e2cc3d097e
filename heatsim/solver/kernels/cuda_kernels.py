"""The CUDA kernels that together do any number of steps of one problem: chosen, compiled, launched."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from heatsim.kernels import autotune, compilation, fitting, launch, launch_shapes
from heatsim.kernels.catalog import RESIDENT, SINGLE_STEP, KernelSpec
from heatsim.kernels.compilation import Variant
from heatsim.kernels.composite.arrays import SweepTable
from heatsim.kernels.composite.cell_heat import compile_kernel
from heatsim.kernels.cuda_graphs import Before, CudaGraphs, Sweeps
from heatsim.kernels.launch_shapes import Choice, Shape, Task
from heatsim.kernels.temporal_composite.correction import correct
from heatsim.parallel.slab import HALO
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.corrected_trial import TrialSteps, is_faster
from heatsim.solver.kernels.kernel_arguments import tables_fit

Launched = tuple[launch.CudaKernel, list[launch.Launch]]


@dataclass(frozen=True)
class Prepared:
    """Kernels that together do any number of steps.

    Attributes:
        choice: the first of them, and why it was chosen.
        kernels: compiled, with the launches of a sweep; the one with most steps a sweep comes first.
    """

    choice: Choice
    kernels: list[Launched]


@dataclass(frozen=True)
class Wanted:
    """What decides on the kernels of a run.

    Attributes:
        spec: the kernel asked for.
        tuned: take the fastest kernel and launch shape, whatever ``spec`` says.
        variant: the form of the kernels.
        steps: about how many steps the run will do; trying out must pay.
        recorded: whether the ledger sums the heat through some face.
    """

    spec: KernelSpec
    tuned: bool
    variant: Variant
    steps: int
    recorded: bool


class CudaKernels:
    """Steps of one problem with CUDA kernels.

    Args:
        problem: grid, precision and scheme.
        field: whose device is used, and whose spare buffer trials write.
        wanted: what decides on the kernels.
        coefficients: makes struct Coefficients for trials of kernels for linear problems.
        trial: makes a number of steps for trials of kernels for other problems.
    """

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        wanted: Wanted,
        coefficients: Callable[[], NDArray[Any]],
        trial: Callable[[int], TrialSteps],
    ) -> None:
        self._problem = problem
        self._field = field
        self._wanted = wanted
        self._coefficients = coefficients
        self._trial = trial

    @cached_property
    def prepared(self) -> Prepared:
        """The fastest kernels if tuned, else those of the kernel asked for; compiled."""
        wanted = self._wanted
        if wanted.variant.faces:
            return self._prepare_general()
        choice = self._tune() if wanted.tuned else Choice(Shape(wanted.spec), "asked for")
        # The shape is that of the first kernel, which does nearly all steps; others take their own tile.
        first, *rest = self._builds(choice.shape.spec)
        kernels = [self._launched(first, choice.shape.planes, wanted.recorded)]
        return Prepared(choice, kernels + [self._launched(build, None, wanted.recorded) for build in rest])

    def advance(
        self,
        T: Any,
        T_new: Any,
        coefficients: NDArray[Any],
        table: SweepTable,
        ledger: NDArray[Any],
        some: slice,
        exchange: Callable[[Any], object] | None = None,
        before: Before | None = None,
    ) -> tuple[Any, Any]:
        """Queue some of the steps of ``table``; return the buffer that holds the field afterwards, and the other.

        Args:
            T: the field, a device array.
            T_new: the buffer that the first sweep writes.
            coefficients: struct Coefficients.
            table: struct StepData of each step.
            ledger: struct Ledger.
            some: which of the steps.
            exchange: begins to exchange the halo planes of its argument. If the steps are one sweep that can be
                divided, it is called as soon as the sweep over the planes beside the cuts is queued; else never.
            before: what each sweep needs before it; the same in all calls.
        """
        step = some.start
        if exchange is not None and self._edges is not None and some.stop - step == HALO:
            kernel, at = self.prepared.kernels[0][0], table.address(step)
            for number, launches in enumerate(self._edges):
                if number == 1:
                    exchange(T_new)
                Sweeps(kernel, launches, coefficients, ledger).queue(1, T, T_new, at)
            return T_new, T
        for kernel, launches in self.prepared.kernels:
            reach = kernel.build.spec.steps
            count = (some.stop - step) // reach
            run = Sweeps(kernel, launches, coefficients, ledger, before)
            T, T_new = self._graphs.advance(run, T, T_new, table, step, count)
            step += count * reach
        return T, T_new

    @cached_property
    def sweeps(self) -> tuple[Hashable, ...]:
        """Identifies the sweeps for other ranks: steps of each kernel, and whether planes beside cuts come first."""
        return *(kernel.build.spec.steps for kernel, _ in self.prepared.kernels), self._edges is not None

    @cached_property
    def _edges(self) -> tuple[list[launch.Launch], list[launch.Launch]] | None:
        """A sweep in two parts: the own planes beside cuts, then all others; None if the kernel cannot do this."""
        kernel, _ = self.prepared.kernels[0]
        build, own, cut = kernel.build, self._problem.slab.own, self._problem.slab.cut
        first, last = own.start + HALO * cut[0], own.stop - HALO * cut[1]
        if type(kernel) is not launch.CudaKernel or build.pipeline is None or build.spec.steps != HALO or first >= last:
            return None

        def planes(first: int, last: int) -> list[launch.Launch]:
            return self._launches(build, recorded=self._wanted.recorded, written=(first, last))

        edges = [*(planes(own.start, first) if cut[0] else ()), *(planes(last, own.stop) if cut[1] else ())]
        return edges, planes(first, last)

    @cached_property
    def _graphs(self) -> CudaGraphs:
        return CudaGraphs(self._field.device, self._problem.grid.cell_count)

    def _prepare_general(self) -> Prepared:
        """Many steps a launch on a small grid; else one step a sweep, or several and a correction.

        Several steps are taken where that is possible and, if tuned, faster.
        """
        problem, field, wanted = self._problem, self._field, self._wanted
        cells = problem.grid.cell_count
        if problem.boundary.network is not None:  # conditions follow the nodes from step to step
            alone = wanted.spec if wanted.spec.steps == 1 and not wanted.spec.resident else SINGLE_STEP
            *_, single = self._builds(SINGLE_STEP if wanted.tuned else alone)
            return Prepared(Choice(Shape(single.spec), "by rule"), [self._launched(single)])
        resident = self._resident()
        if resident is not None:
            return Prepared(Choice(Shape(resident.spec), "by rule"), [self._launched(resident)])
        worth_trying = cells >= launch_shapes.LARGE_GRID and autotune.is_worth_trying(cells, wanted.steps)
        *several, single = self._builds(SINGLE_STEP if wanted.tuned and not worth_trying else wanted.spec)
        one, tried = self._launched(single), False
        for build in several:
            kernel = correct(
                build, problem.materials, problem.periodic, problem.open_faces, field.device, self._written(build)
            )
            if kernel is None:
                continue
            many, tried = (kernel, self._launches(build)), wanted.tuned
            if not tried or is_faster(many, one, field, self._trial):
                return Prepared(Choice(Shape(build.spec), "tried" if tried else "by rule"), [many, one])
        return Prepared(Choice(Shape(single.spec), "tried" if tried else "by rule"), [one])

    def _resident(self) -> compilation.Build | None:
        """The build of the first resident kernel that suits, of all if this is tuned; None if none does."""
        problem, wanted = self._problem, self._wanted
        for spec in RESIDENT:
            if (wanted.tuned or spec == wanted.spec) and tables_fit(spec, problem):
                (build,) = self._builds(spec)
                if build.spec.resident:
                    return build
        return None

    def _builds(self, spec: KernelSpec) -> tuple[compilation.Build, ...]:
        problem = self._problem
        return fitting.builds(
            spec,
            problem.precision,
            problem.scheme,
            problem.grid,
            problem.periodic,
            self._field.device.room(),
            self._wanted.variant,
        )

    def _launched(self, build: compilation.Build, planes: int | None = None, recorded: bool = False) -> Launched:
        kernel = compile_kernel(build, self._problem.grid, len(self._problem.materials.heated))
        return kernel, self._launches(build, planes, recorded)

    def _launches(
        self,
        build: compilation.Build,
        planes: int | None = None,
        recorded: bool = False,
        written: tuple[int, int] | None = None,
    ) -> list[launch.Launch]:
        problem, processors = self._problem, self._field.device.multiprocessors()
        written = written or self._written(build)
        return launch.launches(build, problem.grid, problem.periodic, processors, planes, recorded, written=written)

    def _written(self, build: compilation.Build) -> tuple[int, int] | None:
        """The first plane that a kernel must write and the end; None for all planes.

        A sweep with as many steps as there are halo planes makes all of them wrong, so it need not write them.
        """
        own = self._problem.slab.own
        return (own.start, own.stop) if build.spec.steps >= HALO else None

    def _tune(self) -> Choice:
        problem, field = self._problem, self._field
        task = Task(field.device, problem.grid, problem.periodic, problem.precision, problem.scheme)
        return autotune.choose(task, self._wanted.steps, field.deviation, field.spare, self._coefficients())
