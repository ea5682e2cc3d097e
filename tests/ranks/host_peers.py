"""Memory shared by GPUs, simulated in host memory by ranks that are threads."""

import ctypes
from typing import Any

import numpy as np
import pytest
from thread_team import current_team

from heatsim.parallel import peer_copies


class HostPeerMemory:
    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.copied: list[int] = []
        self.opened: list[int] = []  # addresses that are open

    def allocate(self, count: int) -> int:
        self.kept.append(np.zeros(count, np.uint8))
        return int(self.kept[-1].ctypes.data)

    def offer(self, address: int) -> tuple[bytes, int]:
        """As if the allocation began 40 bytes before the address."""
        return (address - 40).to_bytes(8, "little"), 40

    def open(self, handle: bytes) -> int:
        self.opened.append(int.from_bytes(handle, "little"))
        return self.opened[-1]

    def close(self, address: int) -> None:
        self.opened.remove(address)

    def copy(self, target: int, source: int, count: int) -> None:
        self.copied.append(count)
        ctypes.memmove(target, source, count)

    def write(self, address: int, number: int) -> None:
        ctypes.c_uint32.from_address(address).value = number

    def wait(self, address: int, number: int) -> None:
        while ctypes.c_int32(self.read(address) - number).value < 0:
            current_team().give_way()

    def read(self, address: int) -> int:
        return ctypes.c_uint32.from_address(address).value


def play_peers(monkeypatch: pytest.MonkeyPatch) -> list[HostPeerMemory]:
    """Let neighbours share memory, in addition to NCCL. Returns the memories of the ranks."""
    found: list[HostPeerMemory] = []

    def memory(xp: object) -> HostPeerMemory:
        found.append(HostPeerMemory())
        return found[-1]

    monkeypatch.setattr(peer_copies, "PeerMemory", memory)
    return found
