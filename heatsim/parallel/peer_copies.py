"""Copy between GPUs of one machine while kernels run.

    rank 0                                       rank 1
    write n ───────────────────────────────────► ready      rank 0 no longer reads its halo
    wait until ready ≥ n  ◄───────────────────── write n
    copy own planes ───────────────────────────► halo
    write n ───────────────────────────────────► arrived
    wait until arrived ≥ n ◄──────────────────── write n

Each array of a rank needs a counterpart on each neighbour: ranks copy into the counterparts.
"""

import os
import socket
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from heatsim.device import Device
from heatsim.parallel.exchange_events import ExchangeEvents
from heatsim.parallel.peer_memory import Offer, PeerMemory
from heatsim.parallel.team import Team

PEER_COPIES = "peer-to-peer copies"  # the name in messages
_SIDES = 2
_APART = 256  # bytes from one signal to the next
_READY, _ARRIVED, _GREETING, _ANSWER = (_SIDES * kind for kind in range(4))  # the first signal of each kind
_SIGNALS = 4 * _SIDES * _APART  # bytes
_NUMBER = 4  # bytes
_OFF = "NCCL_P2P_DISABLE"  # the environment variable that forbids memory shared by GPUs


@dataclass(frozen=True)
class Push:
    """A copy into the memory of a neighbour.

    Attributes:
        side: the side of this rank on which the neighbour is: below (0) or above (1).
        source, target: addresses; ``target`` is in the neighbour's memory.
        count: number of bytes.
    """

    side: int
    source: int
    target: int
    count: int


class PeerCopies:
    """Copies into the memory of the neighbours of a rank, on a separate stream.

    Args:
        memory: CUDA's calls for shared memory.
        device: the GPU of this rank.
        here: the address of this rank's signals.
        peers: the addresses of the signals of the neighbours that copies reach, by side.

    Attributes:
        sides: the sides with a neighbour that copies reach.
        events: track which exchanges have started and ended.
    """

    def __init__(self, memory: PeerMemory, device: Device, here: int, peers: Mapping[int, int]) -> None:
        self._memory, self._device, self._here, self._peers = memory, device, here, peers
        self.sides = tuple(sorted(peers))
        self.events = ExchangeEvents(device)
        self._number = 0
        self._stream = device.xp.cuda.Stream(non_blocking=True)
        # For the handle of each opened allocation: its address, and how often it was opened.
        self._opened: dict[bytes, tuple[int, int]] = {}

    def offer(self, array: Any) -> Offer:
        """What neighbours need to open an array of this rank."""
        return self._memory.offer(int(array.data.ptr))

    def open(self, offer: Offer) -> int:
        """The address of a neighbour's array in this process; see :class:`Counterparts`."""
        handle, first = offer
        address, count = self._opened.get(handle, (0, 0))
        if not count:
            address = self._memory.open(handle)
        self._opened[handle] = address, count + 1
        return address + first

    def close(self, offer: Offer) -> None:
        """Close an opened array. When all arrays of an allocation are closed, the allocation is closed too."""
        handle, _ = offer
        address, count = self._opened[handle]
        if count > 1:
            self._opened[handle] = address, count - 1
        elif self._stream.done:  # after a failure, a queued copy may never end
            del self._opened[handle]
            self._memory.close(address)

    def begin(self, pushes: Sequence[Push]) -> Any:
        """Queue copies that start when all work queued on the current stream is done.

        Args:
            pushes: one for each of ``sides``.

        Returns:
            An event. It is recorded when this rank's values have left and those of its neighbours have arrived.
        """
        self._number += 1
        self._stream.wait_event(self._device.recorded())
        with self._stream:
            with self.events.around():
                self._queue(pushes)
            return self._device.recorded()

    def wait(self, event: Any) -> None:
        """Let the current stream wait for an event of :meth:`begin`."""
        self._device.xp.cuda.get_current_stream().wait_event(event)

    def _queue(self, pushes: Sequence[Push]) -> None:
        memory, number = self._memory, self._number
        for push in pushes:
            memory.write(_signal(self._peers[push.side], _READY + 1 - push.side), number)
        for push in pushes:
            memory.wait(_signal(self._here, _READY + push.side), number)
            memory.copy(push.target, push.source, push.count)
            memory.write(_signal(self._peers[push.side], _ARRIVED + 1 - push.side), number)
        for push in pushes:
            memory.wait(_signal(self._here, _ARRIVED + push.side), number)


class Counterparts:
    """Opened arrays of neighbours. They are closed when this object is deleted.

    Otherwise a process that does many runs would hold the memory of all earlier runs of its neighbours.
    """

    def __init__(self, copies: PeerCopies) -> None:
        self._copies, self._offers = copies, list[Offer]()
        weakref.finalize(self, _close, copies, self._offers).atexit = False

    def open(self, offer: Offer) -> int:
        """Open an array. Returns its address in this process."""
        address = self._copies.open(offer)
        self._offers.append(offer)
        return address


def _close(copies: PeerCopies, offers: Sequence[Offer]) -> None:
    for offer in offers:
        copies.close(offer)


def _signal(signals: int, number: int) -> int:
    return signals + number * _APART


def connect_peers(team: Team, device: Device, neighbours: Mapping[int, int]) -> PeerCopies | None:
    """Connect to the neighbours of this rank that share memory with it in both directions. Collective.

    Args:
        team: the ranks.
        device: the GPU of this rank.
        neighbours: the rank below (0) and above (1), where they exist.

    Returns:
        The copies; None if there are no such neighbours.
    """
    memory, here, offer, peers = None, 0, None, dict[int, int]()
    # Drivers, containers and the settings of clusters may refuse any of these calls, with errors of several types.
    with suppress(Exception):
        if os.environ.get(_OFF, "0") == "0":
            memory = PeerMemory(device.xp)
            here = memory.allocate(_SIGNALS)
            offer = memory.offer(here)
    known, opened = team.gathered((socket.gethostname(), offer)), dict[int, int]()
    with suppress(Exception):
        for side, peer in neighbours.items():
            host, of_peer = known[peer]
            if memory is not None and of_peer is not None and host == known[team.rank][0]:
                opened[peer] = opened.get(peer) or memory.open(of_peer[0]) + of_peer[1]
                peers[side] = opened[peer]
                _greet(memory, team.rank, here, peers[side], side)
    team.meet()
    heard = set[int]()
    with suppress(Exception):
        if memory is not None:
            heard = {side for side, peer in neighbours.items() if _is_greeted(memory, peer, here, side)}
    of_ranks = team.gathered(heard)
    near = {
        side: address for side, address in peers.items() if side in heard and 1 - side in of_ranks[neighbours[side]]
    }
    return PeerCopies(memory, device, here, near) if memory is not None and near else None


def _greet(memory: PeerMemory, rank: int, here: int, peer: int, side: int) -> None:
    """Write the number of this rank into a neighbour's memory: once directly, once with a copy."""
    source = _signal(here, _ANSWER + side) + _NUMBER
    memory.write(source, 1 + rank)
    memory.write(_signal(peer, _GREETING + 1 - side), 1 + rank)
    memory.copy(_signal(peer, _ANSWER + 1 - side), source, _NUMBER)
    memory.read(here)


def _is_greeted(memory: PeerMemory, peer: int, here: int, side: int) -> bool:
    """Whether both numbers from a neighbour have arrived, after its :func:`_greet`."""
    places = _signal(here, _GREETING + side), _signal(here, _ANSWER + side)
    if any(memory.read(place) != 1 + peer for place in places):
        return False
    memory.wait(places[0], 1 + peer)
    return memory.read(places[0]) == 1 + peer
