"""Times in pictures: dates if the run starts at a date, else the time since the start."""

from datetime import datetime, timedelta
from typing import Any

from heatsim.amounts import TIMES, Unit, choose_unit, format_time

_SECONDS_MATTER = 7200.0  # s: in a shorter run


def moment(time: float, last: float, start: datetime | None, digits: int = 4) -> str:
    """A time in s as text: ``"2024-02-03 12:00"``, or ``"2.5 days"`` without a date.

    Args:
        time: in s after the start.
        last: the end of the run in s, which decides the unit.
        start: the date of the start.
        digits: of a time without a date.
    """
    if start is None:
        return format_time(time, choose_unit(TIMES, last), digits)
    return (start + timedelta(seconds=time)).isoformat(" ", "seconds" if last < _SECONDS_MATTER else "minutes")


def label_times(axis: Any, unit: Unit, ends: tuple[float, float], start: datetime | None) -> None:
    """Label an axis of Matplotlib whose numbers are times in a unit; with dates if the run starts at a date.

    Args:
        axis: across or up.
        unit: of its numbers.
        ends: of the times in s.
        start: the date of the start.
    """
    if start is None:
        axis.set_label_text(f"Time ({unit.symbol})")
        return
    label, ticks = date_ticks(unit, ends, start)
    axis.set_ticks([*ticks], [*ticks.values()])
    axis.set_label_text(label)


def time_axis(ends: tuple[float, float], start: datetime | None) -> tuple[Unit, str, dict[float, str]]:
    """The unit of an axis of times, its label, and its texts by places in that unit; no texts without a date.

    Args:
        ends: of the times in s.
        start: the date of the start.
    """
    unit = choose_unit(TIMES, ends[1])
    return (unit, f"Time ({unit.symbol})", {}) if start is None else (unit, *date_ticks(unit, ends, start))


def date_ticks(unit: Unit, ends: tuple[float, float], start: datetime) -> tuple[str, dict[float, str]]:
    """The label of an axis of times with dates, and the texts at its numbers, which are times in a unit.

    Args:
        unit: of the numbers.
        ends: of the times in s.
        start: the date of the start.
    """
    import matplotlib.dates

    of: Any = matplotlib.dates
    low, high = (start + timedelta(seconds=end) for end in (ends[0], max(ends[1], ends[0] + 1.0)))
    locator = of.AutoDateLocator(minticks=3, maxticks=8)
    dates = [value for value in locator.tick_values(low, high) if of.date2num(low) <= value <= of.date2num(high)]
    formatter = of.ConciseDateFormatter(locator)
    texts = formatter.format_ticks(dates)
    places = [(of.num2date(value).replace(tzinfo=None) - start).total_seconds() / unit.size for value in dates]
    days = dict.fromkeys(str(end.date()) for end in (low, high))
    label = f"Time on {low.date()}" if len(days) == 1 else f"Date, from {' to '.join(days)}"
    return label, dict(zip(places, texts, strict=True))
