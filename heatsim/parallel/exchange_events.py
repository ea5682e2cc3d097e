"""Track which of the exchanges on the streams of a GPU have started and ended."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from heatsim.device import Device
from heatsim.parallel.signs import Sign
from heatsim.parallel.team import ExchangeProgress


class Hangs:
    """Counts how often the same exchange was found unfinished although all ranks have started it."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # of each followed progress: the exchange, and how often

    def look(self, signs: Sequence[Sign]) -> tuple[int, int]:
        """How many times in sequence an exchange was found unfinished, and a rank on which it hangs.

        Args:
            signs: the latest one of each rank.
        """
        most = 0, 0
        for number in range(min(len(sign.progress) for sign in signs)):
            of_ranks = [sign.progress[number] for sign in signs]
            exchange = min(each.reached for each in of_ranks)
            rank = next((rank for rank, each in enumerate(of_ranks) if each.done < exchange), None)
            before, count = self._seen.get(number, (exchange, 0))
            count = count + 1 if rank is not None and before == exchange else 0
            self._seen[number] = exchange, count
            if rank is not None:
                most = max(most, (count, rank))
        return most


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
        before = self._device.recorded()
        yield
        self._events.append((before, self._device.recorded()))

    def progress(self) -> ExchangeProgress:
        """The numbers of exchanges that the GPU has started and ended. Another thread calls this."""
        with self._gpu:
            while self._events and self._events[0][1].done:
                self._events.popleft()
                self._done += 1
            waiting = bool(self._events) and self._events[0][0].done
        return ExchangeProgress(self._done + waiting, self._done)
