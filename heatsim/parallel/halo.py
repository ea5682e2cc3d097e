"""The halo planes of a slab: count how many are still correct, and exchange them with the neighbours."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.parallel.peer_copies import Counterparts, Push
from heatsim.parallel.peer_memory import Offer
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import ALONE, Parcel, Team
from heatsim.parallel.transport import DeviceParcel, HostTransport, Transport

ALWAYS = 1 << 62


def halo_bytes(grid: Grid, precision: str) -> int:
    """The number of bytes that a rank sends over one cut when it exchanges a field; ``grid`` is the whole grid."""
    nx, ny, _ = grid.cells
    return HALO * nx * ny * np.dtype(precision).itemsize


class Halo:
    """The halo planes of an array on the ranks of a team.

    Attributes:
        slab: the planes of this rank.
        team: the ranks.
        most: the largest number of steps between two exchanges; ``ALWAYS`` if there are no cuts.
    """

    def __init__(self, slab: Slab, team: Team, transport: Transport) -> None:
        self.slab, self.team, self._transport = slab, team, transport
        self.most = ALWAYS if slab.alone else HALO
        self._good = ALWAYS if slab.alone else 0
        # The copies that exchange the halo planes of each array, by its address; the array whose exchange has begun.
        self._pushes: dict[int, list[Push]] = {}
        self._counterparts: Counterparts | None = None  # the targets of the copies
        self._begun: tuple[int, Any] | None = None
        self._asked: Hashable = None
        self._can_begin = False

    @classmethod
    def none(cls, planes: int, device: Device) -> "Halo":
        """The halo of a run on one rank, which has all planes: it has no cuts."""
        return cls(Slab.whole(planes), ALONE, HostTransport(ALONE, device))

    def on(self, slab: Slab) -> "Halo":
        """The halo of arrays with other planes on the same ranks; ``slab`` is cut where this one is."""
        return Halo(slab, self.team, self._transport)

    @property
    def way(self) -> str:
        """How planes are sent, for messages, such as ``"peer copies"``, or ``"host buffers"`` with the reason."""
        return self._transport.name

    def reach(self, values: Any, steps: int) -> None:
        """Exchange the halo planes if they are too old for ``steps`` more steps. Collective."""
        if steps > self._good:
            if not self._complete(values):
                self.exchange(values)
            self._good = self.most

    def stepped(self, steps: int) -> None:
        """Record that ``steps`` steps were done."""
        if self._good != ALWAYS:
            self._good -= steps

    def stale(self) -> None:
        """Record that something other than a step changed the own planes."""
        if self._good != ALWAYS:
            self._good = 0

    def exchange(self, values: Any) -> None:
        """Copy the neighbours' own planes into the halo planes of an array. Collective."""
        if not self.slab.alone:
            self._exchange(values, (0, 1))

    def prepare(self, values: Any, spare: Any, sweeps: Hashable) -> bool:
        """Prepare exchanges that overlap with kernels. Collective.

        Args:
            values: the array that holds the field before the next steps.
            spare: the other array.
            sweeps: identifies the sweeps of the steps. Sweeps determine when the two arrays are swapped.

        Returns:
            Whether :meth:`begin` may be called: some ranks share memory, and the sweeps of all ranks are equal.
        """
        if not self._transport.copying:
            return False
        # With equal sweeps all ranks swap their arrays together, so the arrays remain counterparts.
        asked = sweeps, frozenset((values.data.ptr, spare.data.ptr))
        if asked != self._asked:
            self._asked, self._can_begin = asked, self._find_pushes((values, spare), sweeps)
        return self._can_begin

    def _find_pushes(self, arrays: Sequence[Any], sweeps: Hashable) -> bool:
        """Find the copies to the counterparts of two arrays. Returns whether all ranks can copy. Collective."""
        copies, own, offers = self._transport.copies, self.slab.own, list[Offer]()
        # The ranks shared a small allocation when they connected. A driver may still refuse to share a larger one.
        with suppress(Exception):
            if copies is not None:
                offers = [copies.offer(array) for array in arrays]
        of_ranks = self.team.gathered((sweeps, own, offers))
        possible = all(of_rank[0] == sweeps for of_rank in of_ranks)
        try:
            if copies is not None and possible:
                counterparts = Counterparts(copies)
                self._pushes = {
                    array.data.ptr: [self._push(counterparts, side, number, array, of_ranks) for side in copies.sides]
                    for number, array in enumerate(arrays)
                }
                self._counterparts = counterparts
        except Exception:
            possible = False
        return all(self.team.gathered(possible))

    def _push(
        self,
        counterparts: Counterparts,
        side: int,
        number: int,
        array: Any,
        of_ranks: Sequence[tuple[Any, slice, list[Offer]]],
    ) -> Push:
        """The copy of the own planes beside a cut into the halo of a neighbour."""
        plane, own = int(array[0].nbytes), self.slab.own
        _, own_of_peer, offers = of_ranks[self._peer(side)]
        edge, halo = (own.start, own_of_peer.stop) if side == 0 else (own.stop - HALO, own_of_peer.start - HALO)
        target = counterparts.open(offers[number]) + halo * plane
        return Push(side, array.data.ptr + edge * plane, target, HALO * plane)

    def begin(self, values: Any) -> None:
        """Begin to exchange the halo planes of an array of :meth:`prepare`, after all work queued so far.

        Kernels may run at the same time, but must change neither these planes nor the own planes beside the cuts.
        """
        copies = self._transport.copies
        self._begun = values.data.ptr, None if copies is None else copies.begin(self._pushes[values.data.ptr])

    def end(self, values: Any) -> None:
        """End an exchange that has begun. Collective."""
        if self._complete(values):
            self._good = self.most

    def _complete(self, values: Any) -> bool:
        """Wait for an exchange that has begun, then exchange planes with neighbours that copies do not reach.

        Returns:
            Whether an exchange of this array had begun.
        """
        if self._begun is None:
            return False
        (address, event), self._begun = self._begun, None
        copies = self._transport.copies
        if copies is not None:
            copies.wait(event)
        if address != values.data.ptr:
            return False
        near = () if copies is None else copies.sides
        far = [side for side, is_cut in enumerate(self.slab.cut) if is_cut and side not in near]
        if far:
            self._exchange(values, far)
        return True

    def _exchange(self, values: Any, sides: Sequence[int]) -> None:
        """Copy the neighbours' own planes into the halo planes on some sides."""
        own, sent, received = self.slab.own, list[DeviceParcel](), list[DeviceParcel]()
        edges = slice(own.start, own.start + HALO), slice(own.stop - HALO, own.stop)
        halos = slice(0, own.start), slice(own.stop, None)
        for side in sides:
            if self.slab.cut[side]:
                sent.append(DeviceParcel(self._peer(side), side, values[edges[side]]))
                received.append(DeviceParcel(self._peer(side), 1 - side, values[halos[side]]))
        self._transport.exchange(sent, received)

    def swap(self, lowest: Any, highest: Any) -> tuple[Any, Any]:
        """Send an array to each neighbour and receive one from each. Collective.

        Args:
            lowest: array on the host for the rank below; ignored if there is no such rank.
            highest: array of the same shape for the rank above.

        Returns:
            The arrays from the rank below and from the rank above; None for a rank that does not exist.
        """
        found, sent, received = list[Any]([None, None]), list[Parcel](), list[Parcel]()
        for side, (is_cut, array) in enumerate(zip(self.slab.cut, (lowest, highest), strict=True)):
            if is_cut:
                found[side] = np.empty_like(array)
                sent.append(Parcel(self._peer(side), side, np.ascontiguousarray(array)))
                received.append(Parcel(self._peer(side), 1 - side, found[side]))
        self.team.exchange(sent, received)
        return found[0], found[1]

    def _peer(self, side: int) -> int:
        """The rank below (0) or above (1)."""
        return (self.team.rank + 2 * side - 1) % self.team.size
