"""The halo planes of a slab: how many of them are right, and their exchange with the neighbours."""

from typing import Any

import numpy as np

from heatsim.device import Device
from heatsim.parallel.slab import HALO, Slab
from heatsim.parallel.team import Parcel, Team

ALWAYS = 1 << 62


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
        own, to_host = self.slab.own, self._device.to_host
        edges = values[own.start : own.start + HALO], values[own.stop - HALO : own.stop]
        below, above = self.swap(*(to_host(edge) if is_cut else None for edge, is_cut in zip(edges, self.slab.cut)))
        if below is not None:
            values[: own.start] = self._device.xp.asarray(below)
        if above is not None:
            values[own.stop :] = self._device.xp.asarray(above)

    def swap(self, lowest: Any, highest: Any) -> tuple[Any, Any]:
        """Give arrays to the neighbours and take theirs. Collective.

        Args:
            lowest: on the host, for the rank below; not used where there is none.
            highest: of the same shape, for the rank above.

        Returns:
            What the rank below and the rank above gave; None where there is none.
        """
        team, found, sent, received = self.team, [None, None], [], []
        for side, (is_cut, array) in enumerate(zip(self.slab.cut, (lowest, highest), strict=True)):
            if is_cut:
                peer = (team.rank + 2 * side - 1) % team.size
                found[side] = np.empty_like(array)
                sent.append(Parcel(peer, side, np.ascontiguousarray(array)))
                received.append(Parcel(peer, 1 - side, found[side]))
        team.exchange(sent, received)
        return found[0], found[1]
