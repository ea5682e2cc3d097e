"""The progress of a study, from the events of its runs: a bar on a terminal, else a line every few seconds."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heatsim.counts import TimeLeft, counted

_SECONDS_BETWEEN_LINES = 5.0


@dataclass(frozen=True)
class Event:
    """The progress of a run, or its end.

    Attributes:
        number: the run.
        step: the number of steps so far; None at the end.
        status: "done" or "failed" at the end, else "".
        message: the reason of a failure.
    """

    number: int
    step: int | None = None
    status: str = ""
    message: str = ""


class StudyProgress:
    """Shows on stderr the runs that are done, running and failed, and the time left.

    Args:
        work: cells · steps of each missing run, by number.
        steps: the number of steps of each missing run.
        finished: the number of runs that were done before.
        shown: whether to show anything.
    """

    def __init__(self, work: Mapping[int, float], steps: Mapping[int, int], finished: int, shown: bool) -> None:
        self._work = work
        self._steps = steps
        self._runs = finished + len(work)
        self._left = set(work)
        self._failed = 0
        self._shares: dict[int, float] = {}
        self._first_shares: dict[int, float] = {}
        self._shown = shown
        self._last_line = time.monotonic()
        self._time_left = TimeLeft(0.0, self._last_line)
        self._bar: Any = None

    def __enter__(self) -> "StudyProgress":
        if self._shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._describe(), total=1.0)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, number: int, step: int) -> None:
        """Record that a run has reached a step."""
        share = step / max(self._steps.get(number, 1), 1)
        self._first_shares.setdefault(number, share)
        self._shares[number] = share
        self.show()

    def end(self, number: int, failed: bool) -> None:
        """Record that a run has ended."""
        if number in self._left:
            self._left.remove(number)
            self._failed += failed
            self._shares[number] = 1.0
            self.show()

    def show(self) -> None:
        """Redraw the bar, or print a line if the last line is 5 s old."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self._fraction(self._shares), description=self._describe())
        elif self._shown and time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            print(self._describe(), file=sys.stderr, flush=True)

    def _fraction(self, shares: Mapping[int, float]) -> float:
        total = sum(self._work.values())
        return sum(self._work.get(number, 0.0) * share for number, share in shares.items()) / total if total else 1.0

    def _describe(self) -> str:
        running = sum(0.0 < share < 1.0 for share in self._shares.values())
        failed = f", {self._failed} failed" if self._failed else ""
        text = f"{self._runs - len(self._left)} of {counted(self._runs, 'run')} ended{failed}"
        text += f", {running} running" if running else ""
        # Steps before this start do not count for the speed.
        before = self._fraction(self._first_shares)
        part = (self._fraction(self._shares) - before) / (1.0 - before) if before < 1.0 else 1.0
        left = self._time_left.text(part, time.monotonic())
        return f"{text}, {left}" if left else text
