"""Arrays on devices that ranks exchange, and the interface of the methods that send them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from heatsim.parallel.peer_copies import PeerCopies


@dataclass(frozen=True, eq=False)
class DeviceParcel:
    """An array on a device that is sent to another rank, or received from it.

    Attributes:
        peer: the other rank.
        mark: a number that distinguishes the parcels between two ranks; equal at both ends.
        array: contiguous; the values to send, or the buffer for the values to receive.
    """

    peer: int
    mark: int
    array: Any


class Transport(Protocol):
    """A method to send arrays on devices between ranks.

    Attributes:
        copies: copies to neighbours that overlap with kernels; None if this rank has no neighbour that they reach.
        copying: whether any rank has such copies.
    """

    copies: PeerCopies | None
    copying: bool

    @property
    def name(self) -> str:
        """Its name in messages."""

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send some arrays and receive others. On a GPU this call may return before the exchange ends. Collective."""
