"""Compile CUDA kernels with NVRTC, keep them, launch them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.kernels.catalog import KernelSpec
from heatsim.physics.coefficients import SCHEMES, Coefficients, Scheme

FOLDER = Path(__file__).parent

LARGEST_GRID_YZ = 65_535
_REAL = {"float32": "float", "float64": "double"}

# The structs of stencil.cuh, field by field.
GRID = np.dtype([("cells", np.int32, 3), ("periodic", np.int32), ("first_yz", np.int32, 2), ("planes", np.int32)], align=True)
LEDGER = np.dtype([("face", np.uint64, 6)], align=True)


def coefficients_dtype(precision: str) -> np.dtype[Any]:
    """struct Coefficients."""
    return np.dtype([("c", precision, 7)], align=True)


def sweep_dtype(precision: str) -> np.dtype[Any]:
    """struct Sweep."""
    return np.dtype([("f", precision, 6), ("g", precision, 6), ("step", np.uint32)], align=True)


def coefficients_struct(coefficients: Coefficients, precision: str) -> NDArray[Any]:
    """struct Coefficients as a 0-d array."""
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


def vector_width(spec: KernelSpec, precision: str, nx: int) -> int:
    """Cells in x that a thread owns: as many as 16 bytes hold if rows of ``nx`` cells consist of such vectors."""
    widest = 16 // np.dtype(precision).itemsize if spec.vectorised else 1
    return next(width for width in (widest, 2, 1) if nx % width == 0)


def options(spec: KernelSpec, precision: str, scheme: Scheme, vector: int = 1) -> tuple[str, ...]:
    """Compiler options: the macros that stencil.cuh names, and no contraction into fma, so that all kernels agree."""
    macros = {
        "REAL": _REAL[precision],
        "SCHEME": SCHEMES.index(scheme),
        **dict(zip(("TILE_X", "TILE_Y", "TILE_Z"), spec.block, strict=True)),
        "VECTOR": vector,
    }
    return ("--std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros.items()))


@dataclass(frozen=True)
class Launch:
    """One launch of a step: the blocks along x, y, z, and struct Grid as a 0-d array."""

    blocks: tuple[int, int, int]
    grid: NDArray[Any]


def launches(spec: KernelSpec, grid: Grid, periodic: tuple[bool, bool, bool], vector: int = 1) -> list[Launch]:
    """The launches that together cover a grid: one, unless there are more blocks than one may have along y or z."""
    bits = sum(1 << axis for axis, wraps in enumerate(periodic) if wraps)
    tile = (spec.tile[0] * vector, *spec.tile[1:])
    x, y, z = (ceil(n / length) for n, length in zip(grid.cells, tile, strict=True))
    return [
        Launch(
            (x, min(y - first_y, LARGEST_GRID_YZ), min(z - first_z, LARGEST_GRID_YZ)),
            np.array((grid.cells, bits, (first_y * tile[1], first_z * tile[2]), tile[2]), dtype=GRID),
        )
        for first_z in range(0, z, LARGEST_GRID_YZ)
        for first_y in range(0, y, LARGEST_GRID_YZ)
    ]


@dataclass(frozen=True)
class CudaKernel:
    """A compiled kernel."""

    spec: KernelSpec
    function: Any

    def __call__(
        self, launches: Sequence[Launch], T: Any, T_new: Any, coefficients: NDArray[Any], sweep: int, ledger: NDArray[Any]
    ) -> None:
        """Queue one step: T and T_new are device arrays, ``sweep`` the device address of a struct Sweep."""
        for launch in launches:
            arguments = (T, T_new, launch.grid, coefficients, np.uint64(sweep), ledger)
            self.function(launch.blocks, self.spec.block, arguments)


@cache
def compile_kernel(spec: KernelSpec, precision: str, scheme: Scheme, vector: int = 1) -> CudaKernel:
    """Compile for the current GPU; CuPy keeps the binary on disk."""
    import cupy

    module = cupy.RawModule(code=source(spec), options=options(spec, precision, scheme, vector), backend="nvrtc")
    return CudaKernel(spec, module.get_function("advance"))
