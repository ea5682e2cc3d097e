"""What ranks exchange: arrays on devices, and the methods to send them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from heatsim.parallel.peer_copies import PeerCopies


@dataclass(frozen=True, eq=False)
class DeviceParcel:
    """An array on a device to send to, or to receive from, another rank.

    Attributes:
        peer: the other rank.
        mark: distinguishes the parcels between two ranks; equal at both ends.
        array: contiguous: the values to send, or the buffer to receive into.
    """

    peer: int
    mark: int
    array: Any


class Transport(Protocol):
    """A method to send arrays on devices between ranks.

    Attributes:
        copies: to neighbours, beside kernels; None if this rank reaches no neighbour so.
        copying: whether any rank has such copies.
    """

    copies: PeerCopies | None
    copying: bool

    @property
    def name(self) -> str:
        """Its name in messages."""

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send some arrays and receive others. On a GPU this may only be queued. Collective."""
