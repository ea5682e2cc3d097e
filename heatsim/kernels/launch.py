"""Compile CUDA kernels with NVRTC, keep them, launch them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.physics.coefficients import SCHEMES, Coefficients, Scheme

FOLDER = Path(__file__).parent

LARGEST_GRID_YZ = 65_535
_LARGEST_PLANE = 2**32  # cells that 07 can count in a plane
_PLANES_AHEAD = 4  # AHEAD of 07
_MULTIPROCESSORS = 132  # of an H100, where nobody says otherwise
_REAL = {"float32": "float", "float64": "double"}

# The structs of stencil.cuh, field by field.
GRID = np.dtype(
    [("cells", np.int32, 3), ("periodic", np.int32), ("first_yz", np.int32, 2), ("planes", np.int32)], align=True
)
LEDGER = np.dtype([("face", np.uint64, 6)], align=True)


def coefficients_dtype(precision: str) -> np.dtype[Any]:
    """The layout of struct Coefficients."""
    return np.dtype([("c", precision, 7)], align=True)


def sweep_dtype(precision: str) -> np.dtype[Any]:
    """The layout of struct Sweep."""
    return np.dtype([("f", precision, 6), ("g", precision, 6), ("step", np.uint32)], align=True)


def coefficients_struct(coefficients: Coefficients, precision: str) -> NDArray[Any]:
    """Coefficients as struct Coefficients, a 0-d array."""
    return np.array((coefficients.c,), dtype=coefficients_dtype(precision))


def source(spec: KernelSpec) -> str:
    """A kernel's whole source: headers put where they are included, so that no cache can miss a change of theirs."""
    return _spliced(spec.source)


def _spliced(name: str) -> str:
    text = (FOLDER / name).read_text(encoding="utf-8")

    def splice(include: re.Match[str]) -> str:
        next_line = text[: include.start()].count("\n") + 2
        return f'#line 1 "{include[1]}"\n{_spliced(include[1])}\n#line {next_line} "{name}"'

    return re.sub(r'#include "(.+)"', splice, text)


@dataclass(frozen=True)
class Build:
    """A kernel for one precision, scheme and kind of grid.

    Attributes:
        spec: which kernel.
        precision, scheme: how it calculates.
        vector: cells in x that a thread owns.
    """

    spec: KernelSpec
    precision: str
    scheme: Scheme
    vector: int = 1

    @property
    def tile(self) -> tuple[int, int, int]:
        """Cells along x, y, z that a block writes; z is 0 where the grid decides."""
        spec = self.spec
        if spec.boxed:
            return spec.tile
        if spec.steps == 1:
            return spec.tile[0] * self.vector, spec.tile[1], spec.tile[2]
        halo_lanes, halo_threads = ceil(spec.steps / self.vector), ceil(spec.steps / spec.rows)
        return (spec.block[0] - 2 * halo_lanes) * self.vector, (spec.block[1] - 2 * halo_threads) * spec.rows, 0

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: two boxes, or of each thread two rows a stage, twice, and six patches."""
        spec = self.spec
        if spec.steps == 1:
            return 0
        if spec.boxed:
            halo = (ceil(spec.steps / self.vector) * self.vector, spec.steps, spec.steps)
            box = prod(n + 2 * extra for n, extra in zip(spec.tile, halo, strict=True))
            return 2 * box * np.dtype(self.precision).itemsize
        rows = 4 * spec.steps + (2 + _PLANES_AHEAD) * spec.rows
        return rows * prod(spec.block) * self.vector * np.dtype(self.precision).itemsize

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options: the macros of stencil.cuh, and no contraction into fma, so that all kernels agree."""
        macros = {
            "REAL": _REAL[self.precision],
            "SCHEME": SCHEMES.index(self.scheme),
            **dict(zip(("TILE_X", "TILE_Y", "TILE_Z"), self.spec.block, strict=True)),
            "VECTOR": self.vector,
            "STEPS": self.spec.steps,
            "ROWS": self.spec.rows,
        }
        if self.spec.boxed:
            macros |= dict(zip(("BOX_X", "BOX_Y", "BOX_Z"), self.spec.tile, strict=True))
        return ("--std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros.items()))


def build(spec: KernelSpec, precision: str, scheme: Scheme, grid: Grid) -> Build:
    """The build of a kernel that suits a grid: the longest vectors that its rows consist of."""
    widest = 16 // np.dtype(precision).itemsize if spec.vectorised else 1
    return Build(spec, precision, scheme, next(width for width in (widest, 2, 1) if grid.cells[0] % width == 0))


@dataclass(frozen=True)
class Launch:
    """One launch of a sweep: the blocks along x, y, z, and struct Grid as a 0-d array."""

    blocks: tuple[int, int, int]
    grid: NDArray[Any]


def launches(
    kernel: Build,
    grid: Grid,
    periodic: tuple[bool, bool, bool],
    multiprocessors: int = _MULTIPROCESSORS,
    planes: int | None = None,
) -> list[Launch]:
    """The launches that together cover a grid: one, unless there are more blocks than one may have along y or z.

    ``planes`` is how many a block of a kernel that marches along z goes through, if not as many as its tile or the
    number of multiprocessors suggests.
    """
    bits = sum(1 << axis for axis, wraps in enumerate(periodic) if wraps)
    nx, ny, nz = grid.cells
    x, y = ceil(nx / kernel.tile[0]), ceil(ny / kernel.tile[1])
    planes = planes or kernel.tile[2] or _planes(nz, x * y, kernel.spec.steps, multiprocessors)
    z = ceil(nz / planes)
    return [
        Launch(
            (x, min(y - first_y, LARGEST_GRID_YZ), min(z - first_z, LARGEST_GRID_YZ)),
            np.array((grid.cells, bits, (first_y * kernel.tile[1], first_z * planes), planes), dtype=GRID),
        )
        for first_z in range(0, z, LARGEST_GRID_YZ)
        for first_y in range(0, y, LARGEST_GRID_YZ)
    ]


def _planes(nz: int, columns: int, steps: int, multiprocessors: int) -> int:
    """Planes that a block marches through, one block a multiprocessor at a time.

    Each chunk costs 2·steps planes more to fill and drain the pipeline, and the last wave of blocks may be a small one:
    the number of chunks for which the waves together take least.
    """

    def cost(chunks: int) -> int:
        return ceil(columns * chunks / multiprocessors) * (ceil(nz / chunks) + 2 * steps)

    return ceil(nz / min(range(1, ceil(nz / (4 * steps)) + 1), key=cost))


@dataclass(frozen=True)
class CudaKernel:
    """A compiled kernel."""

    build: Build
    function: Any

    def __call__(
        self,
        launches: Sequence[Launch],
        T: Any,
        T_new: Any,
        coefficients: NDArray[Any],
        sweep: int,
        ledger: NDArray[Any],
    ) -> None:
        """Queue a sweep: T and T_new are device arrays, ``sweep`` is the device address of its first struct Sweep."""
        for launch in launches:
            arguments = (T, T_new, launch.grid, coefficients, np.uint64(sweep), ledger)
            self.function(launch.blocks, self.build.spec.block, arguments, shared_mem=self.build.shared_bytes)


@cache
def compile_kernel(kernel: Build) -> CudaKernel:
    """Compile for the current GPU; CuPy keeps the binary on disk."""
    import cupy

    module = cupy.RawModule(code=source(kernel.spec), options=kernel.options, backend="nvrtc")
    function = module.get_function("advance")
    if kernel.shared_bytes:
        function.max_dynamic_shared_size_bytes = kernel.shared_bytes
    return CudaKernel(kernel, function)


def builds(spec: KernelSpec, precision: str, scheme: Scheme, grid: Grid, block_memory: int) -> tuple[Build, ...]:
    """What together does any number of steps on a grid, the one that does most at a time first.

    A kernel of several steps a sweep needs, in bytes, the shared memory of its blocks, and unless it is boxed rows of
    whole vectors and columns of whole patches; where a grid or GPU has not got these, single steps do it all, to the
    same bits.
    """
    single = build(SINGLE_STEP if spec.steps > 1 else spec, precision, scheme, grid)
    if spec.steps == 1:
        return (single,)
    nx, ny, _ = grid.cells
    several = build(spec, precision, scheme, grid)
    whole = nx * np.dtype(precision).itemsize % 16 == 0 and ny % spec.rows == 0 and nx * ny < _LARGEST_PLANE
    if not (whole or spec.boxed) or several.shared_bytes > block_memory:
        return (single,)
    return several, single
