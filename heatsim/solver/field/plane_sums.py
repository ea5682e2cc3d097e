"""Sums over cells in groups of planes of the whole grid: equal bits on any number of ranks.

Each group is summed in a fixed order; then the sums of all groups are added exactly. See grid.py.
"""

from collections.abc import Iterable, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.fused import Pass, Sections, partials
from heatsim.kernels.reductions.statistics import STATISTICS, exact_sum
from heatsim.physics.operator.cell_sums import Valued
from heatsim.physics.operator.surface_exchange import Label
from heatsim.solver.field.field import Field
from heatsim.solver.field.surface_sections import Divisions, SurfaceSections


class PlaneSums:
    """Sums over arrays of the shape of a field's buffers; see :class:`heatsim.physics.operator.cell_sums.CellSums`.

    Args:
        field: gives the device, the ranks and their planes.
    """

    def __init__(self, field: Field) -> None:
        self._device, self._slab, self._team = field.device, field.slab, field.team
        self._plane = field.grid.shape[1] * field.grid.shape[2]
        self._starts = field.grid.groups.starts(self._slab.count)
        self._divisions = Divisions(field)

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
        own = self._device.to_host(values)[self._divisions.own(cells)]
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

    def _sums_of(self, surfaces: Iterable[Valued]) -> tuple[list[SurfaceSections], list[NDArray[np.float64]]]:
        """The divisions of the surfaces that have own cells, and the sum of each section."""
        divisions, values = self._divided(surfaces)
        bounds = [division.bounds for division in divisions]
        if self._device.backend == "cpu":
            return divisions, [_sums(of, at) for of, at in zip(values, bounds, strict=True)]
        return divisions, [of["total"].ravel() for of in self._statistics(values, bounds)]

    def _statistics(self, values: Sequence[Any], bounds: Sequence[NDArray[np.int64]]) -> list[NDArray[Any]]:
        """STATISTICS of all sections of some device arrays."""
        return partials(self._device, list(map(Sections, values, bounds))) if values else []

    def _divided(self, surfaces: Iterable[Valued]) -> tuple[list[SurfaceSections], list[Any]]:
        """The divisions of the surfaces that have own cells, and the values of these cells in their order."""
        divisions, ordered = list[SurfaceSections](), list[Any]()
        for surface, values in surfaces:
            division = self._divisions.of(surface)
            if division.labels:
                divisions.append(division)
                ordered.append(self._device.xp.ascontiguousarray(values.reshape(-1)[division.order]))
        return divisions, ordered


def _sums(values: NDArray[Any], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of each section of values; in the order of ``numpy.sum``, which depends on its length only."""
    return np.add.reduceat(np.asarray(values).reshape(-1), bounds[:-1]) if len(bounds) > 1 else np.zeros(0)


def _largest_of_sections(values: Any, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest magnitude in each section; NaN if there is one."""
    return np.asarray(np.maximum.reduceat(abs(np.asarray(values)), bounds[:-1]))


def _largest(values: Any) -> float:
    """The largest magnitude; 0 without values."""
    return float(abs(values).max()) if values.size else 0.0
