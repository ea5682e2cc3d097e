"""Measure how long ranks wait for others, and find a stuck rank: it is alive, but others wait too long for it.

Time is counted in ticks of the watch, so the time for which a job is suspended does not count.
"""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heatsim.parallel.signs import Sign
from heatsim.parallel.team import ExchangeProgress

_LIBRARY = os.path.dirname(os.__file__)  # of Python, with the packages that are installed in it
_HEATSIM = str(Path(__file__).parents[1])


class Waits:
    """The waits of this rank for others. The thread of the watch counts the ticks."""

    def __init__(self) -> None:
        self._ticks = 0
        self._began: dict[int, int] = {}  # by thread: the tick at which it began to wait for a message
        self._exchanges: tuple[tuple[ExchangeProgress, ...], int] = (), 0  # and the tick at which they came so far

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Run a block in which this thread waits for other ranks."""
        thread = threading.get_ident()
        self._began[thread] = self._ticks
        try:
            yield
        finally:
            del self._began[thread]

    def tick(self, progress: tuple[ExchangeProgress, ...]) -> int:
        """Count a tick. Returns the length in ticks of the longest wait that goes on.

        Args:
            progress: how far devices are with their exchanges. A device in an exchange waits for another rank.
        """
        self._ticks += 1
        if progress != self._exchanges[0] or all(each.done == each.reached for each in progress):
            self._exchanges = progress, self._ticks
        return self._ticks - min([self._exchanges[1], *list(self._began.values())])


def find_stuck(signs: Sequence[Sign], limit: float) -> tuple[int, int] | None:
    """Find the rank for which others wait longer than ``limit`` s. Returns it, and the rank that has waited longest."""
    ranks = range(len(signs))
    longest = max(ranks, key=lambda rank: signs[rank].waited)
    if signs[longest].waited < limit:
        return None
    return min(ranks, key=lambda rank: (signs[rank].waited, signs[rank].ended)), longest


def place_of_main_thread() -> str:
    """The file, line and function of heatsim, or of a program that calls it, that the main thread executes."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and frame.f_back is not None and _in_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{os.sep.join(Path(frame.f_code.co_filename).parts[-2:])}:{frame.f_lineno}, in {frame.f_code.co_name}"


def _in_library(file: str) -> bool:
    """Whether a file belongs to Python, or to a package other than heatsim. Python's first modules have no folder."""
    return not file.startswith(_HEATSIM) and file.startswith((_LIBRARY, "<frozen"))
