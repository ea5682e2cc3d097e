"""How much each plane of cells adds to the error of a run: the mean over some rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer
from heatsim.observers.snapshots import CELLS_AT_ONCE
from heatsim.observers.state import RunState
from heatsim.physics.readings.plane_errors import Place, plane_errors

_MOST_ROWS = 16


class PlaneErrors(Observer):
    """Adds up :func:`heatsim.physics.readings.plane_errors.plane_errors`; a run on one rank.

    Args:
        places: where temperatures are read.

    Attributes:
        found: for each axis the means of both sums of each plane, shape (2, n).
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self.found: list[NDArray[np.float64]] = []
        self._rows = 0

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Some rows after the first one, the last one among them."""
        steps = state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)
        after = steps[1:] if len(steps) > 1 else steps
        return after[np.unique(np.linspace(0, len(after) - 1, _MOST_ROWS).round().astype(np.intp))]

    def handle(self, state: RunState) -> None:
        """Add those of the field."""
        field, (_, ny, nx) = state.field.temperature(), state.problem.grid.shape
        at_once = max(1, CELLS_AT_ONCE // (nx * ny))
        found = plane_errors(state.problem, state.step, lambda first, end: field[first:end], at_once, self._places)
        self._rows += 1
        before = self.found or [np.zeros(each.shape) for each in found]
        self.found = [mean + (each - mean) / self._rows for mean, each in zip(before, found, strict=True)]
