"""What changes from step to step, made for many steps at a time."""

from collections.abc import Callable
from typing import Generic, TypeVar

from heatsim.errors import ScenarioError
from heatsim.physics.time.time_steps import Timeline

Made = TypeVar("Made")


class StepsAhead(Generic[Made]):
    """Makes the arguments of many steps together, over several due times.

    Args:
        timeline: the steps of the run.
        most: the most steps that are made together.
        make: returns the arguments of steps ``first`` … ``until`` − 1, all of one length; raises ScenarioError where a
            condition or source cannot be used.
    """

    def __init__(self, timeline: Timeline, most: int, make: Callable[[int, int], Made]) -> None:
        self._timeline = timeline
        self._most = most
        self._make = make
        self._made: tuple[int, int, Made] | None = None

    def of(self, first: int, until: int) -> tuple[Made, slice]:
        """Arguments among which those of steps ``first`` … ``until`` − 1 are, and their place there.

        Raises:
            ScenarioError: a condition or source cannot be used at one of these steps.
        """
        if self._made is None or not self._made[0] <= first < until <= self._made[1]:
            end = max(until, self._timeline.end_of_length(first, first + self._most))
            try:
                made = self._make(first, end)
            except ScenarioError:  # perhaps at a step that comes later: then the run gets that far
                end = until
                made = self._make(first, end)
            self._made = (first, end, made)
        begin, _, made = self._made
        return made, slice(first - begin, until - begin)
