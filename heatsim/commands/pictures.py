"""Pictures drawn by processes that get ready while a run is still calculating.

Importing Matplotlib and VTK takes longer than many a run. A process imports both and forks into one process for each
core, four at most. A line on its standard input starts them: each takes the next picture that none has taken yet, until
all are drawn. The process ends with 0 if all are. If the run is killed, all of them end. Where anything fails,
:func:`heatsim.render.render` draws in the process of the run, and reports the reason.
"""

import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

_MOST_WORKERS = 4
_LONGEST = 120.0  # s
_MOST_PICTURES = 256  # the numbers that fit a byte; a run has 12 at most


class BackgroundRenderer:
    """A process that draws the pictures of a run; a context manager, whose exit ends the process."""

    def __init__(self, folder: Path, in_three_dimensions: bool) -> None:
        """Start the process.

        Args:
            folder: the output folder, which need not exist yet.
            in_three_dimensions: whether there will be 3-D views.
        """
        self._folder = folder
        package = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            # -P: do not import modules from the current folder.
            [sys.executable, "-P", "-m", __name__, str(folder.absolute()), *["3-D"] * in_three_dimensions],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # One thread for each process that draws. A process with threads, such as OpenBLAS's, cannot fork safely.
            env={"LP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
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

    def render(self) -> None:
        """Draw the pictures, once the run has written its files.

        Raises:
            FolderError, InputError, StorageError: as for :func:`heatsim.render.render`.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"draw\n")
            self._process.stdin.flush()
        if self._process.wait() != 0:  # standard input stays open: its end would end the process
            self._kill()
            from heatsim.render import render

            render(self._folder)

    def _kill(self) -> None:
        """End the process, and those that it forked, if there still are any."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()


def main() -> int:
    """Draw the pictures of the folder named by the first argument, when a line comes in; the exit code."""
    # The process is too short for the search for cycles to pay.
    gc.disable()
    import heatsim.render
    from heatsim.render.figure import warm_up
    from heatsim.render.opengl import prefer_egl

    directory, *in_three_dimensions = sys.argv[1:]
    folder = Path(directory)
    warm_up()
    if in_three_dimensions:
        import pyvista.plotting  # noqa: F401

        prefer_egl()
    # Each byte of the pipe is the number of a picture. A read takes one byte, so each picture is drawn once.
    taken, given = os.pipe()
    children = []
    for _ in range(_workers() - 1):
        child = os.fork()
        if child == 0:
            os.close(given)
            _end_with(lambda: _draw(folder, taken))
        children.append(child)
    if sys.stdin.readline():
        heatsim.render.clear(folder)
        os.write(given, bytes(range(_MOST_PICTURES)))
    os.close(given)
    _draw(folder, taken)
    return int(any(os.waitpid(child, 0)[1] for child in children))


def _workers() -> int:
    """The number of processes that draw."""
    from heatsim.device import usable_cores

    return min(usable_cores(), _MOST_WORKERS) if sys.platform == "linux" else 1


def _end_with(work: Callable[[], object]) -> NoReturn:
    """Do the work of a process, and end it: with 0, or what the work returns, if all went well.

    The interpreter and VTK would take a quarter of a second to clean up.
    """
    code = 1
    try:
        code = int(bool(work()))
    finally:
        os._exit(code)


def _draw(folder: Path, pipe: int) -> None:
    """Draw the pictures that this process takes."""
    from heatsim.render import draw_some

    numbers = _taken(pipe)
    if (first := next(numbers, None)) is not None:
        # A broken driver of OpenGL may hang instead of failing.
        faulthandler.dump_traceback_later(_LONGEST, exit=True)
        threading.Thread(target=_end_with_run, daemon=True).start()
        draw_some(folder, chain([first], numbers))


def _end_with_run() -> NoReturn:
    """End this process when the run has ended, for instance because it was killed: its end of the pipe is closed."""
    os.read(0, 1)
    os._exit(1)


def _taken(pipe: int) -> Iterator[int]:
    """The numbers of the pictures that this process takes; waits for the first."""
    while number := os.read(pipe, 1):
        yield number[0]


if __name__ == "__main__":
    _end_with(main)
