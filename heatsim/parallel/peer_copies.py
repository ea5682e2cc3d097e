"""Send arrays between GPUs of one machine with copy engines, through rooms in the memory of the receiver.

Each rank has two rooms for each of its neighbours. A room is free again as soon as its values were copied to their
place, so a rank may be one exchange ahead of its neighbour.
"""

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from heatsim.device import Device
from heatsim.parallel.exchange_events import ExchangeEvents
from heatsim.parallel.parcels import DeviceParcel, Transport
from heatsim.parallel.peer_memory import CudaPeerMemory, PeerMemory
from heatsim.parallel.team import Team

PEER_COPIES = "peer-to-peer copies"  # the name in messages
SIDES = 2  # marks of parcels: 0 from the neighbour above, 1 from the one below
_ROOMS = 2  # for each mark
_FLAG = 256  # bytes from one flag to the next
_NUMBER = 4  # bytes
_ARRIVED, _TAKEN = 0, SIDES  # the first flag of each kind
_BEFORE_ROOMS = 2 * SIDES * _FLAG
_OFF = "NCCL_P2P_DISABLE"  # the environment variable that forbids memory shared by GPUs


def mailbox_bytes(room: int) -> int:
    """The bytes of device memory that a rank needs to receive parcels of ``room`` bytes."""
    return _BEFORE_ROOMS + SIDES * _ROOMS * room


class PeerCopies:
    """Sends arrays to the neighbours of a rank.

    Args:
        memory: of the GPUs.
        here: the address of this rank's mailbox.
        peers: the addresses of the mailboxes of other ranks.
        room: bytes of a room.

    Attributes:
        peers: the addresses of the mailboxes of the ranks that are reached.
    """

    def __init__(self, memory: PeerMemory, here: int, peers: Mapping[int, int], room: int) -> None:
        self._memory, self._here, self.peers, self._room = memory, here, peers, room
        self._sent, self._received = [0] * SIDES, [0] * SIDES

    def takes(self, of: DeviceParcel) -> bool:
        """Whether this parcel can be sent or received here; both ends agree."""
        return of.peer in self.peers and of.mark < SIDES and of.array.nbytes <= self._room

    def send(self, of: DeviceParcel) -> None:
        """Queue the copy of an array to its receiver."""
        self._sent[of.mark] += 1
        memory, peer, number = self._memory, self.peers[of.peer], self._sent[of.mark]
        memory.wait(_flag(self._here, _TAKEN + of.mark), number - _ROOMS)
        memory.copy(self._place(peer, of.mark, number), of.array.data.ptr, of.array.nbytes)
        memory.write(_flag(peer, _ARRIVED + of.mark), number)

    def receive(self, of: DeviceParcel) -> None:
        """Queue the copy of a parcel from its room to its place."""
        self._received[of.mark] += 1
        memory, number = self._memory, self._received[of.mark]
        memory.wait(_flag(self._here, _ARRIVED + of.mark), number)
        memory.copy(of.array.data.ptr, self._place(self._here, of.mark, number), of.array.nbytes)
        memory.write(_flag(self.peers[of.peer], _TAKEN + of.mark), number)

    def greet(self, rank: int, neighbours: Mapping[int, int]) -> None:
        """Write the number of this rank to a room of each neighbour, once with a copy and once directly."""
        for side, peer in neighbours.items():
            if peer in self.peers:
                target, source = self._place(self.peers[peer], side, 0), self._place(self._here, side, 1)
                self._memory.write(source, 1 + rank)
                self._memory.copy(target, source, _NUMBER)
                self._memory.write(target + _NUMBER, 1 + rank)
        self._memory.read(self._here)

    def greeted_by(self, neighbours: Mapping[int, int]) -> set[int]:
        """The neighbours whose numbers have arrived, after all have called :meth:`greet`."""
        found = set()
        for side, peer in neighbours.items():
            place = self._place(self._here, 1 - side, 0)
            if all(self._memory.read(at) == 1 + peer for at in (place, place + _NUMBER)):
                self._memory.wait(place, 1 + peer)
                found.add(peer)
        self._memory.read(self._here)
        return found

    def _place(self, mailbox: int, mark: int, number: int) -> int:
        """The address of the room for a parcel."""
        return mailbox + _BEFORE_ROOMS + (_ROOMS * mark + number % _ROOMS) * self._room


def _flag(mailbox: int, number: int) -> int:
    return mailbox + number * _FLAG


class PeerTransport:
    """Sends arrays with copy engines where possible, and with another transport elsewhere.

    Attributes:
        name: in messages.
    """

    def __init__(self, copies: PeerCopies, rest: Transport, events: ExchangeEvents) -> None:
        self._copies, self._rest, self._events, self.name = copies, rest, events, rest.name

    def exchange(self, sent: Sequence[DeviceParcel], received: Sequence[DeviceParcel]) -> None:
        """Queue all parcels."""
        near_sent, far_sent = self._divided(sent)
        near_received, far_received = self._divided(received)
        with self._events.around():
            for of in near_sent:
                self._copies.send(of)
            for of in near_received:
                self._copies.receive(of)
        if far_sent or far_received:
            self._rest.exchange(far_sent, far_received)

    def _divided(self, parcels: Iterable[DeviceParcel]) -> tuple[list[DeviceParcel], list[DeviceParcel]]:
        near, far = list[DeviceParcel](), list[DeviceParcel]()
        for of in parcels:
            (near if self._copies.takes(of) else far).append(of)
        return near, far


def connect_peers(team: Team, device: Device, neighbours: Mapping[int, int], room: int) -> PeerCopies | None:
    """Copies to the neighbours of this rank whose memory it can write, and which can write its own. Collective.

    Args:
        team: the ranks.
        device: the GPU of this rank.
        neighbours: the rank below (0) and above (1), as far as they exist.
        room: the most bytes of a parcel.

    Returns:
        The copies; None if there are no such neighbours.
    """
    memory, here, handle, opened = None, 0, None, dict[int, int]()
    room = -(-room // _FLAG) * _FLAG
    # Drivers, containers and the settings of clusters may refuse any of these calls, with errors of several types.
    with suppress(Exception):
        if os.environ.get(_OFF, "0") == "0":
            memory = peer_memory(device)
            here = memory.allocate(mailbox_bytes(room))
            handle = memory.handle(here)
    known = team.gathered((socket.gethostname(), handle))
    for peer in set(neighbours.values()):
        host, of_peer = known[peer]
        with suppress(Exception):
            if memory is not None and of_peer is not None and host == known[team.rank][0]:
                opened[peer] = memory.open(of_peer)
    copies = None if memory is None else PeerCopies(memory, here, opened, room)
    with suppress(Exception):
        if copies is not None:
            copies.greet(team.rank, neighbours)
    team.meet()
    reached = set[int]()
    with suppress(Exception):
        if copies is not None:
            reached = copies.greeted_by(neighbours)
    of_ranks = team.gathered(reached)
    near = {peer: address for peer, address in opened.items() if peer in reached and team.rank in of_ranks[peer]}
    return PeerCopies(memory, here, near, room) if memory is not None and near else None


def peer_memory(device: Device) -> PeerMemory:
    """The calls for memory that processes share.

    Raises:
        OSError, AttributeError: the driver does not offer them.
    """
    return CudaPeerMemory(device.xp)
