"""The largest stable time step of a body: one limit, one message, for all bodies.

A step is stable while every cell's own coefficient stays ≥ 0, faces included: then no new extremes appear. So the
limit is 1/rate of the cell that loses heat fastest (heatsim/physics/operator/cell_rates.py).
"""

from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.operator.boundary_faces import areas
from heatsim.physics.operator.cell_rates import CellRates

Array = NDArray[np.float64]

_TOLERANCE = 1.0 + 1e-9  # of comparisons


def _larger(one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
    """The larger one of two rates with their cells; of equal rates that of the first cell."""
    return max(one, other, key=lambda found: (found[0], -found[1]))


@dataclass(frozen=True)
class StabilityLimit:
    """The largest stable time step.

    Attributes:
        dt: in s; infinite if nothing conducts.
        cell: (x, y, z) of a cell whose own coefficient reaches 0 there.
        node: the name of the node whose own coefficient reaches 0 first; None if a cell's does.
    """

    dt: float
    cell: tuple[int, int, int]
    node: str | None = None


@dataclass(frozen=True, eq=False)
class Stability:
    """The limits of a body.

    Attributes:
        materials: the cell types.
        boundary: its conditions.
    """

    materials: CellTypes
    boundary: Boundary

    @cached_property
    def limit(self) -> StabilityLimit:
        """The limit for the largest h of each condition during the run, of cells and nodes."""
        found = self.limit_for(self._films)
        if self.boundary.network is None:
            return found
        slopes = self.boundary.largest_slopes(self.boundary.scenario.time.end)
        rates = self.boundary.network.rates(areas(self.boundary, self.materials), slopes, self.boundary.of_nodes)
        fastest = int(np.argmax(rates))
        if rates[fastest] == 0.0 or rates[fastest] * found.dt <= 1.0:
            return found
        return StabilityLimit(1.0 / float(rates[fastest]), found.cell, self.boundary.network.names[fastest])

    @property
    def setter(self) -> str:
        """The cell that sets the limit, and its material if there are several; or the node."""
        if self.limit.node is not None:
            return f'node "{self.limit.node}"'
        x, y, z = self.limit.cell
        several = len(self.materials.palette) > 1
        return f"cell [{x}, {y}, {z}]" + (
            f', material "{self.materials.substance_at(x, y, z).name}"' if several else ""
        )

    def check(self, dt: float) -> None:
        """Compare a time step in s with the limit.

        Raises:
            ScenarioError: it is longer; says which cell sets the limit.
        """
        if dt > self.limit.dt * _TOLERANCE:
            raise self._error(
                f"{dt!r} s is beyond the stability limit {self.limit.dt:.6g} s (set by {self.setter}); use at most "
                f'that, "auto", or {"a larger heat_capacity" if self.limit.node else "coarser cells"}'
            )

    def limit_for(self, films: Array) -> StabilityLimit:
        """The largest dt for which every cell's own coefficient stays ≥ 0. Collective.

        Args:
            films: the largest h of each condition in W/(m² K).
        """
        found = 0.0, 0
        for cells, rates in self._rates.of_cells(films):
            if len(rates) and rates.max() > 0.0:
                # Of equal cells the first one counts, whatever part of the grid is looked at.
                largest = float(rates.max())
                found = _larger(found, (largest, int(cells[rates == largest].min())))
        rate, worst = reduce(_larger, self.materials.held.gathered(found))
        nx, ny, _ = self.materials.grid.cells
        cell = (worst % nx, worst // nx % ny, worst // (nx * ny))
        return StabilityLimit(1.0 / rate if rate > 0.0 else inf, cell)

    @cached_property
    def _films(self) -> Array:
        """The largest h of each condition during the run in W/(m² K)."""
        return self.boundary.largest_films(self.boundary.scenario.time.end)

    @cached_property
    def _rates(self) -> CellRates:
        return CellRates(self.materials, self.boundary)

    def _error(self, message: str) -> ScenarioError:
        return ScenarioError(self.boundary.scenario.path, [Mistake("time.dt", message)])
