"""NCCL between ranks that are threads: what CuPy's module offers, by copies in memory."""

import ctypes
import os
import threading

import pytest
from thread_team import current_team

from heatsim.device import Device
from heatsim.parallel import transport

NCCL_INT8 = 0
WAY = "P2P/CUMEM"
FAULTS: list[str] = []
_group = threading.local()


class NcclCommunicator:
    def __init__(self, size: int, unique: str, rank: int) -> None:
        assert unique == "all ranks"
        self.team = current_team()
        assert (size, rank) == (self.team.size, self.team.rank)
        # As NCCL, which has one log for each process; here a thread's lines stand in the log that it reads.
        with open(os.environ["NCCL_DEBUG_FILE"], "a") as log:
            log.write(f"host:1:2 [0] NCCL INFO Channel 00/0 : {rank}[0] -> {(rank + 1) % size}[0] via {WAY}\n")

    def check_async_error(self) -> None:
        if FAULTS:
            raise RuntimeError(FAULTS[0])

    def send(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        _group.sent.append((peer, ctypes.string_at(pointer, count)))

    def recv(self, pointer: int, count: int, kind: int, peer: int, stream: int) -> None:
        _group.received.append((peer, pointer, count))


def groupStart() -> None:
    _group.sent, _group.received = [], []


def groupEnd() -> None:
    team = current_team()
    of_ranks = [[content for peer, content in sent if peer == team.rank] for sent in team.gathered(_group.sent)]
    for peer, pointer, count in _group.received:
        content = of_ranks[peer].pop(0)
        assert len(content) == count
        ctypes.memmove(pointer, content, count)
    assert not any(of_ranks)


def get_unique_id() -> str:
    return "all ranks"


def play_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every rank find NCCL and a GPU that no other rank uses."""
    import host_nccl

    monkeypatch.setattr(transport, "_nccl", lambda: host_nccl)
    monkeypatch.delattr(transport.HostTransport, "exchange")
    monkeypatch.setattr(Device, "number", lambda device: threading.current_thread().name)
