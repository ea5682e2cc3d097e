"""The nodes of the tables of surface laws, and how they are added where a law bends.

A straight line between two nodes has the values that the heat flux q has between them. So a table is the exact law of a
surface that counts as warmer or colder than it is, by at most the distance of two nodes: it displaces temperatures. For
one that misses q by e on a line of length L along which q changes by Δq, that is about e·L/|Δq|. Nodes are added until
no temperature that can occur is displaced by more than a part of the tolerance, or q is right to a small part.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import TimeFunction
from heatsim.scenario.values.course import refined

Array = NDArray[np.float64]

_NEAREST = 1e-2  # K: distance of the first nodes from the ambient temperature
_FARTHEST = 1e4  # K: distance of the last node above it
_GROWTH = 1.02  # of the distance from node to node
_WIDEST, _WIDE_FROM = 2.0, 1500.0  # K: the widest step of nodes up to this distance
# A heat flux may be wrong by the first part of itself, or by the second one of the largest one.
_EXACT, _NOTHING = 4e-5, 1e-7
# The most nodes, and numbers in the tables of all laws, up to which nodes are added.
_MOST, _MOST_NUMBERS = 2**13, 2**20
# The values that are found before nodes are added, and the least and the most ambient temperatures that are tried.
_VALUES, _LEAST_TRIED, _MOST_TRIED = 2**22, 8, 1024


class Followed(NamedTuple):
    """The lowest and the highest temperature in K that can occur, and by how many K tables may displace them."""

    low: float
    high: float
    resolution: float


EVERYWHERE = Followed(0.0, np.inf, np.inf)


class Bending(Protocol):
    """The data of a :class:`heatsim.physics.conditions.surface_laws.SurfaceLaw` that nodes follow from."""

    @property
    def ambient(self) -> TimeFunction: ...  # noqa: D102
    def bends(self, end: float, low: float, high: float, others: Array) -> Array: ...  # noqa: D102
    def sampled(self, nodes: Array, end: float, count: int) -> Iterator[tuple[Array, Array]]: ...  # noqa: D102


def make_nodes(coldest: float) -> Array:
    """Distances from the ambient temperature in K at which tables have nodes: down to ``coldest`` below, 10⁴ above."""
    near, far = (
        start * _GROWTH ** np.arange(ceil(np.log(end / start) / np.log(_GROWTH)) + 1)
        for start, end in ((_NEAREST, _WIDEST / (_GROWTH - 1.0)), (_WIDE_FROM, _FARTHEST))
    )
    above = np.concatenate((near, np.arange(near[-1] + _WIDEST, _WIDE_FROM - _WIDEST / 2.0, _WIDEST), far))
    below = above[: int(np.searchsorted(above, coldest)) + 1]
    return np.concatenate((-below[::-1], [0.0], above))


def with_bends(nodes: Array, laws: Sequence[Bending], end: float, follow: Followed) -> Array:
    """Nodes with others where laws bend, and halfway between two, as long as temperatures would be displaced.

    Args:
        nodes: distances from the ambient temperature in K, ascending.
        laws: at least one; the nodes are those of all.
        end: of the run in s.
        follow: the temperatures that can occur.
    """
    left, ambients = list(laws), np.array([law.ambient.extremes(end) for law in laws])
    some = np.unique(np.quantile(ambients, [0.0, 0.5, 1.0], method="nearest"))
    bends = np.unique(np.concatenate([law.bends(end, follow.low, follow.high, some) for law in laws]))
    bends = bends[(bends > nodes[0]) & (bends < nodes[-1])]
    most = min(_MOST, _MOST_NUMBERS // len(laws))
    while left and len(nodes) < most:
        every = refined(np.union1d(nodes, bends), 2)
        places = np.setdiff1d(every, nodes)
        count = int(np.clip(_VALUES // (len(left) * len(every)), _LEAST_TRIED, _MOST_TRIED))
        apart = [_displaced(law.sampled(every, end, count), every, nodes, places, follow) for law in left]
        left = [law for law, of_law in zip(left, apart, strict=True) if of_law.max() > follow.resolution]
        worst = np.max(apart, axis=0)
        wrong = np.flatnonzero(worst > follow.resolution)
        wrong = wrong[np.argsort(-worst[wrong], kind="stable")][: most - len(nodes)]
        nodes = np.union1d(nodes, places[wrong])
    return nodes


def _displaced(
    sampled: Iterator[tuple[Array, Array]], every: Array, nodes: Array, places: Array, follow: Followed
) -> Array:
    """By how many K temperatures are displaced at places; 0 where q is right to a small part, or no surface is.

    ``sampled``: ambient temperatures, and q at ``every`` node and place.
    """
    found, segments = np.zeros(len(places)), np.searchsorted(nodes, places) - 1
    starts, lengths = nodes[segments], np.diff(nodes)[segments]
    parts, at_places, at_nodes = (places - starts) / lengths, *(np.searchsorted(every, of) for of in (places, nodes))
    for ambient, of_law in sampled:
        q, ends = of_law[:, at_places], of_law[:, at_nodes]
        inside = (starts + ambient < follow.high) & (starts + lengths + ambient > follow.low)
        with np.errstate(invalid="ignore", divide="ignore"):  # what is not finite is refused elsewhere
            rise = np.diff(ends, axis=1)[:, segments]
            missed = abs(ends[:, segments] + parts * rise - q)
            largest = np.max(abs(q), where=inside & np.isfinite(q), initial=0.0)
            counts = inside & (missed > _EXACT * abs(q)) & (missed > _NOTHING * largest)
            apart = np.where(counts, np.minimum(missed * lengths / abs(rise), lengths), 0.0)
        found = np.maximum(found, apart.max(axis=0))
    return found
