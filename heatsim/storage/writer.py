"""Writing in the background, on two threads: one for fields and rows, one for checkpoints.

Fields and rows are written in the order of submission. A checkpoint is written at once, but it takes effect only after
the fields and rows before it are written.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Self


class Writer:
    """Runs submitted work on two threads while the caller continues.

    If a piece of work fails, later work is dropped, because a checkpoint relies on everything before it. The caller
    gets the error from `submit`, `check`, `wait` or the end of a `with` block.

    The work should release Python's lock while it writes, as files, HDF5 and checksums of large pieces do.

    Attributes:
        waited: seconds that callers have spent in `wait`.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._pending: deque[Future[None]] = deque()
        self._failed = threading.Event()

    def submit(self, work: Callable[[], object]) -> None:
        """Run this after all earlier work of `submit`."""
        self._submit(0, work)

    def submit_beside(self, work: Callable[[Callable[[], None]], object]) -> None:
        """Run this on the second thread, after earlier work there.

        ``work`` gets a function that waits for all earlier work, of both threads, and raises its error if it failed.
        """
        self._submit(1, partial(work, partial(_wait_for, tuple(self._pending))))

    def check(self) -> None:
        """Raise the first error that has not been raised yet."""
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def wait(self) -> None:
        """Wait until all work is done; raise its error if it failed."""
        started = time.perf_counter()
        try:
            while self._pending:
                self._pending.popleft().result()
        finally:
            self.waited += time.perf_counter() - started

    def _submit(self, thread: int, work: Callable[[], object]) -> None:
        self.check()
        if not self._threads:
            self._failed.clear()
        if thread not in self._threads:
            self._threads[thread] = ThreadPoolExecutor(1, "heatsim-writer")
        self._pending.append(self._threads[thread].submit(self._do, work))

    def _do(self, work: Callable[[], object]) -> None:
        if self._failed.is_set():
            return
        try:
            work()
        except BaseException:
            self._failed.set()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        for thread in self._threads.values():
            thread.shutdown()
        self._threads.clear()
        if kind is None:
            self.wait()
        self._pending.clear()


def _wait_for(pieces: Iterable["Future[None]"]) -> None:
    for piece in pieces:
        piece.result()
