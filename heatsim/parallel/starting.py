"""A deadline for the start of MPI and of the watch, which wait for all ranks.

MPI_Init does not return if another rank is stopped before it calls MPI_Init, and meanwhile this process runs no Python
code. So a small child process measures the time.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager

# Time limit for the start in s. Each rank adds one second, because all ranks may read from the same disk.
SECONDS = 60.0


@contextmanager
def start_in_time(rank: int, size: int) -> Iterator[None]:
    """Run a block in which MPI starts. If it takes too long, this process is killed, and the launcher ends the job.

    Args:
        rank: the number of this rank. Rank 0 has the shortest time limit, so that only one rank reports the error.
        size: the number of ranks.
    """
    if not hasattr(os, "fork"):
        yield
        return
    parent, (started, starting) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(starting)
            _keep_time(started, parent, SECONDS + size, min(rank, 2))
        finally:  # also after Ctrl-C: the child must not go on with the work of its parent
            os._exit(0)
    os.close(started)
    try:
        yield
    finally:
        os.close(starting)
        os.waitpid(child, 0)


def _keep_time(started: int, parent: int, seconds: float, more: int) -> None:
    """Wait until the pipe ``started`` is closed; kill the parent after ``seconds``, or a little later."""
    waited = 0.0
    while waited < seconds + more:
        # Wait in short intervals, so that time during which the whole job is suspended hardly counts.
        if select.select([started], [], [], 0.25)[0]:
            return
        waited += 0.25
    os.write(
        2,
        f"heatsim: some ranks did not start within {seconds:g} s: they are stopped or hang, or their machine is lost; "
        "start again\n".encode(),
    )
    os.kill(parent, signal.SIGKILL)
