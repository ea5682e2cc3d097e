"""A request to stop, by the user, the system or the caller."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stop:
    """``requested`` is set when the user, the system or the caller asks to stop."""

    requested = False


@contextmanager
def stop_on_signals(stop: Stop | None = None) -> Iterator[Stop]:
    """Turn SIGINT and SIGTERM into a request; only a process' main thread can."""
    stop = stop or Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(number: int, frame: object) -> None:
        stop.requested = True

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
