"""Slabs: the planes along z that each rank of a run steps.

A rank holds its own planes and, at each cut, copies of HALO planes of its neighbour:

    rank 0   own own own own | halo
    rank 1             halo  | own own own own | halo
    rank 2                               halo  | own own own own

Its kernels step all of these planes, and treat the cuts as insulated faces. So each step makes one more halo plane
wrong, from the outside inwards. Before the error reaches its own planes, the rank gets its neighbours' planes again
(:mod:`heatsim.parallel.halo`). With a periodic z axis the first and the last rank are neighbours too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted
from heatsim.parallel.cuts import Array, cheapest_cuts

HALO = 4  # planes: as many as the steps that a kernel can do in one sweep


class TooManyRanksError(ValueError):
    """A grid has too few planes for this number of ranks; the text is for the user."""


@dataclass(frozen=True)
class Slab:
    """The planes that one rank holds.

    Attributes:
        planes: number of planes of the whole grid.
        first, last: the rank's own planes are ``first`` … ``last`` − 1 of the whole grid.
        below, above: number of halo planes at the lower and the upper cut; 0 where there is no cut.
        ring: whether the slabs of all ranks form a ring: the z axis is periodic, and cut.
    """

    planes: int
    first: int
    last: int
    below: int = 0
    above: int = 0
    ring: bool = False

    @classmethod
    def whole(cls, planes: int) -> "Slab":
        """The slab of a run on one rank."""
        return cls(planes, 0, planes)

    @property
    def alone(self) -> bool:
        """Whether the slab is the whole grid."""
        return self.count == self.planes

    @property
    def count(self) -> int:
        """Number of own planes."""
        return self.last - self.first

    @property
    def depth(self) -> int:
        """Number of planes in the buffers: own ones and halos."""
        return self.below + self.count + self.above

    @property
    def start(self) -> int:
        """The number in the whole grid of the lowest plane of the buffers; negative across a periodic face."""
        return self.first - self.below

    @property
    def own(self) -> slice:
        """The own planes in the buffers."""
        return slice(self.below, self.below + self.count)

    @property
    def place(self) -> NDArray[np.int64]:
        """The number in the whole grid of each plane of the buffers."""
        return np.arange(self.start, self.start + self.depth, dtype=np.int64) % self.planes

    @property
    def cut(self) -> tuple[bool, bool]:
        """Whether the lower and the upper end are cuts."""
        return self.below > 0, self.above > 0

    def holds(self, z: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some planes, numbered in the whole grid, belong to this rank."""
        return np.asarray((z >= self.first) & (z < self.last))

    def rows_of(self, numbers: NDArray[np.int64], row: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Find the entries of an ascending list that lie in the buffers.

        Args:
            numbers: ascending, plane · ``row`` + place in the plane, planes counted in the whole grid.
            row: how many places a plane has.

        Returns:
            The places of the found entries in ``numbers``, and their numbers with planes counted in the buffers.
        """
        begins, ends = (np.searchsorted(numbers, (self.place + side) * row) for side in (0, 1))
        counts = ends - begins
        plane = np.repeat(np.arange(self.depth), counts)
        found = np.arange(counts.sum()) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
        return found.astype(np.intp), numbers[found] + (plane - self.place[plane]) * row


@dataclass(frozen=True, eq=False)
class Share:
    """A rank's entries of an array that the ranks divide along its first axis.

    Attributes:
        shape: of the whole array.
        first: the number of the rank's first entry in the whole array.
        values: the rank's entries, on the host; there may be none.
    """

    shape: tuple[int, ...]
    first: int
    values: NDArray[Any]

    @classmethod
    def of_first(cls, values: NDArray[Any], first: bool) -> "Share":
        """The share of an array that all ranks have: all of it on rank 0, else none. ``first``: this is rank 0."""
        return cls(values.shape, 0, values if first else values[:0])


def slabs(planes: int, ranks: int, *, periodic: bool, group: int = 1, costs: Array | None = None) -> Sequence[Slab]:
    """The slabs of all ranks, cut between groups of planes so that the slowest rank is as fast as possible.

    Args:
        planes: number of planes of the whole grid.
        ranks: number of ranks.
        periodic: whether the z axis wraps.
        group: cuts lie at multiples of this number of planes.
        costs: cost of a step of each plane, in any unit, shape (planes,); None if all planes cost the same.

    Raises:
        TooManyRanksError: a rank would have fewer than HALO planes.
    """
    if ranks == 1:
        return [Slab.whole(planes)]
    least = group * ceil(HALO / group)
    most = 1 + max(0, planes - HALO) // least
    if ranks > most:
        raise TooManyRanksError(
            f"a grid with {counted(planes, 'plane')} along z can be divided among at most "
            f"{counted(most, 'rank')}, each with at least {counted(max(HALO, group), 'plane')}; got {ranks} ranks"
        )
    cost = np.ones(planes) if costs is None else np.asarray(costs, np.float64)
    return _slabs(cost.tobytes(), ranks, least, group, periodic)


@lru_cache(maxsize=2)
def _slabs(costs: bytes, ranks: int, least: int, group: int, periodic: bool) -> Sequence[Slab]:
    """The slabs of all ranks. ``costs``: of each plane, as bytes; a plan asks for the same slabs for each rank."""
    cost = np.frombuffer(costs)
    cuts = cheapest_cuts(cost, ranks, least, group, HALO, periodic)
    return tuple(
        Slab(len(cost), first, last, HALO * (periodic or rank > 0), HALO * (periodic or rank < ranks - 1), periodic)
        for rank, (first, last) in enumerate(pairwise(cuts))
    )
