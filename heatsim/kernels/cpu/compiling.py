"""Compile several functions at once, in processes that are forked from this one.

numba holds the interpreter's lock while it compiles, so threads would not help. A process stores the code that it has
compiled in numba's cache on disk, from which this process loads it. A pipe holds the numbers of all functions; each
process takes the next one. Where that fails, this process compiles all of them: no result depends on it.

The forked processes may begin while this one does other work (:func:`compile_ahead`).
"""

import gc
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import config, from_dtype, types

from heatsim.numba_cache import Callback, is_kept, stored
from heatsim.parallel import environment

# A forked process may wait for a lock that another thread held. Its time limit is the time since the fork times
# _PATIENCE, from _LEAST_PATIENCE to _MOST_PATIENCE in s: a run may start long after its set-up.
_PATIENCE, _LEAST_PATIENCE, _MOST_PATIENCE = 4.0, 5.0, 120.0
_SECONDS_BETWEEN_LOOKS = 0.002


@dataclass(frozen=True)
class Code:
    """A function to compile.

    Attributes:
        function: a function of :func:`heatsim.numba_cache.kept`, or a callback.
        types: of the function's arguments; () for a callback, which knows its types.
    """

    function: Any
    types: tuple[Any, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether its code goes to a cache on disk, where other processes find it."""
        return is_kept(self.function)

    @property
    def stored(self) -> bool:
        """Whether the code is known to be on disk, or is loaded."""
        return self.function.stored if isinstance(self.function, Callback) else stored(self.function, self.types)

    def compile(self) -> None:
        """Load or compile it."""
        if isinstance(self.function, Callback):
            self.function.compile()
        else:
            self.function.compile(self.types)


def sweeps(kernel: Any, dtype: np.dtype[Any]) -> Code:
    """A kernel with the arguments of :func:`heatsim.kernels.cpu.march.sweeping`, for a field of these numbers."""
    long, longs, field = types.int64, types.Array(types.int64, 1, "C"), types.Array(from_dtype(dtype), 1, "C")
    return Code(kernel, (longs, field, field, long, long, field, long, last_default(kernel)))


def last_default(kernel: Any) -> Any:
    """The type of a last argument that is left out: the key of the sources of a kept function."""
    omitted: Any = types.Omitted
    return omitted(vars(kernel)["__defaults__"][-1])


def compile_ahead(codes: Sequence[Code]) -> None:
    """Begin to compile functions in forked processes. :func:`compile_all` does the rest and waits for them."""
    if not _ahead and (helpers := _helpers(missing := _missing(codes), already=0)):
        _ahead.append(_Sharing.begin(missing, helpers))


def compile_all(codes: Sequence[Code]) -> None:
    """Load functions, or compile them on several cores; the function that takes longest should come first."""
    here = list[Code]()
    while _ahead:
        here += _ahead.pop().finish()
    missing = _missing([code for code in codes if code not in here])
    if helpers := _helpers(missing, already=1):
        here += _Sharing.begin(missing, helpers).finish()
    for code in codes:
        if code not in here:
            code.compile()


def _missing(codes: Sequence[Code]) -> list[Code]:
    return [code for code in codes if not code.stored]


def _helpers(codes: Sequence[Code], already: int) -> int:
    """The number of processes to fork, if ``already`` processes compile these functions."""
    if sys.platform != "linux" or environment.size() > 1 or not all(code.kept for code in codes):
        return 0
    # The threads of this process, not all cores: a study's workers share the cores, and each compiles.
    threads = int(vars(config)["NUMBA_NUM_THREADS"])
    return max(0, min(threads - 1, len(codes) - already))


@dataclass(frozen=True)
class _Sharing:
    """Functions that this process and forked ones compile.

    Attributes:
        codes: the functions.
        pipe: its bytes are the numbers of the functions that are left.
        processes: the forked ones that may still compile.
        started: when they were forked; of time.monotonic().
    """

    codes: Sequence[Code]
    pipe: int
    processes: list[int] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, codes: Sequence[Code], helpers: int) -> "_Sharing":
        """Fork processes that compile functions."""
        parent = os.getpid()
        taken, given = os.pipe()
        sharing = cls(codes, taken)
        os.write(given, bytes(range(len(codes))))
        # Before the forks: the pipe ends after the last number, even if a process hangs that has just been forked.
        os.close(given)
        with suppress(OSError), warnings.catch_warnings():  # OSError: no memory, or too many processes
            # Python warns of forks beside other threads; see _PATIENCE.
            warnings.simplefilter("ignore", DeprecationWarning)
            for _ in range(helpers):
                process = os.fork()
                if process == 0:
                    _help(codes, taken, parent)
                sharing.processes.append(process)
        return sharing

    def finish(self) -> list[Code]:
        """Compile what is left, and wait for the processes. Returns the functions that this process compiled."""
        here = list[Code]()
        try:
            for code in _taken(self.codes, self.pipe):
                code.compile()
                here.append(code)
            patience = max(_LEAST_PATIENCE, _PATIENCE * (time.monotonic() - self.started))
            _await(self.processes, min(patience, _MOST_PATIENCE))
        finally:
            os.close(self.pipe)
            for process in self.processes:
                _end(process)
        return here


_ahead = list[_Sharing]()  # what compile_ahead began: one at most
if hasattr(os, "register_at_fork"):
    # The processes belong to the process that forked them.
    os.register_at_fork(after_in_child=_ahead.clear)


def _taken(codes: Sequence[Code], pipe: int) -> Iterator[Code]:
    """The functions that this process takes. A read takes one byte, so each function is compiled once."""
    while number := os.read(pipe, 1):
        yield codes[number[0]]


def _help(codes: Sequence[Code], pipe: int, parent: int) -> None:
    """The work of a forked process, and its end."""
    try:
        # Destructors of objects of this process, such as files and arrays on a GPU, must not run here.
        gc.disable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the run, which ends this process
        _keep_only(pipe)
        for code in _taken(codes, pipe):
            if os.getppid() != parent:  # the run has ended
                break
            code.compile()
    finally:
        os._exit(0)


def _keep_only(pipe: int) -> None:
    """Close all files but one, among them locks of folders and pipes whose readers wait for the end of the run."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number != pipe:
            with suppress(OSError):  # the list itself
                os.close(number)


def _await(processes: list[int], patience: float) -> None:
    """Wait until processes have ended, at most ``patience`` s; takes those that have ended off the list."""
    end = time.monotonic() + patience
    while processes and time.monotonic() < end:
        processes[:] = [process for process in processes if not _has_ended(process)]
        time.sleep(_SECONDS_BETWEEN_LOOKS if processes else 0.0)


def _has_ended(process: int) -> bool:
    try:
        return os.waitpid(process, os.WNOHANG)[0] == process
    except ChildProcessError:  # someone else has waited for it
        return True


def _end(process: int) -> None:
    """End a process that is not needed any more."""
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
