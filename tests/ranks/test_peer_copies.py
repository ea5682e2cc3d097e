"""Copies between GPUs that share memory: the right arrays arrive, and NCCL sends what copies cannot."""

from typing import Any

import numpy as np
import pytest
from cuda_host import gpu
from host_nccl import play_nccl
from host_peers import HostPeerMemory, play_peers
from thread_team import current_team, on_ranks

from heatsim.parallel import peer_copies
from heatsim.parallel.halo import Halo
from heatsim.parallel.peer_copies import PEER_COPIES, mailbox_bytes
from heatsim.parallel.slab import HALO, slabs
from heatsim.parallel.team import Team
from heatsim.parallel.transport import choose_transport

PLANE = (3, 5)
ROOM = HALO * 3 * 5 * 8


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.play_gpu(monkeypatch)
    play_nccl(monkeypatch)
    monkeypatch.delenv("NCCL_P2P_DISABLE", raising=False)


def exchanged(team: Team, *, ring: bool, times: int = 5, dtype: str = "float64") -> str:
    """Exchange the halos of an array that tells its planes and the time. Returns the name of the transport."""
    device = gpu.host_device()
    slab = slabs(24, team.size, periodic=ring)[team.rank]
    transport = choose_transport(team, device, ring, ROOM)
    halo = Halo(slab, team, transport)
    for time in range(times):
        values = device.xp.full((slab.depth, *PLANE), -1.0, dtype=dtype)
        values[slab.own] = (100 * time + np.arange(slab.first, slab.last))[:, None, None]
        halo.exchange(values)
        assert (values == (100 * time + slab.place)[:, None, None]).all()
    return transport.name


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("ranks", [2, 3])
def test_halos_arrive_in_order(ranks: int, ring: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)
    assert on_ranks(ranks, lambda team: exchanged(team, ring=ring)) == [PEER_COPIES] * ranks
    for memory in memories:
        assert memory.copied.count(ROOM) in (2 * 5, 4 * 5), "out and in, at one cut or at two"
        assert {len(mailbox) for mailbox in memory.kept} == {mailbox_bytes(512)}


def test_numbers_of_parcels_start_again_after_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    play_peers(monkeypatch)
    before = 2**32 - 2

    class LongAgo(peer_copies.PeerCopies):
        def __init__(self, memory: Any, here: int, peers: Any, room: int) -> None:
            super().__init__(memory, here, peers, room)
            self._sent, self._received = [before] * 2, [before] * 2
            for flag in range(4):
                memory.write(here + 256 * flag, before)

    monkeypatch.setattr(peer_copies, "PeerCopies", LongAgo)
    assert on_ranks(2, lambda team: exchanged(team, ring=False)) == [PEER_COPIES] * 2


def test_nccl_sends_where_memory_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)
    monkeypatch.setattr(peer_copies.socket, "gethostname", lambda: f"node{current_team().rank // 2}")
    assert on_ranks(3, lambda team: exchanged(team, ring=True)) == [f"{PEER_COPIES}, NCCL (P2P/CUMEM)"] * 3
    assert sorted(memory.copied.count(ROOM) for memory in memories) == [0, 2 * 5, 2 * 5]


@pytest.mark.parametrize("fault", ["handle", "open", "lost", "forbidden"])
def test_nccl_sends_if_memory_cannot_be_shared(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)

    def refuse(*_: object) -> bytes:
        raise RuntimeError("cudaErrorNotSupported")

    if fault == "lost":  # on rank 1 nothing arrives
        copy = HostPeerMemory.copy
        monkeypatch.setattr(
            HostPeerMemory, "copy", lambda memory, *of: copy(memory, *of) if current_team().rank == 1 else None
        )
    elif fault == "forbidden":
        monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    else:
        monkeypatch.setattr(HostPeerMemory, fault, refuse)
    assert on_ranks(2, lambda team: exchanged(team, ring=False)) == ["NCCL (P2P/CUMEM)"] * 2
    assert not any(ROOM in memory.copied for memory in memories)


def test_nccl_sends_arrays_that_are_too_large_for_a_room(monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)
    on_ranks(2, lambda team: exchanged(team, ring=False, dtype="complex128"))
    assert not any(count > ROOM for memory in memories for count in memory.copied)
