"""Send arrays on devices between ranks: from GPU to GPU, or through the host.

NCCL uses the fastest connection between two GPUs: NVLink, PCIe or the network. It needs one GPU per rank. Without NCCL,
and on CPUs, arrays are copied to the host and sent as messages of the team. GPUs of one machine can also copy into each
other's memory while kernels run (:mod:`heatsim.parallel.peer_copies`).
"""

import os
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsim.counts import counted
from heatsim.device import Device
from heatsim.parallel.nccl import NcclExchange, check_connections, connections, logged, name_of
from heatsim.parallel.peer_copies import PEER_COPIES, PeerCopies, connect_peers
from heatsim.parallel.team import ExchangeProgress, Parcel, Team


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


_ALL = 1 << 62


class HostTransport:
    """Sends arrays through host memory, as messages of the team.

    Args:
        team: the ranks.
        device: of this rank.
        why: text with the reason why GPUs use host memory; a part of :attr:`name`.

    Attributes:
        name: in messages.
        copies, copying: see :class:`heatsim.parallel.nccl.NcclExchange`.
    """

    copies: PeerCopies | None = None
    copying = False

    def __init__(self, team: Team, device: Device, why: str = "") -> None:
        self._team, self._device = team, device
        self.name = "host buffers" + why

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send some arrays and receive others. Collective."""
        out = [Parcel(of.peer, of.mark, np.ascontiguousarray(self._device.to_host(of.array))) for of in sent]
        rooms = [Parcel(of.peer, of.mark, np.empty(of.array.shape, of.array.dtype)) for of in received]
        self._team.exchange(out, rooms)
        for of, room in zip(received, rooms, strict=True):
            of.array[...] = self._device.xp.asarray(room.array)


Transport = HostTransport | NcclExchange


def choose_transport(team: Team, device: Device, ring: bool = False) -> Transport:
    """Choose NCCL, with peer copies where they work, or host memory. Collective.

    NCCL needs a separate GPU for every rank. All runs of a job share the connections, because each NCCL connection
    occupies device memory until the process ends.

    Args:
        team: the ranks.
        device: of this rank.
        ring: whether the first and the last rank exchange arrays too.

    Raises:
        DeviceError: NCCL would use TCP, and the user did not ask for it.
    """
    if team.size == 1 or device.backend == "cpu":
        return HostTransport(team, device)
    key = device.number(), ring
    if key not in team.connections:
        team.connections[key] = _connected(team, device, ring)
    found: Transport = team.connections[key]
    return found


def _connected(team: Team, device: Device, ring: bool) -> Transport:
    """Connect the ranks, for :func:`choose_transport`. Collective."""
    nccl = _nccl()
    gpus = team.gathered(None if nccl is None else (socket.gethostname(), device.number()))
    if None in gpus:
        return HostTransport(team, device, ", because CuPy has no NCCL")
    if (count := len(set(gpus))) < team.size:
        return HostTransport(team, device, f", because {team.size} ranks share {counted(count, 'GPU')}")
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
    copies = connect_peers(team, device, _neighbours(team, ring))
    copying = any(team.gathered(copies is not None))
    if copying:  # all ranks must follow the same kinds of exchanges
        team.follow(_no_exchanges if copies is None else copies.events.progress)
    exchange.name, exchange.copies, exchange.copying = f"{PEER_COPIES} and " * copying + name_of(found), copies, copying
    return exchange


def _no_exchanges() -> ExchangeProgress:
    """The progress of a rank without peer copies: other ranks do not wait for it."""
    return ExchangeProgress(_ALL, _ALL)


def _neighbours(team: Team, ring: bool) -> dict[int, int]:
    """The rank below (0) and above (1), where they exist."""
    of_sides = enumerate((team.rank - 1, team.rank + 1))
    return {side: rank % team.size for side, rank in of_sides if ring or 0 <= rank < team.size}


def _connect(team: Team, device: Device, exchange: NcclExchange, ring: bool) -> None:
    """Exchange one byte with each neighbour, because NCCL connects two ranks at their first exchange."""
    rooms, neighbours = device.xp.zeros(4, dtype="uint8"), _neighbours(team, ring)
    # Two ranks in a ring are neighbours on both sides.
    sent = [DeviceParcel(peer, side, rooms[side : side + 1]) for side, peer in neighbours.items()]
    received = [DeviceParcel(peer, 1 - side, rooms[2 + side : 3 + side]) for side, peer in neighbours.items()]
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
