"""What the V-cycle and conjugate gradients do to arrays, on the CPU or on a GPU."""

from functools import partial
from typing import Any, Protocol

import numpy as np

from heatsim.kernels.cpu.oracle import share_rows
from heatsim.kernels.multigrid.operator import Factors, Operator


class LevelSweeps(Protocol):
    """Work on whole levels. Arrays are the device's, of the level's shape [z, y, x]; ``out`` is never an input."""

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """Write τ·b/diagonal to ``out``, a step of Jacobi from 0; cells without any conductance get 0."""

    def smooth(self, A: Operator, T: Any, b: Any, out: Any, tau: float) -> None:
        """Write T + τ·(b − A·T)/diagonal to ``out``; cells without any conductance get 0."""

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """Write b − A·T to ``out``, calculated in the precision of T."""

    def apply(self, A: Operator, T: Any, out: Any) -> float:
        """Write A·T to ``out``; returns T·A·T, summed in float64."""

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """Write b − A·T, summed over the cells of each coarse cell, to ``out``."""

    def prolong(self, T: Any, correction: Any, factors: Factors) -> None:
        """Add to T the correction of the coarse cell."""

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, alpha: float) -> None:
        """Add α·p to x and −α·Ap to r."""

    def direct(self, p: Any, z: Any, beta: float) -> None:
        """Write z + β·p to p."""

    def inner(self, r: Any, z: Any) -> tuple[float, float]:
        """Return Σ r·z, summed in float64, and max |z|."""


class CpuSweeps:
    """By numba; whose import takes half a second, so it waits until the first of these is made."""

    def __init__(self) -> None:
        from heatsim.kernels.multigrid import cpu_sweeps

        self._compiled = cpu_sweeps

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        number = out.dtype.type(tau)
        self._share(A, self._compiled.start, self._level(A), _run(b), _run(out), number)

    def smooth(self, A: Operator, T: Any, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        number = out.dtype.type(tau)
        self._share(A, self._compiled.smooth, self._level(A), _run(T), _run(b), _run(out), number)

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._share(A, self._compiled.residual, self._level(A), _run(T), _run(b), _run(out))

    def apply(self, A: Operator, T: Any, out: Any) -> float:
        """See :class:`LevelSweeps`."""
        sums = np.empty(_rows(T))
        self._share(A, self._compiled.apply, self._level(A), _run(T), _run(out), sums)
        return float(sums.sum())

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        work = partial(self._compiled.restrict, self._level(A), _run(T), _run(b), _run(out), *factors)
        share_rows(work, _rows(out), A.size)

    def prolong(self, T: Any, correction: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        # Links are not looked at: any array stands for them.
        level = self._level_of(T.shape, (T, T, T), T)
        work = partial(self._compiled.prolong, level, _run(T), _run(correction), *factors)
        share_rows(work, _rows(T), T.size)

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, alpha: float) -> None:
        """See :class:`LevelSweeps`."""
        share_rows(partial(self._compiled.advance, _run(x), _run(p), _run(r), _run(Ap), alpha), x.size, x.size)

    def direct(self, p: Any, z: Any, beta: float) -> None:
        """See :class:`LevelSweeps`."""
        share_rows(partial(self._compiled.direct, _run(p), _run(z), beta), p.size, p.size)

    def inner(self, r: Any, z: Any) -> tuple[float, float]:
        """See :class:`LevelSweeps`."""
        sums, largest = np.empty(_rows(r)), np.empty(_rows(r))
        work = partial(self._compiled.inner, _run(r), _run(z), r.shape[2], sums, largest)
        share_rows(work, _rows(r), r.size)
        return float(sums.sum()), float(largest.max())

    def _level(self, A: Operator) -> Any:
        return self._level_of(A.shape, A.links, A.ground)

    def _level_of(self, shape: tuple[int, int, int], links: tuple[Any, Any, Any], ground: Any) -> Any:
        (nz, ny, nx), (x, y, z) = shape, links
        return self._compiled.LevelArrays(nz, ny, nx, _run(x), _run(y), _run(z), _run(ground))

    def _share(self, A: Operator, work: Any, *arguments: Any) -> None:
        nz, ny, _ = A.shape
        share_rows(partial(work, *arguments), nz * ny, A.size)


def _run(array: Any) -> Any:
    """An array as a run of cells."""
    return array.reshape(-1)


def _rows(array: Any) -> int:
    nz, ny, _ = array.shape
    return int(nz * ny)
