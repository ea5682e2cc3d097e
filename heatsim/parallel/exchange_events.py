"""Track which of the exchanges on the streams of a GPU have started and ended."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from heatsim.device import Device
from heatsim.parallel.team import ExchangeProgress


class ExchangeEvents:
    """Events before and after each exchange that may not have ended yet.

    Args:
        device: the GPU of this rank, current in the thread that makes this object.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._gpu = device.xp.cuda.Device()
        self._done = 0
        self._events: deque[tuple[Any, Any]] = deque()

    @contextmanager
    def around(self) -> Iterator[None]:
        """Run a block that queues an exchange on the current stream."""
        before = self._event()
        yield
        self._events.append((before, self._event()))

    def progress(self) -> ExchangeProgress:
        """The numbers of exchanges that the GPU has started and ended. Another thread calls this."""
        with self._gpu:
            while self._events and self._events[0][1].done:
                self._events.popleft()
                self._done += 1
            waiting = bool(self._events) and self._events[0][0].done
        return ExchangeProgress(self._done + waiting, self._done)

    def _event(self) -> Any:
        event = self._device.xp.cuda.Event(disable_timing=True)
        event.record()
        return event
