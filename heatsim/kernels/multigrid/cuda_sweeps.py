"""Sweeps over a level on a GPU: the functions of multigrid.cu."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.kernels.multigrid.operator import Factors, Operator
from heatsim.kernels.reductions.compiled import REAL

SOURCE = Path(__file__).parent / "multigrid.cu"
THREADS = 256  # of a block
BLOCKS = 1024  # of a sum

# Gives a function of the source, for macros.
Compile = Callable[[str, Mapping[str, str | int]], Any]


def macros(precision: str) -> dict[str, str | int]:
    """What multigrid.cu wants defined, for links of a precision."""
    return {"LINK": REAL[precision], "THREADS": THREADS, "BLOCKS": BLOCKS}


def compile_function(name: str, defined: Mapping[str, str | int]) -> Any:
    """A function for the current GPU."""
    return _module(tuple(f"-D{macro}={value}" for macro, value in defined.items())).get_function(name)


@cache
def _module(definitions: tuple[str, ...]) -> Any:
    import cupy

    # Unlike in steps, whose bits are compared, products and sums may be contracted.
    compiler_options = ("--std=c++17", *definitions)
    return cupy.RawModule(code=SOURCE.read_text(encoding="utf-8"), options=compiler_options, backend="nvrtc")


class CudaSweeps:
    """By the kernels of multigrid.cu; see :class:`heatsim.kernels.multigrid.sweeps.LevelSweeps`.

    Cells are counted in 32 bits: a GPU has no memory for 2³² cells and what a solution needs beside them.
    """

    def __init__(self, xp: Any, compile_function: Compile = compile_function) -> None:
        """Compile nothing yet.

        Args:
            xp: CuPy.
            compile_function: gives a function of multigrid.cu, which is called with blocks, threads and arguments.
        """
        self._compile = cache(lambda name, precision: compile_function(name, macros(precision)))
        self._sums: Any = xp.empty(BLOCKS, dtype=np.float64)
        self._most: Any = xp.empty(BLOCKS, dtype=np.float32)

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("start", A.size, A, b, out, np.float32(tau))

    def smooth(self, A: Operator, T: Any, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("smooth", A.size, A, T, b, out, np.float32(tau))

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("residual", A.size, A, T, b, out)

    def apply(self, A: Operator, T: Any, out: Any) -> float:
        """See :class:`LevelSweeps`."""
        self._launch("apply", BLOCKS * THREADS, A, T, out, self._sums, self._most)
        return float(_on_host(self._sums).sum())

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._launch("restrict_residual", out.size, A, T, b, out, *map(np.uint32, factors))

    def prolong(self, T: Any, correction: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._call("prolong", "float32", T.size, T, correction, *map(np.uint32, (*T.shape[::-1], *factors)))

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, alpha: float) -> None:
        """See :class:`LevelSweeps`."""
        self._call("advance", "float32", x.size, x, p, r, Ap, np.float64(alpha), np.uint32(x.size))

    def direct(self, p: Any, z: Any, beta: float) -> None:
        """See :class:`LevelSweeps`."""
        self._call("direct", "float32", p.size, p, z, np.float64(beta), np.uint32(p.size))

    def inner(self, r: Any, z: Any) -> tuple[float, float]:
        """See :class:`LevelSweeps`."""
        self._call("inner", "float32", BLOCKS * THREADS, r, z, np.uint32(r.size), self._sums, self._most)
        return float(_on_host(self._sums).sum()), float(_on_host(self._most).max())

    def _launch(self, name: str, threads: int, A: Operator, *arguments: Any) -> None:
        """A function that looks at the operator."""
        level = (*A.links, A.ground, *map(np.uint32, A.shape[::-1]))
        self._call(name, str(A.ground.dtype), threads, *level, *arguments)

    def _call(self, name: str, precision: str, threads: int, *arguments: Any) -> None:
        self._compile(name, precision)((-(-threads // THREADS),), (THREADS,), arguments)


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)
