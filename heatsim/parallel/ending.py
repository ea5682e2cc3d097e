"""End the processes of a job that cannot end by itself."""

import os
import time
from collections.abc import Sequence
from typing import NoReturn

from heatsim.parallel.process import KILLED, Process

SECONDS_TO_TELL = 0.5
_SECONDS_TO_BE_ENDED = 5.0


def leave_failed(rank: int, code: int, first: int = 0) -> NoReturn:
    """End the processes of all ranks with an exit code other than 0; called by each of them.

    Args:
        rank: the number of this rank.
        code: the exit code.
        first: the rank that prints and calls MPI_Abort. A launcher reports the exit code of one process only; after a
            process that exits without MPI_Finalize or MPI_Abort, it may report any code.
    """
    if rank != first:
        time.sleep(_SECONDS_TO_BE_ENDED)
        os._exit(code)
    # When the launcher ends the processes, it drops output that it has not passed on: give it time for the message.
    # Then silence both streams, because MPI_Abort would print a line.
    time.sleep(SECONDS_TO_TELL)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    from mpi4py import MPI

    # Abort COMM_WORLD: after an Abort on a copy of it, launchers may report another code.
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)


def end_if_late(rank: int, processes: Sequence[Process], waited: float, silence: float) -> None:
    """End a job with complete results if one of its ranks does not leave MPI.

    Args:
        rank: the number of this rank.
        processes: the processes of all ranks.
        waited: the time in s for which this rank has waited for the others.
        silence: the time in s for which rank 0 waits. The other ranks wait longer: they act only if rank 0 is lost.
    """
    first = min(rank, 1)
    if waited < silence + first:
        return
    if rank == first:
        print_message(why_no_end(processes, silence))
    leave_failed(rank, 1, first)


def why_no_end(processes: Sequence[Process], silence: float) -> str:
    """The message about a job with complete results that did not end by itself within ``silence`` s."""
    known = [(number, process.known_reason()) for number, process in enumerate(processes)]
    known.sort(key=lambda each: each[1] == KILLED)  # a process that is gone may have ended as it should
    lost = [f"rank {number} on {processes[number].host}: {why}" for number, why in known if why]
    return (
        f"{lost[0] if lost else 'a rank was lost'}; the run is complete, but the job could not end by itself "
        f"within {silence:g} s"
    )


def print_message(text: str) -> None:
    """Print on stderr even if the main thread holds the lock of the stream."""
    os.write(2, f"heatsim: {text}\n".encode())
