"""The wall-clock time of the parts of a run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from heatsim.counts import plain
from heatsim.storage.writer import Writer

OBSERVING_WORTH_A_WARNING = 10.0  # s


@dataclass
class Timing:
    """Wall-clock seconds of the parts of a run. A GPU may do steps while the host observes.

    Attributes:
        preparing: reading the initial field and compiling.
        stepping: the steps, on a GPU by its own clock; with them the sums of rows that are queued between steps.
        observing: sums, copies of the field, rows of tables.
        waiting: until fields and checkpoints were written.
    """

    preparing: float = 0.0
    stepping: float = 0.0
    observing: float = 0.0
    waiting: float = 0.0

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the time spent inside to ``part``."""
        started = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, part, getattr(self, part) + time.perf_counter() - started)

    @contextmanager
    def observed(self, writer: Writer) -> Iterator[None]:
        """Add the time spent inside to ``observing``, and that of waiting for ``writer`` to ``waiting``."""
        waited = writer.waited
        with self.timed("observing"):
            try:
                yield
            finally:
                waited = writer.waited - waited
                self.waiting += waited
                self.observing -= waited


class SteppingPeriod:
    """The time of a run from its first step to its last one. Create it before the first step."""

    def __init__(self, timing: Timing) -> None:
        self._timing, self._begun, self._begun_at = timing, replace(timing), time.perf_counter()

    def end(self) -> list[str]:
        """Call it after the last step. Returns a warning if the observers took longer than the steps, and than 10 s.

        Only time in which no steps are done counts: a GPU does steps while the host observes, and an observer that
        reads the field itself waits for these steps.
        """
        now, begun = self._timing, self._begun
        observing = now.observing - begun.observing + now.waiting - begun.waiting
        stepping = now.stepping - begun.stepping
        without_steps = min(observing, time.perf_counter() - self._begun_at - stepping)
        if without_steps <= max(stepping, OBSERVING_WORTH_A_WARNING):
            return []
        return [
            f"the steps took {plain(stepping, 3)} s, what was written between them {plain(observing, 3)} s; with "
            "longer output.every, output.probe_every and output.checkpoint_wall the next run takes less time"
        ]
