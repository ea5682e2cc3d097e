"""Ranks as threads of one process: one of them runs at a time, the others wait in a collective call."""

import copy
import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from heatsim.parallel.team import Parcel, Team

T = TypeVar("T")
_here = threading.local()


def _get(self: Any, instance: Any, owner: Any = None) -> Any:
    """functools.cached_property.__get__ as in Python 3.12.

    Before, all instances share a lock. A rank in a collective call would keep it from the others.
    """
    if instance is None:
        return self
    if self.attrname not in instance.__dict__:
        instance.__dict__[self.attrname] = self.func(instance)
    return instance.__dict__[self.attrname]


functools.cached_property.__get__ = _get  # type: ignore[method-assign]


def current_team() -> "ThreadTeam":
    """The rank that this thread is."""
    team: ThreadTeam = _here.team
    return team


class ThreadTeam(Team):
    """A rank of :func:`on_ranks`."""

    def __init__(self, rank: int, meeting: "_Meeting") -> None:
        self.rank = self.local_rank = rank
        self.size = meeting.size
        self._meeting = meeting

    def broadcast(self, value: T) -> T:
        return self.gathered(value)[0]

    def gathered(self, value: T) -> list[T]:
        return [copy.deepcopy(each) for each in self._meeting.meet(self.rank, ("gathered", value))]

    def exchange(self, sent: Sequence[Parcel], received: Sequence[Parcel]) -> None:
        letters = [(each.peer, each.mark, each.array.copy()) for each in sent]
        of_ranks = self._meeting.meet(self.rank, ("exchange", letters))
        for room in received:
            (found,) = [array for peer, mark, array in of_ranks[room.peer] if peer == self.rank and mark == room.mark]
            assert found.nbytes == room.array.nbytes
            room.array.reshape(-1)[:] = found.reshape(-1)

    def give_way(self) -> None:
        """Let another rank run."""
        self._meeting.baton.release()
        time.sleep(1e-5)
        self._meeting.baton.acquire()
        if self._meeting.failed:
            raise threading.BrokenBarrierError

    def branch(self, name: str) -> "ThreadTeam":
        raise NotImplementedError


class _Meeting:
    """Where the ranks hand each other values, and the one baton that lets a rank run."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.baton = threading.Lock()
        self.failed = False
        self._barrier = threading.Barrier(size, timeout=120.0)
        self._values: list[Any] = [None] * size

    def meet(self, rank: int, value: tuple[str, Any]) -> list[Any]:
        self._values[rank] = value
        self.baton.release()
        try:
            self._barrier.wait()
            found = list(self._values)
            self._barrier.wait()
        finally:
            self.baton.acquire()
        assert len({kind for kind, _ in found}) == 1, f"the ranks call different things: {found}"
        return [each for _, each in found]

    def stop(self) -> None:
        self.failed = True
        self._barrier.abort()


def on_ranks(size: int, work: Callable[[Team], T]) -> list[T]:
    """What ``work`` returns on each of ``size`` ranks; raises what one of them raised."""
    meeting, found, errors = _Meeting(size), [None] * size, list[BaseException]()

    def run(rank: int) -> None:
        with meeting.baton:
            try:
                _here.team = ThreadTeam(rank, meeting)
                found[rank] = work(_here.team)  # type: ignore[call-overload]
            except threading.BrokenBarrierError:
                pass
            except BaseException as error:
                errors.append(error)
                meeting.stop()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found  # type: ignore[return-value]
