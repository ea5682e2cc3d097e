"""Sums over cells in groups of planes of the whole grid: equal bits on any number of ranks.

Each group is summed in a fixed order; then the sums of all groups are added exactly. See grid.py.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.fused import Pass, Sections, partials
from heatsim.kernels.reductions.statistics import STATISTICS, Partials, exact_sum
from heatsim.physics.cell_sums import Key
from heatsim.solver.field import Field

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
        """See :class:`CellSums`. A GPU is waited for once."""
        sections = map(self._sections, arrays)
        if self._device.backend == "cpu":
            own = [partials(self._device, [each])[0]["total"].ravel() for each in sections]
        else:
            xp = self._device.xp
            queued = [Pass.of(xp, [each]).queue() for each in sections]
            found = self._device.to_host(xp.stack(queued)) if queued else np.zeros((0, 0), np.uint8)
            own = list(found.view(STATISTICS)["total"])
        of_ranks = self._team.gathered(own)
        return [exact_sum(np.concatenate(of_array).tolist()) for of_array in zip(*of_ranks, strict=True)]

    def of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """See :class:`CellSums`. A GPU is waited for once."""
        return {key: exact_sum(found["total"].tolist()) for key, found in self._partials(lists).items()}

    def largest_of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """See :class:`CellSums`. A GPU is waited for once."""
        return {key: _largest(found) for key, found in self._partials(lists).items()}

    def largest_of_array(self, array: Any) -> float:
        """See :class:`CellSums`."""
        (found,) = partials(self._device, [self._sections(array)])
        return self._team.highest(_largest(found.ravel()))

    def listed(self, cells: Any, values: Any) -> NDArray[Any]:
        """See :class:`CellSums`."""
        some, _ = self._order(cells)
        return np.concatenate(self._team.gathered(self._device.to_host(values[some])))

    def largest(self, number: float) -> float:
        """See :class:`CellSums`."""
        return self._team.highest(number)

    def _sections(self, array: Any) -> Sections:
        return Sections(array[self._slab.own], self._starts * self._plane)

    def _partials(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, Partials]:
        """STATISTICS of all groups of planes for each key, in any order."""
        keys, sections = list[Key](), list[Sections]()
        for key, cells, values in lists:
            some, bounds = self._order(cells)
            keys.append(key)
            sections.append(Sections(self._device.xp.ascontiguousarray(values.reshape(-1)[some]), bounds))
        found = partials(self._device, sections) if sections else []
        joined = dict[Key, list[Partials]]()
        for of_rank in self._team.gathered([(key, of.ravel()) for key, of in zip(keys, found, strict=True)]):
            for key, of in of_rank:
                joined.setdefault(key, []).append(of)
        return {key: np.concatenate(of) for key, of in joined.items()}

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
        planes = self._device.to_host(cells) // self._plane - self._slab.own.start
        own = np.flatnonzero((planes >= 0) & (planes < self._slab.count))
        order = own[np.argsort(planes[own], kind="stable")]
        bounds = np.searchsorted(planes[order], self._starts)
        if len(order) and (np.diff(order) == 1).all():
            return slice(int(order[0]), int(order[-1]) + 1), bounds
        return self._device.xp.asarray(order), bounds


def _largest(found: Partials) -> float:
    """The largest magnitude, from STATISTICS; 0 without values."""
    return max(0.0, float(found["highest"].max(initial=0.0)), -float(found["lowest"].min(initial=0.0)))
