"""What sources in the body give in steps of Euler's method. Several readers ask for the same steps, a few at a time."""

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import ScenarioError
from heatsim.physics.sources import Sources
from heatsim.physics.time_steps import Timeline

Array = NDArray[np.float64]

# An expression of time is evaluated for at least this number of steps if these have one length: for fewer steps the
# calls take longer than the numbers.
_AHEAD = 2048


class StepHeat:
    """The heat of sources in the body, evaluated for many steps ahead."""

    def __init__(self, sources: Sources, timeline: Timeline) -> None:
        self._sources, self._timeline = sources, timeline
        self._first, self._heat = 0, np.zeros((0, 0))

    def of(self, first: int, until: int) -> Array:
        """What steps ``first`` … ``until`` − 1, all of one length, give to the cells of each type, in K.

        Returns:
            Shape (steps, types); (1, types) if all steps give the same.

        Raises:
            ScenarioError: a value at one of these steps cannot be used.
        """
        dt, timeline = self._timeline.dt(first), self._timeline
        if self._sources.heat_constant:
            return self._sources.heat(timeline.step_times(first, first + 1), dt)
        if not self._first <= first < until <= self._first + len(self._heat):
            end = max(until, timeline.end_of_length(first, first + _AHEAD))
            try:
                heat = self._sources.heat(timeline.step_times(first, end), dt)
            except ScenarioError:  # perhaps at a step that comes later: then the run gets that far
                heat = self._sources.heat(timeline.step_times(first, until), dt)
            self._first, self._heat = first, heat
        return self._heat[first - self._first : until - self._first]
