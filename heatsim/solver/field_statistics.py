"""Heat, extremes and means of a field, of a region or of the whole body.

One pass over the field gives sums and extremes for each part of the body (:mod:`heatsim.solver.cell_parts`). The
numbers here follow from these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.find import MOST_PARTS, ExtremeOf, Labelled, Search
from heatsim.kernels.reductions.statistics import FieldReduction, Statistics, exact_sum, exact_sums
from heatsim.physics.cell_types import CELL_TYPE
from heatsim.physics.enthalpy import Thermometer
from heatsim.physics.problem import HeatProblem
from heatsim.physics.regions import region_number
from heatsim.solver.cell_parts import CellParts
from heatsim.solver.field import Extremes, Field

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Found:
    """What is known of the current values of a field.

    Attributes:
        reduction: of the buffer.
        lowest, highest: T − T_ref in K of each part; inf and −inf for void and parts without a number.
    """

    reduction: FieldReduction
    lowest: list[float]
    highest: list[float]


class Extreme(NamedTuple):
    """An extreme whose cell is to be found: of a cell type, of a region or of the whole body.

    Attributes:
        cell_type: the cell type; None for a region or the whole body.
        region: the region; None for the whole body.
        highest: whether it is the highest temperature; else it is the lowest.
    """

    cell_type: int | None
    region: str | None
    highest: bool


class FieldStatistics:
    """Statistics of the current values of a field.

    If materials vary with temperature, the field holds contents in kelvins of the heat capacities in ``materials``.

    If several ranks have the field, all methods are collective.

    Args:
        problem: the problem with the materials.
        field: the field; its sums are formed for ``parts`` from now on.
        cells: the type of each own cell, one byte per cell, on the field's device; empty if there is one type.
        parts: the parts of the cells; None for one part for each cell type.
    """

    def __init__(self, problem: HeatProblem, field: Field, cells: Any, parts: CellParts | None = None) -> None:
        self._problem, self._materials = problem, problem.materials
        self._field, self._cells = field, cells
        self._parts = CellParts.of_types(problem.materials, cells) if parts is None else parts
        field.divide(self._parts.labels, self._parts.division)
        self._capacities = problem.materials.cell_heat_capacity[self._parts.cell_types]
        void = problem.materials.void
        self._cell_types: list[int] = self._parts.cell_types.tolist()
        self._conducts = [cell_type != void for cell_type in self._cell_types]
        self._thermometer = Thermometer(np, problem.materials.enthalpies, lambda cell_types: cell_types)
        labels = self._parts.labels
        self._has_places = labels is None or labels.dtype == np.uint8
        self._known: _Found | None = None
        self._regions: dict[str | None, list[int]] = {}
        self._places_of: FieldReduction | None = None
        self._places: dict[Extreme, int] = {}
        self._asked: list[Extreme] = []
        self._expected: tuple[Extreme, ...] = ()
        self._extremes_of: dict[Extreme, ExtremeOf] = {}

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
        parts = self._of_region(region)
        found: list[float] = exact_sums(totals[:, parts, int(absolute)] * self._capacities[parts]).tolist()
        return found

    def deviations(self) -> Extremes:
        """The lowest and highest T − T_ref in K; includes void cells if no material varies."""
        if self._materials.varies:
            return self._extremes(self._of_region(None))
        reduction = self._field.reduction()
        return Extremes(min(reduction.lowest), max(reduction.highest))

    def extremes(self, region: str | None = None) -> Extremes:
        """Lowest and highest temperature in K of the body or a region, without void."""
        found, reference = self._extremes(self._of_region(region)), self._field.reference
        return Extremes(found.lowest + reference, found.highest + reference)

    def extreme(self, region: str | None, highest: bool) -> float:
        """The highest, or else the lowest temperature in K of a region, or of the whole body, without void."""
        found, parts = self._found(), self._of_region(region)
        values = found.highest if highest else found.lowest
        if len(parts) == 1:
            return values[parts[0]] + self._field.reference
        of_parts = [values[part] for part in parts]
        return (max(of_parts, default=-inf) if highest else min(of_parts, default=inf)) + self._field.reference

    def mean(self, region: str | None = None) -> float:
        """Mean temperature in K over the volume of the body or a region, without void."""
        parts, by_part = self._of_region(region), self._field.statistics_by_part()
        if self._materials.varies:
            by_part = self._with_degrees()
        total = exact_sum([by_part[part].degrees if self._materials.varies else by_part[part].total for part in parts])
        return total / int(self._parts.counts[parts].sum()) + self._field.reference

    def liquid_fraction(self, region: str | None = None) -> float:
        """The liquid part of the volume of the materials that melt, from 0 to 1; NaN if no cell can melt.

        Latent heat is absorbed evenly from solidus to liquidus: the part is (T − solidus)/(liquidus − solidus) there.
        """
        by_part, palette = self._with_degrees(), dict(self._problem.scenario.palette)
        materials = [self._materials.palette[cell_type.material].name for cell_type in self._materials.types]
        melts = [(material := palette[name]) is not None and material.solidus is not None for name in materials]
        parts = [part for part in self._of_region(region) if melts[self._cell_types[part]]]
        count = int(self._parts.counts[parts].sum())
        return exact_sum([by_part[part].liquid for part in parts]) / count if count else nan

    def temperatures_of_types(self) -> tuple[list[float], list[float]]:
        """The lowest and the highest temperature in K for each cell type; inf and −inf for void."""
        count, found, reference = len(self._materials.types), self._found(), self._field.reference
        if self._cell_types == list(range(count)):
            return [low + reference for low in found.lowest], [high + reference for high in found.highest]
        lowest, highest = [inf] * count, [-inf] * count
        for cell_type, low, high in zip(self._cell_types, found.lowest, found.highest, strict=True):
            lowest[cell_type] = min(lowest[cell_type], low + reference)
            highest[cell_type] = max(highest[cell_type], high + reference)
        return lowest, highest

    def first_cell(self, cell_type: int, highest: bool) -> tuple[int, int, int]:
        """The first cell (x, y, z) of a type with the highest, or else the lowest value in the buffer."""
        return self._place(self._first(Extreme(cell_type, None, highest)))

    def first_cell_of(self, region: str | None, highest: bool) -> tuple[int, int, int] | None:
        """The first cell (x, y, z) with the highest, or the lowest temperature of a region or of the whole body.

        None where more than 256 parts of the body are watched: their numbers do not fit a byte.
        """
        if not self._has_places:
            return None
        return self._place(self._first(Extreme(None, region, highest)))

    def type_of(self, cell: tuple[int, int, int]) -> int:
        """The type of a cell (x, y, z)."""
        return self._materials.type_at(*cell)

    def _place(self, number: int) -> tuple[int, int, int]:
        """The cell (x, y, z) with an index in the flattened whole field."""
        nx, ny, _ = self._field.grid.cells
        return number % nx, number // nx % ny, number // (nx * ny)

    def _found(self) -> _Found:
        """What follows from the field's statistics, stored until the field changes."""
        reduction = self._field.reduction()
        if self._known is None or self._known.reduction is not reduction:
            lowest, highest = reduction.lowest, reduction.highest
            if not all(self._conducts):
                lowest = [low if conducts else inf for low, conducts in zip(lowest, self._conducts, strict=True)]
                highest = [high if conducts else -inf for high, conducts in zip(highest, self._conducts, strict=True)]
            if self._materials.varies:
                lowest, highest = self._temperatures(lowest), self._temperatures(highest)
            self._known = _Found(reduction, lowest, highest)
        return self._known

    def _temperatures(self, contents: list[float]) -> list[float]:
        """T − T_ref in K from one content for each part; the same where a content is not finite."""
        values = np.array(contents)
        found: list[float] = np.where(
            np.isfinite(values), self._thermometer(values, self._parts.cell_types), values
        ).tolist()
        return found

    def _of_region(self, region: str | None) -> list[int]:
        """The parts of a region, or of the whole body, without void."""
        if region not in self._regions:
            chosen = np.array(self._conducts)
            if region is not None:
                chosen &= self._parts.owners == region_number(region, self._problem.scenario)
            self._regions[region] = np.flatnonzero(chosen).tolist()
        return self._regions[region]

    def _extremes(self, parts: Sequence[int]) -> Extremes:
        """The lowest and highest T − T_ref in K of some parts."""
        found = self._found()
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

    def expected(self) -> tuple[Extreme, ...]:
        """The extremes whose cells a GPU searches together with the sums of the next row.

        A record broken in one row is often broken in the next row too. So these are the extremes of the latest row with
        a search.
        """
        if not self._asked or tuple(self._asked) == self._expected:
            return self._expected
        return tuple(dict.fromkeys(filter(self.can_search, self._asked)))

    def search_for(self, extreme: Extreme, values: Any, found: Any) -> Search:
        """The search on a GPU for the cell of an extreme, whose value only the device has yet.

        Args:
            extreme: one for which :meth:`can_search` holds.
            values: the values of the own cells, a device array.
            found: the device array of STATISTICS of the field's sections and parts.
        """
        labels, among = self._parts.labels, self._labelled(extreme)
        if extreme.cell_type is None and labels is not None:
            among = Labelled(labels, self._parts.division.mask & 0xFF, None)
        return Search(values, self._extreme_of(extreme), among, found, self._parts.division.parts)

    def _extreme_of(self, extreme: Extreme) -> ExtremeOf:
        """The parts of the body to which an extreme belongs."""
        if extreme not in self._extremes_of:
            parts = self._of_region(extreme.region)
            if extreme.cell_type is not None:
                parts = np.flatnonzero(self._parts.cell_types == extreme.cell_type).tolist()
            self._extremes_of[extreme] = ExtremeOf(tuple(parts), extreme.highest)
        return self._extremes_of[extreme]

    def store(self, cells: Mapping[Extreme, int]) -> None:
        """Store the cells of extremes of the current values, as indices in the flattened field."""
        self._begin_row(self._field.reduction())
        self._places |= cells

    def can_search(self, extreme: Extreme) -> bool:
        """Whether a GPU can find the cell of an extreme without the host."""
        # In a region whose materials vary, the cell with the highest temperature need not have the highest enthalpy.
        by_content = extreme.cell_type is not None or not self._materials.varies
        return by_content and self._field.slab.alone and self._parts.division.parts <= MOST_PARTS

    def _begin_row(self, reduction: FieldReduction) -> None:
        if self._places_of is not reduction:
            self._expected = self.expected()
            self._places_of, self._places, self._asked = reduction, {}, []

    def _first(self, extreme: Extreme) -> int:
        """The index, in the flattened whole field, of the first cell with an extreme. Collective."""
        self._begin_row(self._field.reduction())
        if extreme not in self._places:
            (self._places[extreme],) = self._field.first_with(self._search(extreme))
        self._asked.append(extreme)
        return self._places[extreme]

    def _search(self, extreme: Extreme) -> tuple[float, Labelled | None]:
        """The value of an extreme in the buffer, and the cells to search."""
        found, highest = self._found(), extreme.highest
        ends = found.reduction.lowest, found.reduction.highest
        if extreme.cell_type is not None:
            own = np.flatnonzero(self._parts.cell_types == extreme.cell_type)
            value = (max if highest else min)(ends[highest][part] for part in own)
            return value, self._labelled(extreme)
        parts, labels = self._of_region(extreme.region), self._parts.labels
        part = max(parts, key=found.highest.__getitem__) if highest else min(parts, key=found.lowest.__getitem__)
        value = ends[highest][part]
        return value, None if labels is None else Labelled(labels, self._parts.division.mask & 0xFF, part)

    def _labelled(self, extreme: Extreme) -> Labelled | None:
        """The cells of the type of an extreme; None for all cells."""
        if extreme.cell_type is None or self._materials.uniform:
            return None
        return Labelled(self._cells, int(CELL_TYPE), extreme.cell_type)
