"""The V-cycle: an approximate inverse of an operator, symmetric and positive, as conjugate gradients need it.

    level 0   smooth ×2 ─ residual ↘                              ↗ add ─ smooth ×2
    level 1                sum ─ smooth ×2 ─ residual ↘  ↗ add ─ smooth ×2
    level 2                                        exact inverse

A smoothing step of Jacobi with the length τ multiplies an error with the eigenvalue λ of D⁻¹·A by 1 − τ·λ. Gershgorin's
theorem bounds λ by 2: every cell's links stand once in its diagonal and once beside it. The two steps have the zeros
of the Chebyshev polynomial of the fourth kind, W₂, on [0, 2] (Lottes 2023, §3), so nothing has to be estimated:

    1/τ_j = 2·sin²(j·π/(2·2 + 1)),   j = 1, 2

The same steps in the opposite order follow the correction, which makes the cycle symmetric. On graded grids some levels
solve lines of cells instead (lines.py), a step for each axis that needs it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.multigrid.lines import LENGTH, Lines, invert_rests, set_across
from heatsim.kernels.multigrid.operator import (
    COARSEST,
    COARSEST_IN_TIME,
    Operator,
    choose_factors,
    empty_like,
)
from heatsim.kernels.multigrid.pairs import Factors, choose_pairs, lines_beside
from heatsim.kernels.multigrid.sweeps import LevelSweeps

STEPS = 2  # of smoothing, before and after the correction
LENGTHS = tuple(0.5 / sin(j * pi / (2 * STEPS + 1)) ** 2 for j in range(1, STEPS + 1))


@dataclass(frozen=True, eq=False)
class Level:
    """A level below the finest.

    Attributes:
        factors: how cells of the level above merge along x, y, z.
        lines: the lines of the level above that its smoothing solves; none: steps of Jacobi.
        operator: A on its cells.
        b: right-hand side.
        solution, spare: vectors.
    """

    factors: Factors
    lines: Sequence[Lines]
    operator: Operator
    b: Any
    solution: Any
    spare: Any


class VCycle:
    """Multigrid for an operator on a device.

    Attributes:
        applications: cells that a cycle updates over those of the finest level: equivalent applications of A.
    """

    def __init__(self, xp: Any, sweeps: LevelSweeps, operator: Operator) -> None:
        """Make the coarse levels.

        Args:
            xp: NumPy, or CuPy.
            sweeps: work on the arrays' device.
            operator: A of the finest level; each body that hangs together has some ground.
        """
        self._xp, self._sweeps, self._operator = xp, sweeps, operator
        self._levels: list[Level] = []
        coarsest, fine = COARSEST if operator.capacity is None else COARSEST_IN_TIME, operator
        sweeps.complete(operator)
        while fine.cells > coarsest:
            factors, axes = self._choose(fine)
            coarse = empty_like(xp, fine, factors, sweeps.slab_below(fine, factors))
            vectors = (xp.empty(coarse.shape, dtype="float32") for _ in range(3))
            lines = [Lines(axis, xp.empty_like(fine.ground)) for axis in axes]
            self._levels.append(Level(factors, lines, coarse, *vectors))
            self._find_pivots(fine, lines)
            self.coarsen(fine, coarse, factors)
            fine = coarse
        smoothed = [operator, *(level.operator for level in self._levels)]
        steps = sum((len(level.lines) or STEPS) * A.cells for A, level in zip(smoothed, self._levels, strict=False))
        self.applications = 2.0 * steps / operator.cells
        self._inverse = xp.empty((fine.cells, fine.cells), dtype="float64")
        self._invert(fine)

    def _choose(self, fine: Operator) -> tuple[Factors, Sequence[int]]:
        """How the cells of a level merge, and the axes along which its smoothing solves lines. Collective."""
        if not fine.graded:
            return choose_factors(fine.whole_shape, self._sweeps.mean_links(fine)), ()
        found = self._sweeps.strengths(fine)
        pairs = choose_pairs([along.mean for along in found])
        # In a step in time the heat capacity keeps errors from reaching far along lines.
        return pairs, lines_beside(found, pairs) if fine.capacity is None else ()

    def refresh(self) -> None:
        """Calculate the coarse levels again after A has changed, in the same arrays and with the same cells merged."""
        fine = self._operator
        self._sweeps.complete(fine)
        for level in self._levels:
            self._find_pivots(fine, level.lines)
            self.coarsen(fine, level.operator, level.factors)
            fine = level.operator
        self._invert(fine)

    def _invert(self, coarsest: Operator) -> None:
        """Make the inverse of the coarsest operator, on the host."""
        *links, ground = self._sweeps.on_host(coarsest)
        self._inverse[...] = self._xp.asarray(_inverse(links, ground))

    def _find_pivots(self, fine: Operator, lines: Sequence[Lines]) -> None:
        for each in lines:
            set_across(self._xp, fine, each)
            self._sweeps.join(fine, each)
            invert_rests(self._xp, fine, each)

    def coarsen(self, operator: Operator, coarse: Operator, factors: Factors) -> None:
        """Write the operator of merged cells to ``coarse``; the capacity adds up, apart from the rest of the ground."""
        if operator.capacity is None:
            self._sweeps.coarsen(operator, coarse, factors)
            return
        surroundings = replace(operator, ground=operator.ground - operator.capacity, capacity=None)
        self._sweeps.coarsen(surroundings, coarse, factors)
        self._sweeps.merge(operator, coarse, factors)
        coarse.ground[...] += coarse.capacity

    @property
    def nbytes(self) -> int:
        """Bytes on the device, those of the finest operator left out."""
        pivots = sum(int(lines.pivot.nbytes) for level in self._levels for lines in level.lines)
        levels = sum(level.operator.nbytes + 3 * int(level.b.nbytes) for level in self._levels)
        return int(self._inverse.nbytes) + pivots + levels

    def solve(self, b: Any, out: Any, spare: Any) -> None:
        """One V-cycle from 0 for A·T = b.

        Args:
            b: float32, of the finest level's shape.
            out: a float32 array like it, for the approximation; what it holds does not matter.
            spare: another one.
        """
        self._solve(0, self._operator, b, out, spare)

    def _solve(self, depth: int, A: Operator, b: Any, out: Any, spare: Any) -> None:
        sweeps = self._sweeps
        if depth == len(self._levels):
            sweeps.multiply(A, self._inverse, b, out)
            return
        level = self._levels[depth]
        if level.lines:
            self._solve_by_lines(depth, A, b, out, spare)
            return
        # Each step writes the other array; there is an even number of them, so the last one writes ``out``.
        T, other = spare, out
        sweeps.start(A, b, T, LENGTHS[0])
        for tau in LENGTHS[1:]:
            sweeps.smooth(A, T, b, other, tau)
            T, other = other, T
        sweeps.restrict(A, T, b, level.b, level.factors)
        self._solve(depth + 1, level.operator, level.b, level.solution, level.spare)
        first, *others = reversed(LENGTHS)
        sweeps.smooth_corrected(A, T, level.solution, level.factors, b, other, first)
        T, other = other, T
        for tau in others:
            sweeps.smooth(A, T, b, other, tau)
            T, other = other, T

    def _solve_by_lines(self, depth: int, A: Operator, b: Any, T: Any, spare: Any) -> None:
        level, sweeps = self._levels[depth], self._sweeps
        first, *others = level.lines
        sweeps.fill_halo(A, b)
        sweeps.solve_lines(A, first, b, T, LENGTH)
        for lines in others:
            self._step(A, lines, T, b, spare)
        sweeps.restrict(A, T, b, level.b, level.factors)
        self._solve(depth + 1, level.operator, level.b, level.solution, level.spare)
        sweeps.correct(A, T, level.solution, level.factors)
        for lines in reversed(level.lines):
            self._step(A, lines, T, b, spare)

    def _step(self, A: Operator, lines: Lines, T: Any, b: Any, spare: Any) -> None:
        self._sweeps.remainder(A, T, b, spare)
        self._sweeps.solve_lines(A, lines, spare, spare, LENGTH)
        self._sweeps.add(T, spare)


def _inverse(links: Sequence[Any], ground: Any) -> Any:
    """The dense inverse of an operator, float64, on the host; rows of cells without any conductance are 0.

    Raises:
        np.linalg.LinAlgError: it has none, because a connected part of the body has no ground.
    """
    places = np.arange(ground.size).reshape(ground.shape)
    between, surroundings = np.zeros((ground.size, ground.size)), ground.astype(np.float64).reshape(-1)
    for axis, link in enumerate(links):
        k = link.astype(np.float64).reshape(-1)
        here, there = places.reshape(-1), np.roll(places, 1, 2 - axis).reshape(-1)
        # No place occurs twice in these rows and columns.
        between[here, there] += k
        between[there, here] += k
    np.fill_diagonal(between, 0.0)
    diagonal = surroundings + between.sum(axis=1)
    conducts = np.flatnonzero(diagonal > 0.0)
    within = np.ix_(conducts, conducts)
    inverse = np.zeros_like(between)
    if surroundings.min() < 0.0:  # sources that rise with the temperature
        inverse[within] = np.linalg.inv((np.diag(diagonal) - between)[within])
    else:
        inverse[within] = _inverse_without_differences(between[within], surroundings[conducts])
    return inverse


def _inverse_without_differences(links: NDArray[np.float64], ground: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of diag(ground + Σ links) − links by elimination, in which only positive numbers are added.

    So the smallest eigenvalue, which the ground alone determines, is as accurate as all others, however weak the ground
    is: W. K. Grassmann, M. I. Taksar, D. P. Heyman, Operations Research 33 (1985) 1107.

    Args:
        links: conductances between cells, symmetric, not negative; the diagonal is not read. They are overwritten.
        ground: conductances to the surroundings, not negative. They are overwritten.
    """
    lower, pivots = np.eye(ground.size), np.empty(ground.size)  # lower: the inverse of the left factor
    for n in range(ground.size):
        row, rest = links[n, n + 1 :], slice(n + 1, None)
        pivots[n] = ground[n] + row.sum()
        if pivots[n] <= 0.0:
            raise np.linalg.LinAlgError("no ground")
        share = row / pivots[n]
        ground[rest] += share * ground[n]
        links[rest, rest] += np.multiply.outer(share, row)
        lower[rest, : n + 1] += np.multiply.outer(share, lower[n, : n + 1])
    return np.asarray((lower.T / pivots) @ lower)
