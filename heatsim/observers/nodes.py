"""The nodes, written to nodes.csv: the temperature of each, and the heats in J that it has taken up since t = 0.

`air surfaces`, `air links`, `air flows` and `air power` are the heats from surfaces, through links, with fluids, and
set free in the node. They add up to heat_capacity · (T − initial_temperature). In a steady state they are heat flows in
W, which add up to 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import SUMS, Reads
from heatsim.observers.state import RunState
from heatsim.observers.table import Column, TableObserver
from heatsim.physics.nodes.network import COLUMNS, Network
from heatsim.storage import folder
from heatsim.storage.run_tables import JOULE, WATT

HEATS = ("surfaces", "links", "flows", "power")


class Nodes(TableObserver):
    """Writes a row of all nodes."""

    file = folder.NODES
    saved_as = "nodes_table"

    def reads(self, state: RunState) -> Reads:
        """Nothing of the field."""
        return SUMS

    def due(self, state: RunState) -> NDArray[np.int64]:
        """As other tables; the only step of a steady state."""
        return state.problem.timeline.steps if state.problem.scenario.steady else super().due(state)

    def columns(self, state: RunState) -> Sequence[Column]:
        """Temperatures, then heats, node by node."""
        names, unit = _network(state).names, state.problem.scenario.output.temperature
        joule = WATT if state.problem.scenario.steady else JOULE
        heats = [(f"{name} {heat}", joule) for name in names for heat in HEATS]
        return [*((name, unit) for name in names), *heats]

    def row(self, state: RunState) -> Sequence[float]:
        """The numbers of all nodes."""
        network = _network(state)
        unit = state.problem.scenario.output.temperature_unit
        return [*map(unit.of, network.temperatures.tolist()), *network.state[:, 1:COLUMNS].ravel().tolist()]


def _network(state: RunState) -> Network:
    network = state.problem.boundary.network
    assert network is not None
    return network
