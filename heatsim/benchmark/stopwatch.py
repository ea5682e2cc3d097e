"""Times of repeated work, on the device's own clock."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from heatsim.device import Device

# How long one timed repeat lasts, in s: far beyond what a launch takes, or threads that wake up.
_LONG_ENOUGH = {"cuda": 0.1, "cpu": 0.3}
# By how much longer a repeat is tried next, at the most, where one was too short.
_GROWTH = 64.0


@dataclass(frozen=True)
class KernelTiming:
    """Repeated measurements of one time.

    Attributes:
        seconds: their median.
        spread: the largest less the smallest, as a fraction of the median.
    """

    seconds: float
    spread: float

    @classmethod
    def of(cls, times: Sequence[float]) -> "KernelTiming":
        """From the measurements in s."""
        middle = median(times)
        return cls(middle, (max(times) - min(times)) / middle if middle > 0.0 else 0.0)


@dataclass(frozen=True)
class Work:
    """Something that can be done any number of times.

    Attributes:
        do: does it so many times.
        unit: the number of times is a multiple of this.
        most: and at most this.
    """

    do: Callable[[int], None]
    unit: int = 1
    most: int = 1 << 16


def elapsed(device: Device, work: Work, count: int) -> float:
    """Seconds that ``count`` times take: between two events in the queue of a GPU, on the wall on a CPU."""
    if device.backend == "cpu":
        started = time.perf_counter()
        work.do(count)
        return time.perf_counter() - started
    first, last = device.xp.cuda.Event(), device.xp.cuda.Event()
    first.record()
    work.do(count)
    last.record()
    last.synchronize()
    milliseconds: float = device.xp.cuda.get_elapsed_time(first, last)
    return milliseconds * 1e-3


def enough(device: Device, work: Work) -> int:
    """How many times make a repeat that is long enough to time; warms up on the way.

    Work may take long to begin, as an ensemble's tables do, so what one takes says little about what many take.
    """
    elapsed(device, work, work.unit)
    long_enough, most = _LONG_ENOUGH[device.backend], max(1, work.most // work.unit)
    units = 1
    while units < most:
        seconds = elapsed(device, work, units * work.unit)
        if seconds >= long_enough:
            break
        units = min(most, max(2 * units, round(units * min(_GROWTH, long_enough / max(seconds, 1e-9)))))
    return units * work.unit


def time_in_turn(device: Device, works: Sequence[Work], repeats: int) -> list[KernelTiming]:
    """What each takes once. One repeat of each after the other, so that a drifting clock treats all alike."""
    counts = [enough(device, work) for work in works]
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, count, mine in zip(works, counts, times, strict=True):
            mine.append(elapsed(device, work, count) / count)
    return [KernelTiming.of(mine) for mine in times]
