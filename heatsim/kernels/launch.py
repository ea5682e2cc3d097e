"""Launch CUDA kernels: the launches that cover a grid, and the kernels, compiled with NVRTC."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.kernels import binaries, fitting, structs, tiling
from heatsim.kernels.compilation import Build, source

LARGEST_GRID_YZ = 65_535
_MULTIPROCESSORS = 132  # of an H100; the default
# Blocks for each multiprocessor below which blocks that defer cells march through fewer planes. On an H200 a body of
# 12,000 melting cells takes 6.2 us a step with one plane a block and 23.6 us with six; from 5 million cells on six win.
_BLOCKS = 16
_SLAB = 25 << 20  # bytes that the blocks of a slab of planes read and write: half of an H100's L2


@dataclass(frozen=True)
class Launch:
    """One launch of a sweep.

    Attributes:
        blocks: along x, y, z.
        grid: struct Grid as a 0-d array, without the address of the segments.
        segments: the segments of each block, of shape (blocks, most per block), or the steps that each block of 09 has
            done; None for other kernels.
    """

    blocks: tuple[int, int, int]
    grid: NDArray[Any]
    segments: NDArray[Any] | None = None
    _uploaded: list[Any] = field(default_factory=list, compare=False, repr=False)

    def with_segments_at(self, address: int) -> NDArray[Any]:
        """Struct Grid with the address of the segments."""
        grid = self.grid.copy()
        grid["segments"] = address
        return grid

    def on_device(self, xp: Any) -> NDArray[Any]:
        """Struct Grid for a device with CuPy's interface, the same array in each call: a launch copies its values.

        The segments are uploaded once and kept with the launch.
        """
        if not self._uploaded:
            segments = None if self.segments is None else xp.asarray(self.segments.view(np.int32))
            self._uploaded.extend((self.with_segments_at(0 if segments is None else segments.data.ptr), segments))
        grid: NDArray[Any] = self._uploaded[0]
        return grid


def launches(
    kernel: Build,
    grid: Grid,
    periodic: tuple[bool, bool, bool],
    multiprocessors: int = _MULTIPROCESSORS,
    planes: int | None = None,
    recorded: bool = False,
    members: int = 1,
    written: tuple[int, int] | None = None,
) -> list[Launch]:
    """The launches that together cover a grid: one if possible.

    There are several if one would exceed the allowed number of blocks along y or z, or if a slab of planes (the planes
    that one layer of blocks marches through) is too large for L2: the plane between two slabs should still be in L2
    when the second slab reads it.

    Args:
        kernel: the build.
        grid: the cells.
        periodic: which axes wrap.
        multiprocessors: multiprocessors of the device.
        planes: planes that a block marches through, for kernels that march along z; None for the depth of its tile, or
            fewer where a kernel that defers cells would have too few blocks.
        recorded: whether a ledger records the heat.
        members: number of grids, for a kernel that steps an ensemble.
        written: the first plane to write and the end, for a kernel with a pipeline; None to write all planes.
    """
    bits = structs.periodic_bits(periodic)
    if kernel.pipeline is not None:
        segments = tiling.segments(grid.cells, periodic, kernel.pipeline, multiprocessors, recorded, members, written)
        blocks, most = segments.shape
        return [Launch((blocks, 1, 1), _grid(kernel, grid, bits, (0, 0), most), segments)]
    if kernel.spec.resident:
        return [_resident(kernel, grid, bits, members)]
    return _tiles(kernel, grid, bits, multiprocessors, planes, members)


def _resident(kernel: Build, grid: Grid, periodic: int, members: int) -> Launch:
    """The launch of a resident kernel, whose blocks hold all cells."""
    x, y, z = ceil(grid.cell_count / kernel.tile[0]), 1, 1
    if kernel.spec.boxed:
        x, y, z = (ceil(n / tile) for n, tile in zip(grid.cells, kernel.tile, strict=True))
    counts = np.zeros((x * y * z * members, structs.COUNT_STRIDE), dtype=np.uint32)
    return Launch((x, y, z * members), _grid(kernel, grid, periodic, (0, 0), 0, z), counts)


def _tiles(
    kernel: Build, grid: Grid, periodic: int, multiprocessors: int, planes: int | None, members: int
) -> list[Launch]:
    """The launches of a kernel whose blocks write one tile each; arguments as for :func:`launches`."""
    nx, ny, nz = grid.cells
    tile_x, tile_y, tile_z = kernel.tile
    x, y = ceil(nx / tile_x), ceil(ny / tile_y)
    if most := kernel.deferred_planes:
        planes = min(planes or max(1, x * y * nz // (_BLOCKS * multiprocessors)), most)
    planes = planes or tile_z
    z = ceil(nz / planes)
    most_y = LARGEST_GRID_YZ
    if kernel.spec.vectorised and not kernel.spec.boxed and z > 1:
        parts = ceil(2 * nx * ny * planes * kernel.itemsize / _SLAB)
        most_y = min(most_y, ceil(y / parts))
    covering = []
    for first_z in range(0, z, LARGEST_GRID_YZ):
        layers = min(z - first_z, LARGEST_GRID_YZ)
        together = LARGEST_GRID_YZ // layers  # members
        for first_y in range(0, y, most_y):
            for member in range(0, members, together):
                begin = (first_y * tile_y, first_z * planes)
                blocks_z = layers * min(members - member, together)
                struct = _grid(kernel, grid, periodic, begin, planes, layers, member)
                covering.append(Launch((x, min(y - first_y, most_y), blocks_z), struct))
    return covering


def _grid(
    kernel: Build,
    grid: Grid,
    periodic: int,
    first_yz: tuple[int, int],
    planes: int,
    layers: int = 0,
    first_member: int = 0,
) -> NDArray[Any]:
    """Struct Grid."""
    values = (grid.cells, periodic, first_yz, planes, 0, 1, kernel.tile, 0)
    if kernel.members:
        return np.array((*values, layers, first_member), dtype=structs.GRID_OF_MEMBERS)
    return np.array(values, dtype=structs.GRID)


@dataclass(frozen=True)
class CudaKernel:
    """A compiled kernel.

    Attributes:
        build: its build.
        function: the compiled function; calling it launches the kernel.
        xp: CuPy, or a replacement.
        stage_table: device address of its table of stages in constant memory; 0 if it has none.
        before: the kernel that each sweep needs before it, and its launches, if there is one.
        after: the kernel that completes each sweep, and its launches, if there is one.
    """

    build: Build
    function: Any
    xp: Any
    stage_table: int
    before: "tuple[CudaKernel, Sequence[Launch]] | None" = None
    after: "tuple[CudaKernel, Sequence[Launch]] | None" = None

    def __call__(
        self,
        launches: Sequence[Launch],
        T: Any,
        T_new: Any,
        coefficients: NDArray[Any],
        sweep: int,
        ledger: NDArray[Any],
        first_stage: int = 0,
        steps: int = 1,
    ) -> None:
        """Queue a sweep, or several steps of a resident kernel.

        Args:
            launches: that cover the grid.
            T: the field, a device array.
            T_new: where the new values go.
            coefficients: struct Coefficients.
            sweep: device address of the struct StepData of its first step.
            ledger: struct Ledger.
            first_stage: place of its first step in the table of stages, for kernels that have one.
            steps: the number of steps of a resident kernel; if it is more than 1, T is overwritten too.
        """
        if self.before is not None:
            kernel, beside = self.before
            kernel(beside, T, T_new, coefficients, sweep, ledger)
        room = shared_bytes(self.build, coefficients)
        others = _opaque(coefficients), np.uint64(sweep), _opaque(ledger)
        for launch in launches:
            grid = launch.on_device(self.xp)
            grid["first_stage"], grid["steps"] = first_stage, steps
            shape = launch.blocks, self.build.spec.block, (T, T_new, _opaque(grid), *others)
            if self.build.spec.resident:
                self.function.kernel(*shape, shared_mem=room, enable_cooperative_groups=True)
            else:
                self.function(*shape, shared_mem=room)
        if self.after is not None:
            kernel, beside = self.after
            kernel(beside, T, T_new, coefficients, sweep, ledger)

    def load_stages(self, sweep: int, count: int) -> None:
        """Queue a copy of the coefficients of ``count`` stages to the table; their data begin at ``sweep``."""
        if self.stage_table:
            dtype, cuda = self.build.sweep_dtype, self.xp.cuda
            assert dtype.fields is not None
            (stage, offset), size = dtype.fields["c"][:2], dtype.itemsize
            where = (self.stage_table, stage.itemsize, sweep + offset, size, stage.itemsize, count)
            stream = cuda.get_current_stream().ptr
            cuda.runtime.memcpy2DAsync(*where, cuda.runtime.memcpyDeviceToDevice, stream)

    def step_members(self, launches: Sequence[Launch], members: Any, done: Any, number: int) -> None:
        """Queue a sweep of an ensemble.

        Args:
            launches: for all members of the table, or for its first ones.
            members: struct Member of each, a device array of bytes.
            done: a device array of one number: the sweeps that the members have done.
            number: sweep of this launch, counted from ``done``.
        """
        for launch in launches:
            arguments = (members, done, np.uint32(number), launch.on_device(self.xp))
            self.function(launch.blocks, self.build.spec.block, arguments, shared_mem=self.build.shared_bytes)

    def do_members(self, launch: Launch, members: Any, first: int, count: int) -> None:
        """Queue the steps of some members of an ensemble, with a resident kernel.

        Args:
            launch: a launch for at least ``count`` members.
            members: struct Member of each member, a device array of bytes.
            first: the number of the first member to step.
            count: the number of members to step.
        """
        grid = launch.on_device(self.xp)
        grid["first_member"] = first
        x, y, _ = launch.blocks
        blocks = (x, y, int(grid["layers"]) * count)
        room = self.build.shared_bytes
        self.function.kernel(
            blocks, self.build.spec.block, (members, _opaque(grid)), shared_mem=room, enable_cooperative_groups=True
        )


def _opaque(struct: NDArray[Any]) -> NDArray[Any]:
    """A struct as bytes without names: CuPy takes 25 us to describe the fields of each struct that it passes on."""
    return struct.view(_opaque_type(struct.itemsize))


@cache
def _opaque_type(size: int) -> np.dtype[Any]:
    return np.dtype((np.void, size))


def shared_bytes(build: Build, coefficients: NDArray[Any]) -> int:
    """Bytes of dynamic shared memory of a block. Resident kernels keep there what steps need besides temperatures."""
    if not (build.spec.resident and build.variant.faces) or build.spec.boxed:
        return build.shared_bytes
    types, numbers = int(coefficients["materials"]["count"]), int(coefficients["materials"]["numbers"])
    return fitting.resident_bytes(build.spec, types, numbers, build.itemsize)


@cache
def compile_kernel(kernel: Build) -> CudaKernel:
    """Compile for the current GPU, unless the binary is on disk."""
    import cupy

    module = binaries.load(source(kernel.source), kernel.options)
    function = module.get_function("advance")
    if kernel.shared_bytes:
        # CuPy gives the same function to all builds with equal sources and options.
        function.max_dynamic_shared_size_bytes = max(kernel.shared_bytes, function.max_dynamic_shared_size_bytes)
    table = module.get_global("stage_table").ptr if kernel.stage_table else 0
    return CudaKernel(kernel, function, cupy, table)
