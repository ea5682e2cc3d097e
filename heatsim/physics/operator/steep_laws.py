"""Refuse laws of surfaces whose heat flux rises so fast that the surface would have several temperatures.

The balance q(T_s) = K·(T_s − T) has one solution as long as dq/dT_s < K on every segment of the law's table. K belongs
to the half cell behind the surface, at the smallest conductivity that can occur:

    K = 2k/(d·ratio)        ratio: of the area of the smooth surface to that of the voxel face
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce

import numpy as np

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.surface_laws import STEEPEST
from heatsim.physics.operator.boundary_faces import boundary_faces


@dataclass(frozen=True, order=True)
class HalfCellBehind:
    """A half cell behind a surface.

    Attributes:
        conductance: K in W/(m² K).
        axis: across the surface.
        cell_type: of the cell.
        ratio: of the area of the smooth surface to that of the voxel face.
        factor: of the half cell's resistance, over that of a cell of the mean width.
    """

    conductance: float
    axis: int
    cell_type: int
    ratio: float
    factor: float

    def cause(self, materials: CellTypes) -> str:
        """Where its conductance comes from."""
        axis, material = "xyz"[self.axis], materials.palette[materials.types[self.cell_type].material]
        d = materials.grid.mean_spacing[self.axis] * self.factor
        conductivity = self.conductance * self.ratio * d / 2.0
        cause = f'2k/d with k = {conductivity:.3g} W/(m K) of "{material.name}" and d = {d:.3g} m along {axis}'
        if self.ratio != 1.0:
            cause += f", divided by {self.ratio:.3g}, the ratio of the smooth surface to the voxel face"
        return cause


def refuse_steep_laws(boundary: Boundary, materials: CellTypes, reached: tuple[float, float]) -> None:
    """Check that each law has one balance. Collective.

    Args:
        boundary: the conditions.
        materials: the cell types.
        reached: the lowest and highest temperature in K that surfaces can have.

    Raises:
        ScenarioError: some laws may have several; names slopes, temperatures, conductances and the cells needed.
    """
    behind = least_conductances(boundary, materials, {law.number for law in boundary.laws})
    mistakes = dict[str, Mistake]()
    for number, rise in boundary.rises_of_laws(*reached).items():
        if number in behind and rise.slope >= STEEPEST * behind[number].conductance:
            key, scenario = boundary.keys[number], boundary.scenario
            unit = scenario.output.temperature_unit
            between = f"between {unit.interval_text(rise.low, rise.high)} of the surface"
            mistakes.setdefault(key, Mistake(key, f"{between} {_reason(materials, rise.slope, behind[number])}"))
    if mistakes:
        raise ScenarioError(boundary.scenario.path, list(mistakes.values()))


def least_conductances(
    boundary: Boundary, materials: CellTypes, conditions: Collection[int]
) -> dict[int, HalfCellBehind]:
    """The half cell that conducts least behind each of some conditions, if they have surfaces. Collective."""
    found = dict[int, HalfCellBehind]()
    with np.errstate(divide="ignore"):
        for faces in boundary_faces(boundary, materials):
            for number, some in faces.by_condition():
                if number in conditions and len(some):
                    types, factors = some.types(materials), np.broadcast_to(some.half_factors, len(some))
                    conductances = 1.0 / (some.resistances(materials, materials.most_half) * some.ratios)
                    least = int(conductances.argmin())
                    numbers = float(some.ratios[least]), float(factors[least])
                    here = HalfCellBehind(float(conductances[least]), some.axis, int(types[least]), *numbers)
                    found[number] = min(found.get(number, here), here)
    of_ranks = materials.held.gathered(found)
    return {
        number: reduce(min, (of_rank[number] for of_rank in of_ranks if number in of_rank))
        for number in sorted(set().union(*of_ranks))
    }


def _reason(materials: CellTypes, slope: float, behind: HalfCellBehind) -> str:
    axis = "xyz"[behind.axis]
    finer = STEEPEST * behind.conductance / slope * materials.grid.mean_spacing[behind.axis] * behind.factor
    return (
        f"the heat flux into the body rises by {slope:.4g} W/(m² K), faster than half a cell can conduct it away: "
        f"{behind.conductance:.4g} W/(m² K) ({behind.cause(materials)}); so "
        f"the surface would have several temperatures. Use cells below {finer:.2g} m along {axis}, or a law that "
        "changes over a wider range of temperatures. If surfaces do not "
        'reach these temperatures, hold the law constant there, for example with "min(T, 600)" instead of T'
    )
