"""What is written while the run goes on: a thread that does one piece of work after the other, and one beside it.

field  field         field            in the order in which they are handed over
               checkpoint             at once, but it counts only when the field before it is there
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Self


class Writer:
    """Does what it is handed in the order in which it comes, while the caller goes on.

    Work that is handed over to be done beside the rest has an order of its own. After a piece of work has failed, those
    behind it are dropped: a checkpoint counts what was to be written before.
    The error is raised where the caller looks next, that is at `submit`, `check`, `wait` or the end of a `with`.

    The work should release Python's lock while it writes, as files, HDF5 and checksums of large pieces do.

    Attributes:
        waited: seconds that callers have spent in `wait`.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._threads: list[ThreadPoolExecutor] = []
        self._pending: deque[Future[None]] = deque()
        self._failed = threading.Event()

    def submit(self, work: Callable[[], object]) -> None:
        """Have this done after all that was handed over before, but for what is done beside."""
        self._submit(0, work)

    def submit_beside(self, work: Callable[[Callable[[], None]], object]) -> None:
        """Have this done at once, after what else is done beside.

        ``work`` is given what waits for all that was handed over before, and raises its error if it failed.
        """
        self._submit(1, partial(work, partial(_wait_for, tuple(self._pending))))

    def check(self) -> None:
        """Raise the error of what has failed since anybody looked."""
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def wait(self) -> None:
        """Wait until everything handed over is done, and raise its error if it failed."""
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
            self._threads = [ThreadPoolExecutor(1, "heatsim-writer") for _ in range(2)]
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for thread in self._threads:
            thread.shutdown()
        self._threads.clear()
        if kind is None:
            self.wait()
        self._pending.clear()


def _wait_for(pieces: Iterable["Future[None]"]) -> None:
    for piece in pieces:
        piece.result()
