"""A rank of a run that fails on one rank: python failing_rank.py HOW RANK STEP, then the arguments of heatsim.

On that rank, at that step, the process is killed or stopped, or an error is raised ("raise"). "disk": it
cannot write its part of a field. The rank is stopped when it leaves the job at the end ("end"), or MPI ("finalize"),
or when its process ends ("exit"). Ranks are dead after 2 s without a sign of life.
"""

import atexit
import errno
import os
import signal
import sys
from typing import Any

from heatsim.cli import main
from heatsim.parallel import environment, job
from heatsim.parallel.mpi_team import MpiTeam
from heatsim.parallel.watch import SILENCE_VARIABLE, Watch
from heatsim.run import batch_size
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage.field_file import FieldFile


def fail(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "raise":
        raise ValueError("a mistake in the program")
    if how == "disk":

        def refuse(*arguments: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        FieldFile._place = refuse


def run() -> int:
    how, rank, step, *arguments = sys.argv[1:]
    batch_size.BATCH_SECONDS = 0.0
    os.environ[SILENCE_VARIABLE] = "2"
    if how in ("end", "finalize"):
        owner, name = (MpiTeam, "leave") if how == "end" else (Watch, "ending_in_time")
        leave = getattr(owner, name)

        def leave_or_stop(*arguments: Any) -> Any:
            if environment.rank() == int(rank):
                fail("stop")
            return leave(*arguments)

        setattr(owner, name, leave_or_stop)
    if how == "exit" and environment.rank() == int(rank):
        atexit.register(fail, "stop")
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
