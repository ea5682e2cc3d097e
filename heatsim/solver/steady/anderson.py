"""Anderson's acceleration of an iteration x ← x + f(x): it learns from its last steps what f leaves out.

    x ← x + f − Σ c_i·(Δx_i + Δf_i),      c: minimises |f − Σ c_i·Δf_i|,      Δ: differences of successive steps

For linear equations that is GMRES, so an iteration may converge that diverges without it. Source: Walker & Ni, *SIAM
J. Numer. Anal.* 49 (2011) 1715.
"""

from collections import deque
from typing import Any

import numpy as np

from heatsim.physics.operator.cell_sums import CellSums

# Number of differences that are kept. Of about 25 random bodies some failed with 5, and no fewer with 12 than with 8.
KEPT = 8
# Differences that depend on each other to this part are combined with the smallest factors.
_DEPENDENT = 1e-10


class Acceleration:
    """The last steps of an iteration, on a device; differences are kept in float32.

    Args:
        sums: gives sums over the cells.
    """

    def __init__(self, sums: CellSums) -> None:
        self._sums = sums
        self._before: tuple[Any, Any] | None = None
        self._differences: deque[tuple[Any, Any]] = deque(maxlen=KEPT)

    def change(self, x: Any, f: Any, weight: Any) -> Any:
        """The change of x to make in the place of f. Collective.

        Args:
            x: where the iteration is; the array is kept.
            f: the change that the iteration would make there; the array is kept.
            weight: of each square in the norm |f|.
        """
        if self._before is not None:
            last_x, last_f = self._before
            self._differences.append(((x - last_x).astype("float32"), (f - last_f).astype("float32")))
        self._before = x, f
        change = f.copy()
        for factor, (dx, df) in zip(self._factors(f, weight), self._differences, strict=True):
            change -= factor * dx
            change -= factor * df
        return change

    def _factors(self, f: Any, weight: Any) -> list[float]:
        """c, by the normal equations in float64."""
        changes = [df for _, df in self._differences]
        if not changes:
            return []
        numbers = iter(
            self._sums.of_arrays(
                weighted * other
                for number, weighted in enumerate(weight * df for df in changes)
                for other in (f, *changes[: number + 1])
            )
        )
        matrix, right = np.zeros((len(changes), len(changes))), np.zeros(len(changes))
        for row in range(len(changes)):
            right[row] = next(numbers)
            for column in range(row + 1):
                matrix[row, column] = matrix[column, row] = next(numbers)
        lengths = np.sqrt(matrix.diagonal())
        lengths[lengths == 0.0] = 1.0
        scaled = matrix / np.outer(lengths, lengths)
        if not np.isfinite(scaled).all():
            return [0.0] * len(changes)
        factors, *_ = np.linalg.lstsq(scaled, right / lengths, rcond=_DEPENDENT)
        found: list[float] = (factors / lengths).tolist()
        return found
