"""Requests to stop, from the user, the system or the caller."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from heatsim.parallel.team import Team

_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_OF_GRACE = 0.3  # for work that is about to end
_one_at_a_time = threading.Lock()


class Stop:
    """``requested`` is set when the user, the system or the caller asks to stop."""

    requested = False


@contextmanager
def stop_on_signals(stop: Stop | None = None) -> Iterator[Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into a request to stop. Only the main thread of a process can do this.

    SIGHUP comes when the terminal is closed. A run that was started with nohup ignores it and continues.
    """
    stop = stop or Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(number: int, frame: object) -> None:
        stop.requested = True

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, request) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_of_ranks(stop: Stop, team: Team) -> bool:
    """Whether a stop was requested on a rank; rank 0 decides. Collective."""
    return team.broadcast(is_stop_requested(stop, team))


def is_stop_requested(stop: Stop, team: Team) -> bool:
    """Whether this rank knows of a request to stop. Rank 0 knows the requests on all ranks."""
    if stop.requested:
        team.request_stop()
    return stop.requested or team.stop_requested


def done_unless_stopped(work: Callable[[], object], stop: Stop) -> bool:
    """Do work that cannot be interrupted, such as compiling, in another thread. Return whether it is done.

    After a request to stop, this returns without waiting. The next work of this kind waits for the thread, and so does
    the end of the process: it would crash if a compiler were still working.

    Raises:
        Exception: the exception of the work.
    """
    errors: list[BaseException] = []

    def do() -> None:
        with _one_at_a_time:
            try:
                work()
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=do, name="heatsim-prepare")
    thread.start()
    while thread.is_alive() and not stop.requested:
        thread.join(_SECONDS_BETWEEN_LOOKS)
    thread.join(_SECONDS_OF_GRACE)
    if thread.is_alive():
        return False
    if errors:
        raise errors[0]
    return True
