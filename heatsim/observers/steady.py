"""Ends a run when all cells and nodes change more slowly than ``time.stop_below``."""

import json

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import RunState
from heatsim.physics.drives.changes import last_change

_NODES = "steady_nodes"


class Steady(Observer):
    """Compares the field at 0, probe_every, 2·probe_every, … with the field at the time before.

    The change of a cell in one step may be below the resolution of float32; the change from row to row is not. For
    materials that vary with temperature the contents are compared, so a melting cell counts as changing although its
    temperature hardly does.

    The run ends only if conditions and sources have changed for the last time before both rows: until a source is
    switched on, a field may be at rest.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which the field is compared."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Store the field, unless the checkpoint has one."""
        self._last_change = last_change(state.problem.scenario)
        network = state.problem.boundary.network
        self._nodes: NDArray[np.float64] = np.zeros(0) if network is None else network.temperatures.copy()
        if saved is not None and network is not None:
            self._nodes = np.array(json.loads(saved[_NODES]))
        if state.compared is None:
            state.compared = (state.step, state.field.own.copy())

    def handle(self, state: RunState) -> None:
        """Stop the run if conditions stay constant and the field changed more slowly than ``stop_below``."""
        stop_below, compared = state.problem.scenario.time.stop_below, state.compared
        assert stop_below is not None, "the observer exists only with stop_below"
        assert compared is not None, "stored at the start"
        step, before = compared
        if step == state.step:
            return
        since = state.problem.timeline.time(step)
        slow = state.field.largest_change(before) / (state.time - since) < stop_below
        network = state.problem.boundary.network
        if network is not None:
            changes, self._nodes = np.abs(network.temperatures - self._nodes), network.temperatures.copy()
            slow = slow and float(changes.max()) / (state.time - since) < stop_below
        state.stopped = slow and since >= self._last_change
        # A new array: a checkpoint that is being written may hold the old one.
        state.compared = (state.step, state.field.own.copy())

    def save(self) -> dict[str, Value]:
        """The temperatures of nodes at the last comparison."""
        return {_NODES: json.dumps(self._nodes.tolist())} if len(self._nodes) else {}
