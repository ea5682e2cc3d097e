"""Send arrays on devices between ranks: from GPU to GPU with NCCL, or through the host.

NCCL uses the fastest connection between two GPUs: NVLink, PCIe or the network. It needs one GPU per rank. Without NCCL,
and on CPUs, arrays are copied to the host and sent as messages of the team.
"""

import os
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heatsim.device import Device
from heatsim.parallel.nccl import NcclExchange, check_connections, connections, logged, name_of
from heatsim.parallel.team import Parcel, Team


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
    """A method to send arrays on devices between ranks."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send some arrays and receive others. On a GPU this may only be queued. Collective."""


class HostTransport:
    """Sends arrays through host memory, as messages of the team."""

    name = "host buffers"

    def __init__(self, team: Team, device: Device) -> None:
        self._team, self._device = team, device

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send some arrays and receive others."""
        out = [Parcel(of.peer, of.mark, np.ascontiguousarray(self._device.to_host(of.array))) for of in sent]
        rooms = [Parcel(of.peer, of.mark, np.empty(of.array.shape, of.array.dtype)) for of in received]
        self._team.exchange(out, rooms)
        for of, room in zip(received, rooms, strict=True):
            of.array[...] = self._device.xp.asarray(room.array)


class NcclTransport:
    """Sends arrays from GPU to GPU with NCCL.

    Attributes:
        name: NCCL, with the connections that it took.
    """

    def __init__(self, nccl: NcclExchange, name: str) -> None:
        self._nccl, self.name = nccl, name

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Queue all parcels."""
        self._nccl.exchange(sent, received)


def choose_transport(team: Team, device: Device, ring: bool = False) -> Transport:
    """NCCL if every rank has NCCL and a separate GPU, else host memory. Collective.

    Args:
        team: the ranks.
        device: of this rank.
        ring: whether the first and the last rank exchange arrays too.

    Raises:
        DeviceError: NCCL would use TCP, and the user did not ask for it.
    """
    through_host = HostTransport(team, device)
    if team.size == 1 or device.backend == "cpu":
        return through_host
    nccl = _nccl()
    gpus = team.gathered(None if nccl is None else (socket.gethostname(), device.number()))
    if None in gpus or len(set(gpus)) < team.size:
        return through_host
    # Multicast over NVLink needs permissions that containers often lack. Sends between two ranks do not use it.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    with logged() as log:
        unique = team.broadcast(nccl.get_unique_id() if team.first else None)
        exchange = NcclExchange(nccl, nccl.NcclCommunicator(team.size, unique, team.rank), device)
        team.follow(exchange.progress)
        _connect(team, device, exchange, ring)
        text = log.read_text(errors="replace") if log is not None and log.is_file() else ""
    # A rank's log has both directions of its connections.
    of_ranks = team.gathered(connections(text))
    found = {pair: way for of_rank in of_ranks for pair, way in of_rank.items()}
    check_connections(found, [gpu[0] for gpu in gpus if gpu is not None], os.environ)
    return NcclTransport(exchange, name_of(found))


def _connect(team: Team, device: Device, exchange: NcclExchange, ring: bool) -> None:
    """Exchange one byte with each neighbour, because NCCL connects two ranks at their first exchange."""
    peers = [rank % team.size for rank in (team.rank - 1, team.rank + 1) if ring or 0 <= rank < team.size]
    rooms = device.xp.zeros(4, dtype="uint8")
    # Two ranks in a ring are neighbours on both sides.
    sent = [DeviceParcel(peer, side, rooms[side : side + 1]) for side, peer in enumerate(peers)]
    received = [DeviceParcel(peer, 1 - side, rooms[2 + side : 3 + side]) for side, peer in enumerate(peers)]
    exchange.exchange(sent, received)
    device.synchronise()


def _nccl() -> Any:
    """CuPy's module for NCCL; None if the library is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy warns if the library is missing
        try:
            from cupy.cuda import nccl
        except ImportError:
            return None
    return nccl if nccl.available else None
