"""Cut a grid into slabs whose planes may have different costs.

A rank steps its own planes and the halo planes at its cuts. The cuts minimise the cost of the slowest rank. If several
sets of cuts are equally good, the one with the smallest sum of squares of the costs is taken. Bisection finds the cost
of the slowest rank. Dynamic programming finds the cuts: the best cuts of the first r ranks that end at a plane follow
from those of the first r − 1 ranks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Edges = NDArray[np.int64]

_ROUNDING = 1e-9  # relative; smaller differences of costs come from rounding


def cheapest_cuts(costs: Array, ranks: int, least: int, group: int, halo: int, periodic: bool) -> list[int]:
    """The first plane of each rank, and the number of planes.

    Args:
        costs: cost of each plane, positive.
        ranks: number of ranks, at least 2.
        least: smallest number of planes of a rank, a multiple of ``group``; the last rank needs only ``halo`` planes.
        group: cuts lie at multiples of this number of planes.
        halo: number of planes at each cut that a rank steps in addition to its own.
        periodic: whether the first and the last rank are neighbours.
    """
    edges = np.append(np.arange(0, len(costs), group), len(costs))
    none = np.zeros(halo)
    around = (costs[-halo:], costs, costs[:halo]) if periodic else (none, costs, none)
    total = np.concatenate(([0.0], np.cumsum(np.concatenate(around))))
    found = _Slabs(total[edges], total[edges + 2 * halo], np.searchsorted(edges, edges - least, side="right"))
    found.end[-1] = np.searchsorted(edges, edges[-1] - halo, side="right")
    begin, squares = found.squares((1.0 + _ROUNDING) * found.slowest(ranks))
    return [int(edges[place]) for place in _best(begin, squares, ranks)]


@dataclass(frozen=True, eq=False)
class _Slabs:
    """The slabs between any two of some edges.

    Attributes:
        below, above: a slab from one edge to a later one costs above[later] − below[one].
        end: of each edge, the first edge at which a slab that ends there may not begin, because it is too thin.
    """

    below: Array
    above: Array
    end: Edges

    def first(self, limit: float) -> Edges:
        """Of each edge, the first edge at which a slab that ends there and costs at most ``limit`` may begin."""
        return np.minimum(np.searchsorted(self.below, self.above - limit), self.end)

    def slowest(self, ranks: int) -> float:
        """The least cost of the slowest rank that cuts can give, or little more."""
        low = high = float(self.above[-1] - self.below[0]) / ranks
        while not self._can_be(high, ranks):
            low, high = high, 2.0 * high
        while high - low > 0.1 * _ROUNDING * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._can_be(middle, ranks) else (middle, high)
        return high

    def _can_be(self, limit: float, ranks: int) -> bool:
        """Whether there are cuts with which no rank costs more than a limit."""
        first = self.first(limit)
        reached = np.arange(len(first)) == 0
        for _ in range(ranks):
            before = np.concatenate(([0], np.cumsum(reached)))
            reached = before[self.end] > before[first]
        return bool(reached[-1])

    def squares(self, limit: float) -> tuple[Edges, Array]:
        """Of each edge, where slabs that end there may begin, and the squares of their costs; infinite for no slab."""
        first = self.first(limit)
        begin = first[:, None] + np.arange(max(1, int((self.end - first).max())))
        allowed, begin = begin < self.end[:, None], np.minimum(begin, len(first) - 1)
        return begin, np.where(allowed, (self.above[:, None] - self.below[begin]) ** 2, np.inf)


def _best(begin: Edges, squares: Array, ranks: int) -> list[int]:
    """The places of the edges with the smallest sum.

    Args:
        begin: of each edge, where slabs that end there may begin, shape (edges, most).
        squares: of their costs; infinite where there is no such slab.
        ranks: the number of slabs.
    """
    cost, chosen = np.where(np.arange(len(begin)) == 0, 0.0, np.inf), []
    for _ in range(ranks):
        through = cost[begin] + squares
        best = np.argmin(through, axis=1)[:, None]
        chosen.append(np.take_along_axis(begin, best, axis=1)[:, 0])
        cost = np.take_along_axis(through, best, axis=1)[:, 0]
    places = [len(begin) - 1]
    for before in reversed(chosen):
        places.append(int(before[places[-1]]))
    return places[::-1]
