"""Pictures drawn by processes that get ready while a run or a study is still calculating.

Importing Matplotlib and VTK takes longer than many a run. A process imports what it needs and forks into one process
for each core, four at most. Each takes the next picture that none has taken yet, until all are drawn. If the run or the
study is killed, its end of the standard input is closed, and all of them end.
"""

import faulthandler
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from heatsim.device import usable_cores
from heatsim.render.opengl import BACKEND

_MOST_WORKERS = 4
_LONGEST = 120.0  # s
_MOST_PICTURES = 256  # the numbers that fit a byte; a run has 12 at most, and a study 36


class DrawingProcess:
    """A process that draws when data come in; a context manager, whose exit ends the process."""

    def __init__(self, module: str, *arguments: str) -> None:
        """Start the process.

        Args:
            module: its program, which uses :func:`draw_together`.
            arguments: of its command line.
        """
        package = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        # The processes that draw share the cores. A process with threads, such as OpenBLAS's, cannot fork safely.
        threads = {"LP_NUM_THREADS": str(usable_cores() // _workers()), **os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            # -P: do not import modules from the current folder.
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**threads, "PYTHONPATH": paths, BACKEND: "agg"},
            # Ctrl-C reaches only the run, which then ends this process.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._kill()
        self._process.communicate()

    def draw(self, data: bytes) -> bool:
        """Send the data, and wait for the end of the process. Returns whether it has drawn all pictures."""
        assert self._process.stdin is not None
        with suppress(OSError):  # the process has failed already; Windows then reports an invalid argument
            self._process.stdin.write(data)
            self._process.stdin.flush()
        drawn = self._process.wait() == 0  # the pipe stays open: its end would end the process
        if not drawn:
            self._kill()
        return drawn

    def _kill(self) -> None:
        """End the process, and those that it forked, if there still are any."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()


def draw_together(draw: Callable[[Iterator[int]], None], begins: Callable[[ExitStack], bool]) -> int:
    """Fork, and draw pictures in all processes. Returns an exit code: 0 if all pictures are drawn.

    Args:
        draw: draws the pictures with the numbers that the iterator gives, from 0, until a number has no picture.
        begins: called after the fork; prepares the drawing, and says whether there is anything to draw. What it puts
            on the stack is done when all pictures are drawn.
    """
    # Each byte of the pipe is the number of a picture. A read takes one byte, so each picture is drawn once.
    taken, given = os.pipe()
    children = []
    for _ in range(_workers() - 1):
        child = os.fork()
        if child == 0:
            os.close(given)
            end_with(lambda: _draw(draw, taken))
        children.append(child)
    with ExitStack() as stack:
        if begins(stack):
            os.write(given, bytes(range(_MOST_PICTURES)))
        os.close(given)
        _draw(draw, taken)
        failed = [os.waitpid(child, 0)[1] for child in children]
    return int(any(failed))


def end_with(work: Callable[[], object]) -> NoReturn:
    """Do the work of a process, and end it: with 0, or what the work returns, if all went well.

    The interpreter and VTK would take a quarter of a second to clean up.
    """
    code = 1
    try:
        code = int(bool(work()))
    finally:
        os._exit(code)


def _workers() -> int:
    """The number of processes that draw."""
    return min(usable_cores(), _MOST_WORKERS) if sys.platform == "linux" else 1


def _draw(draw: Callable[[Iterator[int]], None], pipe: int) -> None:
    """Draw the pictures that this process takes."""
    numbers = _taken(pipe)
    if (first := next(numbers, None)) is not None:
        # A broken driver of OpenGL may hang instead of failing.
        faulthandler.dump_traceback_later(_LONGEST, exit=True)
        threading.Thread(target=_end_with_run, daemon=True).start()
        draw(chain([first], numbers))


def _end_with_run() -> NoReturn:
    """End this process when the standard input ends."""
    os.read(0, 1)
    os._exit(1)


def _taken(pipe: int) -> Iterator[int]:
    """The numbers of the pictures that this process takes; waits for the first."""
    while number := os.read(pipe, 1):
        yield number[0]
