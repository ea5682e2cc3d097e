"""The watch over the ranks of a run: it finds ranks that died, hang or failed, and ends all of them.

A thread on each rank gives a sign of life to rank 0 four times a second, and rank 0 answers. So a rank that computes
for minutes stays known as alive, while a dead, stopped or unreachable one is missed after ten seconds, and no rank has
to guess from the length of a wait. The thread can end the process even if the main thread waits inside a library.

    sign     rank → 0    alive; failing: an error was raised and the rank closes its files; ended: nothing is left to do
    notice   0 → ranks   a rank fails and others do not: raise its error in the next call that waits for other ranks
    verdict  0 → ranks   all have ended: leave with this exit code; or: leave at once

Errors that all ranks raise by themselves, such as those of a scenario, need no notice: every rank ends, rank 0 prints.
Silence is counted in ticks of the own thread, so a job that is suspended as a whole and continued goes on.
"""

import os
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from heatsim.errors import (
    CapacityError,
    DeviceError,
    FolderError,
    HeatsimError,
    InputError,
    Interrupted,
    NotConvergedError,
    NotFiniteError,
    RanksError,
    RunError,
    ScenarioError,
    StorageError,
)

TICK = 0.25  # s
SILENT_TICKS = 40  # until a rank counts as dead or hanging: 10 s
SECONDS_TO_FAIL_TOGETHER = 1.0  # then ranks that have not failed get notice
SECONDS_TO_END = 4.0  # after a notice; then all are ended
# Errors that keep their class on other ranks, those that are made from one text; others become a RanksError.
_KINDS: dict[str, type[HeatsimError]] = {ScenarioError.__name__: InputError} | {
    kind.__name__: kind
    for kind in (
        *(InputError, FolderError, DeviceError, CapacityError, RunError, NotFiniteError, NotConvergedError),
        *(StorageError, Interrupted),
    )
}
_MOST_BYTES = 4000  # of a text in a message, which has to travel at once
_SECONDS_TO_TELL = 0.5
_SECONDS_TO_BE_ENDED = 5.0


@dataclass(frozen=True)
class Sign:
    """What a rank says about itself.

    Attributes:
        code: the exit code, if an error was raised or the rank has ended; None before.
        text: the message of the error.
        kind: the name of its class.
        ended: whether the rank has nothing left to do.
        stop: whether a signal asks it to stop.
    """

    code: int | None = None
    text: str = ""
    kind: str = ""
    ended: bool = False
    stop: bool = False

    @property
    def failing(self) -> bool:
        """Whether an error was raised."""
        return bool(self.code)


@dataclass(frozen=True)
class Notice:
    """What rank 0 says to all.

    Attributes:
        code: the exit code of the rank that failed first; None if none has, 0 if all have ended well.
        text: its message, with the rank.
        kind: the name of the class of its error.
        leave: whether all ranks have ended.
        at_once: whether to end the process now.
    """

    code: int | None = None
    text: str = ""
    kind: str = ""
    leave: bool = False
    at_once: bool = False


class Watch:
    """The watch of one rank.

    Args:
        communicator: of mpi4py; the watch alone uses it.
        hosts: the machine of each rank.

    Attributes:
        advice: what to do after the run failed; it follows the message about a lost rank.
    """

    def __init__(self, communicator: Any, hosts: Sequence[str]) -> None:
        self._communicator = communicator
        self._hosts = hosts
        self._rank, self._size = communicator.rank, communicator.size
        self._sign, self._notice = Sign(), Notice()
        self._signs = [Sign()] * self._size  # of all ranks, known to rank 0
        self._silent = dict.fromkeys(range(1, self._size) if self._rank == 0 else [0], 0)
        self._failed_first: tuple[int, float] | None = None
        self._noticed = 0.0
        self._requests: dict[int, Any] = {}
        self._left = threading.Event()
        self.advice = ""
        self._thread = threading.Thread(target=self._run, name="heatsim-watch", daemon=True)
        self._thread.start()

    @property
    def stop_requested(self) -> bool:
        """Whether a rank was asked to stop by a signal; known to rank 0."""
        return any(sign.stop for sign in self._signs)

    def request_stop(self) -> None:
        """Tell rank 0 that a signal asks to stop."""
        self._sign = replace(self._sign, stop=True)

    def check(self) -> None:
        """Called by what waits for other ranks.

        Raises:
            HeatsimError: another rank failed; has its message.
        """
        notice = self._notice
        if notice.code and not self._sign.ended:
            raise _KINDS.get(notice.kind, RanksError)(notice.text)

    def failing(self, error: BaseException | None) -> None:
        """Tell the other ranks that an error was raised here, before files are closed; None: that it is over."""
        if error is None:
            self._sign = Sign()
        elif self._sign.code is None:
            code, text = 1, "".join(traceback.format_exception(error))[-_MOST_BYTES // 2 :].rstrip()
            if isinstance(error, HeatsimError):
                code, text = error.exit_code, str(error)
            self._sign = replace(self._sign, code=code, text=text, kind=type(error).__name__)

    def end(self, code: int, text: str) -> tuple[int, str]:
        """Wait until all ranks have ended. Returns the exit code of the job and the message to print.

        Args:
            code: the exit code of this rank.
            text: the message of its error.
        """
        before = self._sign
        self._sign = replace(before, code=before.code or code, text=before.text or text, ended=True)
        while not self._left.wait(TICK) or self._thread.is_alive():
            pass
        notice = self._notice
        if self._rank > 0:
            return notice.code or 0, ""
        return notice.code or 0, text or notice.text

    def _run(self) -> None:
        while not self._left.is_set():
            time.sleep(TICK)
            self._listen()
            self._listen_for_silence()
            if self._rank == 0:
                self._signs[0] = self._sign
                self._decide()
            self._tell()
            if self._notice.at_once:
                self._leave_at_once()
            if self._notice.leave:
                self._finish_telling()
                self._left.set()

    def _listen(self) -> None:
        from mpi4py import MPI

        status = MPI.Status()
        while self._communicator.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
            source = status.Get_source()
            message = self._communicator.recv(source=source)
            self._silent[source] = -1
            if isinstance(message, Notice):
                self._notice = message
            else:
                self._signs[source] = message

    def _listen_for_silence(self) -> None:
        """Count the ticks since the last message of each rank that has not ended."""
        for rank in self._silent:
            self._silent[rank] += 1
            if self._silent[rank] >= SILENT_TICKS and not self._notice.leave:
                self._lose(rank)

    def _decide(self) -> None:
        """Find out what rank 0 has to say."""
        now, signs, notice = time.monotonic(), self._signs, self._notice
        failing = [rank for rank, sign in enumerate(signs) if sign.failing]
        if not failing:
            self._failed_first = None
        elif self._failed_first is None:
            self._failed_first = failing[0], now
        if all(sign.ended for sign in signs):
            first = signs[self._failed_first[0]] if self._failed_first else Sign(0)
            self._notice = replace(notice, leave=True, code=notice.code or first.code)
            if not notice.text and self._failed_first and self._failed_first[0] > 0:
                self._notice = replace(self._notice, text=self._named(self._failed_first[0]))
        elif self._failed_first is None or len(failing) == len(signs):
            return
        elif notice.code is None:
            rank, since = self._failed_first
            if now - since > SECONDS_TO_FAIL_TOGETHER:
                self._notice, self._noticed = Notice(signs[rank].code, self._named(rank), signs[rank].kind), now
        elif now - self._noticed > SECONDS_TO_END:
            self._notice = replace(notice, at_once=True)

    def _named(self, rank: int) -> str:
        """The message of a rank, with the rank."""
        return f"rank {rank} on {self._hosts[rank]}: {self._signs[rank].text}"

    def _tell(self) -> None:
        """Send the sign to rank 0, or the notice to all others that have taken the one before."""
        message: Sign | Notice = self._notice
        if self._rank > 0:
            message = replace(self._sign, text=_shortened(self._sign.text))
        else:
            message = replace(self._notice, text=_shortened(self._notice.text))
        for rank in self._silent:
            if rank not in self._requests or self._requests[rank].Test():
                self._requests[rank] = self._communicator.isend(message, rank)

    def _finish_telling(self) -> None:
        """Bring the last messages on their way; with an end, so that a lost rank does not keep this one."""
        until = time.monotonic() + _SECONDS_TO_TELL
        waiting = list(self._silent)
        while waiting and time.monotonic() < until:
            waiting = [rank for rank in waiting if not self._requests[rank].Test()]
            time.sleep(0.001)

    def _leave_at_once(self) -> NoReturn:
        """End this process; files stay as after a kill. Rank 0 prints why."""
        if self._rank == 0:
            _print(self._notice.text)
        self._finish_telling()
        leave_failed(self._rank, self._notice.code or 1)

    def _lose(self, rank: int) -> NoReturn:
        """End the job because a rank is silent."""
        advice = f"; {self.advice}" if self.advice else ""
        failed = f"; before that: {self._notice.text}" if self._notice.code else ""
        printing = 0 if rank > 0 else 1
        if self._rank == printing:
            _print(
                f"rank {rank} on {self._hosts[rank]}: no sign of life for {SILENT_TICKS * TICK:.0f} s: its process "
                f"hangs, was stopped or killed, or its machine cannot be reached{failed}{advice}"
            )
        leave_failed(self._rank, 1, printing)


def leave_failed(rank: int, code: int, first: int = 0) -> NoReturn:
    """End the processes of all ranks with an exit code other than 0; called by each of them.

    Args:
        rank: the number of this one.
        code: the exit code.
        first: the rank that prints. It has MPI end all others: launchers report the code of one process only, and
            that of a process that leaves MPI without a word becomes any code.
    """
    if rank != first:
        time.sleep(_SECONDS_TO_BE_ENDED)
        os._exit(code)
    # The launcher drops what it has not passed on when it ends the processes. MPI would print a line about that.
    time.sleep(_SECONDS_TO_TELL)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    from mpi4py import MPI

    # The one of a copy of the communicator lets launchers report any code.
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)


def _shortened(text: str) -> str:
    content = text.encode()
    return text if len(content) <= _MOST_BYTES else content[:_MOST_BYTES].decode(errors="ignore") + " …"


def _print(text: str) -> None:
    """Print on stderr although the main thread may hold the stream."""
    os.write(2, f"heatsim: {text}\n".encode())
