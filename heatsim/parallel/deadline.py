"""A deadline for calls of MPI that wait for all ranks: the start and the end.

These calls do not return if another rank is stopped, and meanwhile this process runs no Python code. So a small child
process measures the time. At the end of a job it stays until this process has ended, because no other rank watches it
any more, but the launcher waits for it.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from heatsim.parallel.ending import SECONDS_TO_TELL, print_message

_TICK = 0.25  # s
_IGNORED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_MOST_FILES = 2**20  # more than a process may have open


@contextmanager
def in_time(seconds: float, message: Callable[[], str], stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Run a block. If it takes too long, this process is killed, and the launcher ends the job.

    Args:
        seconds: the time limit in s.
        message: returns what to print before the kill. The child process calls it.
        stopped: returns whether a signal or a debugger has stopped this process; the child process calls it. If it is
            given, the child process stays after the block, and kills this process once it is stopped for ``seconds``.
    """
    if not hasattr(os, "fork"):
        yield
        return
    parent, (told, telling) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for number in _IGNORED:  # launchers also send them here; this process ends when its parent does
                signal.signal(number, signal.SIG_IGN)
            os.dup2(told, 0)
            os.closerange(3, _MOST_FILES)
            _keep_time(0, parent, seconds, message, stopped or (lambda: False))
        finally:  # also after an error: the child must not go on with the work of its parent
            os._exit(0)
    os.close(told)
    try:
        yield
    finally:
        if stopped is not None:
            with suppress(BrokenPipeError):
                os.write(telling, b".")  # the block has ended; the pipe is closed when this process ends
        else:
            os.close(telling)
            with suppress(ChildProcessError):  # programs may have children waited for by the system
                os.waitpid(child, 0)


def _keep_time(told: int, parent: int, seconds: float, message: Callable[[], str], stopped: Callable[[], bool]) -> None:
    """Kill the parent if it does not write to the pipe ``told`` for ``seconds``, or later is stopped for as long.

    Returns when the pipe is closed, or the parent has ended.
    """
    waited, in_block = 0.0, True
    while waited < seconds:
        # Wait in short intervals, so that time during which the whole job is suspended hardly counts.
        if select.select([told], [], [], _TICK)[0]:
            if not os.read(told, 1):
                return
            waited, in_block = 0.0, False
        elif os.getppid() != parent:  # another child of the parent has the pipe
            return
        else:
            waited = waited + _TICK if in_block or stopped() else 0.0
    print_message(message())
    time.sleep(SECONDS_TO_TELL)  # when the launcher ends the processes, it drops output that it has not passed on
    os.kill(parent, signal.SIGKILL)
