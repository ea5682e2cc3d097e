"""Which planes of cells merge into planes of the level below.

Equal cells merge along whole axes (operator.py). On a graded grid a plane merges with the next one where the links
between both are strong: smoothing does not flatten errors across weak links. Along an axis the strength of a pair is

    mean of  link / strongest link of both cells                 over all pairs of cells that conduct

Pairs from STRONG on merge, whatever other axes do. So cells become more alike from level to level, and each level
has whole planes. If little merges, weaker pairs do too: each level has at most MOST of the cells of the level above.

A pair may then have weak links in a part of its planes. Errors are not smooth across these, so a coarse link has less
of them in series (operator.py):   part·min(1, SOFT·inside/(w_near + w_far)).   Cubes have inside = (w_near + w_far)/10.

Steps of Jacobi flatten errors along the strong links of such a place only slowly, and the levels below do not have
them. If more than FEW of the pairs of cells that merge along an axis are below WEAK, and another axis has links from
BESIDE on in the same places, whole lines of cells along that axis are solved at once (lines.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import fsum, inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The strength from which on pairs merge; 0.25, 0.35 and 0.5 were tried. Pairs of which half conduct fully have 0.5.
STRONG = 0.6
# What is tried where less than this part of the cells would vanish.
_WEAKER = (0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.0)
MOST = 0.8
# Applications are 5 to 25 % fewer than without it.
SOFT = 10.0
# Relative links below which a pair of cells counts as weak, and from which on lines beside it have to be solved; the
# part of all pairs that may be weak. 0.05 to 0.2, 0.1 to 0.3 and 0.005 to 0.05 were tried: applications differ by a
# tenth.
WEAK, BESIDE, FEW = 0.1, 0.3, 0.01
_CELLS_AT_ONCE = 2**20
_PLANES_TO_ESTIMATE = 24


@dataclass(frozen=True, eq=False)
class Pairs:
    """How the planes of cells along an axis merge: each coarse plane has one or two of them.

    Attributes:
        first: the first plane of each coarse plane, and the number of planes; shape (coarse planes + 1,).
        coarse: the coarse plane of each plane, shape (planes,).
        soft: SOFT, or inf for whole axes, whose links are strong in all places.
    """

    first: NDArray[np.int64]
    coarse: NDArray[np.int64]
    soft: float = SOFT

    @classmethod
    def starting(cls, first: Sequence[int] | NDArray[np.integer], soft: float = SOFT) -> "Pairs":
        """Pairs from their first planes and the number of planes."""
        starts = np.array(first, dtype=np.int64)
        return cls(starts, np.repeat(np.arange(len(starts) - 1), np.diff(starts)), soft)

    @classmethod
    def joining(cls, strong: Sequence[bool] | NDArray[np.bool_]) -> "Pairs":
        """Join each plane to the next one where ``strong`` says so, from the first plane on; shape (planes − 1,)."""
        first, plane, planes = [], 0, len(strong) + 1
        while plane < planes:
            first.append(plane)
            plane += 2 if plane + 1 < planes and strong[plane] else 1
        return cls.starting([*first, planes])

    @property
    def widest(self) -> int:
        """The most planes of a coarse plane: 1 or 2."""
        return int(np.diff(self.first).max())

    def __len__(self) -> int:
        """Number of coarse planes."""
        return len(self.first) - 1

    def merge(self, values: Any, dimension: int) -> Any:
        """The sums of values over the planes that merge along a dimension of an array, in a fixed order; a copy."""
        before, two = (slice(None),) * dimension, np.flatnonzero(np.diff(self.first) == 2)
        # Lists are indices for arrays of the host and of a device.
        merged = values[(*before, self.first[:-1].tolist())]
        merged[(*before, two.tolist())] += values[(*before, (self.first[two] + 1).tolist())]
        return merged


# How planes merge along an axis: 1 for no plane, 2 for each plane with an even number with the next one, or pairs.
Factor = int | Pairs
Factors = tuple[Factor, Factor, Factor]


@cache
def _regular(planes: int, factor: int) -> Pairs:
    return Pairs.starting([*range(0, planes, factor), planes], inf)


def pairs_of(factor: Factor, planes: int) -> Pairs:
    """How ``planes`` planes merge."""
    return factor if isinstance(factor, Pairs) else _regular(planes, factor)


def planes_below(factor: Factor, planes: int) -> int:
    """The number of coarse planes."""
    return len(factor) if isinstance(factor, Pairs) else -(-planes // factor)


def choose_pairs(strengths: Sequence[NDArray[np.float64]]) -> tuple[Pairs, Pairs, Pairs]:
    """The pairs along x, y, z.

    Args:
        strengths: along x, y, z those of each plane with the next one, shape (planes − 1,).
    """
    cells = prod(len(along) + 1 for along in strengths)
    for least in (STRONG, *_WEAKER):
        x, y, z = (Pairs.joining(along >= least) for along in strengths)
        if len(x) * len(y) * len(z) <= MOST * cells:
            break
    return x, y, z


def shapes_below(widths: Sequence[NDArray[np.float64]], coarsest: int) -> Iterator[tuple[int, int, int]]:
    """Estimate the shapes of all levels below the finest on a graded grid, for a body of one material.

    Args:
        widths: of the cells along x, y, z.
        coarsest: levels of this many cells or fewer are the last.
    """
    while prod(map(len, widths)) > coarsest:
        pairs = choose_pairs([_strengths_along(axis, widths) for axis in range(3)])
        x, y, z = widths = [each.merge(along, 0) for each, along in zip(pairs, widths, strict=True)]
        yield len(z), len(y), len(x)


def _strengths_along(axis: int, widths: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The strengths along an axis in a body of one material, from some planes across the others."""
    steepest, used = [], []
    for other, along in enumerate(widths):
        nearness = np.concatenate(([0.0], 2.0 / (along[1:] + along[:-1]), [0.0]))
        planes = np.arange(len(along))
        if other != axis:
            planes = planes[:: -(-len(along) // _PLANES_TO_ESTIMATE)]
        steepest.append(np.maximum(nearness[1:], nearness[:-1])[planes] / along[planes])
        used.append(along[planes])
    # Of the axis itself first.
    own, first, second = (axis, (axis + 1) % 3, (axis + 2) % 3)
    volumes = np.einsum("i,j,k->ijk", used[own], used[first], used[second])
    across = np.maximum(steepest[first][:, None], steepest[second])
    strongest = volumes * np.maximum(steepest[own][:, None, None], across)
    areas = np.multiply.outer(used[first], used[second])
    links = (2.0 / (used[own][1:] + used[own][:-1]))[:, None, None] * areas
    return np.asarray((links / np.maximum(strongest[1:], strongest[:-1])).mean(axis=(1, 2)))


@dataclass(frozen=True, eq=False)
class Strengths:
    """How strong the links between each plane across an axis and the next one are.

    Attributes:
        mean: the strength, shape (planes − 1,).
        pairs: how many pairs of cells conduct, shape (planes − 1,).
        weak: how many of them are below WEAK, with links from BESIDE on along the next axis, and along the one after
            that, in the order x, y, z, x, y; shape (2, planes − 1).
    """

    mean: NDArray[np.float64]
    pairs: NDArray[np.float64]
    weak: NDArray[np.float64]


def strengths(rows: NDArray[np.float64], planes: Sequence[int]) -> list[Strengths]:
    """The strengths along x, y, z.

    Args:
        rows: those of :func:`relative_links` of all planes across z; the first one has no plane before it.
        planes: cells along x, y, z.
    """
    nx, ny, _ = planes
    across = np.array([[fsum(column) for column in kind.T] for kind in rows[:, :, :-1].transpose(1, 0, 2)])
    found = []
    for sums, counts, *weak in (across[:, 1:nx], across[:, nx + 1 : nx + ny], rows[1:, :, -1].T):
        # Planes between which nothing conducts may merge: it does not matter.
        mean = np.where(counts > 0.0, sums / np.where(counts > 0.0, counts, 1.0), 1.0)
        found.append(Strengths(mean, counts, np.array(weak)))
    return found


def lines_beside(found: Sequence[Strengths], merging: Sequence[Pairs]) -> tuple[int, ...]:
    """The axes along which lines of cells have to be solved: 0, 1, 2 for x, y, z.

    Args:
        found: the strengths along x, y, z.
        merging: how planes merge along x, y, z.
    """
    axes = set()
    for axis, (along, pairs) in enumerate(zip(found, merging, strict=True)):
        merged = pairs.first[:-1][np.diff(pairs.first) == 2]
        for further, weak in enumerate(along.weak, 1):
            if weak[merged].sum() > FEW * along.pairs[merged].sum():
                axes.add((axis + further) % 3)
    return tuple(sorted(axes))


def relative_links(xp: Any, links: Sequence[Any], to_host: Any) -> NDArray[np.float64]:
    """Sums over the links of each plane across z, relative to the strongest link of both cells, and numbers of links.

    Args:
        xp: the library of the arrays.
        links: along x, y, z, arrays [z, y, x].
        to_host: copies an array to the host.

    Returns:
        Shape (nz, 4, nx + ny + 1): sums and numbers of the links along x that end at each x, of those along y that end
        at each y, and of those from the plane before; then the numbers of weak ones, as in :class:`Strengths`. Links
        from the last plane to the first one count as 0.
    """
    nz, ny, nx = links[0].shape
    found = np.zeros((nz, 4, nx + ny + 1))
    at_once = max(1, _CELLS_AT_ONCE // (ny * nx))
    for start in range(0, nz, at_once):
        first, last = max(start - 1, 0), min(start + at_once, nz)  # with the plane before
        along, own = _strongest(xp, links, first, last), slice(start - first, None)
        in_plane = [each[own] for each in along]
        x, y, z = (link[first:last] for link in links)
        rows = found[start:last]
        for kind, sums in enumerate(_relative(xp, x[own], in_plane, 0, 1)):
            rows[:, kind, 1:nx] = to_host(sums)
        for kind, sums in enumerate(_relative(xp, y[own], in_plane, 1, 2)):
            rows[:, kind, nx + 1 : nx + ny] = to_host(sums)
        for kind, sums in enumerate(_relative(xp, z, along, 2, (1, 2))):
            found[first + 1 : last, kind, -1] = to_host(sums)
    return found


def _relative(xp: Any, link: Any, along: Sequence[Any], axis: int, over: int | tuple[int, int]) -> Iterator[Any]:
    """Sums of the relative links along an axis over dimensions, numbers of those that count, and of weak ones if any.

    Args:
        xp: the library of the arrays.
        link: the links along the axis.
        along: the strongest link of each cell along x, y, z, and of all.
        axis: 0, 1, 2 for x, y, z.
        over: the dimensions.
    """
    later, before = ((*(slice(None),) * (2 - axis), each) for each in (slice(1, None), slice(None, -1)))
    *of_axes, strongest = along
    most = xp.maximum(strongest[later], strongest[before])
    conducts = most > 0
    ratio = xp.where(conducts, link[later] / xp.where(conducts, most, 1), 0)
    yield ratio.sum(axis=over, dtype="float64")
    yield conducts.sum(axis=over, dtype="float64")
    weak = conducts & (ratio < WEAK)
    if weak.any():
        for beside in (of_axes[(axis + 1) % 3], of_axes[(axis + 2) % 3]):
            strong = xp.maximum(beside[later], beside[before]) > BESIDE * most
            yield (weak & strong).sum(axis=over, dtype="float64")


def _strongest(xp: Any, links: Sequence[Any], first: int, last: int) -> list[Any]:
    """The strongest link of each cell along x, y, z, and of all, in some planes across z."""
    x, y, z = (link[first:last] for link in links)
    above = links[2][xp.arange(first + 1, last + 1) % len(links[2])]
    x, y, z = xp.maximum(x, xp.roll(x, -1, 2)), xp.maximum(y, xp.roll(y, -1, 1)), xp.maximum(z, above)
    return [x, y, z, xp.maximum(xp.maximum(x, y), z)]
