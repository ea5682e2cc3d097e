"""Heat, extremes and means of a field, of a region or of the whole body.

One pass over the field gives sums and extremes for each part of the body (:mod:`heatsim.solver.field.cell_parts`). The
numbers here follow from these.
"""

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.statistics import Statistics, exact_sum, exact_sums
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.cell_parts import CellParts
from heatsim.solver.field.extreme_cells import ExtremeCells
from heatsim.solver.field.field import Extremes, Field
from heatsim.solver.field.part_extremes import PartExtremes

Floats = NDArray[np.float64]


class FieldStatistics:
    """Statistics of the current values of a field.

    If materials vary with temperature, the field holds contents in kelvins of the heat capacities in ``materials``.

    If several ranks have the field, all methods are collective.

    Args:
        problem: the problem with the materials.
        field: the field; its sums are formed for ``parts`` from now on.
        cells: the type of each own cell, one byte per cell, on the field's device; empty if there is one type.
        parts: the parts of the cells; None for one part for each cell type.

    Attributes:
        extreme_cells: where the extremes are.
    """

    def __init__(self, problem: HeatProblem, field: Field, cells: Any, parts: CellParts | None = None) -> None:
        self._problem, self._materials = problem, problem.materials
        self._field = field
        self._parts = CellParts.of_types(problem.materials, cells) if parts is None else parts
        field.divide(self._parts.labels, self._parts.division)
        self._capacities = problem.materials.cell_heat_capacity[self._parts.cell_types]
        self._cell_types: list[int] = self._parts.cell_types.tolist()
        self._part_extremes = PartExtremes(problem, field, self._parts)
        self.extreme_cells = ExtremeCells(problem.materials, field, cells, self._parts, self._part_extremes)

    def heat(self, region: str | None = None, *, absolute: bool = False) -> float:
        """Σ ρ·cp·V·(T − T_ref) over all cells or those of a region in J; Σ ρ·cp·V·|T − T_ref| if ``absolute``."""
        totals = self.totals([self._field.reduction().sums])
        return self.heats(totals, region, absolute=absolute)[0]

    def totals(self, sums: Sequence[Floats]) -> Floats:
        """Σ (T − T_ref) and Σ |T − T_ref| in K over the cells of each part at some times, shape (times, parts, 2).

        Args:
            sums: ``sums`` of the field's reduction at each time.
        """
        return exact_sums(np.stack(sums).transpose(0, 2, 3, 1))

    def heats(self, totals: Floats, region: str | None = None, *, absolute: bool = False) -> list[float]:
        """:meth:`heat` at some times, from the result of :meth:`totals`."""
        parts = self._part_extremes.parts_of(region)
        found: list[float] = exact_sums(totals[:, parts, int(absolute)] * self._capacities[parts]).tolist()
        return found

    def weighted_heats(self, totals: Floats, weights: NDArray[np.int64]) -> Floats:
        """Σ weight·ρ·cp·V·(T − T_ref) in J at some times; ``weights``: whole numbers of the cell types, at least 0."""
        parts = np.repeat(np.arange(len(self._cell_types)), weights[self._cell_types])
        return np.asarray(exact_sums(totals[:, parts, 0] * self._capacities[parts]))

    def deviations(self) -> Extremes:
        """The lowest and highest T − T_ref in K; includes void cells if no material varies."""
        if self._materials.varies:
            return self._extremes(self._part_extremes.parts_of(None))
        reduction = self._field.reduction()
        return Extremes(min(reduction.lowest), max(reduction.highest))

    def extremes(self, region: str | None = None) -> Extremes:
        """Lowest and highest temperature in K of the body or a region, without void."""
        found, reference = self._extremes(self._part_extremes.parts_of(region)), self._field.reference
        return Extremes(found.lowest + reference, found.highest + reference)

    def extreme(self, region: str | None, highest: bool) -> float:
        """The highest, or else the lowest temperature in K of a region, or of the whole body, without void."""
        found, parts = self._part_extremes.of_each(), self._part_extremes.parts_of(region)
        values = found.highest if highest else found.lowest
        if len(parts) == 1:
            return values[parts[0]] + self._field.reference
        of_parts = [values[part] for part in parts]
        return (max(of_parts, default=-inf) if highest else min(of_parts, default=inf)) + self._field.reference

    def mean(self, region: str | None = None) -> float:
        """Mean temperature in K over the volume of the body or a region, without void."""
        parts, by_part = self._part_extremes.parts_of(region), self._field.statistics_by_part()
        if self._materials.varies:
            by_part = self._with_degrees()
        total = exact_sum([by_part[part].degrees if self._materials.varies else by_part[part].total for part in parts])
        return total / exact_sum(self._parts.volumes[parts].tolist()) + self._field.reference

    def liquid_fraction(self, region: str | None = None) -> float:
        """The liquid part of the volume of the materials that melt, from 0 to 1; NaN if no cell can melt.

        Latent heat is absorbed evenly from solidus to liquidus: the part is (T − solidus)/(liquidus − solidus) there.
        """
        by_part, palette = self._with_degrees(), dict(self._problem.scenario.palette)
        materials = [self._materials.palette[cell_type.material].name for cell_type in self._materials.types]
        melts = [(material := palette[name]) is not None and material.solidus is not None for name in materials]
        parts = [part for part in self._part_extremes.parts_of(region) if melts[self._cell_types[part]]]
        volume = exact_sum(self._parts.volumes[parts].tolist())
        return exact_sum([by_part[part].liquid for part in parts]) / volume if volume else nan

    def temperatures_of_types(self) -> tuple[list[float], list[float]]:
        """The lowest and the highest temperature in K for each cell type; inf and −inf for void."""
        count, found, reference = len(self._materials.types), self._part_extremes.of_each(), self._field.reference
        if self._cell_types == list(range(count)):
            return [low + reference for low in found.lowest], [high + reference for high in found.highest]
        lowest, highest = [inf] * count, [-inf] * count
        for cell_type, low, high in zip(self._cell_types, found.lowest, found.highest, strict=True):
            lowest[cell_type] = min(lowest[cell_type], low + reference)
            highest[cell_type] = max(highest[cell_type], high + reference)
        return lowest, highest

    def type_of(self, cell: tuple[int, int, int]) -> int:
        """The type of a cell (x, y, z)."""
        return self._materials.type_at(*cell)

    def _extremes(self, parts: Sequence[int]) -> Extremes:
        """The lowest and highest T − T_ref in K of some parts."""
        found = self._part_extremes.of_each()
        if len(parts) == 1:
            return Extremes(found.lowest[parts[0]], found.highest[parts[0]])
        lowest = min([found.lowest[part] for part in parts], default=inf)
        return Extremes(lowest, max([found.highest[part] for part in parts], default=-inf))

    def _with_degrees(self) -> list[Statistics]:
        """Statistics with sums of temperatures and liquid parts; from a second pass unless observers ask for them."""
        if self._parts.division.thermometers is not None:
            return self._field.statistics_by_part()
        field = self._field
        division = self._parts.with_thermometers(self._problem, field.device.xp, field.reference).division
        return field.statistics_by_part(division)
