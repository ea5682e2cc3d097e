"""Stops a run whose field is not finite, before the field is written."""

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import SUMS, Observer, Reads
from heatsim.observers.state import RunState


class Watchdog(Observer):
    """Runs at all due times and at every checkpoint, before all other observers."""

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def reads(self, state: RunState) -> Reads:
        """The sum of the field."""
        return SUMS

    def handle(self, state: RunState) -> None:
        """Sum the field: the sum is not finite if a cell is not.

        Raises:
            NotFiniteError: a cell is NaN or infinite; the message names the step.
        """
        state.check()
