"""Ends a run when no cell changes fast any more."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.physics.changes import last_change

_CELLS_AT_ONCE = 2**24


class Steady(Observer):
    """At 0, probe_every, 2·probe_every, …: compares the field with that of the time before.

    What a cell changes in a step may be less than float32 can tell apart; from row to row it is not lost. Of a material
    that changes with temperature it is the heat in kelvins that is compared: one that melts changes, however slowly its
    temperature does.

    What acts on the body must have changed for the last time before the rows that are compared: a source that is
    switched on later leaves a field quiet until then.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which the field is compared."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Remember the field; a resumed run has it from its checkpoint."""
        self._last_change = last_change(state.problem.scenario)
        if state.compared is None:
            state.compared = (state.step, state.field.deviation.copy())

    def handle(self, state: RunState) -> None:
        """Ask for the end if nothing changes from outside and the field changed more slowly than ``stop_below``."""
        stop_below, compared = state.problem.scenario.time.stop_below, state.compared
        assert stop_below is not None, "asked for"
        assert compared is not None, "remembered at the start"
        step, before = compared
        if step == state.step:
            return
        since = state.problem.timeline.time(step)
        slow = largest_difference(state.field.deviation, before) / (state.time - since) < stop_below
        state.stopped = slow and since >= self._last_change
        # Not into the array that is there: a checkpoint may be on its way that holds it.
        state.compared = (state.step, state.field.deviation.copy())


def largest_difference(one: Any, other: Any) -> float:
    """The largest magnitude of a difference between two device arrays [z, y, x], a few planes at a time."""
    planes = max(1, _CELLS_AT_ONCE // one[0].size)
    return max(
        float(abs(one[first : first + planes] - other[first : first + planes]).max())
        for first in range(0, len(one), planes)
    )
