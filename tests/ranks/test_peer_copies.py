"""Copies between GPUs that share memory overlap with kernels, and give the same bits as one rank."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda_host import gpu
from host_nccl import play_nccl
from host_peers import HostPeerMemory, play_peers
from slab_runs import LINEAR, problem_of, same
from thread_team import current_team, on_ranks

from heatsim.parallel import peer_copies
from heatsim.parallel.exchange_events import Hangs
from heatsim.parallel.halo import Halo
from heatsim.parallel.signs import Sign
from heatsim.parallel.slab import HALO, slabs
from heatsim.parallel.team import ExchangeProgress, Team
from heatsim.parallel.transport import choose_transport

PLANE = (3, 5)
BYTES = HALO * 3 * 5 * 8
RING = {"z_min": {"type": "periodic"}, "z_max": {"type": "periodic"}}


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.play_gpu(monkeypatch)
    play_nccl(monkeypatch)
    monkeypatch.delenv("NCCL_P2P_DISABLE", raising=False)


def exchanged(team: Team, *, ring: bool = False, times: int = 5) -> bool:
    """Exchange halos of two arrays in turn, with values that name plane and time. Returns whether copies were used."""
    device = gpu.host_device()
    slab = slabs(24, team.size, periodic=ring)[team.rank]
    halo = Halo(slab, team, choose_transport(team, device, ring))
    arrays = [device.xp.zeros((slab.depth, *PLANE)) for _ in range(2)]
    prepared = halo.prepare(*arrays, "sweeps")
    for time in range(times):
        values = arrays[time % 2]
        values[...] = -1.0
        values[slab.own] = (100 * time + np.arange(slab.first, slab.last))[:, None, None]
        if prepared:
            halo.begin(values)
        halo.reach(values, HALO)
        assert (values == (100 * time + slab.place)[:, None, None]).all()
        halo.stepped(HALO)
    return prepared


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("ranks", [2, 3])
def test_halos_arrive_in_order(ranks: int, ring: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)
    assert all(on_ranks(ranks, lambda team: exchanged(team, ring=ring)))
    assert sum(memory.copied.count(BYTES) for memory in memories) == 5 * 2 * (ranks - 1 + ring)


def test_numbers_of_signals_start_again_after_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    play_peers(monkeypatch)
    before = 2**32 - 2

    class LongAgo(peer_copies.PeerCopies):
        def __init__(self, memory: Any, device: Any, here: int, peers: Any) -> None:
            super().__init__(memory, device, here, peers)
            self._number = before
            for signal in range(4):
                memory.write(here + 256 * signal, before)

    monkeypatch.setattr(peer_copies, "PeerCopies", LongAgo)
    assert all(on_ranks(2, exchanged))


def test_nccl_sends_where_memory_is_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ranks on one machine, one on another; in a ring, so that both ranks have a neighbour there."""
    memories, followed = play_peers(monkeypatch), list[Any]()
    monkeypatch.setattr(peer_copies.socket, "gethostname", lambda: f"node{current_team().rank // 2}")
    monkeypatch.setattr(Team, "follow", lambda team, progress: followed.append(progress()))
    assert all(on_ranks(3, lambda team: exchanged(team, ring=True)))
    # Each rank follows NCCL and its copies; the rank without copies follows none.
    signs = [Sign(progress=(ExchangeProgress(5, 5), progress)) for progress in followed[3:]]
    assert len(signs) == 3
    assert Hangs().look(signs) == (0, 0)
    assert sorted(memory.copied.count(BYTES) for memory in memories) == [0, 5, 5]


@pytest.mark.parametrize("fault", ["offer", "open", "lost", "forbidden"])
def test_nccl_sends_if_memory_cannot_be_shared(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)

    def refuse(*_: object) -> bytes:
        raise RuntimeError("cudaErrorNotSupported")

    if fault == "lost":  # what rank 0 copies does not arrive
        copy = HostPeerMemory.copy
        monkeypatch.setattr(HostPeerMemory, "copy", lambda memory, *of: current_team().first or copy(memory, *of))
    elif fault == "forbidden":
        monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    else:
        monkeypatch.setattr(HostPeerMemory, fault, refuse)
    assert not any(on_ranks(2, exchanged))
    assert not any(BYTES in memory.copied for memory in memories)


def test_nccl_sends_if_a_large_array_cannot_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks share their signals. One rank cannot share its arrays."""
    for name in ("offer", "open"):
        with monkeypatch.context() as patch:
            memories, call = play_peers(patch), getattr(peer_copies.PeerCopies, name)

            def refused(copies: Any, what: Any, call: Any = call) -> Any:
                if current_team().first:
                    raise RuntimeError("cudaErrorMapBufferObjectFailed")
                return call(copies, what)

            patch.setattr(peer_copies.PeerCopies, name, refused)
            assert not any(on_ranks(2, exchanged))
            assert not any(BYTES in memory.copied for memory in memories)


def test_runs_of_a_job_share_connections_and_close_the_memory_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    memories, followed = play_peers(monkeypatch), list[Any]()
    monkeypatch.setattr(Team, "follow", lambda team, progress: followed.append(progress))

    def runs(team: Team) -> list[int]:
        found = []
        for _ in range(3):
            assert exchanged(team)
            team.meet()
            found.append(sum(len(memory.opened) for memory in memories))
        return found

    # Each rank keeps the signals of its neighbour open.
    assert on_ranks(2, runs) == [[2, 2, 2]] * 2
    assert len(memories) == 2
    assert len(followed) == 2 * 2  # NCCL and copies of each rank


def test_an_allocation_is_closed_after_its_last_array() -> None:
    """Two runs share an allocation, and a stream that waits forever keeps it open."""
    memory, device = HostPeerMemory(), gpu.host_device()
    copies = peer_copies.PeerCopies(memory, device, memory.allocate(2048), {})
    handle = (12_345).to_bytes(8, "little")
    one, other = peer_copies.Counterparts(copies), peer_copies.Counterparts(copies)
    assert [one.open((handle, 40)), one.open((handle, 64)), other.open((handle, 0))] == [12_385, 12_409, 12_345]
    assert memory.opened == [12_345]
    del one
    assert memory.opened == [12_345]
    del other
    assert memory.opened == []

    again = peer_copies.Counterparts(copies)
    assert again.open((handle, 8)) == 12_353
    copies._stream = SimpleNamespace(done=False)
    del again
    assert memory.opened == [12_345]


def test_ranks_with_other_sweeps_do_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their arrays would not be swapped together."""
    play_peers(monkeypatch)

    def prepared(team: Team) -> bool:
        device, slab = gpu.host_device(), slabs(24, 2, periodic=False)[team.rank]
        arrays = [device.xp.zeros((slab.depth, *PLANE)) for _ in range(2)]
        return Halo(slab, team, choose_transport(team, device)).prepare(*arrays, ("temporal", team.rank))

    assert on_ranks(2, prepared) == [False, False]


@pytest.mark.quick("ring")
@pytest.mark.parametrize(("ranks", "faces"), [(2, {}), (3, {"boundaries": RING})], ids=["chain", "ring"])
def test_steps_beside_copies_give_the_bits_of_one_rank(ranks: int, faces: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = play_peers(monkeypatch)
    solver = {"device": "cuda", "kernel": "temporal", "precision": "float32"}
    text = LINEAR.replace("[20, 8, 13]", "[20, 8, 37]")
    same(problem_of(text, solver=solver, **faces), ranks)
    assert all(HALO * 20 * 8 * 4 in memory.copied for memory in memories)
