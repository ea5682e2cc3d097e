"""Measure what a rank does between its messages: the processor time that it uses, and how long it is idle.

All batches of time steps take about the same time. A rank that takes far longer makes no progress
(:mod:`heatsim.parallel.stalls`). Processor time is compared, not wall time: on a loaded machine a rank is slow, but it
needs no more processor time. A rank is idle while none of its threads runs or waits for a processor, and no bytes are
read or written. A rank that waits for a disk is idle too; it is told apart, because a disk or a network file system may
answer after minutes.

On systems without /proc nothing is measured, so no rank counts as stalled.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from heatsim.parallel.process import SLOW_DEVICE

Call = TypeVar("Call", bound=Callable[..., Any])

_QUIET = 0.1  # fraction of the time between two samples; an idle process uses less processor time
_RUNNING, _ON_DISK = "R", "D"
_PROCESS = Path("/proc/self")


@dataclass(frozen=True)
class Activity:
    """What a rank did since its last message to another rank.

    Attributes:
        waiting: whether it waits for another rank: the thread that steps does, or it rests while another thread does.
        busy: processor time in s of the thread that does time steps; 0 during work of unknown duration.
        idle: time in s since anything happened in the process; 0 during work of unknown duration.
        longest_busy, longest_idle: the largest of these times so far, without waits for a disk.
        disk: the file that an idle process waits for; SLOW_DEVICE if it is not known, "" if it does not wait for one.
        where: the line of the program that the thread executes.
    """

    waiting: bool = False
    busy: float = 0.0
    idle: float = 0.0
    longest_busy: float = 0.0
    longest_idle: float = 0.0
    disk: str = ""
    where: str = ""


class _Unforeseen:
    """Counts the threads that do work of unknown duration."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.threads = 0

    def add(self, count: int) -> None:
        with self._lock:
            self.threads += count


_unforeseen = _Unforeseen()
# The path or the descriptor of the file for which a thread waits, by thread.
_files: dict[int, Path | int] = {}


def waits_for_disk(call: Call) -> Call:
    """A decorator for a method that waits for the file system. Its first argument is a path or a descriptor."""

    @wraps(call)
    def marked(self: object, file: Path | int, *arguments: Any) -> Any:
        thread = threading.get_ident()
        _files[thread] = file
        try:
            return call(self, file, *arguments)
        finally:
            _files.pop(thread, None)

    return cast(Call, marked)


@contextmanager
def unforeseen() -> Iterator[None]:
    """Mark work of unknown duration, such as compiling, inside a block of :meth:`Meter.paced`."""
    _unforeseen.add(1)
    try:
        yield
    finally:
        _unforeseen.add(-1)


class Meter:
    """Measures the activity of this process. The thread of the watch samples it at regular intervals.

    Args:
        interval: time in s between two samples.

    Attributes:
        calls: a counter that grows with each message to other ranks.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self._waiting: list[int] = []  # the threads that wait for other ranks
        self.calls = 0
        self._paced: threading.Thread | None = None
        self._seen: tuple[int, int | None] = (0, None)
        self._before = _Used(0.0, 0.0, ())
        self._base = 0.0
        self._now = Activity()

    @contextmanager
    def paced(self) -> Iterator[None]:
        """Run a block that takes about the same time each time, such as a batch of time steps."""
        self._paced = threading.current_thread()
        try:
            yield
        finally:
            self._paced = None
            self.calls += 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Run a block in which this thread waits for other ranks."""
        own = threading.get_ident()
        with self._lock:
            self._waiting.append(own)
            self.calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting.remove(own)

    def look(self) -> Activity:
        """Return the activity until now. Only one thread calls this, about once per interval."""
        thread, before = self._paced, self._now
        used = _Used.now(thread)
        quiet = used is not None and used.quiet_since(self._before, self._interval)
        waiting = self._waits(thread, busy=used is not None and not quiet)
        measured = thread is not None and used is not None and not waiting and not _unforeseen.threads
        seen = self.calls, None if thread is None else thread.ident
        if not measured or seen != self._seen or used is None:
            self._seen, self._base = seen, 0.0 if used is None else used.stepping
            self._now = Activity(
                waiting=waiting,
                longest_busy=max(before.longest_busy, before.busy),
                longest_idle=max(before.longest_idle, 0.0 if before.disk else before.idle),
            )
        else:
            idle = before.idle + self._interval if quiet else 0.0
            self._now = Activity(
                busy=used.stepping - self._base,
                idle=idle,
                longest_busy=before.longest_busy,
                longest_idle=max(before.longest_idle, 0.0 if idle or before.disk else before.idle),
                disk=_awaited_file() if idle else "",
                where=_where(thread),
            )
        if used is not None:
            self._before = used
        return self._now

    def _waits(self, thread: threading.Thread | None, busy: bool) -> bool:
        """Whether the rank waits for others.

        A thread that writes files may wait for other ranks while ``thread`` steps: then nothing waits for their steps.
        """
        with self._lock:
            waiting = list(self._waiting)
        return bool(waiting) and (thread is None or thread.ident in waiting or not busy)


@dataclass(frozen=True)
class _Used:
    """The resources that the process has used since its start.

    Attributes:
        stepping: processor time in s of the thread that does time steps.
        all: processor time in s of all threads except the calling one.
        moved: counters that change when bytes are read or written, or when memory is fetched from a disk.
        running: whether the thread that does time steps runs or waits for a processor.
    """

    stepping: float
    all: float
    moved: tuple[object, ...]
    running: bool = True

    @classmethod
    def now(cls, thread: threading.Thread | None) -> "_Used | None":
        """The resources used until now; None if the system has no numbers, or if ``thread`` is None or has ended."""
        if thread is None or thread.ident is None or not hasattr(time, "pthread_getcpuclockid"):
            return None
        with suppress(OSError, ValueError, IndexError):
            stepping = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            task = _PROCESS / "task" / str(thread.native_id)
            state, _ = _state(task)
            # Sampling reads files too. So for the whole process, only count what disks have read and written.
            process = _moved(_PROCESS)
            moved = (_moved(task)[:2], process[4:6], _state(_PROCESS)[1])
            others = time.process_time() - time.thread_time()
            return cls(stepping, others, moved, state == _RUNNING)
        return None

    def quiet_since(self, before: "_Used", interval: float) -> bool:
        """Whether nothing happened since ``before``, ``interval`` s ago."""
        return not self.running and self.moved == before.moved and self.all - before.all < _QUIET * interval


def _moved(folder: Path) -> list[str]:
    """Counters of a process or thread: bytes read and written by calls (0, 1), and from and to disks (4, 5)."""
    return (folder / "io").read_text().split()[1::2]


def _state(folder: Path) -> tuple[str, str]:
    """The state of a process or thread, and its number of page faults that read from a disk."""
    numbers = (folder / "stat").read_text().rpartition(")")[2].split()
    return numbers[0], numbers[9]


def _awaited_file() -> str:
    """The file that a thread of this process waits for, as :attr:`Activity.disk`."""
    for file in list(_files.values()):
        with suppress(OSError):
            return os.readlink(_PROCESS / "fd" / str(file)) if isinstance(file, int) else str(file)
    # Other code waits for disks too, for instance imports.
    with suppress(OSError, IndexError):
        return SLOW_DEVICE * any(_state(task)[0] == _ON_DISK for task in (_PROCESS / "task").iterdir())
    return ""


def _where(thread: threading.Thread | None) -> str:
    """The file, line and function that a thread executes."""
    frame = None if thread is None or thread.ident is None else sys._current_frames().get(thread.ident)
    if frame is None:
        return ""
    code = frame.f_code
    return f"{os.sep.join(Path(code.co_filename).parts[-2:])}:{frame.f_lineno}, in {code.co_name}"
