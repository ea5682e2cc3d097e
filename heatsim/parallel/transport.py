"""How arrays on devices travel between ranks: from GPU to GPU with NCCL, or through the host.

NCCL takes the fastest way between two GPUs: NVLink, PCIe or the network. It needs a GPU for each rank. Without it, and
on CPUs, arrays are copied to the host and travel as messages of the team.
"""

import os
import socket
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heatsim.device import Device
from heatsim.parallel.team import Parcel, Team


@dataclass(frozen=True, eq=False)
class DeviceParcel:
    """An array of a device on the way between two ranks.

    Attributes:
        peer: the other rank.
        mark: tells the parcels between two ranks apart; equal at both ends.
        array: contiguous; the values to send, or the room for what comes.
    """

    peer: int
    mark: int
    array: Any


class Transport(Protocol):
    """A way for arrays between ranks."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send arrays, and fill arrays with what other ranks send. On a GPU this may be queued. Collective."""


class HostTransport:
    """Through buffers on the host, as messages of the team."""

    name = "host buffers"

    def __init__(self, team: Team, device: Device) -> None:
        self._team, self._device = team, device

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Send arrays, and fill arrays with what other ranks send."""
        out = [Parcel(of.peer, of.mark, np.ascontiguousarray(self._device.to_host(of.array))) for of in sent]
        rooms = [Parcel(of.peer, of.mark, np.empty(of.array.shape, of.array.dtype)) for of in received]
        self._team.exchange(out, rooms)
        for of, room in zip(received, rooms, strict=True):
            of.array[...] = self._device.xp.asarray(room.array)


class NcclTransport:
    """From GPU to GPU, queued on the current stream.

    Args:
        nccl: the module of CuPy.
        communicator: of the ranks of the team.
        device: the GPU of this rank.
    """

    name = "NCCL"

    def __init__(self, nccl: Any, communicator: Any, device: Device) -> None:
        self._nccl, self._communicator, self._device = nccl, communicator, device

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Queue all parcels as one group. Between two ranks NCCL matches them in their order, that of the marks."""
        stream, byte = self._device.xp.cuda.get_current_stream().ptr, self._nccl.NCCL_INT8
        self._nccl.groupStart()
        for parcels, call in ((sent, self._communicator.send), (received, self._communicator.recv)):
            for of in sorted(parcels, key=lambda of: of.mark):
                call(of.array.data.ptr, of.array.nbytes, byte, of.peer, stream)
        self._nccl.groupEnd()


def choose_transport(team: Team, device: Device) -> Transport:
    """NCCL, if every rank has it and a GPU that no other rank uses; else through the host. Collective."""
    through_host = HostTransport(team, device)
    if team.size == 1 or device.backend == "cpu":
        return through_host
    nccl = _nccl()
    gpus = team.gathered(None if nccl is None else (socket.gethostname(), device.number()))
    if None in gpus or len(set(gpus)) < team.size:
        return through_host
    # Multicast over NVLink needs rights that containers often lack, and sends between two ranks do not use it.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    unique = team.broadcast(nccl.get_unique_id() if team.first else None)
    return NcclTransport(nccl, nccl.NcclCommunicator(team.size, unique, team.rank), device)


def _nccl() -> Any:
    """CuPy's module for NCCL; None if the library is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy warns if the library is missing
        try:
            from cupy.cuda import nccl
        except ImportError:
            return None
    return nccl if nccl.available else None
