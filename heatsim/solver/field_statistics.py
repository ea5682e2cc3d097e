"""Heat, extremes and means of a field, for all bodies.

For one constant material, one fused pass over the field gives all of them. Otherwise each takes a pass over the field
and the cell types, a few planes at a time.
"""

from collections.abc import Iterator
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.physics.cell_types import CELL_TYPE
from heatsim.physics.enthalpy import Thermometer
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field import Extremes, Field

_CELLS_AT_ONCE = 2**22
# Up to this number of cells their heat capacities are kept: 8 MiB.
_CELLS_KEPT = 2**20


class FieldStatistics:
    """Statistics of the current values of a field.

    If materials vary with temperature, the field holds contents in kelvins of the heat capacities in ``materials``.

    If several ranks have the field, all methods are collective.

    Args:
        problem: the problem with the materials.
        field: the field.
        cells: the type of each own cell, one byte per cell, on the field's device; empty if there is one type.
    """

    def __init__(self, problem: HeatProblem, field: Field, cells: Any) -> None:
        self._materials = problem.materials
        self._field = field
        self._cells = cells
        self._capacities = problem.materials.cell_heat_capacity
        self._fused = problem.materials.uniform and not problem.materials.varies

    def heat(self, *, absolute: bool = False) -> float:
        """Σ ρ·cp·V·(T − T_ref) over all cells in J, in a fixed order; Σ ρ·cp·V·|T − T_ref| if ``absolute``."""
        field = self._field
        if self._fused:
            return float(self._capacities[0]) * (field.absolute_total() if absolute else field.total())
        total = 0.0
        own = field.own
        for planes in _slabs(own):
            slab = abs(own[planes]) if absolute else own[planes]
            total += (slab * self._capacities_of(planes)).sum(dtype=np.float64)
        return fsum(field.team.gathered(float(total)))

    def _capacities_of(self, planes: slice) -> Any:
        """The heat capacities of the cells in some planes in J/K."""
        if self._field.grid.cell_count <= _CELLS_KEPT and not self._materials.uniform:
            return self._kept_capacities[planes]
        return self._field.device.xp.asarray(self._capacities)[self._cell_types(planes)]

    @cached_property
    def _kept_capacities(self) -> Any:
        """The heat capacities of all cells."""
        return self._field.device.xp.asarray(self._capacities)[self._cell_types(slice(None))]

    def deviations(self) -> Extremes:
        """The lowest and highest T − T_ref in K; includes void cells if no material varies."""
        if self._materials.varies:
            return self._extremes()
        found = self._field.statistics()
        return Extremes(found.lowest, found.highest)

    def extremes(self) -> Extremes:
        """Lowest and highest temperature in K, without void."""
        if self._fused:
            return self._field.extremes()
        found = self._extremes()
        return Extremes(found.lowest + self._field.reference, found.highest + self._field.reference)

    def mean(self) -> float:
        """Mean temperature in K over the volume, without void."""
        field = self._field
        if self._fused:
            return field.total() / field.grid.cell_count + field.reference
        total, count = 0.0, 0
        for slab in self._conducting():
            total += float(slab.sum(dtype=np.float64))
            count += slab.size
        parts = field.team.gathered((total, count))
        return fsum(total for total, _ in parts) / sum(count for _, count in parts) + field.reference

    def extremes_by_type(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest value in the buffer for each of several cell types; inf and −inf for void."""
        count = len(self._materials.types)
        lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
        for planes in _slabs(self._field.own):
            for cell_type in range(count):
                if cell_type != self._materials.void:
                    low, high = (self._of_type(planes, cell_type, fill) for fill in (np.inf, -np.inf))
                    lowest[cell_type] = min(lowest[cell_type], float(low.min()))
                    highest[cell_type] = max(highest[cell_type], float(high.max()))
        parts = self._field.team.gathered((lowest, highest))
        return np.min([low for low, _ in parts], axis=0), np.max([high for _, high in parts], axis=0)

    def lowest_cell(self, cell_type: int) -> tuple[int, int, int]:
        """The first cell (x, y, z) of a type with the lowest value in the buffer."""
        number = self._field.coldest() if self._materials.uniform else self._coldest_of(cell_type)
        nx, ny, _ = self._field.grid.cells
        return number % nx, number // nx % ny, number // (nx * ny)

    def _coldest_of(self, cell_type: int) -> int:
        own, first, best, number = self._field.own, self._field.slab.first, np.inf, 0
        for planes in _slabs(own):
            slab = self._of_type(planes, cell_type, np.inf).reshape(-1)
            place = int(slab.argmin())
            if float(slab[place]) < best:
                best, number = float(slab[place]), (first + planes.start) * own[0].size + place
        return min(self._field.team.gathered((best, number)))[1]

    def _extremes(self) -> Extremes:
        """The lowest and highest T − T_ref in K, without void."""
        lowest, highest = np.inf, -np.inf
        for slab in self._conducting():
            if slab.size:
                lowest, highest = min(lowest, float(slab.min())), max(highest, float(slab.max()))
        parts = self._field.team.gathered((lowest, highest))
        return Extremes(min(low for low, _ in parts), max(high for _, high in parts))

    def _conducting(self) -> Iterator[Any]:
        """T − T_ref in K of all cells except void, a few planes at a time."""
        for planes in _slabs(self._field.own):
            slab = self._field.degrees(self._field.own[planes], planes)
            if self._materials.void is not None:
                slab = slab[self._cell_types(planes) != self._materials.void]
            yield slab

    def _of_type(self, planes: slice, cell_type: int, fill: float) -> Any:
        """Some planes with ``fill`` in cells of other types."""
        slab = self._field.own[planes]
        return self._field.device.xp.where(self._cell_types(planes) == cell_type, slab, slab.dtype.type(fill))

    def _cell_types(self, planes: slice) -> Any:
        """The types of the cells in some planes; 0 if there is one type."""
        return 0 if self._materials.uniform else self._cells[planes] & CELL_TYPE


def own_cells(arrays: CompositeArrays, field: Field) -> Any:
    """The type of each own cell of a field, one byte, on its device; empty if there is one type."""
    cells = arrays.body.cells
    return cells[field.slab.own] if cells.size else cells


def make_thermometer(problem: HeatProblem, field: Field, cells: Any) -> Thermometer | None:
    """The thermometer of a field; None if no material varies. Arguments as for :class:`FieldStatistics`."""
    materials = problem.materials
    if not materials.varies:
        return None
    return Thermometer(
        field.device.xp, materials.enthalpies, lambda place: 0 if materials.uniform else cells[place] & CELL_TYPE
    )


def _slabs(field: Any) -> Iterator[slice]:
    """Slices of a few planes of an array [z, y, x], so that temporary arrays stay small."""
    planes = max(1, _CELLS_AT_ONCE // field[0].size)
    for first in range(0, len(field), planes):
        yield slice(first, min(first + planes, len(field)))
