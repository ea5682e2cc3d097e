"""Says what the run does: compiling, then how far it is, by a bar on a terminal, a line every few seconds elsewhere."""

import sys
import threading
import time
from typing import Any

from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState

_SECONDS_BETWEEN_LINES = 5.0
_COMPILING = "compiling the kernel …"


class Progress(Observer):
    """Simulated time, step, speed in GCells/s and the time left, on stderr."""

    _bar: Any = None
    _status: Any = None
    _timer: threading.Timer | None = None

    def prepare(self) -> None:
        """Say at once on a terminal that the kernel is compiled, elsewhere if it takes some seconds."""
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(_COMPILING)
            self._status.start()
        else:
            self._timer = threading.Timer(
                _SECONDS_BETWEEN_LINES, print, [_COMPILING], {"file": sys.stderr, "flush": True}
            )
            self._timer.daemon = True
            self._timer.start()

    def start(self, state: RunState, saved: Values | None) -> None:
        """Remember where the part that is timed begins; draw the bar."""
        self._end_preparing()
        self._first_step, self._started = state.step, time.monotonic()
        self._last_line = self._started
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.description}"),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(
                self._describe(state), total=state.problem.timeline.last_step, completed=state.step
            )
            self._bar.start()

    def poll(self, state: RunState) -> None:
        """Redraw the bar, or print a line if the last one is some seconds old."""
        if self._bar is not None:
            self._bar.update(self._task, completed=state.step, description=self._describe(state))
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            done = state.step - self._first_step
            left = (self._last_line - self._started) / done * (state.problem.timeline.last_step - state.step)
            print(f"{self._describe(state)}, about {left:.0f} s left", file=sys.stderr, flush=True)

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

    def _describe(self, state: RunState) -> str:
        elapsed = max(time.monotonic() - self._started, 1e-9)
        speed = (state.step - self._first_step) * state.field.grid.cell_count / elapsed / 1e9
        last = state.problem.timeline
        return (
            f"t = {state.time:.6g} of {float(last.times[-1]):.6g} s, step {state.step:,} of {last.last_step:,}, "
            f"{speed:.3g} GCells/s"
        )
