"""Watch the ranks of a run: detect ranks that are dead, stuck or failed, and then end all ranks.

    dead     gives no heartbeat for SILENCE: killed, stopped or unreachable
    stuck    is alive, but another rank waits for it for longer than WAIT

A thread on each rank sends a heartbeat to rank 0 four times a second, and rank 0 answers. So a rank that computes for
minutes still counts as alive. The thread can end the process even if the main thread waits inside a library. It also
follows exchanges between GPUs, which hang if the connection fails: then all ranks have started an exchange, and it
does not end within SILENCE.

    Sign     rank → 0    alive; failing: an error was raised and the rank closes its files; ended: nothing is left to do
    Notice   0 → ranks   a rank failed, others did not: raise its error in the next call that waits for other ranks;
                         or all ranks have ended: leave with this exit code; or leave at once

If all ranks raise an error themselves, such as one in the scenario, no notice is needed: all end, rank 0 prints.
Times are counted in ticks of this thread. So a job survives if all of it is suspended and continued.
"""

import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NoReturn

from heatsim.errors import DeviceError, HeatsimError, RanksError, from_system_error
from heatsim.parallel.deadline import in_time
from heatsim.parallel.ending import SECONDS_TO_TELL, end_if_late, leave_failed, print_message, why_no_end
from heatsim.parallel.exchange_events import Hangs
from heatsim.parallel.process import Process
from heatsim.parallel.signs import MOST_BYTES, Notice, Sign
from heatsim.parallel.team import ExchangeProgress
from heatsim.parallel.waits import Waits, find_stuck, place_of_main_thread

TICK = 0.25  # s
SILENCE = 10.0  # s without a heartbeat until a rank counts as dead
WAIT = 1800.0  # s until a rank for which another one waits counts as stuck: compilers and file systems may be slow
LEAST_SECONDS = 2.0  # the smallest number that the user can set
SILENCE_VARIABLE = "HEATSIM_RANK_TIMEOUT"  # the environment variable with another number of seconds for SILENCE
WAIT_VARIABLE = "HEATSIM_RANK_WAIT"  # and for WAIT
SECONDS_TO_FAIL_TOGETHER = 1.0  # after the first error; then rank 0 sends a notice to the ranks that have not failed
SECONDS_TO_END = 4.0  # after the notice; then all processes are ended
_TO_DEBUG = f"; to debug a rank, set {SILENCE_VARIABLE} to more seconds"
_TO_WAIT = f"; if it only needs more time, set {WAIT_VARIABLE} to more seconds"


class Watch:
    """The watch of one rank.

    Args:
        communicator: an mpi4py communicator that only the watch uses.
        processes: those of all ranks.

    Attributes:
        advice: what to do after the run failed; it follows the message about a lost rank.
        waits: the waits of this rank for others.

    Raises:
        DeviceError: an environment variable with a number of seconds cannot be used.
    """

    def __init__(self, communicator: Any, processes: Sequence[Process]) -> None:
        self._communicator = communicator
        self._processes = processes
        self._silence, self._wait = _seconds(SILENCE_VARIABLE, SILENCE), _seconds(WAIT_VARIABLE, WAIT)
        self._followed: list[Callable[[], ExchangeProgress]] = []
        self._hangs = Hangs()
        self._rank, self._size = communicator.rank, communicator.size
        self._sign, self._notice = Sign(), Notice()
        self._signs = [Sign()] * self._size  # of all ranks, known to rank 0
        self._silent = dict.fromkeys(range(1, self._size) if self._rank == 0 else [0], 0)
        self._failed_first: tuple[int, float] | None = None
        self._noticed = 0.0
        self._requests: dict[int, Any] = {}
        self._left = threading.Event()
        self.advice = ""
        self.waits = Waits()
        self._thread = threading.Thread(target=self._run, name="heatsim-watch", daemon=True)
        self._thread.start()

    @property
    def stop_requested(self) -> bool:
        """Whether a signal asked any rank to stop; only rank 0 knows."""
        return any(sign.stop for sign in self._signs)

    def request_stop(self) -> None:
        """Tell rank 0 that a signal asks the run to stop."""
        self._sign = replace(self._sign, stop=True)

    def check(self) -> None:
        """Raise the error of another rank, if one failed. Code that waits for other ranks calls this.

        Raises:
            HeatsimError: another rank failed; with the message of that rank.
        """
        notice = self._notice
        if notice.code and not self._sign.ended:
            raise notice.error()

    def follow(self, progress: Callable[[], ExchangeProgress]) -> None:
        """End the job if an exchange between devices hangs, or if ``progress`` raises an error."""
        self._followed.append(progress)

    def failing(self, error: BaseException | None) -> None:
        """Tell the other ranks that an error was raised here, before files are closed; None cancels this."""
        if error is None:
            self._sign = Sign()
        elif self._sign.code is None:
            error = from_system_error(error) or error
            code, text = 1, "".join(traceback.format_exception(error))[-MOST_BYTES // 2 :].rstrip()
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
        text = (text or notice.text).rstrip()
        if self.advice and self._failed_first and self._signs[self._failed_first[0]].unexpected:
            text += f"\nheatsim: the program failed{self._advice}"
        return notice.code or 0, text

    def check_end(self, waited: float) -> None:
        """End the job if a rank does not leave MPI. ``waited``: the time in s that this rank has waited."""
        end_if_late(self._rank, self._processes, waited, self._silence)

    def ending_in_time(self) -> AbstractContextManager[None]:
        """Run a block in which all ranks leave MPI; end the job if it takes too long, or later this rank is stopped."""
        message = partial(why_no_end, self._processes, self._silence)
        return in_time(self._silence + min(self._rank, 2), message, self._processes[self._rank].is_stopped)

    def _run(self) -> None:
        while not self._left.is_set():
            time.sleep(TICK)
            self._listen()
            self._listen_for_silence()
            sign = self._sign_now()
            if self._rank == 0:
                self._signs[0] = sign
                self._decide()
            self._tell(sign)
            if self._notice.at_once:
                self._leave_at_once()
            if self._notice.leave:
                self._finish_telling()
                self._left.set()

    def _sign_now(self) -> Sign:
        """The sign of this rank with its progress."""
        if self._sign.ended or self._sign.failing:
            return self._sign
        try:
            progress = tuple(progress() for progress in self._followed)
            waited = self.waits.tick(progress) * TICK
            return replace(self._sign, progress=progress, waited=waited, where=place_of_main_thread())
        except Exception as error:
            self.failing(RanksError(f"planes cannot be exchanged between GPUs: {error}"))
            return self._sign

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
            silent = self._silent[rank] * TICK
            if silent < self._silence or self._notice.leave:
                continue
            # A rank cannot answer if a thread waits for a disk and holds Python's lock: then it is not dead.
            if silent >= self._wait or not self._processes[rank].waits_for_disk:
                self._lose(rank, silent)

    def _decide(self) -> None:
        """Set the notice that rank 0 sends."""
        now, signs, notice = time.monotonic(), self._signs, self._notice
        failing = [rank for rank, sign in enumerate(signs) if sign.failing]
        count, hanging = self._hangs.look(signs)
        if count * TICK >= self._silence and not failing:
            text = (
                f"rank {hanging} on {self._processes[hanging].host}: an exchange of planes between GPUs has not ended "
                f"for {self._silence:g} s, although all ranks have started it: a connection between GPUs failed"
            )
            self._notice = Notice(1, text + self._advice, RanksError.__name__, at_once=True)
            return
        stuck = find_stuck(signs, self._wait)
        if stuck is not None and not failing:
            rank, waiting = stuck
            text = (
                f"rank {rank} on {self._processes[rank].host} makes no progress: rank {waiting} has waited for it for "
                f"{self._wait:g} s; it executes {signs[rank].where or 'nothing'}{self._advice}{_TO_WAIT}"
            )
            self._notice = Notice(1, text, RanksError.__name__, at_once=True)
            return
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
        return f"rank {rank} on {self._processes[rank].host}: {self._signs[rank].text}"

    @property
    def _advice(self) -> str:
        return f"; {self.advice}" if self.advice else ""

    def _tell(self, sign: Sign) -> None:
        """Send the sign to rank 0; as rank 0, send the notice to each rank that has received the previous one."""
        message = sign.shortened if self._rank > 0 else self._notice.shortened
        for rank in self._silent:
            if rank not in self._requests or self._requests[rank].Test():
                self._requests[rank] = self._communicator.isend(message, rank)

    def _finish_telling(self) -> None:
        """Wait until the last messages are sent, but not for long, because a lost rank receives nothing."""
        until = time.monotonic() + SECONDS_TO_TELL
        waiting = list(self._silent)
        while waiting and time.monotonic() < until:
            waiting = [rank for rank in waiting if not self._requests[rank].Test()]
            time.sleep(0.001)

    def _leave_at_once(self) -> NoReturn:
        """End this process without closing files, as a kill would. Rank 0 prints why."""
        if self._rank == 0:
            print_message(self._notice.text)
        self._finish_telling()
        leave_failed(self._rank, self._notice.code or 1)

    def _lose(self, rank: int, silent: float) -> NoReturn:
        """End the job because a rank has been silent for some seconds."""
        failed = f"; before that: {self._notice.text}" if self._notice.code else ""
        printing = 0 if rank > 0 else 1
        if self._rank == printing:
            lost = self._processes[rank]
            print_message(
                f"rank {rank} on {lost.host}: no sign of life for {silent:g} s: {lost.why_silent()}{failed}"
                f"{self._advice}{_TO_DEBUG}"
            )
        leave_failed(self._rank, 1, printing)


def _seconds(variable: str, default: float) -> float:
    """The number of seconds that an environment variable sets."""
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not LEAST_SECONDS <= seconds < inf:
        raise DeviceError(f'{variable} = "{text}": expected a number of seconds, {LEAST_SECONDS:g} or more')
    return seconds
