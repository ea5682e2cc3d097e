"""Start the ranks of a run on this machine with mpiexec, stop them on signals, and pass on the exit code."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from heatsim.errors import DeviceError, InputError, Interrupted, RunError
from heatsim.parallel.job import MISSING

# All of these reach the ranks as SIGTERM, because a rank that is still starting then ends without a traceback.
_STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# The exit codes of heatsim itself. A launcher returns another code if a rank was killed.
_CODES = (0, 1, 2, 130)
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def launch(ranks: int, arguments: Sequence[str], advice: Callable[[], str]) -> int:
    """Run `heatsim` with these arguments on several ranks of this machine. Returns their exit code.

    Args:
        ranks: number of ranks.
        arguments: the command line's arguments without --ranks.
        advice: returns text that says what to do if a rank was killed.

    Raises:
        DeviceError: mpi4py or mpiexec is missing.
        RunError: a rank was killed.
        Interrupted: a signal came before the ranks could save a checkpoint.
    """
    if find_spec("mpi4py") is None:
        raise DeviceError(MISSING.format(reason="it is not installed"))
    package = str(Path(__file__).parents[2])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    if sys.stdout.isatty():
        environment.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    command = [mpiexec(), "-n", str(ranks), sys.executable, "-m", "heatsim", *arguments]
    started: list[subprocess.Popen[bytes]] = []
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for process in started:
            process.terminate()

    before = {number: signal.signal(number, stop) for number in _STOPS if _is_heard(number)}
    try:
        # In a separate session, so that Ctrl-C reaches this process only.
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_end_with_parent()
        )
        started.append(process)
        if stopping:
            process.terminate()
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code not in _CODES:
        told = advice()
        if stopping:
            raise Interrupted("interrupted before a checkpoint was saved" + (f"; {told}" if told else ""))
        raise RunError(
            f"a rank was killed (mpiexec returned {code}) by a user, by the system, or because memory ran out"
            + (f"; {told}" if told else "")
        )
    return code


def all_ranks(backend: str) -> int:
    """The number of ranks that use the whole machine: one for each GPU, or on CPUs one for each NUMA node."""
    if backend == "cuda":
        from heatsim import device

        return device.count_gpus()
    return max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))))


def check_ranks(text: str) -> int | None:
    """Convert the value of --ranks to a number; None for "all".

    Raises:
        InputError: the value is neither a number of ranks nor "all".
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f'--ranks = "{text}": expected a number of ranks, 1 or more, or "all"')
    return int(text)


def mpiexec() -> str:
    """The path of mpiexec. The one of the Python environment comes first, because it belongs to the same mpi4py.

    Raises:
        DeviceError: there is no mpiexec.
    """
    found = shutil.which("mpiexec", path=sysconfig.get_path("scripts")) or shutil.which("mpiexec")
    if found is None:
        raise DeviceError("--ranks needs mpiexec, which was not found; install heatsim[ranks], or an MPI")
    return found


def _is_heard(number: signal.Signals) -> bool:
    """Whether to pass on a signal. Under nohup SIGHUP is ignored."""
    return number != getattr(signal, "SIGHUP", None) or signal.getsignal(number) is not signal.SIG_IGN


def _end_with_parent() -> Callable[[], None] | None:
    """A function for the child process to call first: on Linux it then gets SIGTERM if this process is killed."""
    if sys.platform != "linux":
        return None
    import ctypes

    library = ctypes.CDLL(None)
    return lambda: library.prctl(_DIE_WITH_PARENT, signal.SIGTERM)
