"""A team of several processes that MPI started.

Every call polls its requests, and :mod:`heatsim.parallel.watch` ends the job if a rank is dead or stuck. Arrays are
sent as bytes, all other messages as pickled objects.
"""

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np

from heatsim.errors import RanksError
from heatsim.parallel.ending import leave_failed
from heatsim.parallel.process import Process, cores_of
from heatsim.parallel.team import ExchangeProgress, Parcel, Team
from heatsim.parallel.watch import Watch

T = TypeVar("T")

_HEAD = 512  # bytes of the first message of an object: its length, and its start
_LENGTH = 8
# Time in s to poll without a pause. A pause also delays the other ranks of a collective call.
# Ranks that share cores poll for a shorter time, because the others need the cores.
_POLLING, _POLLING_ON_SHARED_CORES = 2e-3, 5e-5
_LONGEST_PAUSE = 1e-3
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)  # let other processes use the core


class MpiTeam(Team):
    """The ranks of an MPI communicator.

    Args:
        communicator: an mpi4py communicator that only this team uses.
        watch: the watch of the team that this one is a branch of; None starts a new watch.
    """

    def __init__(self, communicator: Any, watch: Watch | None = None) -> None:
        from mpi4py import MPI

        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise RanksError(
                f"{MPI.Get_library_version().splitlines()[0]}: does not support messages from several threads, which "
                "heatsim needs to watch its ranks; use an MPI with MPI_THREAD_MULTIPLE"
            )
        self._mpi = MPI
        self._communicator = communicator
        self.rank, self.size = communicator.rank, communicator.size
        self._watch = watch
        self._left = False
        self._branches: dict[str, MpiTeam] = {}
        self._polling = _POLLING_ON_SHARED_CORES
        # Requests hold their buffers. After an error they stay here, because MPI may still write to these buffers.
        self._pending: list[list[Any]] = []
        processes = self.gathered(Process.this())
        self.host = processes[self.rank].host
        here = [rank for rank, process in enumerate(processes) if process.host == self.host]
        self.local_rank = here.index(self.rank)
        self.cores = cores_of(self.rank, processes)
        if self.cores:
            self._polling = _POLLING
        self._watch = watch or Watch(communicator.Dup(), processes)

    def broadcast(self, value: T) -> T:
        """The value of rank 0. Collective."""
        content = pickle.dumps(value) if self.rank == 0 else b""
        head = self._head(content)
        self._wait([self._communicator.Ibcast([head, self._mpi.BYTE], 0)])
        length = _length(head)
        rest = np.empty(max(0, length - len(head) + _LENGTH), np.uint8)
        if rest.size:
            if self.rank == 0:
                rest[:] = np.frombuffer(content, np.uint8)[_HEAD - _LENGTH :]
            self._wait([self._communicator.Ibcast([rest, self._mpi.BYTE], 0)])
        # Rank 0 unpickles the message too, so that on every rank the object is a copy.
        found: T = pickle.loads(_joined(head, rest, length))
        return found

    def gathered(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks. Collective."""
        content = pickle.dumps(value)
        heads = np.empty((self.size, _HEAD), np.uint8)
        byte = self._mpi.BYTE
        self._wait([self._communicator.Iallgather([self._head(content), byte], [heads, byte])])
        lengths = [_length(head) for head in heads]
        counts = [max(0, length - _HEAD + _LENGTH) for length in lengths]
        places = [sum(counts[:rank]) for rank in range(self.size)]
        rests = np.empty(sum(counts), np.uint8)
        if rests.size:
            mine = np.frombuffer(content, np.uint8)[_HEAD - _LENGTH :]
            self._wait([self._communicator.Iallgatherv([mine, byte], [rests, (counts, places), byte])])
        return [
            pickle.loads(_joined(head, rests[place : place + count], length))
            for head, place, count, length in zip(heads, places, counts, lengths, strict=True)
        ]

    def exchange(self, sent: Sequence[Parcel], received: Sequence[Parcel]) -> None:
        """Send arrays to other ranks and fill arrays with what they send; returns when all of it is done."""
        communicator, byte = self._communicator, self._mpi.BYTE
        requests = [communicator.Irecv([each.array, byte], each.peer, each.mark) for each in received]
        requests += [communicator.Isend([each.array, byte], each.peer, each.mark) for each in sent]
        self._wait(requests)

    def branch(self, name: str) -> "MpiTeam":
        """The same ranks with messages that do not mix with those of this team, for another thread. Collective.

        There is one branch for each name, because MPI libraries limit the number of communicators.
        """
        if name not in self._branches:
            self._branches[name] = MpiTeam(self._communicator.Dup(), self._watch)
        return self._branches[name]

    @property
    def stop_requested(self) -> bool:
        """Whether a signal asked a rank to stop; known to rank 0."""
        return self._watch is not None and self._watch.stop_requested

    def request_stop(self) -> None:
        """Tell rank 0 that a signal asks the run to stop."""
        if self._watch is not None:
            self._watch.request_stop()

    def follow(self, progress: Callable[[], ExchangeProgress]) -> None:
        """Watch exchanges between devices, and end the job if one hangs although all ranks have started it."""
        if self._watch is not None:
            self._watch.follow(progress)

    def advise(self, advice: str) -> None:
        """Set what a user should do after a rank is lost."""
        if self._watch is not None:
            self._watch.advice = advice

    def failing(self, error: BaseException | None) -> None:
        """Tell the other ranks that an error was raised here; None: that this rank goes on after an error of all."""
        if self._watch is not None:
            self._watch.failing(error)

    def end(self, code: int, text: str) -> tuple[int, str]:
        """Wait until all ranks have come to their end. Returns the exit code and the message to print. Collective."""
        return (code, text) if self._watch is None or self._left else self._watch.end(code, text)

    def leave(self, code: int) -> None:
        """Leave MPI after :meth:`end`; with an exit code other than 0 the process ends here."""
        if self._left:
            return
        self._left = True
        sys.stdout.flush()
        sys.stderr.flush()
        if code == 0:
            self._meet_at_end()
            with nullcontext() if self._watch is None else self._watch.ending_in_time():
                self._mpi.Finalize()
        else:
            # After a failure some messages may never be received; Finalize would wait for them.
            leave_failed(self.rank, code)

    def _meet_at_end(self) -> None:
        """Wait for all ranks. If one does not arrive, end the job: MPI_Finalize would wait without a deadline."""
        request, waited = self._communicator.Ibarrier(), 0.0
        while not request.Test():
            time.sleep(_LONGEST_PAUSE)
            waited += _LONGEST_PAUSE
            if self._watch is not None:
                self._watch.check_end(waited)

    def _head(self, content: bytes) -> Any:
        """The first message of an object: its length in bytes, and its first bytes."""
        start = content[: _HEAD - _LENGTH]
        return np.frombuffer(len(content).to_bytes(_LENGTH, "little") + start.ljust(_HEAD - _LENGTH), np.uint8).copy()

    def _wait(self, requests: Sequence[Any]) -> None:
        """Wait until all requests are done.

        Raises:
            HeatsimError: another rank failed.
        """
        requests = list(requests)
        self._pending.append(requests)
        if not self._polled(requests, time.monotonic() + self._polling):
            with nullcontext() if self._watch is None else self._watch.waits.waiting():
                self._wait_long(requests)
        self._pending.pop()

    def _polled(self, requests: list[Any], end: float) -> bool:
        """Poll requests until the time ``end``. Returns whether all are done."""
        while not self._mpi.Request.Testall(requests):
            if time.monotonic() > end:
                return False
            _yield()
        return True

    def _wait_long(self, requests: list[Any]) -> None:
        """Wait until all requests are done, with pauses."""
        pause = 1e-5
        while not self._mpi.Request.Testall(requests):
            if self._watch is not None:
                self._watch.check()
            time.sleep(pause)
            pause = min(1.2 * pause, _LONGEST_PAUSE)


def _length(head: Any) -> int:
    return int.from_bytes(head[:_LENGTH].tobytes(), "little")


def _joined(head: Any, rest: Any, length: int) -> bytes:
    """Join the first message of an object and the rest to its bytes."""
    content: bytes = head[_LENGTH:].tobytes() + rest.tobytes()
    return content[:length]
