"""Random input for kernels, and a stepper that runs a kernel on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import fitting, launch, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import SweepTable
from heatsim.kernels.cpu.oracle import CPU_KERNELS, steps_a_sweep
from heatsim.kernels.cuda_graphs import CudaGraphs, Sweeps
from heatsim.kernels.launch_shapes import Shape
from heatsim.physics.matter.coefficients import Scheme
from heatsim.solver.field.field import Field

# The scheme that a run uses by default.
SCHEME: Scheme = "seven_term"


@dataclass(frozen=True, eq=False)
class BenchmarkCase:
    """Steps of the heat equation in numbers that float32 represents exactly.

    Attributes:
        grid: the cells.
        periodic: which axes wrap.
        c: c0…c6, all different, shape (7,).
        f, g: the terms of the six faces, with convection; shape (steps, 6), or (1, 6) if they are constant.
    """

    grid: Grid
    periodic: tuple[bool, bool, bool]
    c: NDArray[np.float32]
    f: NDArray[np.float32]
    g: NDArray[np.float32]


def random_case(cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], steps: int, seed: int) -> BenchmarkCase:
    """A random case. The coefficient c0 of every cell is positive, so that values and errors do not grow.

    c1…c6 are multiples of 2⁻¹², so c0 = 1 − Σ is exact. Every face that is not periodic exchanges heat with
    surroundings between 0 and 1 K. So all values stay between 0 and 1 K if the initial field does.
    """
    rng = np.random.default_rng(seed)
    c = rng.integers(100, 450, 7) * 2.0**-12
    c[0] = 1.0 - c[1:].sum()
    g = (rng.uniform(0.01, 0.05, (steps, 6)) * ~np.repeat(periodic, 2)).astype(np.float32)
    f = (g * rng.random((steps, 6))).astype(np.float32)
    return BenchmarkCase(Grid(cells, (1.0, 1.0, 1.0)), periodic, c.astype(np.float32), f, g)


def random_field(grid: Grid, precision: str, seed: int) -> NDArray[Any]:
    """Random deviations between 0 and 1 K on the host, shape (nz, ny, nx), in the precision."""
    return np.random.default_rng(seed).random(grid.shape, dtype=np.dtype(precision).type)


def upload(field: Field, deviation: NDArray[Any]) -> None:
    """Copy a host array into the field without a second array on the device."""
    if field.device.backend == "cuda":
        field.deviation.set(deviation)
    else:
        field.deviation[...] = deviation


def new_field(device: Device, grid: Grid, precision: str, seed: int) -> Field:
    """A field on a device with random deviations between 0 and 1 K."""
    field = Field(device, grid, precision, reference=0.0)
    upload(field, random_field(grid, precision, seed))
    return field


def new_ledger(device: Device, case: BenchmarkCase, enabled: bool) -> list[Any]:
    """Zeros for the sums of the faces that exchange heat.

    The arrays of other faces are empty; all are if not ``enabled``.
    """
    return [
        device.xp.zeros(case.grid.face_shape(face) if enabled and not case.periodic[face // 2] else (0, 0))
        for face in range(6)
    ]


class Stepping:
    """One kernel on one field, called in the same way as by the stepper of a run.

    Attributes:
        field: the field.
        reach: steps per sweep on this grid.
        registers: registers per thread; None for a CPU kernel.
        spills: bytes of local memory per thread for spilled registers; None for a CPU kernel.
    """

    def __init__(
        self,
        shape: Shape,
        field: Field,
        case: BenchmarkCase,
        ledger: Sequence[Any],
        steps: int,
        poisoned: bool = False,
        recorded: bool = False,
    ) -> None:
        """Compile the kernel and copy the terms of the faces to the device.

        Args:
            shape: the kernel and, on a GPU, its launch shape.
            field: a field on a device of the kernel.
            case: coefficients and faces.
            ledger: the six sums of :func:`new_ledger`.
            steps: the most steps of one :meth:`advance`; each call starts at the case's first step.
            poisoned: whether the output is filled with NaN before each sweep.
            recorded: whether a GPU uses CUDA graphs, if a run would use them.
        """
        self.field = field
        self.registers: int | None = None
        self.spills: int | None = None
        self._ledger = ledger  # kept alive: the kernel has only its addresses
        self._poisoned = poisoned
        self._recorded = recorded
        self._table = np.zeros(steps, dtype=structs.sweep_dtype(field.precision))
        self._table["f"], self._table["g"] = case.f, case.g
        # Pairs (steps per sweep, function that does sweeps from a step on); the one with most steps first.
        on_cuda = shape.spec.backend == "cuda"
        self._sweeps = self._on_cuda(shape, case, ledger) if on_cuda else self._on_cpu(shape.spec, case, ledger)
        self.reach = self._sweeps[0][0]

    def advance(self, steps: int) -> None:
        """Do ``steps`` steps. On a GPU they are queued and may still be running at return."""
        done = 0
        for reach, sweep in self._sweeps:
            at_a_time = 1 if self._poisoned else (steps - done) // reach
            while steps - done >= reach:
                if self._poisoned:
                    self.field.spare.fill(np.nan)
                sweep(done, at_a_time)
                done += at_a_time * reach
        self.field.changed()

    def _on_cuda(
        self, shape: Shape, case: BenchmarkCase, ledger: Sequence[Any]
    ) -> list[tuple[int, Callable[[int, int], None]]]:
        field, device = self.field, self.field.device
        table = SweepTable(device.xp.asarray(self._table.view(np.uint8)), self._table.itemsize)
        coefficients = np.array((case.c,), dtype=structs.coefficients_dtype(field.precision))
        pointers = np.array(([sums.data.ptr if sums.size else 0 for sums in ledger],), dtype=structs.LEDGER)
        graphs = CudaGraphs(device, case.grid.cell_count)
        graphs.recording = graphs.recording and self._recorded

        def sweep_with(sweeps: Sweeps) -> Callable[[int, int], None]:
            def sweep(done: int, count: int) -> None:
                field.deviation, field.spare = graphs.advance(sweeps, field.deviation, field.spare, table, done, count)

            return sweep

        builds = fitting.builds(shape.spec, field.precision, SCHEME, case.grid, case.periodic, device.room())
        kernels = [launch.compile_kernel(build) for build in builds]
        self.registers = int(kernels[0].function.num_regs)
        self.spills = int(kernels[0].function.local_size_bytes)
        found = []
        for kernel, planes in zip(kernels, (shape.planes, None), strict=False):
            launches = launch.launches(
                kernel.build, case.grid, case.periodic, device.multiprocessors(), planes, bool(pointers["face"].any())
            )
            found.append((kernel.build.spec.steps, sweep_with(Sweeps(kernel, launches, coefficients, pointers))))
        return found

    def _on_cpu(
        self, spec: KernelSpec, case: BenchmarkCase, ledger: Sequence[Any]
    ) -> list[tuple[int, Callable[[int, int], None]]]:
        field, kernel, c = self.field, CPU_KERNELS[spec.name], case.c.astype(self.field.precision)

        def sweeps_of(reach: int) -> Callable[[int, int], None]:
            def advance(done: int, count: int) -> None:
                part = self._table[done : done + count * reach]
                field.deviation, field.spare = kernel(
                    field.deviation, field.spare, case.periodic, c, part["f"], part["g"], ledger, SCHEME
                )

            return advance

        value = np.dtype(field.precision).itemsize
        reaches = {steps_a_sweep(spec.name, case.grid.shape, case.periodic, value, len(self._table)), 1}
        return [(reach, sweeps_of(reach)) for reach in sorted(reaches, reverse=True)]
