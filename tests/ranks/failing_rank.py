"""A rank of a run that fails on one rank: python failing_rank.py HOW RANK STEP, then the arguments of heatsim.

On that rank, at that step, the process is killed or stopped, or an error is raised ("raise", "memory"). "disk": it
cannot write its part of a field; "block": it reads from a pipe without a writer; "loop": it runs an endless loop.
"end": it is stopped when it leaves the job at the end.
"""

import errno
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from heatsim.cli import main
from heatsim.parallel import environment, job
from heatsim.parallel.mpi_team import MpiTeam
from heatsim.parallel.watch import VARIABLE
from heatsim.run import time_loop
from heatsim.solver.stepper import Stepper
from heatsim.storage.field_file import FieldFile


def fail(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "raise":
        raise ValueError("a mistake in the program")
    if how == "memory":
        raise MemoryError("no room")
    if how == "block":
        pipe = Path(tempfile.mkdtemp()) / "pipe"
        os.mkfifo(pipe)
        os.open(pipe, os.O_RDONLY)
    while how == "loop":
        pass
    if how == "disk":

        def refuse(*arguments: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        FieldFile._place = refuse


def run() -> int:
    how, rank, step, *arguments = sys.argv[1:]
    time_loop.BATCH_SECONDS = 0.0
    if how in ("block", "loop", "end"):
        os.environ[VARIABLE] = "2"
    if how == "end":
        leave = MpiTeam.leave

        def leave_or_stop(self: MpiTeam, code: int) -> None:
            if self.rank == int(rank):
                fail("stop")
            leave(self, code)

        MpiTeam.leave = leave_or_stop
    advance = Stepper.advance

    def watched(self: Stepper, steps: int) -> None:
        advance(self, steps)
        if self.step == int(step) and job.join().rank == int(rank):
            fail(how)

    Stepper.advance = watched
    assert environment.size() > 1
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run())
