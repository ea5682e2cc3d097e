"""Numbers of things and time spans in texts."""

from math import floor, isfinite, log10

_LEAST, _MOST = 1e-4, 1e6  # numbers whose zeros a reader can count
_SAMPLES = 64
_PART_FOR_SPEED = 1.0 / 3.0  # of the time so far: its end gives the speed
_PART_BETWEEN = 0.2  # of the time so far, between two expected ends
_SAME, _SMALL = 0.25, 0.05  # of the time left, and of that so far: expected ends that differ less are the same


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 row", "2,000 rows".

    Args:
        count: the number.
        noun: the noun after 1.
        plural: the noun after other numbers; by default the noun with an "s".
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def minus(number: str) -> str:
    """The text of a number for readers: its sign is a minus sign; an exponent keeps its hyphen, as in "1e-05"."""
    return "−" + number[1:] if number.startswith("-") else number


def plain(value: float, digits: int) -> str:
    """A number with some significant digits, such as "150" with two: without an exponent unless it has many zeros."""
    rounded = float(f"{value:.{digits}g}") + 0.0
    if not isfinite(rounded) or not (rounded == 0.0 or _LEAST <= abs(rounded) < _MOST):
        return minus(f"{rounded:.{digits}g}")
    decimals = 0 if rounded == 0.0 else max(0, digits - 1 - floor(log10(abs(rounded))))
    text = minus(f"{rounded:.{decimals}f}")
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(seconds: float) -> str:
    """A time span in the unit that suits it, such as "about 41 min"."""
    if seconds < 1.0:
        return "less than 1 s"
    for unit, length, most in (("s", 1.0, 100.0), ("min", 60.0, 100.0), ("h", 3600.0, 48.0)):
        if seconds / length < most:
            return f"about {plain(seconds / length, 2)} {unit}"
    days = seconds / 86400.0
    return f"about {days:,.0f} days" if days < 1000.0 else f"about {days / 365.25:,.0f} years"


class TimeLeft:
    """The time that work will still take, which is told only once it has settled.

    The speed is that of the last third of the time so far. Steps that begin tiny and grow, and compiling, make it far
    too low at first. So the end that it predicts must be about that which it predicted some time before.

    Args:
        part: of the work that is done, from 0 to 1.
        now: in s.
    """

    def __init__(self, part: float, now: float) -> None:
        self._started = now
        self._samples: list[tuple[float, float, float | None]] = [(now, part, None)]

    def text(self, part: float, now: float) -> str:
        """The time left, such as "about 41 min left"; empty as long as it has not settled.

        Args:
            part: of the work that is done.
            now: in s, later than at the calls before.
        """
        left = self._seconds(part, now)
        before = self._at(now - _PART_BETWEEN * (now - self._started))[2]
        self._samples.append((now, part, None if left is None else now + left))
        if len(self._samples) > _SAMPLES:
            del self._samples[1::2]
        if left is None or before is None or part >= 1.0:
            return ""
        if abs(now + left - before) > _SAME * left + _SMALL * (now - self._started):
            return ""
        return f"{duration(left)} left"

    def _seconds(self, part: float, now: float) -> float | None:
        then, done, _ = self._at(now - _PART_FOR_SPEED * (now - self._started))
        return (1.0 - part) * (now - then) / (part - done) if part > done else None

    def _at(self, time: float) -> tuple[float, float, float | None]:
        """The last sample until a time."""
        return next(sample for sample in reversed(self._samples) if sample[0] <= time)
