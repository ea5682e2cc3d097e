"""The operator of a level, and its approximation on a coarser level.

Two cells merge into one along an axis. A coarse link is a series of a part of the link inside the left pair, the link
between the pairs, and a part of the link inside the right pair; parallel tubes add up:

        ├─── pair ───┤├─── pair ───┤
        ●─────●───────●─────●                  1/link' = part/inside + 1/between + part/inside
           inside  between  inside             link'   = Σ over the one, two or four tubes

In a uniform body the part is ½, which makes link' half of what the Galerkin product with piecewise constants gives;
that product is twice too stiff (Braess, *Computing* 55 (1995) 379). The one number of a pair of unequal cells is close
to the temperature of the cell that has the stronger links to others, so the part is smaller on that side:

    part = min(½, w_far/(w_near + w_far)),   w = Σ of a cell's links and ground, without the link inside the pair

Near is the cell beside the other pair. Without this, copper that shares a pair with gel would lose its link to the
copper below. The last cell of an odd number stays alone and adds no part.

In a time step the ground of a cell also contains heat capacity / length of the step. This part belongs to the cell
itself, so a coarse cell has the sum of it.

The ground of a cell at the end of its body is reached through the same part of the link inside its pair:
1/ground' = part/inside + 1/ground. If a cell is at the end along m axes, they share its ground equally.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from heatsim.kernels.multigrid.pairs import Factors, Pairs, planes_below
from heatsim.parallel.slab import Slab

# An axis whose mean link is below this fraction of the strongest is not coarsened: smoothing does not flatten errors
# along a weak axis. 0.07 to 0.25 were tried: the number of cycles changes by a quarter.
STRONG = 0.15
# Levels of this many cells or fewer are solved by their inverse.
COARSEST = 256
# The same for steps in time, each of which needs another inverse.
COARSEST_IN_TIME = 32


@dataclass(frozen=True, eq=False)
class Operator:
    """A symmetric seven-point operator on cells [z, y, x].

    Attributes:
        links: three device arrays of the cells' shape, along x, y, z: the conductance between a cell and the one before
            it, in W/K. That of the first cell leads to the last cell: 0 where the axis does not wrap.
        ground: the conductance from each cell to known temperatures in W/K.
        capacity: the part of ``ground`` that is the heat capacity of the cells over the length of a step in time; None
            for steady states.
        slab: the planes of the arrays, if several ranks share the cells; None if this rank has all of them.
        graded: whether planes of cells merge where their links are strong; else whole axes do.
    """

    links: tuple[Any, Any, Any]
    ground: Any
    capacity: Any = None
    slab: Slab | None = None
    graded: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """(nz, ny, nx) of the arrays."""
        nz, ny, nx = self.ground.shape
        return nz, ny, nx

    @property
    def size(self) -> int:
        """Number of cells of the arrays."""
        return int(self.ground.size)

    @property
    def whole_shape(self) -> tuple[int, int, int]:
        """(nz, ny, nx) of the whole level."""
        nz, ny, nx = self.shape
        return (nz if self.slab is None else self.slab.planes), ny, nx

    @property
    def cells(self) -> int:
        """Number of cells of the whole level."""
        return prod(self.whole_shape)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        capacity = 0 if self.capacity is None else int(self.capacity.nbytes)
        return capacity + int(self.ground.nbytes) + sum(int(link.nbytes) for link in self.links)


def choose_factors(shape: tuple[int, int, int], links: tuple[float, float, float]) -> tuple[int, int, int]:
    """How many cells merge along x, y, z: 2 along each axis that conducts strongly, compared among those left to merge.

    Args:
        shape: (nz, ny, nx).
        links: Σ of the links along x, y, z over the number of cells. The mean that is compared counts the faces between
            cells, those that nothing passes included.
    """
    return _strong(shape, [link * n / (n - 1) if n > 1 else 0.0 for n, link in zip(shape[::-1], links, strict=True)])


def _strong(shape: tuple[int, int, int], means: Sequence[float]) -> tuple[int, int, int]:
    strongest = max(mean for n, mean in zip(shape[::-1], means, strict=True) if n > 1)
    x, y, z = (2 if n > 1 and mean >= STRONG * strongest else 1 for n, mean in zip(shape[::-1], means, strict=True))
    return x, y, z


def shapes_below(shape: tuple[int, int, int], means: Sequence[float]) -> Iterator[tuple[int, int, int]]:
    """Estimate the shapes of all levels below the finest, from the mean links along x, y, z in any unit."""
    while prod(shape) > COARSEST:
        factors = _strong(shape, means)
        shape = shape_below(shape, factors)
        # Two halves in series, and parallel tubes.
        means = [mean * prod(factors) / factor**2 for mean, factor in zip(means, factors, strict=True)]
        yield shape


def shape_below(shape: tuple[int, int, int], factors: Factors) -> tuple[int, int, int]:
    """The shape (nz, ny, nx) of a level of cells merged by ``factors`` along x, y, z."""
    nz, ny, nx = (planes_below(factor, n) for n, factor in zip(shape, factors[::-1], strict=True))
    return nz, ny, nx


def empty_like(xp: Any, operator: Operator, factors: Factors, slab: Slab | None = None) -> Operator:
    """Room for the operator of cells merged by ``factors`` along x, y, z.

    Args:
        xp: NumPy, or CuPy.
        operator: of the fine cells.
        factors: how planes merge along each axis.
        slab: the planes that this rank has of them; None for all planes.
    """
    nz, ny, nx = shape_below(operator.whole_shape, factors)
    shape = (nz if slab is None else slab.depth), ny, nx
    x, y, z, ground = (xp.empty(shape, dtype=operator.ground.dtype) for _ in range(4))
    capacity = None if operator.capacity is None else xp.empty_like(ground)
    return Operator((x, y, z), ground, capacity, slab, operator.graded)


def merge(capacity: Any, factors: Factors) -> Any:
    """The sum of ``capacity`` [z, y, x] over the cells that merge by ``factors`` along x, y, z, in a fixed order."""
    for dimension, factor in enumerate(factors[::-1]):
        if isinstance(factor, Pairs):
            capacity = factor.merge(capacity, dimension)
        elif factor == 2:
            before = (slice(None),) * dimension
            merged = capacity[(*before, slice(None, None, 2))].copy()
            second = capacity[(*before, slice(1, None, 2))]
            merged[(*before, slice(second.shape[dimension]))] += second
            capacity = merged
    return capacity
