"""The operator of a level, and the one that stands for it on a coarser level.

Two cells merge into one along an axis. A coarse link is a series of a part of the link inside the left pair, the link
between the pairs, and a part of the link inside the right pair; tubes beside each other add up:

        ├─── pair ───┤├─── pair ───┤
        ●─────●───────●─────●                  1/link' = part/inside + 1/between + part/inside
           inside  between  inside             link'   = Σ over the one, two or four tubes

In a uniform body the part is ½, which makes link' half of what the Galerkin product with piecewise constants gives;
that product is twice too stiff (Braess, *Computing* 55 (1995) 379). The one number of a pair of unequal cells is close
to the temperature of the cell that has the stronger links to others, so the part is smaller on that side:

    part = min(½, w_far/(w_near + w_far)),   w = Σ of a cell's links and ground, without the link inside the pair

Near is the cell beside the other pair. Without this, copper that shares a pair with gel would lose its link to the
copper below. The last cell of an odd number stays alone and adds no part.

The ground of a cell at the end of its body is reached through the same part of the link inside its pair:
1/ground' = part/inside + 1/ground. Where a cell is at the end along m axes its ground is taken to be shared by them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Factors = tuple[int, int, int]

# An axis whose mean link is below this fraction of the strongest is not coarsened: smoothing does not flatten errors
# along a weak axis. 0.07 to 0.25 were tried: the number of cycles changes by a quarter.
STRONG = 0.15
# Levels of this many cells or fewer are solved by their inverse.
COARSEST = 256
_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Operator:
    """A symmetric seven-point operator on cells [z, y, x].

    Attributes:
        links: three device arrays of the cells' shape, along x, y, z: the conductance between a cell and the one before
            it, in W/K. That of the first cell leads to the last cell: 0 where the axis does not wrap.
        ground: the conductance from each cell to known temperatures in W/K.
    """

    links: tuple[Any, Any, Any]
    ground: Any

    @property
    def shape(self) -> tuple[int, int, int]:
        """(nz, ny, nx)."""
        nz, ny, nx = self.ground.shape
        return nz, ny, nx

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.ground.size)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(self.ground.nbytes) + sum(int(link.nbytes) for link in self.links)


def choose_factors(operator: Operator) -> Factors:
    """How many cells merge along x, y, z: 2 along each axis that conducts strongly, compared among those left to merge.

    The mean over an axis counts the faces between cells, those that nothing passes included.
    """
    means = [0.0, 0.0, 0.0]
    for axis, n in enumerate(operator.shape[::-1]):
        if n > 1:
            total = float(operator.links[axis].sum(dtype=np.float64))
            means[axis] = total / operator.size * n / (n - 1)
    return _strong(operator.shape, means)


def _strong(shape: tuple[int, int, int], means: Sequence[float]) -> Factors:
    strongest = max(mean for n, mean in zip(shape[::-1], means, strict=True) if n > 1)
    x, y, z = (2 if n > 1 and mean >= STRONG * strongest else 1 for n, mean in zip(shape[::-1], means, strict=True))
    return x, y, z


def cells_below(shape: tuple[int, int, int], means: Sequence[float]) -> int:
    """Number of cells of all levels below the finest, for mean links along x, y, z in any unit; an estimate."""
    nx, ny, nz, below = *shape[::-1], 0
    while nx * ny * nz > COARSEST:
        factors = _strong((nz, ny, nx), means)
        nx, ny, nz = (-(-n // factor) for n, factor in zip((nx, ny, nz), factors, strict=True))
        # Two halves in series, and tubes beside each other.
        means = [mean * prod(factors) / factor**2 for mean, factor in zip(means, factors, strict=True)]
        below += nx * ny * nz
    return below


def coarsen(xp: Any, operator: Operator, factors: Factors) -> Operator:
    """The operator of cells merged by ``factors`` along x, y, z.

    Args:
        xp: NumPy, or CuPy.
        operator: of the fine cells.
        factors: 1 or 2 for each axis.
    """
    strength = _strength(xp, operator)
    resistance, ends = xp.zeros_like(strength), xp.zeros(operator.shape, dtype="int8")
    shape = tuple(-(-n // factor) for n, factor in zip(operator.shape, factors[::-1], strict=True))
    links = []
    for axis in range(3):
        dimension, link = 2 - axis, xp.empty(shape, dtype=strength.dtype)
        # A slab at a time across the axis, so that temporary arrays stay small.
        across = 0 if dimension else 1
        for fine, coarse in _slabs(operator, across, factors[2 - across]):
            place = (slice(None),) * across + (fine,)
            along, weights, ohms, ended = (
                xp.moveaxis(values[place], dimension, 0)
                for values in (operator.links[axis], strength, resistance, ends)
            )
            parts = _parts(xp, along, weights) if factors[axis] == 2 else None
            _add_ends(xp, along, parts, ohms, ended)
            merged = xp.moveaxis(along if parts is None else _in_series(xp, along, parts), 0, dimension)
            for other in range(3):
                if other != axis and factors[other] == 2:
                    merged = merge(xp, merged, 2 - other)
            link[(slice(None),) * across + (coarse,)] = merged
        links.append(link)
    del strength
    resistance /= xp.maximum(ends, 1) ** 2
    resistance *= operator.ground
    resistance += resistance.dtype.type(1.0)
    ground = operator.ground / resistance
    del resistance
    for axis in range(3):
        if factors[axis] == 2:
            ground = merge(xp, ground, 2 - axis)
    return Operator((links[0], links[1], links[2]), xp.ascontiguousarray(ground))


def _slabs(operator: Operator, dimension: int, factor: int) -> Iterator[tuple[slice, slice]]:
    """Slabs of the fine cells across a dimension of the array, and of the coarse cells that these make."""
    n = operator.shape[dimension]
    thickness = 2 * max(1, _CELLS_AT_ONCE * n // (2 * operator.size))
    for first in range(0, n, thickness):
        last = min(first + thickness, n)
        yield slice(first, last), slice(first // factor, -(-last // factor))


def merge(xp: Any, values: Any, dimension: int) -> Any:
    """Sums of pairs along a dimension of an array; the last of an odd number stays alone."""
    along = xp.moveaxis(values, dimension, 0)
    merged = along[0::2].copy()
    merged[: len(along) // 2] += along[1::2]
    return xp.moveaxis(merged, 0, dimension)


def _strength(xp: Any, operator: Operator) -> Any:
    """The diagonal of A: the sum of each cell's links and ground."""
    strength = operator.ground.copy()
    for axis, link in enumerate(operator.links):
        strength += link
        before, after = xp.moveaxis(strength, 2 - axis, 0), xp.moveaxis(link, 2 - axis, 0)
        before[:-1] += after[1:]
        before[-1] += after[0]
    return strength


def _parts(xp: Any, along: Any, strength: Any) -> tuple[Any, Any]:
    """Resistances from the place that a pair stands for to its first and to its second cell, along dimension 0."""
    inside = along[1::2]
    pairs, number = len(inside), along.dtype.type
    first, second = (xp.maximum(strength[side::2][:pairs] - inside, number(0.0)) for side in (0, 1))
    total = first + second
    # Two cells that nothing joins, of which one is void for instance, meet other pairs by their own links alone.
    joined = (inside > number(0.0)) & (total > number(0.0))
    most = xp.where(joined, number(0.5) / xp.where(joined, inside, number(1.0)), number(0.0))
    total = xp.where(joined, total * inside, number(1.0))
    return xp.minimum(second / total, most), xp.minimum(first / total, most)


def _add_ends(xp: Any, along: Any, parts: tuple[Any, Any] | None, resistance: Any, ends: Any) -> None:
    """Note the cells that end their body along dimension 0, and what lies between them and their pair's place."""
    pairs = len(along) // 2
    is_first = along <= along.dtype.type(0.0)
    is_last = xp.roll(is_first, -1, 0)
    ends += is_first | is_last
    if parts is not None:
        resistance[0::2][:pairs] += xp.where(is_first[0::2][:pairs], parts[0], along.dtype.type(0.0))
        resistance[1::2] += xp.where(is_last[1::2], parts[1], along.dtype.type(0.0))


def _in_series(xp: Any, along: Any, parts: tuple[Any, Any]) -> Any:
    """Links between pairs of cells along dimension 0."""
    between, number = along[0::2], along.dtype.type
    conducts = between > number(0.0)
    resistance = xp.where(conducts, number(1.0) / xp.where(conducts, between, number(1.0)), number(xp.inf))
    before, after = parts
    resistance[: len(before)] += before
    resistance[1:] += after[: len(between) - 1]
    if len(after) == len(between):
        resistance[0] += after[-1]
    merged = number(1.0) / resistance
    if len(merged) == 1:
        merged[...] = number(0.0)
    return merged
