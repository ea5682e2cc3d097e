"""Print the progress of a run: compiling, then a bar on a terminal; elsewhere a line from time to time."""

import sys
import threading
import time
from typing import Any

from heatsim.amounts import SPEEDS, TIMES, choose_unit, format_amount
from heatsim.counts import TimeLeft, plain
from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState

_SECONDS_BETWEEN_LINES = 5.0
_PART_BETWEEN_LINES = 0.1  # of the time so far: a run of a day prints about 90 lines
_BAR = 16  # characters
COMPILING = "compiling the kernel …"


class Progress(Observer):
    """Prints the simulated time, the steps, the speed and the time left on stderr."""

    _bar: Any = None
    _status: Any = None
    _timer: threading.Timer | None = None

    def prepare(self) -> None:
        """Print that the kernel is being compiled: on a terminal at once, elsewhere if it takes some seconds."""
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(COMPILING)
            self._status.start()
        else:
            self._timer = threading.Timer(
                _SECONDS_BETWEEN_LINES, print, [COMPILING], {"file": sys.stderr, "flush": True}
            )
            self._timer.daemon = True
            self._timer.start()

    def start(self, state: RunState, saved: Values | None) -> None:
        """Start the clock and draw the bar."""
        self._end_preparing()
        self._first_steps, self._started = _steps(state), time.monotonic()
        self._left, self._last_line = TimeLeft(_part(state), self._started), self._started
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            self._bar = Progress(
                BarColumn(_BAR),
                TaskProgressColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._briefly(state), total=1.0, completed=_part(state))
            self._bar.start()

    def poll(self, state: RunState) -> None:
        """Redraw the bar, or print a line if the last one is some seconds old."""
        if self._bar is not None:
            self._bar.update(self._task, completed=_part(state), description=self._briefly(state))
        elif self._line_is_due(time.monotonic()):
            self._last_line = time.monotonic()
            print(self._with_time_left(self._describe(state), state), file=sys.stderr, flush=True)

    def _line_is_due(self, now: float) -> bool:
        """Whether the last line is some seconds old; the longer the run, the rarer the lines."""
        wait = max(_SECONDS_BETWEEN_LINES, _PART_BETWEEN_LINES * (self._last_line - self._started))
        return now - self._last_line >= wait

    def close(self) -> None:
        """Give the terminal back."""
        self._end_preparing()
        if self._bar is not None:
            self._bar.stop()

    def _end_preparing(self) -> None:
        if self._status is not None:
            self._status.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _briefly(self, state: RunState) -> str:
        """The simulated time and the speed, which fit beside a bar on 80 columns."""
        return self._with_time_left(f"{_times(state)}, {self._speed(state)}", state)

    def _with_time_left(self, text: str, state: RunState) -> str:
        left = self._left.text(_part(state), time.monotonic())
        return f"{text}, {left}" if left else text

    def _describe(self, state: RunState) -> str:
        timeline = state.problem.timeline
        steps = f"step {state.step:,} of {timeline.last_step:,}" if state.method is None else state.method.describe()
        return f"{_times(state)}, {steps}, {self._speed(state)}"

    def _speed(self, state: RunState) -> str:
        """The cells per second since the start."""
        elapsed = max(time.monotonic() - self._started, 1e-9)
        return format_amount((_steps(state) - self._first_steps) * state.field.grid.cell_count / elapsed, SPEEDS)


def _times(state: RunState) -> str:
    """The simulated time and that at the end."""
    end = float(state.problem.timeline.times[-1])
    unit = choose_unit(TIMES, end)
    return f"t = {plain(state.reached / unit.size, 4)} of {plain(end / unit.size, 4)} {unit.symbol}"


def _part(state: RunState) -> float:
    """The part of the run that is done, from 0 to 1."""
    if state.method is None:
        return state.step / max(state.problem.timeline.last_step, 1)
    return state.reached / float(state.problem.timeline.times[-1])


def _steps(state: RunState) -> int:
    """Number of updates of every cell so far."""
    return state.step if state.method is None else state.method.work.stages
