"""A request to stop, by the user, the system or the caller."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_OF_GRACE = 0.3  # for work that is about to end
_one_at_a_time = threading.Lock()


class Stop:
    """``requested`` is set when the user, the system or the caller asks to stop."""

    requested = False


@contextmanager
def stop_on_signals(stop: Stop | None = None) -> Iterator[Stop]:
    """Turn SIGINT, SIGTERM and SIGHUP into a request; only a process' main thread can.

    SIGHUP comes when the terminal is closed; started with nohup, a run goes on.
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


def done_unless_stopped(work: Callable[[], object], stop: Stop) -> bool:
    """Do work that cannot be interrupted, such as compiling, in a thread of its own; whether it was waited for.

    Once a stop is requested it is left to itself: it ends with the process, and the next such work waits for it.

    Raises:
        Exception: what the work raised.
    """
    errors: list[BaseException] = []

    def do() -> None:
        with _one_at_a_time:
            try:
                work()
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=do, name="heatsim-prepare", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.requested:
        thread.join(_SECONDS_BETWEEN_LOOKS)
    thread.join(_SECONDS_OF_GRACE)
    if thread.is_alive():
        return False
    if errors:
        raise errors[0]
    return True
