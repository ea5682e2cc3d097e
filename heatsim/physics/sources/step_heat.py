"""What sources in the body give in steps of Euler's method. Several readers ask for the same steps, a few at a time."""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.sources.sources import Sources
from heatsim.physics.time.steps_ahead import StepsAhead
from heatsim.physics.time.time_steps import Timeline

Array = NDArray[np.float64]

# For fewer steps, calls take longer than numbers.
_STEPS_AT_ONCE = 4096


class StepHeat:
    """The heat of sources in the body."""

    def __init__(self, sources: Sources, timeline: Timeline) -> None:
        self._sources, self._timeline = sources, timeline
        self._ahead = StepsAhead(timeline, _STEPS_AT_ONCE, self._make)

    def of(self, first: int, until: int) -> Array:
        """What steps ``first`` … ``until`` − 1, all of one length, give to the cells of each type, in K.

        Returns:
            Shape (steps, types); (1, types) if all steps give the same.

        Raises:
            ScenarioError: a value at one of these steps cannot be used.
        """
        if self._sources.heat_constant:
            return self._make(first, first + 1)
        heat, some = self._ahead.of(first, until)
        return heat if len(heat) == 1 else heat[some]

    def _make(self, first: int, until: int) -> Array:
        return self._sources.heat(self._timeline.step_times(first, until), self._timeline.dt(first))
