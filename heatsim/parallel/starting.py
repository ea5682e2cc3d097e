"""The start of MPI and of the watch, which wait for all ranks."""

import os
import signal
import sys
import time
from contextlib import AbstractContextManager
from typing import NoReturn

from heatsim.parallel.deadline import in_time
from heatsim.parallel.ending import SECONDS_TO_TELL, leave_failed
from heatsim.parallel.environment import rank, size

# Time limit for the start in s. Each rank adds one second, because all ranks may read from the same disk.
SECONDS = 60.0


def start_in_time() -> AbstractContextManager[None]:
    """Run a block in which MPI starts. If it takes too long, the job ends.

    Rank 0 has the shortest time limit, so that only one rank reports the error.
    """
    seconds = SECONDS + size()
    text = (
        f"some ranks did not start within {seconds:g} s: they are stopped or hang, or their machine is lost; "
        "start again"
    )
    return in_time(seconds + min(rank(), 2), lambda: text)


def end_start(code: int) -> NoReturn:
    """End all ranks, because this one cannot start: others may wait in MPI_Init until it calls MPI_Init too.

    Args:
        code: the exit code. Without MPI, launchers report another one.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with start_in_time():
            import mpi4py.MPI  # noqa: F401  (starts MPI)
    except (ImportError, RuntimeError):
        # Launchers end the other ranks after a kill, but not after an exit.
        time.sleep(SECONDS_TO_TELL)
        os.kill(os.getpid(), signal.SIGKILL)
    leave_failed(rank(), code, first=rank())
