"""Sweeps over a level on a GPU: the functions of multigrid.cu."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.device import Device
from heatsim.kernels import compilation
from heatsim.kernels.compiled import REAL
from heatsim.kernels.multigrid.operator import Factors, Operator
from heatsim.kernels.multigrid.sweeps import SCALARS, Scalars

SOURCE = Path(__file__).parent / "multigrid.cu"
THREADS = 256  # of a block
BLOCKS = 1024  # of a sum
WARP = 32
_PRECISION = {4: "float32", 8: "float64"}  # by bytes
_FOUND = 3  # numbers that a block leaves, and axes

# Gives a function of the source, for macros.
Compile = Callable[[str, Mapping[str, str | int]], Any]
# Gives a CUDA graph of the launches that some work makes.
Record = Callable[[Callable[[], object]], Any]


def macros(precision: str) -> dict[str, str | int]:
    """What multigrid.cu wants defined, for links of a precision."""
    return {"LINK": REAL[precision], "THREADS": THREADS, "BLOCKS": BLOCKS}


def source() -> str:
    """multigrid.cu with what it includes."""
    return compilation.source(f"{SOURCE.parent.name}/{SOURCE.name}")


def compile_function(name: str, defined: Mapping[str, str | int]) -> Any:
    """A function for the current GPU."""
    return _module(tuple(f"-D{macro}={value}" for macro, value in defined.items())).get_function(name)


@cache
def _module(definitions: tuple[str, ...]) -> Any:
    import cupy

    # Unlike in steps, whose bits are compared, products and sums may be contracted.
    compiler_options = ("--std=c++17", *definitions)
    return cupy.RawModule(code=source(), options=compiler_options, backend="nvrtc")


class CudaSweeps:
    """By the kernels of multigrid.cu; see :class:`heatsim.kernels.multigrid.sweeps.LevelSweeps`.

    Cells are counted in 32 bits: a GPU has no memory for 2³² cells and what a solution needs beside them.
    """

    def __init__(
        self, device: Device, record: Record | None = None, compile_function: Compile = compile_function
    ) -> None:
        """Compile nothing yet.

        Args:
            device: a GPU.
            record: makes CUDA graphs; without it every kernel is launched by itself.
            compile_function: gives a function of multigrid.cu, which is called with blocks, threads and arguments.
        """
        self._compile = cache(lambda name, precision: compile_function(name, macros(precision)))
        self._device, self._record = device, record
        self._parts: Any = device.xp.empty(_FOUND * BLOCKS, dtype=np.float64)

    def scalars(self) -> Any:
        """See :class:`LevelSweeps`."""
        return self._device.xp.zeros(SCALARS, dtype=np.float64)

    def read(self, scalars: Any) -> Scalars:
        """See :class:`LevelSweeps`."""
        return Scalars.of(self.to_host(scalars))

    def to_host(self, array: Any) -> Any:
        """See :class:`LevelSweeps`."""
        return self._device.to_host(array)

    def repeated(self, work: Callable[[], object]) -> Callable[[], object]:
        """See :class:`LevelSweeps`. Launched at first, which loads kernels, and recorded while the GPU works."""
        graph: Any = None
        record = self._record
        if record is None:
            return work

        def do() -> None:
            nonlocal graph
            if graph is None:
                work()
                graph = record(work)
            else:
                graph.launch()

        return do

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("start", A.size, A, b, out, np.float32(tau))

    def smooth(self, A: Operator, T: Any, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("smooth", A.size, A, T, b, out, np.float32(tau))

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("residual", A.size, A, T, b, out)

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("restrict_residual", factors[0] * out.size, A, T, b, out, *map(np.uint32, factors))

    def smooth_corrected(
        self, A: Operator, T: Any, correction: Any, factors: Factors, b: Any, out: Any, tau: float
    ) -> None:
        """See :class:`LevelSweeps`; in one pass."""
        self._launch("smooth_corrected", A.size, A, T, correction, b, out, np.float32(tau), *map(np.uint32, factors))

    def multiply(self, matrix: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("multiply", "float32", WARP * b.size, matrix, b, out, np.uint32(b.size))

    def coarsen(self, A: Operator, out: Operator, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("coarsen", out.size, A, *out.links, out.ground, *map(np.uint32, factors))

    def mean_links(self, A: Operator) -> tuple[float, float, float]:
        """See :class:`LevelSweeps`."""
        scalars = self.scalars()
        self._launch("sum_of_links", len(A.links) * BLOCKS * THREADS, A, self._parts)
        self._call("total_of_links", "float32", len(A.links) * THREADS, self._parts, scalars)
        x, y, z = (total / A.size for total in self.read(scalars).links)
        return x, y, z

    def apply(self, A: Operator, T: Any, out: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("apply", BLOCKS * THREADS, A, T, out, self._parts)
        self._call("total_of_apply", "float32", THREADS, self._parts, scalars)

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("advance", "float32", x.size, x, p, r, Ap, scalars, np.uint32(x.size))

    def direct(self, p: Any, z: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("direct", "float32", p.size, p, z, scalars, np.uint32(p.size))

    def inner(self, r: Any, z: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._call("inner", "float32", BLOCKS * THREADS, r, z, np.uint32(r.size), self._parts)
        self._call("total_of_inner", "float32", THREADS, self._parts, scalars)

    def extremes(self, A: Operator, x: Any) -> tuple[float, float]:
        """See :class:`LevelSweeps`."""
        scalars = self.scalars()
        self._launch("extremes", BLOCKS * THREADS, A, x, self._parts)
        self._call("total_of_extremes", "float32", THREADS, self._parts, scalars)
        found = self.read(scalars)
        return found.lowest, found.largest

    def _launch(self, name: str, threads: int, A: Operator, *arguments: Any) -> None:
        """A function that looks at the operator."""
        level = (*A.links, A.ground, *map(np.uint32, A.shape[::-1]))
        self._call(name, _PRECISION[A.ground.dtype.itemsize], threads, *level, *arguments)

    def _call(self, name: str, precision: str, threads: int, *arguments: Any) -> None:
        self._compile(name, precision)((-(-threads // THREADS),), (THREADS,), arguments)
