"""The primers: their oracles in NumPy, their CUDA kernels and how these are launched."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import compiled

FOLDER = Path(__file__).parent
RADIUS = 3  # of the moving sum

_THREADS = 256  # of a block, on a line
_BLOCK = (32, 8)  # threads of a block along x and y, on an image
_VECTOR_BYTES = 16  # of the values that a thread owns in L3 and B3
_HALO = 2  # values on either side of the block of T2
_ROWS = 16  # rows that a thread of B3 walks down


@dataclass(frozen=True)
class PrimerKernel:
    """One kernel of a primer.

    Attributes:
        name: in tables.
        source: its file in this folder.
        idea: in a few words.
        vectors: whether a thread owns a vector of 16 bytes along x instead of one value.
        down: rows that it owns.
        halo: values on either side of a block on a line that it reads and does not write.
        launches: how many launches compute the result.
    """

    name: str
    source: str
    idea: str
    vectors: bool = False
    down: int = 1
    halo: int = 0
    launches: int = 1


@dataclass(frozen=True)
class Primer:
    """A small stencil.

    Attributes:
        name: in tables.
        function: the name of its kernels.
        oracle: computes it on the host, in the precision of its argument and in the kernels' order of additions.
        kernels: the simplest first.
        dimensions: 1 for a line, 2 for an image [y, x].
    """

    name: str
    function: str
    oracle: Callable[[NDArray[Any]], NDArray[Any]]
    kernels: tuple[PrimerKernel, ...]
    dimensions: int

    def launcher(
        self, kernel: PrimerKernel, values: Any, result: Any, compiler: Callable[..., Any] | None = None
    ) -> tuple[Any, Callable[[], None]]:
        """Compile a kernel; return its function, and what computes the result once.

        Args:
            kernel: which one.
            values: a device array of ``dimensions`` axes.
            result: where it writes, an array of the same shape.
            compiler: makes a function of a file; None for :func:`heatsim.kernels.compiled.function`.
        """
        nx, *more = reversed(values.shape)
        across = _VECTOR_BYTES // values.itemsize if kernel.vectors else 1
        compiler = compiled.function if compiler is None else compiler
        function = compiler(kernel.source, self.function, self.macros(str(values.dtype), nx), FOLDER)
        if self.dimensions == 1:
            blocks = (ceil(nx / (_THREADS * across - 2 * kernel.halo)),)
            arrays = [values, *(values.copy() for _ in range(kernel.launches - 1)), result]

            def launch() -> None:
                for source, target in pairwise(arrays):
                    function(blocks, (_THREADS,), (source, target, np.uint64(nx)))

            return function, launch
        (ny,), (x, y) = more, _BLOCK
        tiles = ceil(nx / (x * across)), ceil(ny / (y * kernel.down))
        return function, lambda: function(tiles, _BLOCK, (values, result, np.int32(nx), np.int32(ny)))

    def macros(self, precision: str, nx: int) -> dict[str, str | int]:
        """The macros of its files, for arrays with ``nx`` values along x."""
        real = {"REAL": compiled.REAL[precision]}
        if self.dimensions == 1:
            return {**real, "THREADS": _THREADS, "RADIUS": RADIUS, "HALO": _HALO}
        x, y = _BLOCK
        return {
            **real,
            "BLOCK_X": x,
            "BLOCK_Y": y,
            "ROWS": _ROWS,
            "WHOLE_VECTORS": int(nx * np.dtype(precision).itemsize % _VECTOR_BYTES == 0),
        }


def moving_sum(values: NDArray[Any]) -> NDArray[Any]:
    """The sum of the 2·``RADIUS`` + 1 values around each of a 1-d array; the ends are repeated."""
    padded = np.pad(values, RADIUS, mode="edge")
    total = padded[: len(values)].copy()
    for offset in range(1, 2 * RADIUS + 1):
        total += padded[offset : offset + len(values)]
    return total


def conduct(T: NDArray[Any]) -> NDArray[Any]:
    """Two steps of heat conduction along a line that no heat leaves."""
    quarter, two = T.dtype.type(0.25), T.dtype.type(2)
    for _ in range(2):
        padded = np.pad(T, 1, mode="edge")
        T = T + quarter * (padded[:-2] + padded[2:] - two * T)
    return T


def smooth(image: NDArray[Any]) -> NDArray[Any]:
    """The mean of the 3 × 3 pixels around each of an image [y, x]; the edges are repeated."""
    padded = np.pad(image, 1, mode="edge")
    of_rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return np.asarray((of_rows[:-2] + of_rows[1:-1] + of_rows[2:]) / image.dtype.type(9))


PRIMERS = (
    Primer(
        "moving sum, radius 3",
        "moving_sum",
        moving_sum,
        (
            PrimerKernel("L1 naive", "L1_naive.cu", "one thread per value"),
            PrimerKernel("L2 tiled", "L2_tiled.cu", "tile and halo in shared memory"),
            PrimerKernel("L3 vectors", "L3_vectors.cu", "16 bytes a thread, from registers", vectors=True),
        ),
        1,
    ),
    Primer(
        "3 × 3 mean of an image",
        "smooth",
        smooth,
        (
            PrimerKernel("B1 naive", "B1_naive.cu", "one thread per pixel"),
            PrimerKernel("B2 tiled", "B2_tiled.cu", "tile and frame in shared memory"),
            PrimerKernel("B3 marching", "B3_marching.cu", "16 bytes a thread, which walks down", True, _ROWS),
        ),
        2,
    ),
    Primer(
        "two steps along a line",
        "conduct",
        conduct,
        (
            PrimerKernel("T1 one step", "T1_one_step.cu", "one step a launch, two launches", launches=2),
            PrimerKernel("T2 two steps", "T2_two_steps.cu", "two steps a launch, halo of two", halo=_HALO),
        ),
        1,
    ),
)
