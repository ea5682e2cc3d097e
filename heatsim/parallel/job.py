"""Join the other processes of the job that a launcher started."""

import atexit
import os
import sys
from functools import cache
from types import TracebackType

from heatsim import device
from heatsim.errors import DeviceError, HeatsimError
from heatsim.parallel.environment import size
from heatsim.parallel.starting import end_start, start_in_time
from heatsim.parallel.team import ALONE, Team

MISSING = (
    "several ranks need mpi4py, which cannot be imported ({reason}); install heatsim[ranks], or heatsim[mpi] to use "
    "the MPI of a cluster"
)


@cache
def join() -> Team:
    """The team of all processes of the job; a team of one if there is no launcher. Collective.

    The GPUs and the kernel threads of a machine are divided among its ranks.

    Raises:
        DeviceError: mpi4py is missing, or the launcher belongs to another MPI.
    """
    if size() == 1:
        return ALONE
    try:
        with start_in_time():
            team = _team()
    except BaseException as error:
        atexit.register(end_start, error.exit_code if isinstance(error, HeatsimError) else 1)
        raise
    _use_cores(team.cores)
    device.choose_gpu(team.local_rank)
    _end_with_interpreter(team)
    return team


def _team() -> Team:
    """Start MPI, and watch the ranks. Collective."""
    try:
        import mpi4py

        # Without this, a process that failed would wait for the others at its exit; see MpiTeam.leave.
        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise DeviceError(MISSING.format(reason=str(error).splitlines()[0])) from None
    from heatsim.parallel.mpi_team import MpiTeam

    if MPI.COMM_WORLD.size != size():
        raise DeviceError(
            f"the launcher started {size()} processes, but the MPI of mpi4py "
            f"({MPI.Get_library_version().splitlines()[0].strip()}) sees {MPI.COMM_WORLD.size}: use the launcher of "
            "that MPI (with srun the right --mpi=…), or install mpi4py for the MPI of the launcher: heatsim[mpi]"
        )
    return MpiTeam(MPI.COMM_WORLD.Dup())


def _end_with_interpreter(team: Team) -> None:
    """End the team at the exit of a program that does not end it itself; report any uncaught error to the team."""
    show = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        team.failing(error)
        show(kind, error, trace)

    def leave() -> None:
        code, _ = team.end(0, "")
        team.leave(code)

    sys.excepthook = tell
    atexit.register(leave)


def _use_cores(count: int) -> None:
    """Let CPU kernels use ``count`` cores, at least one. If the user has set a number of threads, keep it."""
    if "numba" not in sys.modules:
        os.environ.setdefault("NUMBA_NUM_THREADS", str(max(1, count)))
