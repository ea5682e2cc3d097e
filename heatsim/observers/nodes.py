"""The nodes, written to nodes.csv: the temperature of each, and the heats in J that it has taken up since t = 0.

`air surfaces`, `air links`, `air flows` and `air power` are the heats from surfaces, through links, with fluids, and
set free in the node. They add up to heat_capacity · (T − initial_temperature). In a steady state they are heat flows in
W, which add up to 0. A channel has the temperature of its outlet and the heats of all its nodes; `flows` is then minus
what the fluid takes with it.
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


def _shown(network: Network) -> list[tuple[str, int, slice]]:
    """What has columns: its name, the node whose temperature it has, and the nodes whose heats add up to its own."""
    first = len(network) - sum(len(channel.planes) for channel in network.channels)
    found = [(name, number, slice(number, number + 1)) for number, name in enumerate(network.names[:first])]
    return found + [(of.channel.name, of.last, slice(of.first, of.last + 1)) for of in network.channels]


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
        names, unit = [name for name, *_ in _shown(_network(state))], state.problem.scenario.output.table_unit.name
        joule = WATT if state.problem.scenario.steady else JOULE
        heats = [(f"{name} {heat}", joule) for name in names for heat in HEATS]
        return [*((name, unit) for name in names), *heats]

    def row(self, state: RunState) -> Sequence[float]:
        """The numbers of all nodes."""
        network = _network(state)
        unit = state.problem.scenario.output.table_unit
        shown = _shown(network)
        heats = [network.state[nodes, 1:COLUMNS].sum(axis=0) for _, _, nodes in shown]
        return [
            *(unit.of(float(network.temperatures[node])) for _, node, _ in shown),
            *np.concatenate(heats).tolist(),
        ]


def _network(state: RunState) -> Network:
    network = state.problem.boundary.network
    assert network is not None
    return network
