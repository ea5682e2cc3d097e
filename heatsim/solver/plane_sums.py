"""Sums over cells in groups of planes of the whole grid: equal bits on any number of ranks.

Each group is summed in a fixed order; then the sums of all groups are added exactly. See grid.py.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.fused import Pass, Sections, partials
from heatsim.kernels.reductions.statistics import STATISTICS, exact_sum
from heatsim.physics.cell_sums import Key
from heatsim.solver.field import Field

T = TypeVar("T")

# Which values of a list are those of own cells, in the order of their planes, and where each group begins.
_Order = tuple[Any, NDArray[np.int64]]


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
        self._orders: dict[int, tuple[Any, _Order]] = {}

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

    def of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """See :class:`CellSums`. Waits for a GPU once."""
        keys, sections = list[Key](), list[Sections]()
        for key, cells, values in lists:
            some, bounds = self._order(cells)
            keys.append(key)
            sections.append(Sections(self._device.xp.ascontiguousarray(values.reshape(-1)[some]), bounds))
        if self._device.backend == "cpu":
            found = [_sums(each.values, each.bounds) for each in sections]
        else:
            found = [of["total"].ravel() for of in partials(self._device, sections)] if sections else []
        joined = self._joined(zip(keys, found, strict=True))
        return {key: exact_sum(np.concatenate(sums).tolist()) for key, sums in joined.items()}

    def largest_of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """See :class:`CellSums`."""
        own = [(key, _largest(values.reshape(-1)[self._order(cells)[0]])) for key, cells, values in lists]
        return {key: float(np.max(found)) for key, found in self._joined(own).items()}

    def largest_of_array(self, array: Any) -> float:
        """See :class:`CellSums`."""
        return float(np.max(self._team.gathered(_largest(array[self._slab.own]))))

    def listed(self, cells: Any, values: Any) -> NDArray[Any]:
        """See :class:`CellSums`."""
        some, _ = self._order(cells)
        return np.concatenate(self._team.gathered(self._device.to_host(values[some])))

    def largest(self, number: float) -> float:
        """See :class:`CellSums`."""
        return self._team.highest(number)

    def _joined(self, own: Iterable[tuple[Key, T]]) -> dict[Key, list[T]]:
        """What all ranks have found for each key."""
        joined = dict[Key, list[T]]()
        for of_rank in self._team.gathered(list(own)):
            for key, found in of_rank:
                joined.setdefault(key, []).append(found)
        return joined

    def _order(self, cells: Any) -> _Order:
        """The order of a list of cells; it is kept, because solvers sum over the same lists again and again."""
        kept = self._orders.get(id(cells))
        if kept is None or kept[0] is not cells:
            found = self._order_of_face(cells) if isinstance(cells, tuple) else self._order_of_list(cells)
            kept = self._orders[id(cells)] = cells, found
        return kept[1]

    def _order_of_face(self, cells: tuple[slice, ...]) -> _Order:
        """Of the cells at a whole face of the box, from the slices along z, y, x."""
        axis = next(axis for axis, of in enumerate(reversed(cells)) if of != slice(None))
        if axis == 2:
            return slice(None), np.array([0, self._plane])
        row = self._rows[axis]
        return slice(self._slab.own.start * row, self._slab.own.stop * row), self._starts * row

    def _order_of_list(self, cells: Any) -> _Order:
        """Of cells by their index in the flattened arrays."""
        planes = np.asarray(self._device.to_host(cells)) // self._plane - self._slab.own.start
        own = np.flatnonzero((planes >= 0) & (planes < self._slab.count))
        order = own[np.argsort(planes[own], kind="stable")]
        bounds = np.unique(np.searchsorted(planes[order], self._starts))  # groups that have some
        if len(order) and (np.diff(order) == 1).all():
            return slice(int(order[0]), int(order[-1]) + 1), bounds
        return self._device.xp.asarray(order), bounds


def _sums(values: NDArray[Any], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of each section of values; in the order of ``numpy.sum``, which depends on its length only."""
    return np.add.reduceat(np.asarray(values).reshape(-1), bounds[:-1]) if len(bounds) > 1 else np.zeros(0)


def _largest(values: Any) -> float:
    """The largest magnitude; 0 without values."""
    return float(abs(values).max()) if values.size else 0.0
