"""The halo planes of a slab: how many of them are right, and their exchange with the neighbours."""

from typing import Any

import numpy as np

from heatsim.device import Device
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Parcel, Team

ALWAYS = 1 << 62
_UP, _DOWN = 0, 1  # marks of parcels


class Halo:
    """The halo planes of an array on the ranks of a team.

    Attributes:
        slab: the planes of this rank.
        team: the ranks.
        most: the most steps between two exchanges; a very large number if there are no cuts.
    """

    def __init__(self, slab: Slab, team: Team, device: Device, most: int = HALO) -> None:
        """``most``: at most HALO; fewer if halo planes become wrong otherwise too."""
        self.slab, self.team, self._device = slab, team, device
        self.most = ALWAYS if slab.alone else most
        self._good = ALWAYS if slab.alone else 0

    def reach(self, values: Any, steps: int) -> None:
        """Make sure that ``steps`` steps from here on leave the own planes right. Collective."""
        if steps > self._good:
            self.exchange(values)
            self._good = self.most

    def stepped(self, steps: int) -> None:
        """Record that ``steps`` steps were done."""
        if not self.slab.alone:
            self._good -= steps

    def stale(self) -> None:
        """Record that own planes were changed otherwise than by steps."""
        if not self.slab.alone:
            self._good = 0

    def exchange(self, values: Any) -> None:
        """Replace the halo planes of an array by the own planes of the neighbours. Collective."""
        slab, team, own = self.slab, self.team, self.slab.own
        sent, received = [], []
        for halo, edge, step, mark, other in (
            (slice(0, own.start), slice(own.start, own.start + HALO), -1, _DOWN, _UP),
            (slice(own.stop, slab.depth), slice(own.stop - HALO, own.stop), 1, _UP, _DOWN),
        ):
            if halo.stop > halo.start:
                peer = (team.rank + step) % team.size
                sent.append(Parcel(peer, mark, np.ascontiguousarray(self._device.to_host(values[edge]))))
                room = np.empty((HALO, *values.shape[1:]), values.dtype)
                received.append((halo, Parcel(peer, other, room)))
        team.exchange(sent, [parcel for _, parcel in received])
        for halo, parcel in received:
            values[halo] = self._device.xp.asarray(parcel.array)
