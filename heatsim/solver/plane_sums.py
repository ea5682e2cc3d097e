"""Sums over cells in groups of planes of the whole grid: equal bits on any number of ranks.

Each group is summed in a fixed order; then the sums of all groups are added exactly. See grid.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.fused import Pass, Sections, partials
from heatsim.kernels.reductions.statistics import STATISTICS, exact_sum
from heatsim.physics.cell_sums import Valued
from heatsim.physics.surface_exchange import ExchangingCells, Label
from heatsim.solver.field import Field


@dataclass(frozen=True, eq=False)
class _Division:
    """The own cells of a surface in sections: those of one condition in one group of planes.

    Attributes:
        cells: the cells of the surface. The surface has the same ones at every moment.
        order: the places of the own cells among the cells of the surface, condition after condition, plane after plane.
        bounds: where each section begins, and the end of the last one. No section is empty.
        labels: of the conditions that have own cells.
        sections: where the sections of each of these conditions begin, and the end of the last one.
    """

    cells: Any
    order: Any
    bounds: NDArray[np.int64]
    labels: Sequence[Label]
    sections: NDArray[np.int64]

    def by_condition(self, numbers: NDArray[np.float64]) -> list[list[float]]:
        """The numbers of the sections of each condition."""
        listed, ends = numbers.tolist(), self.sections.tolist()
        return [listed[first:end] for first, end in pairwise(ends)]


class PlaneSums:
    """Sums over arrays of the shape of a field's buffers; see :class:`heatsim.physics.cell_sums.CellSums`.

    Args:
        field: gives the device, the ranks and their planes.
    """

    def __init__(self, field: Field) -> None:
        self._device, self._slab, self._team = field.device, field.slab, field.team
        _, ny, nx = field.grid.shape
        self._rows = {0: ny, 1: nx}  # cells of a plane on faces across x and y
        self._plane = ny * nx
        self._starts = field.grid.groups.starts(self._slab.count)
        self._divisions: dict[tuple[int, tuple[Label, ...]], _Division] = {}

    def of_arrays(self, arrays: Iterable[Any]) -> list[float]:
        """See :class:`CellSums`. Waits for a GPU once."""
        bounds, xp = self._starts * self._plane, self._device.xp
        own = (array[self._slab.own] for array in arrays)
        if self._device.backend == "cpu":
            found = [_sums(values, bounds) for values in own]
        else:
            queued = [Pass.of(xp, [Sections(values, bounds)]).queue() for values in own]
            together = self._device.to_host(xp.stack(queued)) if queued else np.zeros((0, 0), np.uint8)
            found = list(together.view(STATISTICS)["total"])
        return [exact_sum(np.concatenate(each).tolist()) for each in zip(*self._team.gathered(found), strict=True)]

    def of_surfaces(self, surfaces: Iterable[Valued]) -> float:
        """See :class:`CellSums`. Waits for a GPU once."""
        _, sums = self._sums_of(surfaces)
        own = np.concatenate([*sums, np.zeros(0)])
        return exact_sum(np.concatenate(self._team.gathered(own)).tolist())

    def of_conditions(self, surfaces: Iterable[Valued]) -> dict[Label, float]:
        """See :class:`CellSums`. Waits for a GPU once."""
        own = list[tuple[Label, list[float]]]()
        for division, sums in zip(*self._sums_of(surfaces), strict=True):
            own += zip(division.labels, division.by_condition(sums), strict=True)
        return {label: exact_sum(found) for label, found in self._joined(own).items()}

    def largest_of_conditions(self, surfaces: Iterable[Valued]) -> dict[Label, float]:
        """See :class:`CellSums`. Waits for a GPU once."""
        divisions, ordered = self._divided(surfaces)
        bounds = [division.bounds[division.sections] for division in divisions]
        if self._device.backend == "cpu":
            found = list(map(_largest_of_sections, ordered, bounds))
        else:
            looked = self._statistics(ordered, bounds)
            extremes = (np.where(of["not_finite"], np.nan, np.maximum(-of["lowest"], of["highest"])) for of in looked)
            found = [of.ravel() for of in extremes]
        own = [
            (label, [largest])
            for division, numbers in zip(divisions, found, strict=True)
            for label, largest in zip(division.labels, numbers.tolist(), strict=True)
        ]
        # Python's max() may pass over NaN; a sum of magnitudes does not.
        joined = self._joined(own).items()
        return {label: max(numbers) if sum(numbers) >= 0.0 else nan for label, numbers in joined}

    def largest_of_array(self, array: Any) -> float:
        """See :class:`CellSums`."""
        return float(np.max(self._team.gathered(_largest(array[self._slab.own]))))

    def listed(self, cells: Any, values: Any) -> NDArray[Any]:
        """See :class:`CellSums`."""
        planes = self._planes_of(cells)
        own = self._device.to_host(values)[(planes >= 0) & (planes < self._slab.count)]
        return np.concatenate(self._team.gathered(own))

    def largest(self, number: float) -> float:
        """See :class:`CellSums`."""
        return self._team.highest(number)

    def _joined(self, own: list[tuple[Label, list[float]]]) -> dict[Label, list[float]]:
        """The numbers that all ranks have found for each condition. Collective."""
        joined = dict[Label, list[float]]()
        for of_rank in self._team.gathered(own):
            for label, found in of_rank:
                if label in joined:
                    joined[label] += found
                else:
                    joined[label] = found
        return joined

    def _sums_of(self, surfaces: Iterable[Valued]) -> tuple[list[_Division], list[NDArray[np.float64]]]:
        """The divisions of the surfaces that have own cells, and the sum of each section."""
        divisions, values = self._divided(surfaces)
        bounds = [division.bounds for division in divisions]
        if self._device.backend == "cpu":
            return divisions, [_sums(of, at) for of, at in zip(values, bounds, strict=True)]
        return divisions, [of["total"].ravel() for of in self._statistics(values, bounds)]

    def _statistics(self, values: Sequence[Any], bounds: Sequence[NDArray[np.int64]]) -> list[NDArray[Any]]:
        """STATISTICS of all sections of some device arrays."""
        return partials(self._device, list(map(Sections, values, bounds))) if values else []

    def _divided(self, surfaces: Iterable[Valued]) -> tuple[list[_Division], list[Any]]:
        """The divisions of the surfaces that have own cells, and the values of these cells in their order."""
        divisions, ordered = list[_Division](), list[Any]()
        for surface, values in surfaces:
            division = self._division(surface)
            if division.labels:
                divisions.append(division)
                ordered.append(self._device.xp.ascontiguousarray(values.reshape(-1)[division.order]))
        return divisions, ordered

    def _division(self, surface: ExchangingCells) -> _Division:
        """The division of a surface; it is kept, because solvers sum over the same surfaces again and again."""
        key = id(surface.cells), tuple(surface.labels)
        kept = self._divisions.get(key)
        if kept is None or kept.cells is not surface.cells:
            divide = self._divide_face if isinstance(surface.cells, tuple) else self._divide_list
            kept = self._divisions[key] = divide(surface)
        return kept

    def _divide_face(self, surface: ExchangingCells) -> _Division:
        """Of a surface that is a whole face of the box, from the slices of its cells along z, y, x."""
        axis = next(axis for axis, of in enumerate(reversed(surface.cells)) if of != slice(None))
        if axis == 2:
            return _Division(surface.cells, slice(None), np.array([0, self._plane]), surface.labels, np.array([0, 1]))
        row = self._rows[axis]
        order = slice(self._slab.own.start * row, self._slab.own.stop * row)
        return _Division(surface.cells, order, self._starts * row, surface.labels, np.array([0, len(self._starts) - 1]))

    def _divide_list(self, surface: ExchangingCells) -> _Division:
        """Of a surface with listed cells: by condition, then by plane."""
        planes, labels = self._planes_of(surface.cells), surface.labels
        condition = np.zeros(len(planes), np.int64)
        for number, place in enumerate(surface.slices):
            condition[place] = number
        own = np.flatnonzero((planes >= 0) & (planes < self._slab.count))
        order = own[np.lexsort((planes[own], condition[own]))]
        of_condition = condition[order]
        group = np.searchsorted(self._starts, planes[order], side="right")
        first = np.flatnonzero((np.diff(of_condition, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
        found, sections = np.unique(of_condition[first], return_index=True)
        consecutive = len(order) > 0 and bool((np.diff(order) == 1).all())
        return _Division(
            surface.cells,
            slice(int(order[0]), int(order[-1]) + 1) if consecutive else self._device.xp.asarray(order),
            np.append(first, len(order)),
            [labels[number] for number in found],
            np.append(sections, len(first)),
        )

    def _planes_of(self, cells: Any) -> NDArray[np.int64]:
        """The plane of each cell from the first own plane; negative, or too large, for planes of other ranks."""
        planes: NDArray[np.int64] = np.asarray(self._device.to_host(cells)) // self._plane - self._slab.own.start
        return planes


def _sums(values: NDArray[Any], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of each section of values; in the order of ``numpy.sum``, which depends on its length only."""
    return np.add.reduceat(np.asarray(values).reshape(-1), bounds[:-1]) if len(bounds) > 1 else np.zeros(0)


def _largest_of_sections(values: Any, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest magnitude in each section; NaN if there is one."""
    return np.asarray(np.maximum.reduceat(abs(np.asarray(values)), bounds[:-1]))


def _largest(values: Any) -> float:
    """The largest magnitude; 0 without values."""
    return float(abs(values).max()) if values.size else 0.0
