"""Send arrays from GPU to GPU with NCCL, and watch what NCCL does.

NCCL chooses a connection for each pair of GPUs: NVLink or PCIe, shared memory, InfiniBand, or TCP if it finds nothing
better. TCP is much slower than the others, and NCCL takes it without a warning. So heatsim reads NCCL's log of the
first exchange, and refuses a run that would use TCP, unless the user asks for TCP.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heatsim.device import Device
from heatsim.errors import DeviceError
from heatsim.parallel.exchange_events import ExchangeEvents
from heatsim.parallel.peer_copies import PeerCopies
from heatsim.parallel.team import ExchangeProgress

# A line of the log: Channel 00/0 : 33[1] -> 40[0] [send] via NET/IB/3/GDRDMA
_CONNECTION = re.compile(r" : (\d+)\[[^]]*\] -> (\d+)\[[^]]*\](?: \[\w+\])? via ([^\s/]+(?:/[^\s/]+)?)")
TCP = "NET/Socket"
# NCCL's variable for the network, and the value that asks for TCP.
_NETWORK, _SOCKETS = "NCCL_NET", "Socket"


class NcclExchange:
    """Sends arrays between the GPUs of a team; the transfers are queued on the current stream.

    Args:
        nccl: CuPy's module for NCCL.
        communicator: the NCCL communicator of the team.
        device: the GPU of this rank.

    Attributes:
        name: in messages: NCCL, with the connections that it uses.
        copies: copies to neighbours that overlap with kernels; None if this rank has no neighbour that they reach.
        copying: whether any rank has such copies.
    """

    name = "NCCL"
    copies: PeerCopies | None = None
    copying = False

    def __init__(self, nccl: Any, communicator: Any, device: Device) -> None:
        self._nccl, self._communicator, self._device = nccl, communicator, device
        self._events = ExchangeEvents(device)

    def exchange(self, sent: Sequence[Any], received: Sequence[Any]) -> None:
        """Queue all parcels as one group; the call may return before the exchange ends. Collective.

        NCCL matches parcels by their order, so they are sorted by mark.
        """
        stream, byte = self._device.xp.cuda.get_current_stream().ptr, self._nccl.NCCL_INT8
        with self._events.around():
            self._nccl.groupStart()
            for parcels, call in ((sent, self._communicator.send), (received, self._communicator.recv)):
                for of in sorted(parcels, key=lambda of: of.mark):
                    call(of.array.data.ptr, of.array.nbytes, byte, of.peer, stream)
            self._nccl.groupEnd()

    def progress(self) -> ExchangeProgress:
        """How far the GPU is; another thread calls this.

        Raises:
            Exception: NCCL reports an error.
        """
        self._communicator.check_async_error()
        return self._events.progress()


@contextmanager
def logged() -> Iterator[Path | None]:
    """Let NCCL write its log to a file from its first call on; None if the user set NCCL_DEBUG."""
    if "NCCL_DEBUG" in os.environ:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="heatsim-nccl-") as folder:
        path = Path(folder) / "log"
        os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(path)}
        try:
            yield path
        finally:
            del os.environ["NCCL_DEBUG"], os.environ["NCCL_DEBUG_FILE"]


def connections(log: str) -> dict[tuple[int, int], str]:
    """The connections that a log of NCCL names, such as ``"P2P/CUMEM"``, by the ranks that send and receive."""
    return {(int(one), int(other)): way for one, other, way in _CONNECTION.findall(log)}


def check_connections(
    found: Mapping[tuple[int, int], str], hosts: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Refuse TCP that the user did not ask for.

    Args:
        found: from :func:`connections`, of all ranks.
        hosts: the machine of each rank.
        environment: the environment variables.

    Raises:
        DeviceError: two ranks would exchange planes through TCP.
    """
    if environment.get(_NETWORK) == _SOCKETS:
        return
    slow = next((pair for pair, way in sorted(found.items()) if way == TCP), None)
    if slow is None:
        return
    one, other = (f"rank {rank} on {hosts[rank]}" for rank in slow)
    raise DeviceError(
        f"NCCL found no fast connection from {one} to {other} and took TCP ({TCP}), which is slow; check the drivers "
        f"of InfiniBand and NCCL's variables such as NCCL_IB_HCA, or set {_NETWORK}={_SOCKETS} to allow TCP"
    )


def name_of(found: Mapping[tuple[int, int], str]) -> str:
    """The name of NCCL with its connections for messages, such as ``"NCCL (P2P/CUMEM, NET/IB)"``."""
    ways = sorted(set(found.values()), reverse=True)
    return f"NCCL ({', '.join(ways)})" if ways else "NCCL"
