"""A deadline for calls of MPI that wait for all ranks: the start and the end.

These calls do not return if another rank is stopped, and meanwhile this process runs no Python code. So a small child
process measures the time.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from heatsim.parallel.ending import SECONDS_TO_TELL, print_message


@contextmanager
def in_time(seconds: float, message: Callable[[], str]) -> Iterator[None]:
    """Run a block. If it takes too long, this process is killed, and the launcher ends the job.

    Args:
        seconds: the time limit in s.
        message: returns what to print before the kill. The child process calls it.
    """
    if not hasattr(os, "fork"):
        yield
        return
    parent, (ended, running) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # while the parent hangs, the deadline still counts
            os.close(running)
            _keep_time(ended, parent, seconds, message)
        finally:  # also after Ctrl-C: the child must not go on with the work of its parent
            os._exit(0)
    os.close(ended)
    try:
        yield
    finally:
        os.close(running)
        with suppress(ChildProcessError):  # programs may have children waited for by the system
            os.waitpid(child, 0)


def _keep_time(ended: int, parent: int, seconds: float, message: Callable[[], str]) -> None:
    """Wait until the pipe ``ended`` is closed; kill the parent after ``seconds``."""
    waited = 0.0
    while waited < seconds:
        # Wait in short intervals, so that time during which the whole job is suspended hardly counts.
        if select.select([ended], [], [], 0.25)[0]:
            return
        waited += 0.25
    print_message(message())
    time.sleep(SECONDS_TO_TELL)  # when the launcher ends the processes, it drops output that it has not passed on
    os.kill(parent, signal.SIGKILL)
