"""What the V-cycle and conjugate gradients do to arrays, on the CPU or on a GPU.

If several ranks share a level, sums are those of the whole level, equal on all ranks; see rank_sweeps.py.

The numbers of conjugate gradients are an array on the device, so that a GPU does a whole step without waiting:

    index    0     1            2        3         4        5, 6, 7
             r·z   r·z before   p·A·p    largest   lowest   Σ of the links along x, y, z
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.oracle import share_rows
from heatsim.kernels.multigrid.lines import Lines, span_of
from heatsim.kernels.multigrid.operator import Operator, merge
from heatsim.kernels.multigrid.pairs import Factors, Strengths, pairs_of, relative_links, strengths
from heatsim.kernels.reductions.statistics import exact_sum
from heatsim.parallel.slab import Slab
from heatsim.parallel.team import ALONE, Team

SCALARS = 8
RZ, RZ_BEFORE, ENERGY, LARGEST = range(4)


class Scalars(NamedTuple):
    """The numbers of conjugate gradients on the host."""

    rz: float
    rz_before: float
    energy: float
    largest: float
    lowest: float
    links: tuple[float, float, float]

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> "Scalars":
        """Take them from an array of length SCALARS."""
        rz, before, energy, largest, lowest, x, y, z = numbers.tolist()
        return cls(rz, before, energy, largest, lowest, (x, y, z))


class LevelSweeps(Protocol):
    """Work on whole levels. Arrays are the device's, of the level's shape [z, y, x]; ``out`` is never an input."""

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """Write τ·b/diagonal to ``out``, a step of Jacobi from 0; cells without any conductance get 0."""

    def smooth(self, A: Operator, T: Any, b: Any, out: Any, tau: float) -> None:
        """Write T + τ·(b − A·T)/diagonal to ``out``; cells without any conductance get 0."""

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """Write b − A·T to ``out``, calculated in the precision of T."""

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """Write b − A·T, summed over the cells of each coarse cell, to ``out``."""

    def smooth_corrected(
        self, A: Operator, T: Any, correction: Any, factors: Factors, b: Any, out: Any, tau: float
    ) -> None:
        """Smooth T plus the correction of the coarse cells; T may be written to."""

    def remainder(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """Write b − A·T to ``out``, all float32."""

    def join(self, A: Operator, lines: Lines) -> None:
        """Write the rests of lines to ``lines.pivot``, which holds what is across them; see lines.py."""

    def solve_lines(
        self, A: Operator, lines: Lines, b: Any, out: Any, tau: float, *, forth: bool = True, back: bool = True
    ) -> None:
        """Write τ·L⁻¹·b to ``out``, which may be b; L is the part of A within the lines.

        Elimination goes ``forth`` from the begin of the lines, substitution ``back`` from their end.
        """

    def add(self, T: Any, change: Any) -> None:
        """Add a change to T, both float32."""

    def correct(self, A: Operator, T: Any, correction: Any, factors: Factors) -> None:
        """Add the correction of the coarse cells to T; cells without any conductance get 0."""

    def multiply(self, A: Operator, matrix: Any, b: Any, out: Any) -> None:
        """Write matrix·b to ``out``; the matrix is dense, float64, with one row for each cell of the whole level."""

    def coarsen(self, A: Operator, out: Operator, factors: Factors) -> None:
        """Write links and ground of merged cells to ``out``; see operator.py."""

    def merge(self, A: Operator, out: Operator, factors: Factors) -> None:
        """Write the capacity of merged cells to ``out``."""

    def slab_below(self, A: Operator, factors: Factors) -> Slab | None:
        """Return the planes that this rank has of the level below; None if it has all of them."""

    def complete(self, A: Operator) -> None:
        """Set the halo planes of an operator whose own planes have changed."""

    def fill_halo(self, A: Operator, values: Any) -> None:
        """Set the halo planes of an array of the level."""

    def on_host(self, A: Operator) -> NDArray[Any]:
        """Return the links along x, y, z and the ground of the whole level on the host, shape (4, nz, ny, nx)."""

    def mean_links(self, A: Operator) -> tuple[float, float, float]:
        """Return Σ of the links along x, y, z over the number of cells of the whole level."""

    def strengths(self, A: Operator) -> Sequence[Strengths]:
        """Return the strength of each plane of the whole level with the next one, along x, y, z; see pairs.py."""

    def scalars(self) -> Any:
        """Return an array for the numbers of conjugate gradients, on the device."""

    def read(self, scalars: Any) -> Scalars:
        """Return these numbers, once all work that was queued before is done."""

    def repeated(self, work: Callable[[], object]) -> Callable[[], object]:
        """Return a function that does the work, which always uses the same arrays; many calls make it fast."""

    def apply(self, A: Operator, T: Any, out: Any, scalars: Any) -> None:
        """Write A·T to ``out``, and T·A·T, summed in float64, to ``scalars``."""

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, scalars: Any) -> None:
        """Add α·p to x and −α·Ap to r, with α = r·z / p·A·p."""

    def direct(self, p: Any, z: Any, scalars: Any) -> None:
        """Write z + β·p to p, with β = r·z / r·z of the step before."""

    def inner(self, A: Operator, r: Any, z: Any, scalars: Any) -> None:
        """Write r·z, summed in float64, and max |z| to ``scalars``; the last r·z becomes that of the step before."""

    def extremes(self, A: Operator, x: Any) -> tuple[float, float]:
        """Return min x and max x, float64; cells without any conductance are left out."""


class WholeLevels:
    """What :class:`LevelSweeps` does where this rank has all planes of a level."""

    def merge(self, A: Operator, out: Operator, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        out.capacity[...] = merge(A.capacity, factors)

    def slab_below(self, A: Operator, factors: Factors) -> Slab | None:
        """See :class:`LevelSweeps`."""
        return None

    def complete(self, A: Operator) -> None:
        """See :class:`LevelSweeps`: there are no halo planes."""

    def fill_halo(self, A: Operator, values: Any) -> None:
        """See :class:`LevelSweeps`: there are no halo planes."""


class CpuSweeps(WholeLevels):
    """Sweeps by numba, which is imported when the first of these is made: the import takes about half a second.

    Args:
        team: the ranks that share the levels that have a slab; their sums are collective.
    """

    def __init__(self, team: Team = ALONE) -> None:
        from heatsim.kernels.multigrid import cpu_lines, cpu_sweeps

        self._team = team
        self._compiled, self._compiled_lines = cpu_sweeps, cpu_lines
        self._levels: WeakKeyDictionary[Operator, Any] = WeakKeyDictionary()

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
        self._compiled.compile_cycle(A.ground.dtype)
        self._share(A, self._compiled.residual, self._level(A), _run(T), _run(b), _run(out))

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        work = partial(self._compiled.restrict, self._level(A), _run(T), _run(b), _run(out), self._merged(A, factors))
        share_rows(work, _rows(out), A.size)

    def smooth_corrected(
        self, A: Operator, T: Any, correction: Any, factors: Factors, b: Any, out: Any, tau: float
    ) -> None:
        """See :class:`LevelSweeps`."""
        self._prolong(A, T, correction, factors)
        self.smooth(A, T, b, out, tau)

    def remainder(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self._share(A, self._compiled.remainder, self._level(A), _run(T), _run(b), _run(out))

    def join(self, A: Operator, lines: Lines) -> None:
        """See :class:`LevelSweeps`."""
        self._along(A, lines, self._compiled_lines.join)

    def solve_lines(
        self, A: Operator, lines: Lines, b: Any, out: Any, tau: float, *, forth: bool = True, back: bool = True
    ) -> None:
        """See :class:`LevelSweeps`."""
        self._along(A, lines, self._compiled_lines.solve_lines, _run(b), _run(out), out.dtype.type(tau), forth, back)

    def _along(self, A: Operator, lines: Lines, work: Any, *arguments: Any) -> None:
        span = span_of(A, lines.axis)
        work = partial(work, _run(A.links[lines.axis]), _run(lines.pivot), *arguments, span)
        share_rows(work, span.groups, A.size)

    def add(self, T: Any, change: Any) -> None:
        """See :class:`LevelSweeps`."""
        T += change

    def correct(self, A: Operator, T: Any, correction: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._prolong(A, T, correction, factors)
        self._share(A, self._compiled.clear, self._level(A), _run(T))

    def _prolong(self, A: Operator, T: Any, correction: Any, factors: Factors) -> None:
        self._share(A, self._compiled.prolong, self._level(A), _run(T), _run(correction), self._merged(A, factors))

    def multiply(self, A: Operator, matrix: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        _run(out)[...] = matrix @ _run(b)

    def coarsen(self, A: Operator, out: Operator, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._compiled.compile_cycle(A.ground.dtype)
        work = partial(self._compiled.coarsen, self._level(A), self._level(out), self._merged(A, factors))
        share_rows(work, _rows(out.ground), A.size)

    def mean_links(self, A: Operator) -> tuple[float, float, float]:
        """See :class:`LevelSweeps`."""
        # A plane at a time, so that its sum does not depend on the other planes of the array.
        of_planes = (np.array([plane.sum(dtype=np.float64) for plane in link]) for link in A.links)
        x, y, z = (_total(self._of_all(A, sums)) / A.cells for sums in of_planes)
        return x, y, z

    def strengths(self, A: Operator) -> Sequence[Strengths]:
        """See :class:`LevelSweeps`."""
        return strengths(self._of_all(A, relative_links(np, A.links, np.asarray)), A.whole_shape[::-1])

    def scalars(self) -> Any:
        """See :class:`LevelSweeps`."""
        return np.zeros(SCALARS)

    def read(self, scalars: Any) -> Scalars:
        """See :class:`LevelSweeps`."""
        return Scalars.of(scalars)

    def on_host(self, A: Operator) -> NDArray[Any]:
        """See :class:`LevelSweeps`."""
        return np.stack((*A.links, A.ground))

    def repeated(self, work: Callable[[], object]) -> Callable[[], object]:
        """See :class:`LevelSweeps`; the same each time."""
        return work

    def apply(self, A: Operator, T: Any, out: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        sums = np.empty(_rows(T))
        self._share(A, self._compiled.apply, self._level(A), _run(T), _run(out), sums)
        scalars[ENERGY] = _total(self._of_all(A, _of_planes(sums, T)))

    def advance(self, x: Any, p: Any, r: Any, Ap: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = float(scalars[RZ] / scalars[ENERGY])
        share_rows(partial(self._compiled.advance, _run(x), _run(p), _run(r), _run(Ap), alpha), x.size, x.size)

    def direct(self, p: Any, z: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = float(scalars[RZ] / scalars[RZ_BEFORE])
        share_rows(partial(self._compiled.direct, _run(p), _run(z), beta), p.size, p.size)

    def inner(self, A: Operator, r: Any, z: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        sums, largest = np.empty(_rows(r)), np.empty(_rows(r))
        work = partial(self._compiled.inner, _run(r), _run(z), r.shape[2], sums, largest)
        share_rows(work, _rows(r), r.size)
        scalars[RZ_BEFORE] = scalars[RZ]
        found = self._of_all(A, np.stack((_of_planes(sums, r), largest.reshape(r.shape[:2]).max(axis=1)), axis=1))
        scalars[RZ], scalars[LARGEST] = _total(found[:, 0]), found[:, 1].max()

    def extremes(self, A: Operator, x: Any) -> tuple[float, float]:
        """See :class:`LevelSweeps`."""
        lowest, largest = np.empty(_rows(x)), np.empty(_rows(x))
        self._share(A, self._compiled.extremes, self._level(A), _run(x), lowest, largest)
        return float(lowest.min()), float(largest.max())

    def _of_all(self, A: Operator, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers of all planes of a level, from those of the planes of the arrays."""
        if A.slab is None:
            return numbers
        return np.concatenate(self._team.gathered(numbers[A.slab.own]))

    def _level(self, A: Operator) -> Any:
        """The arrays of an operator, in which its numbers change."""
        found = self._levels.get(A)
        if found is None:
            (nz, ny, nx), (x, y, z) = A.shape, A.links
            found = self._compiled.LevelArrays(nz, ny, nx, _run(x), _run(y), _run(z), _run(A.ground))
            self._levels[A] = found
        return found

    def _merged(self, A: Operator, factors: Factors) -> Any:
        """How the planes of a level merge, for compiled functions."""
        x, y, z = (pairs_of(factor, n) for factor, n in zip(factors, A.shape[::-1], strict=True))
        shift, soft = x.widest - 1 if x.soft == inf else -1, min(x.soft, y.soft, z.soft)
        return self._compiled.Merged(x.first, y.first, z.first, x.coarse, y.coarse, z.coarse, shift, soft)

    def _share(self, A: Operator, work: Any, *arguments: Any) -> None:
        share_rows(partial(work, *arguments), _rows(A.ground), A.size)


def _of_planes(sums: NDArray[np.float64], array: Any) -> NDArray[np.float64]:
    """The sum of each plane of an array [z, y, x] from those of its rows."""
    return np.asarray(sums.reshape(array.shape[:2]).sum(axis=1))


def _total(sums: NDArray[np.float64]) -> float:
    """The sum over all planes from those of each, in any order; see :class:`heatsim.grid.PlaneGroups`."""
    return exact_sum(sums.tolist())


def _run(array: Any) -> Any:
    """An array as a run of cells."""
    return array.reshape(-1)


def _rows(array: Any) -> int:
    nz, ny, _ = array.shape
    return int(nz * ny)
