"""Cut a grid into slabs whose planes may have different costs.

A rank steps its own planes and the halo planes at its cuts. The cuts minimise the cost of the slowest rank. If several
sets of cuts are equally good, the one with the smallest sum of squares of the costs is taken. Both minima are found by
dynamic programming: the best cuts of the first r ranks that end at a plane follow from those of the first r − 1 ranks.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

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
    slab = slab_costs(costs, edges, halo, periodic)
    width = edges[None, :] - edges[:, None]
    last = np.arange(len(edges)) == len(edges) - 1
    slab[(width < least) & ~(last[None, :] & (width >= halo))] = np.inf
    slowest = _best(slab, ranks, np.maximum)[0]
    allowed = np.where(slab <= slowest * (1.0 + _ROUNDING), slab**2, np.inf)
    return [int(edges[place]) for place in _best(allowed, ranks, np.add)[1]]


def slab_costs(costs: Array, edges: NDArray[np.int64], halo: int, periodic: bool) -> Array:
    """The cost of each slab with its halo planes, from one edge to a later one; shape (edges, edges)."""
    none = np.zeros(halo)
    around = (costs[-halo:], costs, costs[:halo]) if periodic else (none, costs, none)
    total = np.concatenate(([0.0], np.cumsum(np.concatenate(around))))
    return np.asarray(total[edges + 2 * halo][None, :] - total[edges][:, None])


def _best(slab: Array, ranks: int, together: np.ufunc) -> tuple[float, list[int]]:
    """The least cost of all slabs, combined by ``together``, and the indices of their edges."""
    cost, chosen = slab[0].copy(), []
    for _ in range(ranks - 1):
        through = together(cost[:, None], slab)
        before = np.argmin(through, axis=0)
        chosen.append(before)
        cost = np.take_along_axis(through, before[None], axis=0)[0]
    places = [len(slab) - 1]
    for before in reversed(chosen):
        places.append(int(before[places[-1]]))
    places.append(0)
    return float(cost[-1]), places[::-1]
