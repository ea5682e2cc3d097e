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
    """Sends arrays from GPU to GPU; the transfers are queued on the current stream.

    Args:
        nccl: CuPy's module for NCCL.
        communicator: the NCCL communicator of the team.
        device: the GPU of this rank.
    """

    name = "NCCL"

    def __init__(self, nccl: Any, communicator: Any, device: Device) -> None:
        self._nccl, self._communicator, self._device = nccl, communicator, device

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Queue all parcels as one group. NCCL matches parcels by their order, so they are sorted by mark."""
        stream, byte = self._device.xp.cuda.get_current_stream().ptr, self._nccl.NCCL_INT8
        self._nccl.groupStart()
        for parcels, call in ((sent, self._communicator.send), (received, self._communicator.recv)):
            for of in sorted(parcels, key=lambda of: of.mark):
                call(of.array.data.ptr, of.array.nbytes, byte, of.peer, stream)
        self._nccl.groupEnd()


def choose_transport(team: Team, device: Device) -> Transport:
    """NCCL if every rank has NCCL and a separate GPU, else host memory. Collective."""
    through_host = HostTransport(team, device)
    if team.size == 1 or device.backend == "cpu":
        return through_host
    nccl = _nccl()
    gpus = team.gathered(None if nccl is None else (socket.gethostname(), device.number()))
    if None in gpus or len(set(gpus)) < team.size:
        return through_host
    # Multicast over NVLink needs permissions that containers often lack. Sends between two ranks do not use it.
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
