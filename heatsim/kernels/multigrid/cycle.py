"""The V-cycle: an approximate inverse of an operator, symmetric and positive, as conjugate gradients need it.

    level 0   smooth ×2 ─ residual ↘                              ↗ add ─ smooth ×2
    level 1                sum ─ smooth ×2 ─ residual ↘  ↗ add ─ smooth ×2
    level 2                                        exact inverse

A smoothing step of Jacobi with the length τ multiplies an error with the eigenvalue λ of D⁻¹·A by 1 − τ·λ. Gershgorin's
theorem bounds λ by 2: every cell's links stand once in its diagonal and once beside it. The two steps have the zeros
of the Chebyshev polynomial of the fourth kind, W₂, on [0, 2] (Lottes 2023, §3), so nothing has to be estimated:

    1/τ_j = 2·sin²(j·π/(2·2 + 1)),   j = 1, 2

The same steps in the opposite order follow the correction, which makes the cycle symmetric.
"""

from dataclasses import dataclass
from math import pi, sin
from typing import Any

import numpy as np

from heatsim.kernels.multigrid.operator import COARSEST, Factors, Operator, choose_factors, coarsen
from heatsim.kernels.multigrid.sweeps import LevelSweeps

STEPS = 2  # of smoothing, before and after the correction
LENGTHS = tuple(0.5 / sin(j * pi / (2 * STEPS + 1)) ** 2 for j in range(1, STEPS + 1))


@dataclass(frozen=True, eq=False)
class Level:
    """A level between the finest and the coarsest, or the finest.

    Attributes:
        operator: A on its cells.
        factors: how many of them merge along x, y, z.
        b: right-hand side of the next level.
        solution, spare: of the next level.
    """

    operator: Operator
    factors: Factors
    b: Any
    solution: Any
    spare: Any


class VCycle:
    """Multigrid for an operator on a device.

    Attributes:
        work: cells updated by all cycles so far, over those of the finest level: equivalent applications of A.
        cycles: how many were done.
    """

    def __init__(self, xp: Any, sweeps: LevelSweeps, operator: Operator) -> None:
        """Make the coarse levels.

        Args:
            xp: NumPy, or CuPy.
            sweeps: work on the arrays' device.
            operator: A of the finest level; each body that hangs together has some ground.
        """
        self.work, self.cycles = 0.0, 0
        self._xp, self._sweeps, self._cells = xp, sweeps, operator.size
        self._levels: list[Level] = []
        while operator.size > COARSEST:
            factors = choose_factors(operator)
            coarse = coarsen(xp, operator, factors)
            arrays = [xp.empty(coarse.shape, dtype="float32") for _ in range(3)]
            self._levels.append(Level(operator, factors, *arrays))
            operator = coarse
        self._inverse = xp.asarray(_inverse(operator))

    @property
    def nbytes(self) -> int:
        """Bytes on the device, those of the finest operator left out."""
        arrays = sum(int(level.b.nbytes) * 3 for level in self._levels)
        return arrays + sum(level.operator.nbytes for level in self._levels[1:]) + int(self._inverse.nbytes)

    def solve(self, b: Any, solution: Any, spare: Any) -> tuple[Any, Any]:
        """One V-cycle from 0 for A·T = b.

        Args:
            b: float32, of the finest level's shape.
            solution: a float32 array like it; what it holds does not matter.
            spare: another one.

        Returns:
            The two arrays: the one that holds the approximation, and the other.
        """
        self.cycles += 1
        return self._solve(0, b, solution, spare)

    def _solve(self, depth: int, b: Any, T: Any, spare: Any) -> tuple[Any, Any]:
        if depth == len(self._levels):
            # As a sum: on a GPU a product would need a library of its own.
            T.reshape(-1)[...] = (self._inverse * b.reshape(-1)).sum(axis=1)
            return T, spare
        level, sweeps = self._levels[depth], self._sweeps
        A = level.operator
        sweeps.start(A, b, T, LENGTHS[0])
        for tau in LENGTHS[1:]:
            sweeps.smooth(A, T, b, spare, tau)
            T, spare = spare, T
        sweeps.restrict(A, T, b, level.b, level.factors)
        correction, _ = self._solve(depth + 1, level.b, level.solution, level.spare)
        sweeps.prolong(T, correction, level.factors)
        for tau in reversed(LENGTHS):
            sweeps.smooth(A, T, b, spare, tau)
            T, spare = spare, T
        self.work += 2.0 * STEPS * A.size / self._cells
        return T, spare


def _inverse(operator: Operator) -> Any:
    """The dense inverse of an operator, float32, on the host; rows of cells without any conductance are 0."""
    links = [_on_host(link).astype(np.float64) for link in operator.links]
    places = np.arange(operator.size).reshape(operator.shape)
    matrix = np.diag(_on_host(operator.ground).astype(np.float64).reshape(-1))
    for axis, link in enumerate(links):
        here, there, k = places.reshape(-1), np.roll(places, 1, 2 - axis).reshape(-1), link.reshape(-1)
        for row, column, sign in ((here, here, 1.0), (there, there, 1.0), (here, there, -1.0), (there, here, -1.0)):
            np.add.at(matrix, (row, column), sign * k)
    conducts = matrix.diagonal() > 0.0
    inverse = np.zeros_like(matrix)
    inverse[np.ix_(conducts, conducts)] = np.linalg.inv(matrix[np.ix_(conducts, conducts)])
    return inverse.astype(np.float32)


def _on_host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()
