"""The cells of the extremes of a field: of a cell type, of a region or of the whole body.

A GPU searches for the cells of a row together with its sums (:mod:`heatsim.solver.rows.row_request`). It expects the
extremes that observers asked for in the row before. Other cells are searched when an observer asks for them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heatsim.kernels.reductions.find import MOST_PARTS, ExtremeOf, Labelled, Search
from heatsim.kernels.reductions.statistics import FieldReduction
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.solver.field.cell_parts import CellParts
from heatsim.solver.field.field import Field
from heatsim.solver.field.part_extremes import PartExtremes


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


class ExtremeCells:
    """Finds the first cell with an extreme of the current values of a field. Each cell is searched once.

    If several ranks have the field, :meth:`of_type` and :meth:`of_region` are collective.

    Args:
        materials: the cell types.
        field: the field.
        cells: the type of each own cell, one byte per cell, on the field's device; empty if there is one type.
        parts: the parts of the cells.
        extremes: the extremes of each part.
    """

    def __init__(
        self, materials: CellTypes, field: Field, cells: Any, parts: CellParts, extremes: PartExtremes
    ) -> None:
        self._materials, self._field, self._cells = materials, field, cells
        self._parts, self._extremes = parts, extremes
        self._places_of: FieldReduction | None = None
        self._places: dict[Extreme, int] = {}
        self._asked: list[Extreme] = []
        self._expected: tuple[Extreme, ...] = ()
        self._extremes_of: dict[Extreme, ExtremeOf] = {}

    def of_type(self, cell_type: int, highest: bool) -> tuple[int, int, int]:
        """The first cell (x, y, z) of a type with the highest, or else the lowest value in the buffer."""
        return self._place(self._first(Extreme(cell_type, None, highest)))

    def of_region(self, region: str | None, highest: bool) -> tuple[int, int, int] | None:
        """The first cell (x, y, z) with the highest, or the lowest temperature of a region or of the whole body.

        None where more than 256 parts of the body are watched: their numbers do not fit a byte.
        """
        labels = self._parts.labels
        if labels is not None and labels.dtype != np.uint8:
            return None
        return self._place(self._first(Extreme(None, region, highest)))

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
            parts = self._extremes.parts_of(extreme.region)
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
        highest, reduction = extreme.highest, self._field.reduction()
        ends = reduction.lowest, reduction.highest
        if extreme.cell_type is not None:
            own = np.flatnonzero(self._parts.cell_types == extreme.cell_type)
            value = (max if highest else min)(ends[highest][part] for part in own)
            return value, self._labelled(extreme)
        parts, labels = self._extremes.parts_of(extreme.region), self._parts.labels
        found = self._extremes.of_each()
        part = max(parts, key=found.highest.__getitem__) if highest else min(parts, key=found.lowest.__getitem__)
        value = ends[highest][part]
        return value, None if labels is None else Labelled(labels, self._parts.division.mask & 0xFF, part)

    def _labelled(self, extreme: Extreme) -> Labelled | None:
        """The cells of the type of an extreme; None for all cells."""
        if extreme.cell_type is None or self._materials.uniform:
            return None
        return Labelled(self._cells, int(CELL_TYPE), extreme.cell_type)

    def _place(self, number: int) -> tuple[int, int, int]:
        """The cell (x, y, z) with an index in the flattened whole field."""
        nx, ny, _ = self._field.grid.cells
        return number % nx, number // nx % ny, number // (nx * ny)
