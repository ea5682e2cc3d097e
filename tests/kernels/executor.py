"""Any kernel of the catalog on any data: CPU kernels called as they are, CUDA kernels on the host machine or a GPU.

A sequence of steps runs on two buffers between guard zones, the output filled with NaN before each step.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from covering import SLOW, covering
from numpy.typing import NDArray

from heatsim import device
from heatsim.grid import Grid
from heatsim.kernels import compilation, cuda_graphs, fitting, launch, structs
from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.kernels.composite.arrays import address
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.emulation.machine import Guarded, HostKernel, compile_kernel, compile_kernels, guarded
from heatsim.physics.matter.coefficients import SCHEMES, Scheme

CUDA = tuple(spec for spec in KERNELS if spec.backend == "cuda")
CPU = tuple(spec for spec in KERNELS if spec.backend == "cpu")
VARIANTS: tuple[tuple[str, Scheme], ...] = tuple(product(("float32", "float64"), SCHEMES))


Borders = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Steps:
    """Some steps of a field, in numbers that float32 holds exactly.

    Attributes:
        cells: along x, y, z.
        periodic: which axes wrap.
        T: the field at the start, [z, y, x].
        c: c0…c6.
        f, g: the faces' terms, shape (steps, 6).
        recorded: for which faces the ledger is kept.
        stages: c0, c1 = c2, c3 = c4, c5 = c6 of each step in place of ``c``, shape (steps, 4); None if all are alike.
        borders: of the planes of cells along x, y, z, empty along axes with equal cells.
    """

    cells: tuple[int, int, int]
    periodic: tuple[bool, bool, bool]
    T: NDArray[np.float32]
    c: NDArray[np.float32]
    f: NDArray[np.float32]
    g: NDArray[np.float32]
    recorded: tuple[bool, ...]
    stages: NDArray[np.float32] | None = None
    borders: Borders = ((), (), ())

    @property
    def variant(self) -> compilation.Variant:
        return compilation.Variant(stages=self.stages is not None)

    def coefficients(self, step: int) -> NDArray[np.float32]:
        """c0…c6 of a step."""
        return self.c if self.stages is None else self.stages[step, [0, 1, 1, 2, 2, 3, 3]]

    @property
    def grid(self) -> Grid:
        return Grid(self.cells, (1.0, 1.0, 1.0), borders=self.borders)

    def empty_ledger(self) -> list[NDArray[np.float64]]:
        return [
            np.zeros(self.grid.face_shape(face) if recorded else (0, 0)) for face, recorded in enumerate(self.recorded)
        ]

    def sweeps(self, precision: str) -> NDArray[Any]:
        """struct StepData of every step."""
        sweeps = np.zeros(len(self.f), structs.sweep_dtype(precision, self.variant.stages))
        if self.stages is not None:
            sweeps["c"] = self.stages
        sweeps["f"], sweeps["g"] = self.f, self.g
        return sweeps


@dataclass(frozen=True, eq=False)
class Result:
    """The field after the steps and the ledger's six arrays, those of faces that are not recorded empty."""

    T: NDArray[Any]
    ledger: tuple[NDArray[np.float64], ...]

    def assert_same_bits(self, other: "Result") -> None:
        for mine, others in zip((self.T, *self.ledger), (other.T, *other.ledger), strict=True):
            assert mine.dtype == others.dtype
            assert mine.shape == others.shape
            assert mine.tobytes() == others.tobytes(), f"differ by up to {np.abs(mine - others).max()}"


BLOCK_MEMORY = 232_448  # bytes of shared memory that a block of an H100 may have
ROOM = device.Room(BLOCK_MEMORY, 132)
MOST_THREADS = 8192  # of blocks that the host machine runs at the same time
GUARD = 1 << 12  # bytes on either side of every array


def room_of(spec: KernelSpec) -> device.Room:
    """Room for a kernel on the host machine, which cannot run as many bricks at the same time as a GPU."""
    return device.Room(BLOCK_MEMORY, 8) if spec.resident and spec.boxed else ROOM


Executor = Callable[[KernelSpec, Steps, str, Scheme], Result]


def on_cpu(spec: KernelSpec, steps: Steps, precision: str, scheme: Scheme) -> Result:
    """The CPU kernel, called."""
    from numba import config, set_num_threads

    T, T_new, *ledger = _guarded(steps, precision)
    # Small grids are done before a second core has woken up.
    set_num_threads(1 if steps.T.size < 10_000 else config.NUMBA_NUM_THREADS)
    for step, sweep in enumerate(steps.sweeps(precision)):
        c = steps.coefficients(step).astype(precision)
        before = T.array.copy()
        T_new.array[...] = np.nan
        sums = [face.array for face in ledger]
        planes = tuple(axis.kernel_factors(precision) for axis in steps.grid.axes)
        CPU_KERNELS[spec.name](T.array, T_new.array, steps.periodic, c, sweep["f"], sweep["g"], sums, scheme, planes)
        np.testing.assert_array_equal(T.array, before, "a kernel must not write its input")
        T, T_new = T_new, T
    for zone in (T, T_new, *ledger):
        zone.assert_guards_untouched()
    return Result(T.array, tuple(face.array for face in ledger))


def _guarded(steps: Steps, precision: str) -> list[Guarded]:
    """T, T_new and the ledger's six arrays, between guard zones."""
    arrays = (steps.T.astype(precision), np.empty(steps.T.shape, precision), *steps.empty_ledger())
    return [guarded(array, GUARD) for array in arrays]


def sweeps_on_cuda(
    spec: KernelSpec,
    steps: Steps,
    precision: str,
    scheme: Scheme,
    room: device.Room | None = None,
    processors: int = 3,
) -> Iterator[tuple[int, int, compilation.Build, list[launch.Launch]]]:
    """The sweeps that the kernel makes of some steps: the first step and the number, the build and its launches.

    A sweep of several steps leaves the rest, and the grids that it does not suit, to a kernel of one. Few processors,
    so that each block has several things to do one after the other.
    """
    done = 0
    for build in fitting.builds(
        spec, precision, scheme, steps.grid, steps.periodic, room or room_of(spec), steps.variant
    ):
        launches = launch.launches(build, steps.grid, steps.periodic, processors)
        count = steps_a_launch(build, launches, len(steps.f))
        while len(steps.f) - done >= count:
            yield done, count, build, launches
            done += count


def steps_a_launch(build: compilation.Build, launches: Sequence[launch.Launch], steps: int) -> int:
    """Steps of a sweep; all ``steps`` for a resident kernel, if the host machine can run its blocks together."""
    together = build.spec.resident and prod(launches[0].blocks) * prod(build.spec.block) <= MOST_THREADS
    return steps if together else build.spec.steps


def of_steps(grid: NDArray[Any], steps: int) -> NDArray[Any]:
    """struct Grid for a launch of a resident kernel that does ``steps`` steps."""
    grid = grid.copy()
    grid["steps"] = steps
    return grid


def grid_on_host(part: launch.Launch) -> NDArray[Any]:
    """struct Grid of a launch for the host machine."""
    return part.grid if part.segments is None else part.with_segments_at(part.segments.ctypes.data)


def load_stages(kernel: HostKernel, build: compilation.Build, sweeps: NDArray[Any]) -> None:
    """Write the coefficients of a sweep's stages to the table of the kernel, if it has one."""
    if build.stage_table:
        stages = np.ascontiguousarray(sweeps["c"][: build.spec.steps])
        ctypes.memmove(kernel.address("stage_table"), stages.ctypes.data, stages.nbytes)


def on_host(spec: KernelSpec, steps: Steps, precision: str, scheme: Scheme) -> Result:
    """The CUDA kernel, compiled by g++ and executed on the host."""
    T, T_new, *ledger = _guarded(steps, precision)
    pointers = [face.array.ctypes.data if face.array.size else 0 for face in ledger]
    planes = structs.planes(steps.grid, precision)
    coefficients = structs.coefficients_struct(steps.c, precision, address(planes))
    sweeps = steps.sweeps(precision)
    for first, count, build, launches in sweeps_on_cuda(spec, steps, precision, scheme):
        kernel = host_kernel(build)
        before = T.array.copy()
        T_new.array[...] = np.nan
        load_stages(kernel, build, sweeps[first:])
        for part in launches:
            kernel.launch(
                part.blocks,
                build.spec.block,
                T.array,
                T_new.array,
                of_steps(grid_on_host(part), count if build.spec.resident else 1),
                coefficients,
                sweeps[first:],
                np.array((pointers,), structs.LEDGER),
                shared_bytes=build.shared_bytes,
            )
        if count == build.spec.steps:
            np.testing.assert_array_equal(T.array, before, "a kernel must not write its input")
        if count == build.spec.steps or count % 2:
            T, T_new = T_new, T
    for zone in (T, T_new, *ledger):
        zone.assert_guards_untouched()
    return Result(T.array, tuple(face.array for face in ledger))


def on_gpu(spec: KernelSpec, steps: Steps, precision: str, scheme: Scheme) -> Result:
    """The CUDA kernel, on the GPU."""
    import cupy

    def guarded_on_gpu(values: NDArray[Any]) -> tuple[Any, Any]:
        memory = cupy.full(values.nbytes + 2 * GUARD, 0xFF, cupy.uint8)
        array = memory[GUARD : GUARD + values.nbytes].view(values.dtype).reshape(values.shape)
        array[...] = cupy.asarray(values)
        return memory, array

    memories, arrays = zip(
        guarded_on_gpu(steps.T.astype(precision)),
        guarded_on_gpu(np.empty(steps.T.shape, precision)),
        *(guarded_on_gpu(sums) for sums in steps.empty_ledger()),
        strict=True,
    )
    T, T_new, *ledger = arrays
    pointers = np.array(([sums.data.ptr if sums.size else 0 for sums in ledger],), structs.LEDGER)
    planes = cupy.asarray(structs.planes(steps.grid, precision))
    coefficients = structs.coefficients_struct(steps.c, precision, address(planes))
    sweeps = steps.sweeps(precision)
    table = cupy.asarray(sweeps.view(np.uint8))
    room = device.choose("cuda").room()
    for first, count, build, launches in sweeps_on_cuda(spec, steps, precision, scheme, room):
        T_new[...] = cupy.nan
        sweep = table.data.ptr + first * sweeps.itemsize
        run = cuda_graphs.Sweeps(launch.compile_kernel(build), launches, coefficients, pointers)
        T, T_new = run.queue(count // build.spec.steps, T, T_new, sweep)
    for memory in memories:
        assert bool((memory[:GUARD] == 0xFF).all()), "written before an array"
        assert bool((memory[-GUARD:] == 0xFF).all()), "written behind an array"
    return Result(cupy.asnumpy(T), tuple(cupy.asnumpy(sums) for sums in ledger))


# What the host machine executes: the first rung in all variants, those that "auto" can choose with each precision and
# each scheme, the others in float32. The rest is slow.
ALL_ON_HOST = [(spec, *variant) for spec in CUDA for variant in VARIANTS]
ON_HOST = ALL_ON_HOST
if not SLOW:
    _others = [row for row in ALL_ON_HOST if row[0] in CUDA[1:5] and row[1:] == ("float32", "seven_term")]
    _choices = covering(row for row in ALL_ON_HOST if row[0] in CUDA[5:])
    ON_HOST = [*ALL_ON_HOST[: len(VARIANTS)], *_others, *_choices]
# Every kernel with everything that can execute it.
EXECUTIONS = [
    *(pytest.param(spec, on_cpu, id=spec.name) for spec in CPU),
    *(pytest.param(spec, on_host, id=f"{spec.name}-host") for spec in CUDA),
    *(pytest.param(spec, on_gpu, id=f"{spec.name}-gpu", marks=pytest.mark.gpu) for spec in CUDA),
]


def host_kernel(build: compilation.Build) -> HostKernel:
    """A kernel for the host machine; the first call compiles all of them at once, on all cores."""
    _compile_all()
    return compile_kernel(*source_of(build))


@cache
def _compile_all() -> None:
    """Sums of seven terms for rows of any length, others for rows of whole vectors; see test_kernels.py."""
    builds = {
        compilation.build(spec, precision, scheme, Grid((nx, 1, 1), (1.0, 1.0, 1.0))): None
        for spec, precision, scheme in ON_HOST
        for nx in (range(1, 5) if scheme == "seven_term" else (4,))
    }
    compile_kernels(source_of(build) for build in builds)


def source_of(build: compilation.Build) -> tuple[Path, Sequence[str]]:
    return compilation.FOLDER / build.source, [option for option in build.options if option.startswith("-D")]
