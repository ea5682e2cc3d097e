"""What is written while the run goes on: a thread that does one piece of work after the other."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self


class Writer:
    """Does what it is handed in the order in which it comes, while the caller goes on.

    After a piece of work has failed, those behind it are dropped: a checkpoint counts what was to be written before.
    The error is raised where the caller looks next, that is at `submit`, `check`, `wait` or the end of a `with`.

    The work should release Python's lock while it writes, as files, HDF5 and checksums of large pieces do.

    Attributes:
        waited: seconds that callers have spent in `wait`.
    """

    def __init__(self) -> None:
        self.waited = 0.0
        self._thread: ThreadPoolExecutor | None = None
        self._pending: deque[Future[None]] = deque()
        self._failed = threading.Event()

    def submit(self, work: Callable[[], object]) -> None:
        """Have this done after all that was handed over before."""
        self.check()
        if self._thread is None:
            self._failed.clear()
            self._thread = ThreadPoolExecutor(1, "heatsim-writer")
        self._pending.append(self._thread.submit(self._do, work))

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
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        if kind is None:
            self.wait()
        self._pending.clear()
