"""The cells of surfaces in sections, of which sums are formed: those of one condition in one group of planes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.operator.surface_exchange import ExchangingCells, Label
from heatsim.solver.field.field import Field


@dataclass(frozen=True, eq=False)
class SurfaceSections:
    """The own cells of a surface in sections.

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


class Divisions:
    """Divides surfaces, and keeps what it found: solvers sum over the same surfaces again and again.

    Args:
        field: gives the device, and the planes of this rank.
    """

    def __init__(self, field: Field) -> None:
        self._device, self._slab = field.device, field.slab
        _, ny, nx = field.grid.shape
        self._rows = {0: ny, 1: nx}  # cells of a plane on faces across x and y
        self._plane = ny * nx
        self._starts = field.grid.groups.starts(self._slab.count)
        self._kept: dict[tuple[int, tuple[Label, ...]], SurfaceSections] = {}

    def of(self, surface: ExchangingCells) -> SurfaceSections:
        """The sections of a surface."""
        key = id(surface.cells), tuple(surface.labels)
        kept = self._kept.get(key)
        if kept is None or kept.cells is not surface.cells:
            divide = self._divide_face if isinstance(surface.cells, tuple) else self._divide_list
            kept = self._kept[key] = divide(surface)
        return kept

    def own(self, cells: Any) -> NDArray[np.bool_]:
        """Which of some cells, by their index in the flattened arrays, are own cells; on the host."""
        return self._is_own(self._planes_of(cells))

    def _is_own(self, planes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return (planes >= 0) & (planes < self._slab.count)

    def _divide_face(self, surface: ExchangingCells) -> SurfaceSections:
        """Of a surface that is a whole face of the box, from the slices of its cells along z, y, x."""
        axis = next(axis for axis, of in enumerate(reversed(surface.cells)) if of != slice(None))
        order, bounds = slice(None), np.array([0, self._plane])
        if axis < 2:
            row = self._rows[axis]
            order, bounds = slice(self._slab.own.start * row, self._slab.own.stop * row), self._starts * row
        return SurfaceSections(surface.cells, order, bounds, surface.labels, np.array([0, len(bounds) - 1]))

    def _divide_list(self, surface: ExchangingCells) -> SurfaceSections:
        """Of a surface with listed cells: by condition, then by plane."""
        planes, labels = self._planes_of(surface.cells), surface.labels
        condition = np.zeros(len(planes), np.int64)
        for number, place in enumerate(surface.slices):
            condition[place] = number
        own = np.flatnonzero(self._is_own(planes))
        order = own[np.lexsort((planes[own], condition[own]))]
        of_condition = condition[order]
        group = np.searchsorted(self._starts, planes[order], side="right")
        first = np.flatnonzero((np.diff(of_condition, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
        found, sections = np.unique(of_condition[first], return_index=True)
        consecutive = len(order) > 0 and bool((np.diff(order) == 1).all())
        return SurfaceSections(
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
