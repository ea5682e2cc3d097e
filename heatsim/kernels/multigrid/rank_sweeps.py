"""Sweeps over levels whose planes several ranks share.

The finest levels are cut into slabs with HALO planes of the neighbours beside each cut. Each rank has all of the coarse
levels below, and solves them: all ranks calculate the same numbers, so the solution needs no message.

                     ranks 0  1  2
    level 0          ░░░│░░░│░░░            b and the coarse solution are exchanged once per level and cycle
    level 1          ░░░│░░░│░░░
    level 2          ░░░░░░░░░░░ ×3         from here on each rank has the whole level

The sweeps of a slab treat cuts as insulated ends, so each of them makes one more halo plane wrong. A cycle exchanges b
before it starts on a level, and the solution of the level below after that:

    correct halo planes      b 4 → start 3 → smooth 2 → restrict ┐
                             own 0 ← smooth 1 ← smooth_corrected ┘ with 2 of T, all of b and of the coarse solution

So four planes are enough for two smoothing steps. Sums are taken over own planes only. Where smoothing solves lines,
the first step needs no neighbours, and the one along z exchanges what it adds: four planes are enough too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import PlaneGroups
from heatsim.kernels.multigrid.cycle import STEPS
from heatsim.kernels.multigrid.lines import Lines
from heatsim.kernels.multigrid.operator import Operator, merge, shape_below
from heatsim.kernels.multigrid.pairs import Factors, Pairs, pairs_of
from heatsim.kernels.multigrid.sweeps import LevelSweeps
from heatsim.parallel.halo import Halo
from heatsim.parallel.slab import HALO, Slab

# A level of this many cells or fewer is not divided: messages take longer than sweeps over it.
FEW = 2**15
# Cuts lie at multiples of a power of two, about 1/_PART_OF_SLAB of a slab. So coarse levels can be cut there too, and
# slabs differ little.
_PART_OF_SLAB = 8

if HALO < 2 * STEPS:
    raise ValueError("a V-cycle on slabs needs two halo planes for each smoothing step")


def cut_multiple(planes: int, ranks: int) -> int:
    """A power of two at whose multiples the cuts between ranks lie, for a grid with ``planes`` planes."""
    return 1 << max(0, (planes // (ranks * _PART_OF_SLAB)).bit_length() - 1)


@dataclass(frozen=True, eq=False)
class Descent:
    """From the slab of a level to the level below. A coarse plane belongs to the rank of its first plane.

    Attributes:
        fine: the slab.
        coarse: the slab of the level below; None if each rank has all of this level.
        whole: how the planes of the whole level merge.
    """

    fine: Slab
    coarse: Slab | None
    whole: Pairs

    @cached_property
    def local(self) -> Pairs:
        """How the planes of the fine arrays merge; of a pair at their end there may be one plane."""
        coarse = self.whole.coarse[self.fine.place]
        return Pairs.starting([0, *(np.flatnonzero(np.diff(coarse)) + 1), self.fine.depth], self.whole.soft)

    @property
    def place(self) -> slice:
        """The coarse planes of the fine arrays in the coarse arrays; only with a coarse slab."""
        assert self.coarse is not None, "otherwise the ranks have different parts of the coarse arrays"
        first = self.coarse.below - self.own.start
        return slice(first, first + len(self.local))

    @cached_property
    def own(self) -> slice:
        """Which of these planes belong to this rank."""
        below, own = self.fine.below, self.fine.own.stop
        first, last = np.searchsorted(self.local.first[:-1], (below, own)).tolist()
        return slice(first, last)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of these planes in the whole coarse level."""
        return self.whole.coarse[self.fine.place[self.local.first[:-1]]]


class RankSweeps:
    """The sweeps of a rank; see :class:`heatsim.kernels.multigrid.sweeps.LevelSweeps`. All of them are collective.

    Args:
        sweeps: work on the arrays of this rank, and sum over all ranks.
        device: the device of the arrays.
        halo: the halo of the finest level, which is divided among several ranks.
    """

    def __init__(self, sweeps: LevelSweeps, device: Device, halo: Halo) -> None:
        self._sweeps, self._device, self._team = sweeps, device, halo.team
        self._halos = {halo.slab: halo}
        # The first plane of each rank, and the number of planes.
        self._cuts = {halo.slab: (*self._team.gathered(halo.slab.first), halo.slab.planes)}
        self._descents: dict[tuple[Slab, tuple[int, int, int]], Descent] = {}
        self.smooth, self.advance, self.direct = sweeps.smooth, sweeps.advance, sweeps.direct
        self.mean_links, self.strengths, self.inner = sweeps.mean_links, sweeps.strengths, sweeps.inner
        self.scalars, self.read = sweeps.scalars, sweeps.read
        # The halo planes of b and T suffice, as for steps of Jacobi. Lines along x and y lie within planes.
        self.remainder, self.add = sweeps.remainder, sweeps.add

    def start(self, A: Operator, b: Any, out: Any, tau: float) -> None:
        """See :class:`LevelSweeps`."""
        self.fill_halo(A, b)
        self._sweeps.start(A, b, out, tau)

    def residual(self, A: Operator, T: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        self.fill_halo(A, T)
        self._sweeps.residual(A, T, b, out)

    def restrict(self, A: Operator, T: Any, b: Any, out: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        written = self._room(A, out, factors)
        self._sweeps.restrict(A, T, b, written, self._local(A, factors))
        self._share(A, written, out)

    def smooth_corrected(
        self, A: Operator, T: Any, correction: Any, factors: Factors, b: Any, out: Any, tau: float
    ) -> None:
        """See :class:`LevelSweeps`."""
        self._sweeps.smooth_corrected(A, T, self._beside(A, correction), self._local(A, factors), b, out, tau)

    def correct(self, A: Operator, T: Any, correction: Any, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        self._sweeps.correct(A, T, self._beside(A, correction), self._local(A, factors))

    def _beside(self, A: Operator, correction: Any) -> Any:
        """The correction of the coarse planes of the fine arrays."""
        if A.slab is None:
            return correction
        descent = self._descent(A)
        if descent.coarse is None:
            return correction[self._device.xp.asarray(descent.numbers)]
        self._halos[descent.coarse].exchange(correction)
        return correction[descent.place]

    def join(self, A: Operator, lines: Lines) -> None:
        """See :class:`LevelSweeps`."""
        self._in_turn(A, lines, lines.pivot, 1, partial(self._sweeps.join, A, lines))

    def solve_lines(
        self, A: Operator, lines: Lines, b: Any, out: Any, tau: float, *, forth: bool = True, back: bool = True
    ) -> None:
        """See :class:`LevelSweeps`."""
        solve = partial(self._sweeps.solve_lines, A, lines, b, out, tau)
        if forth:
            self._in_turn(A, lines, out, 1, partial(solve, back=False))
        if back:
            self._in_turn(A, lines, out, -1, partial(solve, forth=False))

    def _in_turn(self, A: Operator, lines: Lines, values: Any, direction: int, work: Callable[[], None]) -> None:
        """Do work along lines: lines along z are continued from rank to rank, upwards or downwards."""
        if A.slab is None or lines.axis != 2:
            work()
            return
        for rank in range(self._team.size)[::direction]:
            if rank == self._team.rank:
                work()
            self.fill_halo(A, values)

    def multiply(self, A: Operator, matrix: Any, b: Any, out: Any) -> None:
        """See :class:`LevelSweeps`."""
        if A.slab is None:
            self._sweeps.multiply(A, matrix, b, out)
            return
        xp = self._device.xp
        whole = xp.asarray(self._joined(b[A.slab.own]))
        product = xp.empty_like(whole)
        self._sweeps.multiply(A, matrix, whole, product)
        out[...] = product[xp.asarray(A.slab.place)]

    def coarsen(self, A: Operator, out: Operator, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        arrays = (*out.links, out.ground)
        x, y, z, ground = written = [self._room(A, array, factors) for array in arrays]
        self._sweeps.coarsen(A, Operator((x, y, z), ground), self._local(A, factors))
        for these, array in zip(written, arrays, strict=True):
            self._share(A, these, array)
        self._fill(out, arrays)

    def merge(self, A: Operator, out: Operator, factors: Factors) -> None:
        """See :class:`LevelSweeps`."""
        written = self._room(A, out.capacity, factors)
        written[...] = merge(A.capacity, self._local(A, factors))
        self._share(A, written, out.capacity)
        self._fill(out, [out.capacity])

    def slab_below(self, A: Operator, factors: Factors) -> Slab | None:
        """See :class:`LevelSweeps`."""
        if A.slab is None:
            return None
        fine, shape = A.slab, shape_below(A.whole_shape, factors)
        whole = pairs_of(factors[2], fine.planes)
        cuts = tuple(np.searchsorted(whole.first, self._cuts[fine]).tolist())
        coarse = None
        # Sums over groups of planes of coarse levels are those of whole axes that merge.
        if _can_be_cut(shape, cuts, fine.ring, 1 if A.graded else PlaneGroups.of(shape).size):
            first, last = cuts[self._team.rank : self._team.rank + 2]
            coarse = Slab(shape[0], first, last, fine.below, fine.above, fine.ring)
            self._cuts[coarse] = cuts
            self._halos.setdefault(coarse, self._halos[fine].on(coarse))
        self._descents[fine, A.shape] = Descent(fine, coarse, whole)
        return coarse

    def complete(self, A: Operator) -> None:
        """See :class:`LevelSweeps`."""
        self._fill(A, [*A.links, A.ground, *([] if A.capacity is None else [A.capacity])])

    def fill_halo(self, A: Operator, values: Any) -> None:
        """See :class:`LevelSweeps`."""
        if A.slab is not None:
            self._halos[A.slab].exchange(values)

    def on_host(self, A: Operator) -> NDArray[Any]:
        """See :class:`LevelSweeps`."""
        found = self._sweeps.on_host(A)
        return found if A.slab is None else np.concatenate(self._team.gathered(found[:, A.slab.own]), axis=1)

    def repeated(self, work: Callable[[], object]) -> Callable[[], object]:
        """See :class:`LevelSweeps`. A CUDA graph cannot contain messages, so the work is queued each time."""
        return work

    def apply(self, A: Operator, T: Any, out: Any, scalars: Any) -> None:
        """See :class:`LevelSweeps`."""
        self.fill_halo(A, T)
        self._sweeps.apply(A, T, out, scalars)

    def extremes(self, A: Operator, x: Any) -> tuple[float, float]:
        """See :class:`LevelSweeps`."""
        self.fill_halo(A, x)
        found = self._team.gathered(self._sweeps.extremes(A, x))
        return min(lowest for lowest, _ in found), max(highest for _, highest in found)

    def _fill(self, A: Operator, arrays: Any) -> None:
        """Set the halo planes of some arrays of an operator; a cut is an insulated end."""
        for array in arrays:
            self.fill_halo(A, array)
        if A.slab is not None and A.slab.cut[0]:
            A.links[2][0] = 0.0

    def _local(self, A: Operator, factors: Factors) -> Factors:
        """How the planes of this rank's arrays merge."""
        return factors if A.slab is None else (factors[0], factors[1], self._descent(A).local)

    def _descent(self, A: Operator) -> Descent:
        assert A.slab is not None, "all ranks have the whole level"
        return self._descents[A.slab, A.shape]

    def _room(self, A: Operator, coarse: Any, factors: Factors) -> Any:
        """The planes of a coarse array that come from the planes of this rank's fine arrays."""
        if A.slab is None:
            return coarse
        descent = self._descent(A)
        if descent.coarse is not None:
            return coarse[descent.place]
        return self._device.xp.empty((len(descent.local), *coarse.shape[1:]), dtype=coarse.dtype)

    def _share(self, A: Operator, written: Any, coarse: Any) -> None:
        """Set all planes of a coarse array from those of :meth:`_room`, if each rank has all of them."""
        if A.slab is not None and self._descent(A).coarse is None:
            coarse[...] = self._device.xp.asarray(self._joined(written[self._descent(A).own]))

    def _joined(self, planes: Any) -> NDArray[Any]:
        """The planes of all ranks on the host."""
        return np.concatenate(self._team.gathered(self._device.to_host(planes)))


def _can_be_cut(shape: tuple[int, int, int], cuts: tuple[int, ...], ring: bool, group: int) -> bool:
    """Whether a level can be divided among the ranks.

    Args:
        shape: of the whole level.
        cuts: the first plane of each rank, and the number of planes.
        ring: whether the z axis wraps; then the last plane must not remain alone when planes merge.
        group: planes of a group, between which cuts must lie.
    """
    fit = min(last - first for first, last in pairwise(cuts)) >= HALO and not any(cut % group for cut in cuts[:-1])
    return fit and prod(shape) > FEW and not (ring and shape[0] % 2)
