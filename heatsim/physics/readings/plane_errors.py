"""How much each plane of cells adds to the error of a field, from how the heat flux changes across it.

Between two sides of a cell the flux changes by Δq, so that temperature is not linear: k·d·T″ = Δq. Two sums over each
plane across an axis say what this costs; both fall with the cube of the width d of the plane.

- The squared error of the gradient, weighted with the conductivity, is the error of the energy norm of linear elements
  (Zienkiewicz & Zhu, *Int. J. Numer. Methods Eng.* 24 (1987) 337): Σ V·k·(d·T″)²/12 = Σ A·Δq²·R/6 in W K, R = d/2k.
- The error of a temperature is Σ V·k·d²·T″·G″/12. G is the temperature that a source of 1 W at its place causes. Far
  from surfaces its second derivatives fall with the distance as r⁻ⁿ in n dimensions; that is used everywhere.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.heat_flux import fluxes

Array = NDArray[np.float64]
# The corners of a box (x, y, z) in m with the smallest and with the largest coordinates.
Place = tuple[Sequence[float], Sequence[float]]


def plane_errors(
    problem: HeatProblem, step: int, planes: Callable[[int, int], Array], at_once: int, places: Sequence[Place]
) -> list[Array]:
    """For each axis both sums of each plane across it, shape (2, n).

    Args:
        problem: the problem.
        step: number of steps done.
        planes: a function (first, end) that returns the temperatures in K of some planes across z.
        at_once: the number of planes that are read at a time.
        places: where temperatures are read.
    """
    grid, nz, materials = problem.grid, problem.grid.cells[2], problem.materials
    found = [np.zeros((2, cells)) for cells in grid.cells]
    for first in range(0, nz, at_once):
        some = slice(first, min(first + at_once, nz))
        temperatures, types = planes(some.start, some.stop), materials.types_of(some)
        volumes = np.full(temperatures.shape, grid.mean_volume)
        for axis, of_axis in enumerate(grid.axes):
            volumes *= grid.along(axis, of_axis.volume_factors[some if axis == 2 else slice(None)])
        near = _nearness(grid, some, places)
        conducting: Array | float = 1.0
        if materials.varies:
            conducting = materials.by_enthalpy(EnthalpyTable.conductivity_at, types, temperatures - problem.reference)
        for axis, passed in enumerate(fluxes(problem, step, first, planes, some.stop - first)):
            own, of_axis = some if axis == 2 else slice(None), grid.axes[axis]
            gains, widths = of_axis.gains[own, :, None, None], grid.along(axis, of_axis.widths[own])
            changes = np.moveaxis(passed[1:] * gains[:, 1] - passed[:-1] * gains[:, 0], 0, 2 - axis)
            changes = widths * np.where(np.isfinite(changes), changes, 0.0)  # void passes nothing
            half = np.where(np.isfinite(materials.half[axis]), materials.half[axis], 0.0)[types]
            half = half * grid.along(axis, of_axis.half_factors[own].mean(axis=1)) / conducting
            of_cells = volumes / widths * changes**2 * half / 6.0, volumes * widths * np.abs(changes) * near / 12.0
            others = tuple(other for other in range(3) if other != 2 - axis)
            found[axis][:, own] += [each.sum(axis=others) for each in of_cells]
    return found


def _nearness(grid: Grid, some: slice, places: Sequence[Place]) -> Array:
    """Σ (r + s)⁻ⁿ over places, for the distance r of cells from a place and its size s with that of the cell."""
    several = [axis for axis in range(3) if grid.cells[axis] > 1]
    found = np.zeros((some.stop - some.start, *grid.shape[1:]))
    for low, high in places:
        squares, sizes = np.zeros(found.shape), np.zeros(found.shape)
        for axis in several:
            own = some if axis == 2 else slice(None)
            centres = grid.centres(axis)[own]
            away = np.maximum(np.maximum(low[axis] - centres, centres - high[axis]), 0.0)
            squares += grid.along(axis, away**2)
            sizes += grid.along(axis, grid.axes[axis].widths[own] / 2.0 + (high[axis] - low[axis]) / 2.0)
        found += (np.sqrt(squares) + sizes / max(len(several), 1)) ** -(len(several) + grid.radial)
    return found
