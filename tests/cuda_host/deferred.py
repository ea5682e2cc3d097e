"""Work of a simulated GPU, done as late as a GPU may do it: when the host waits for it.

So a host that reads too early, or overwrites what is still to be read, gets other bits. What NumPy does in the part of
CuPy comes behind all that is queued, as in a stream.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest


class HostQueue:
    """Work that the host has queued and not waited for, in a run with :func:`defer`.

    Attributes:
        deferring: whether work is queued; else it is done at once.
        kept: memory that queued work may read by its address.
        works: the queue.
    """

    def __init__(self) -> None:
        self.deferring = False
        self.kept: list[Any] = []
        self.works: deque[Callable[[], object]] = deque()
        self._done = 0
        self._lock = threading.RLock()

    @property
    def pending(self) -> int:
        """Number of works that are queued."""
        return len(self.works)

    @property
    def end(self) -> int:
        """Number of works queued so far, done or not."""
        return self._done + len(self.works)

    def add(self, work: Callable[[], object]) -> None:
        with self._lock:
            if self.deferring:
                self.works.append(work)
            else:
                work()

    def do(self, until: int | None = None) -> None:
        """Do all works, or the first ``until``."""
        with self._lock:
            while self.works and (until is None or self._done < until):
                self._done += 1
                self.works.popleft()()


QUEUE = HostQueue()


def defer(monkeypatch: pytest.MonkeyPatch) -> HostQueue:
    """Let work be queued until the host waits for it, from here to the end of the test. Returns the queue.

    What the test leaves in the queue is dropped.
    """
    monkeypatch.setattr(QUEUE, "kept", [])
    monkeypatch.setattr(QUEUE, "works", deque())
    monkeypatch.setattr(QUEUE, "deferring", True)
    return QUEUE
