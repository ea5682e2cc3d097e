"""The values that were set during the run, written to changes.csv; and those of a record, set at their moments.

A row has the moment at which values may change, and the values from then on until the next row. So it is written at the
end of this time. The scenario can repeat the run with these columns as ``recorded``.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import SUMS, Reads, Value, Values
from heatsim.observers.state import RunState
from heatsim.observers.table import Column, TableObserver
from heatsim.physics.readings.surface_temperature import forget_acting
from heatsim.scenario import Scenario
from heatsim.storage import folder
from heatsim.storage.run_tables import JOULE

_HISTORIES, _PUT_IN = "changes", "put_in"
FIELD = "initial.temperature"  # its column has the heat that a new field has put in


class Changes(TableObserver):
    """Sets what is recorded, and writes what was set."""

    file = folder.CHANGES
    saved_as = "changes"

    def reads(self, state: RunState) -> Reads:
        """Nothing of the field."""
        return SUMS

    def columns(self, state: RunState) -> Sequence[Column]:
        """The values, by the paths of their keys."""
        scenario = state.problem.scenario
        heat = [(FIELD, JOULE)] if scenario.resets is not None else []
        return [*((path, steered.unit) for path, steered in scenario.steered.items()), *heat]

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps after which values may change."""
        return np.array(state.problem.timeline.change_steps, dtype=np.int64)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the table."""
        super().start(state, saved)
        self._state, self._scenario, timeline = state, state.problem.scenario, state.problem.timeline
        intervals = self._scenario.intervals_of_changes
        self._steps = {every: frozenset(timeline.steps_at(every).tolist()) for every in intervals}

    def handle(self, state: RunState) -> None:
        """Write the values until now, and set those that are recorded from now on."""
        if state.step == 0:
            return
        super().handle(state)
        for path, change in self._scenario.changes.items():
            if change.recorded is not None and state.step in self._steps[change.every] and not state.finished:
                set_value(state, path, float(change.recorded.at(np.array([state.time]))[0]))

    def sample(self, state: RunState) -> Any:
        """The moment before this one, and the values from then on."""
        steps = state.problem.timeline.change_steps
        before = np.array([state.problem.timeline.time(steps[bisect_left(steps, state.step) - 1])])
        moment, resets = float(before[0]), self._scenario.resets
        heat = [] if resets is None else [state.put_in.get(moment, 0.0)]
        return [moment, *(float(of.at(before)[0]) for of in self._scenario.steered.values()), *heat]

    def save(self) -> dict[str, Value]:
        """The number of rows, and all values so far."""
        histories = {path: steered.history for path, steered in self._scenario.steered.items()}
        put_in = list(self._state.put_in.items())
        return {**super().save(), _HISTORIES: json.dumps(histories), _PUT_IN: json.dumps(put_in)}


def set_value(state: RunState, path: str, value: float) -> None:
    """Set a value in SI units from now on, once all that shows the time before is written. Collective.

    Raises:
        StorageError: writing failed.
    """
    steered = state.problem.scenario.steered[path]
    if value != steered.now:
        state.writer.wait()
        steered.set(state.time, value)
        forget_acting(state.problem)


def begin_changes(scenario: Scenario) -> None:
    """Set what is recorded for t = 0."""
    for path, change in scenario.changes.items():
        if change.recorded is not None:
            scenario.steered[path].restore([0.0], change.recorded.at(np.zeros(1)).tolist())


def restore_changes(scenario: Scenario, saved: Mapping[str, Any]) -> dict[float, float]:
    """Take the values that were set before a checkpoint; returns the heats in J that new fields put in, by time in s.

    Raises:
        KeyError, ValueError, TypeError: the checkpoint does not have them.
    """
    if scenario.changes:
        for path, (times, values) in json.loads(str(saved[_HISTORIES])).items():
            scenario.steered[path].restore(times, values)
    return dict(json.loads(str(saved[_PUT_IN]))) if scenario.changes else {}
