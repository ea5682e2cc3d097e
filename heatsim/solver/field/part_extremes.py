"""The lowest and highest temperatures of the parts of a body."""

from dataclasses import dataclass
from math import inf

import numpy as np

from heatsim.kernels.reductions.statistics import FieldReduction
from heatsim.physics.geometry.regions import region_number
from heatsim.physics.matter.enthalpy import Thermometer
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.cell_parts import CellParts
from heatsim.solver.field.field import Field


@dataclass(frozen=True, eq=False)
class Ends:
    """The extremes of each part.

    Attributes:
        reduction: of the buffer, from which they are.
        lowest, highest: T − T_ref in K of each part; inf and −inf for void and parts without a number.
    """

    reduction: FieldReduction
    lowest: list[float]
    highest: list[float]


class PartExtremes:
    """The extremes of the parts of a body, and the parts of its regions.

    Args:
        problem: the problem with the materials.
        field: the field.
        parts: the parts.
    """

    def __init__(self, problem: HeatProblem, field: Field, parts: CellParts) -> None:
        self._problem, self._field, self._parts = problem, field, parts
        void = problem.materials.void
        self._conducts: list[bool] = [cell_type != void for cell_type in parts.cell_types.tolist()]
        self._thermometer = Thermometer(np, problem.materials.enthalpies, lambda cell_types: cell_types)
        self._known: Ends | None = None
        self._regions: dict[str | None, list[int]] = {}

    def of_each(self) -> Ends:
        """The extremes of the current values, stored until the field changes."""
        reduction = self._field.reduction()
        if self._known is None or self._known.reduction is not reduction:
            lowest, highest = reduction.lowest, reduction.highest
            if not all(self._conducts):
                lowest = [low if conducts else inf for low, conducts in zip(lowest, self._conducts, strict=True)]
                highest = [high if conducts else -inf for high, conducts in zip(highest, self._conducts, strict=True)]
            if self._problem.materials.varies:
                lowest, highest = self._temperatures(lowest), self._temperatures(highest)
            self._known = Ends(reduction, lowest, highest)
        return self._known

    def parts_of(self, region: str | None) -> list[int]:
        """The parts of a region, or of the whole body, without void."""
        if region not in self._regions:
            chosen = np.array(self._conducts)
            if region is not None:
                chosen &= self._parts.owners == region_number(region, self._problem.scenario)
            self._regions[region] = np.flatnonzero(chosen).tolist()
        return self._regions[region]

    def _temperatures(self, contents: list[float]) -> list[float]:
        """T − T_ref in K from one content for each part; the same where a content is not finite."""
        values = np.array(contents)
        found: list[float] = np.where(
            np.isfinite(values), self._thermometer(values, self._parts.cell_types), values
        ).tolist()
        return found
