"""When observers are due."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Schedule:
    """The steps at which observers are due.

    Args:
        steps: of each observer, ascending.
    """

    def __init__(self, steps: Sequence[NDArray[np.int64]]) -> None:
        unique = np.unique(np.concatenate(steps))
        self._steps: list[int] = unique.tolist()
        due = np.array([np.isin(unique, of_one) for of_one in steps]).T
        self._due: list[Sequence[bool]] = due.tolist()
        self._none = (False,) * len(steps)
        self._only_sums: set[int] = set()

    def read_sums(self, observers: Sequence[bool]) -> None:
        """Tell which observers read the sums of a row only."""
        others = [number for number, only in enumerate(observers) if not only]
        due = zip(self._steps, self._due, strict=True)
        self._only_sums = {step for step, of_step in due if not any(of_step[number] for number in others)}

    def only_sums(self, step: int) -> bool:
        """Whether all observers that are due after ``step`` steps read the sums of a row only."""
        return step in self._only_sums

    def is_due(self, step: int) -> bool:
        """Whether an observer is due after ``step`` steps."""
        return self.at(step) is not self._none

    def next_after(self, step: int) -> int:
        """The first step after ``step`` at which an observer is due; a very large number if there is none."""
        i = bisect_right(self._steps, step)
        return self._steps[i] if i < len(self._steps) else 1 << 62

    def at(self, step: int) -> Sequence[bool]:
        """Whether each observer is due after ``step`` steps."""
        i = bisect_left(self._steps, step)
        if i == len(self._steps) or self._steps[i] != step:
            return self._none
        return self._due[i]
