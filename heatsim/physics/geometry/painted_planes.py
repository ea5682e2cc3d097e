"""The planes of a body that a rank paints: its own planes, and the planes on both sides that its surfaces depend on.

Arrays over the cells of such a rank have these planes only. Lists of cells and faces count cells of the whole grid.
Numbers of the whole body come from the own planes of all ranks, in an order that does not depend on the cuts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import ALONE, Team

Indices = NDArray[np.int64]
Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PaintedPlanes:
    """The planes of arrays over the cells that a rank has painted.

    Attributes:
        slab: own planes, and the others as halos; None if the arrays have all planes.
        team: the ranks, each of which has painted its planes.
        ring: whether the first and the last planes of the grid are neighbours.
    """

    slab: Slab | None = None
    team: Team = ALONE
    ring: bool = False

    @classmethod
    def around(cls, slab: Slab, margin: int, team: Team) -> "PaintedPlanes":
        """A rank's own planes with ``margin`` planes on both sides, or fewer where the grid ends.

        If these are all planes of the grid, they have the order of the grid.
        """
        ring = slab.ring
        below = margin if ring else min(margin, slab.first)
        above = margin if ring else min(margin, slab.planes - slab.last)
        if below + slab.count + above >= slab.planes:
            below, above, ring = slab.first, slab.planes - slab.last, False
        return cls(Slab(slab.planes, slab.first, slab.last, below, above, ring), team, slab.ring)

    @property
    def stepped(self) -> Slab | None:
        """The own planes with the halo that a rank needs to step them; None if the arrays have all planes."""
        if self.slab is None:
            return None
        slab, ring = self.slab, self.ring
        below, above = (HALO * (ring or end) for end in (slab.first > 0, slab.last < slab.planes))
        return Slab(slab.planes, slab.first, slab.last, below, above, ring)

    @property
    def whole(self) -> bool:
        """Whether the arrays have all planes in the order of the grid.

        This can differ between ranks, so no collective call may depend on it; ``slab is None`` is equal on all ranks.
        """
        return self.slab is None or (self.slab.depth == self.slab.planes and not self.slab.ring)

    @property
    def own(self) -> slice:
        """The own planes in the arrays."""
        return slice(None) if self.slab is None else self.slab.own

    def grid(self, grid: Grid) -> Grid:
        """The grid of the arrays' planes; ``grid``: the whole one."""
        return grid if self.slab is None else grid.planes(self.slab.start, self.slab.depth)

    def periodic(self, periodic: tuple[bool, bool, bool]) -> tuple[bool, bool, bool]:
        """Which axes wrap within the arrays; ``periodic``: those of the whole grid."""
        return periodic[0], periodic[1], periodic[2] and self.whole

    def places(self, nz: int) -> NDArray[np.int64]:
        """The number in the whole grid of each plane of the arrays; ``nz``: planes of the whole grid."""
        return np.arange(nz, dtype=np.int64) if self.slab is None else self.slab.place

    def runs(self, nz: int) -> list[tuple[int, int, int]]:
        """Each run of neighbouring planes: its first plane and its end in the whole grid, its first in the arrays."""
        places = self.places(nz)
        starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        ends = [*starts[1:].tolist(), len(places)]
        return [(int(places[a]), int(places[b - 1]) + 1, a) for a, b in zip(starts.tolist(), ends, strict=True)]

    def own_planes(self, nz: int) -> tuple[int, int]:
        """The first own plane and the end of the own planes, in the whole grid."""
        return (0, nz) if self.slab is None else (self.slab.first, self.slab.last)

    def owns(self, z: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some planes, numbered in the whole grid, are own planes."""
        return np.ones(np.shape(z), dtype=bool) if self.slab is None else self.slab.holds(z)

    def has(self, z: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some planes, numbered in the whole grid, the arrays have."""
        if self.slab is None:
            return np.ones(np.shape(z), dtype=bool)
        return np.asarray((z - self.slab.start) % self.slab.planes < self.slab.depth)

    def near(self, z: NDArray[np.int64], margin: int) -> NDArray[np.bool_]:
        """Which of some planes of the arrays are own planes, or lie at most ``margin`` planes from them."""
        if self.whole:
            return np.ones(np.shape(z), dtype=bool)
        at = self.local(z)
        return np.asarray((at >= self.own.start - margin) & (at < self.own.stop + margin))

    def local(self, z: Any) -> Any:
        """The place in the arrays of planes that they have: a number, an array, or a slice of neighbouring planes.

        Raises:
            IndexError: a plane is not there.
        """
        if self.slab is None:
            return z
        if isinstance(z, slice):
            first = int(self.local(z.start))
            if z.stop > z.start and int(self.local(z.stop - 1)) != first + z.stop - z.start - 1:
                raise IndexError(f"planes {z.start} to {z.stop - 1} are not neighbours in the arrays")
            return slice(first, first + z.stop - z.start)
        found = (np.asarray(z) - self.slab.start) % self.slab.planes
        if np.any(found >= self.slab.depth):
            raise IndexError("a plane that this rank has not painted")
        return found if isinstance(z, np.ndarray) else int(found)

    def local_cells(self, cells: Indices, plane: int) -> Indices:
        """Cells of planes that the arrays have, by their number in the flattened arrays; ``plane``: cells in it."""
        if self.slab is None:
            return cells
        z = cells // plane
        return np.asarray(cells + (self.local(z) - z) * plane)

    def global_cells(self, cells: Indices, plane: int) -> Indices:
        """Cells by their number in the flattened whole grid, from that in the flattened arrays."""
        if self.slab is None:
            return cells
        z = cells // plane
        return np.asarray(cells + (self.slab.place[z] - z) * plane)

    def anywhere(self, z: NDArray[np.int64], values: Any, default: Any) -> Any:
        """Values of cells in any planes, from the ranks that own them. Collective.

        Args:
            z: the planes of the cells in the whole grid.
            values: a function that takes a mask of the cells, and returns the values of the selected cells. The mask
                selects cells in own planes only.
            default: any number of the values' type.
        """
        z = np.asarray(z)
        if self.slab is None:
            return values(np.ones(z.shape, dtype=bool))
        own = self.owns(z)
        found = np.full(z.shape, default)
        for mask, of_rank in self.team.gathered((own, values(own))):
            found[mask] = of_rank
        return found

    def gathered(self, value: T) -> list[T]:
        """The values of all ranks. Collective."""
        return [value] if self.slab is None else self.team.gathered(value)

    def total(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum of all ranks' counts. Collective."""
        return np.asarray(np.sum(self.gathered(counts), axis=0))

    def any(self, flags: Any) -> Any:
        """Whether a flag is set on any rank; one flag or an array of them. Collective."""
        return np.any(self.gathered(flags), axis=0)

    def union(self, numbers: Iterable[int]) -> list[int]:
        """The numbers that any rank has, ascending. Collective."""
        return sorted(set().union(*self.gathered(set(numbers))))

    def sums(self, z: NDArray[np.int64], keys: NDArray[np.integer], values: Array) -> Mapping[int, float]:
        """The sum of values for each key over the own planes of all ranks. Collective.

        The sums of the planes are added exactly. So the results do not depend on the cuts if the values of each plane
        have the same order on any number of ranks.

        Args:
            z: the plane of each value in the whole grid; values of planes that are not own ones are left out.
            keys: the key of each value, at least 0.
            values: the values.
        """
        own = np.flatnonzero(self.owns(z))
        names, place = np.unique(keys[own], return_inverse=True)
        pairs, which = np.unique(z[own].astype(np.int64) * len(names) + place.reshape(-1), return_inverse=True)
        partial = np.bincount(which.reshape(-1), values[own], len(pairs))
        found: dict[int, list[float]] = {}
        mine = (names[pairs % max(len(names), 1)].tolist(), partial.tolist())
        for of_rank in self.gathered(mine):
            for name, part in zip(*of_rank, strict=True):
                found.setdefault(name, []).append(part)
        return {name: fsum(parts) for name, parts in sorted(found.items())}


EVERYTHING = PaintedPlanes()
