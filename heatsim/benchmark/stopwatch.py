"""Times of repeated work, measured by the clock of the device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from heatsim.device import Device

# Duration of one timed repeat in s: much longer than a launch, or than threads take to start.
_LONG_ENOUGH = {"cuda": 0.1, "cpu": 0.3}
# If a repeat was too short, the next one is longer by at most this factor.
_GROWTH = 64.0


@dataclass(frozen=True)
class KernelTiming:
    """Repeated measurements of one time.

    Attributes:
        seconds: their median.
        spread: (largest − smallest) / median.
    """

    seconds: float
    spread: float

    @classmethod
    def of(cls, times: Sequence[float]) -> "KernelTiming":
        """The median and spread of times in s."""
        middle = median(times)
        return cls(middle, (max(times) - min(times)) / middle if middle > 0.0 else 0.0)


@dataclass(frozen=True)
class TimedWork:
    """Work that can be repeated.

    Attributes:
        do: does it the number of times in its argument.
        unit: the number of times must be a multiple of this.
        most: the largest number of times.
    """

    do: Callable[[int], None]
    unit: int = 1
    most: int = 1 << 16

    @classmethod
    def repeating(cls, once: Callable[[], object]) -> "TimedWork":
        """Work that a function without arguments does once."""

        def do(count: int) -> None:
            for _ in range(count):
                once()

        return cls(do)


def elapsed(device: Device, work: TimedWork, count: int) -> float:
    """Seconds for ``count`` repetitions: between two events in the queue of a GPU, by wall clock on a CPU."""
    return device.timed(lambda: work.do(count))()


def enough(device: Device, work: TimedWork) -> int:
    """The number of repetitions that is long enough to time; the search also warms up the device.

    Some work takes long to start, such as an ensemble's tables, so one repetition does not predict the time of many.
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


def time_in_turn(device: Device, works: Sequence[TimedWork], repeats: int) -> list[KernelTiming]:
    """The time of one repetition of each work. Repeats alternate, so that a drifting clock affects all equally."""
    counts = [enough(device, work) for work in works]
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, count, mine in zip(works, counts, times, strict=True):
            mine.append(elapsed(device, work, count) / count)
    return [KernelTiming.of(mine) for mine in times]
