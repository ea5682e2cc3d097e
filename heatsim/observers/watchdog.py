"""Stops a run whose field is no longer finite, before anybody writes it down."""

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState


class Watchdog(Observer):
    """Comes first at every step at which anything is due, and at every checkpoint."""

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def handle(self, state: RunState) -> None:
        """Summing the field shows NaN and infinity.

        Raises:
            NotFiniteError: there is one; names the step.
        """
        state.total()
