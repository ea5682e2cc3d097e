"""The network of nodes: what they exchange with each other and with given temperatures.

    C·du/dt = links + flows + power + Q        links = l(t) − L·u     flows = f(t) − F·u     Q: heat from surfaces in W

L is symmetric; F is not, because a fluid carries heat downstream only. A node without a heat capacity has C = 0: its
temperature is that at which its equation holds.

Beside its temperature the state of a node keeps the heats in J that it has taken up so far, so that steps, the course
between their ends and checkpoints treat all of them alike.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotConvergedError
from heatsim.physics.nodes.channel_nodes import channels_of, nodes_of
from heatsim.physics.time.stage_times import StageTimes
from heatsim.scenario import Node, NodeTemperature, Scenario, TimeFunction

Array = NDArray[np.float64]

# The columns of the state of a network.
TEMPERATURE, SURFACES, LINKS, FLOWS, POWER = range(5)
COLUMNS = 5
_SAVED, _SAVED_RATES = "nodes", "node_rates"


# Changes of temperatures that fall no more are rounding, if they are at most this part of the temperature.
_ROUNDING = 1e-9


def has_settled(change: float, before: float, largest: float, small: float) -> bool:
    """Whether Newton's method for nodes has ended: a change in K is at most a small part of |u|, or rounding.

    Args:
        change: the last one in K.
        before: the one before; infinite at first.
        largest: the largest |u| in K.
        small: the part.
    """
    return change <= small * largest or 0.5 * before <= change <= _ROUNDING * largest


class Given(NamedTuple):
    """What does not depend on the temperatures of nodes, at n stages, in W; arrays of shape (n, nodes).

    Attributes:
        links: Σ conductance · given temperature.
        flows: Σ mass flow · specific heat · inlet temperature.
        power: heat set free in the nodes.
    """

    links: Array
    flows: Array
    power: Array

    def at(self, stage: int) -> "Given":
        """That of one stage, of shape (nodes,)."""
        return Given(*(of[min(stage, len(of) - 1)] for of in self))

    def part(self, some: slice) -> "Given":
        """That of some of the stages."""
        return Given(*(of[some] for of in self))


class Network:
    """The nodes of a scenario.

    Attributes:
        nodes: as the scenario has them, then those of its channels.
        channels: which of them belong to channels.
        names: of the nodes.
        capacities: heat capacities C in J/K, shape (nodes,).
        massless: which nodes have none, shape (nodes,).
        links: L in W/K, shape (nodes, nodes).
        flows: F in W/K, shape (nodes, nodes).
        state: temperatures in K, then heats in J from surfaces, links, flows and power, shape (nodes, 5): those that
            conditions and observers see. The stepper sets it.
        going_on: the state from which steps go on where it differs from what is shown: the temperatures of nodes
            without a heat capacity are found from those of the stage before, so that a resumed run has the same bits.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.nodes: tuple[Node, ...] = nodes_of(scenario)
        self.channels = channels_of(scenario)
        self.names = tuple(node.name for node in self.nodes)
        count = len(self.nodes)
        self.capacities = np.array([node.heat_capacity for node in self.nodes])
        if scenario.steady:
            self.capacities = np.zeros(count)
        self.massless = self.capacities == 0.0
        self.links, self.flows = np.zeros((count, count)), np.zeros((count, count))
        self._link_ends: list[tuple[int, float, TimeFunction]] = []
        self._inlets: list[tuple[int, float, TimeFunction]] = []
        for number, node in enumerate(self.nodes):
            for link in node.links:
                self.links[number, number] += link.conductance
                if link.node is not None:
                    other = self.names.index(link.node)
                    self.links[other, other] += link.conductance
                    self.links[number, other] -= link.conductance
                    self.links[other, number] -= link.conductance
                elif link.ambient is not None:
                    self._link_ends.append((number, link.conductance, link.ambient))
            for flow in node.flows:
                self.flows[number, number] += flow.capacity_rate
                if flow.node is not None:
                    self.flows[number, self.names.index(flow.node)] -= flow.capacity_rate
                elif flow.inlet is not None:
                    self._inlets.append((number, flow.capacity_rate, flow.inlet))
        self.state = np.zeros((count, COLUMNS))
        self.going_on: Array | None = None
        self.begin()

    def begin(self) -> None:
        """Set the state at t = 0. Nodes without a heat capacity begin at any temperature."""
        self.state[...], self.going_on = 0.0, None
        middle = self._middle
        for number, node in enumerate(self.nodes):
            known = node.initial_temperature
            self.state[number, TEMPERATURE] = middle if known is None else known

    @property
    def _middle(self) -> float:
        ends = [end for node in self.nodes for known in node.known_temperatures for end in known.extremes(0.0)]
        return 0.5 * (min(ends) + max(ends)) if ends else 293.15

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def temperatures(self) -> Array:
        """The temperatures in K, a view of the state."""
        return self.state[:, TEMPERATURE]

    @property
    def matrix(self) -> Array:
        """L + F in W/K."""
        return self.links + self.flows

    def number_of(self, function: TimeFunction) -> int:
        """The number of the node whose temperature a function is; −1 for any other function."""
        return self.names.index(function.node) if isinstance(function, NodeTemperature) else -1

    def tied(self, known: frozenset[int]) -> frozenset[int]:
        """The nodes whose steady temperature is fixed by given temperatures, or by nodes that are known."""
        follows = self.matrix != 0.0
        found, count = known | {number for number, _, _ in (*self._link_ends, *self._inlets)}, -1
        while count != (count := len(found)):
            found |= {number for number in range(len(self)) if follows[number, [*found]].any()}
        return found

    def rates(self, areas: Array, slopes: Array, of_nodes: Mapping[int, tuple[int, int]]) -> Array:
        """The rate in 1/s with which each node approaches its surroundings, or more; 0 without a heat capacity.

        Args:
            areas: of each condition in m².
            slopes: the largest −dq/dT_s of each in W/(m² K).
            of_nodes: the nodes of each condition.
        """
        losses = self.matrix.diagonal().copy()
        for number, nodes in of_nodes.items():
            for node in {*nodes} - {-1}:
                losses[node] += areas[number] * slopes[number]
        return np.where(self.massless, 0.0, losses / np.where(self.massless, 1.0, self.capacities))

    def given(self, stages: StageTimes) -> Given:
        """What is given at stages; powers are means over their intervals."""
        found = Given(*(np.zeros((len(stages), len(self))) for _ in Given._fields))
        for out, ends in ((found.links, self._link_ends), (found.flows, self._inlets)):
            for number, conductance, function in ends:
                out[:, number] += conductance * function.at(stages.times)
        for number, node in enumerate(self.nodes):
            found.power[:, number] = stages.means(node.power.mean)
        return found

    @staticmethod
    def solved(matrix: Array, heat: Array) -> Array:
        """The changes of temperatures in K with which nodes give off some heats in W.

        Raises:
            NotConvergedError: some nodes exchange no heat.
        """
        try:
            return np.asarray(np.linalg.solve(matrix, heat))
        except np.linalg.LinAlgError:
            raise NotConvergedError(
                "nodes that exchange no heat with their surroundings have no temperature: give them a heat_capacity, "
                "a link, or surfaces with a coefficient above 0"
            ) from None

    def flows_at(self, given: Given, heat: Array) -> Array:
        """The rates of the heats of the state in W, shape (nodes, 5), without those of temperatures.

        Args:
            given: at one time.
            heat: from surfaces in W, shape (nodes,).
        """
        u = self.temperatures
        rates = np.zeros((len(self), COLUMNS))
        rates[:, SURFACES], rates[:, POWER] = heat, given.power
        rates[:, LINKS], rates[:, FLOWS] = given.links - self.links @ u, given.flows - self.flows @ u
        return rates

    def rate(self, given: Given, heat: Array) -> Array:
        """The rates of the state, shape (nodes, 5): K/s of nodes with a heat capacity, and W."""
        rates = self.flows_at(given, heat)
        stores = ~self.massless
        rates[stores, TEMPERATURE] = rates[stores, SURFACES:].sum(axis=1) / self.capacities[stores]
        return rates

    def resume(self) -> None:
        """Go on from the state before :meth:`NodeStages.show` was called."""
        if self.going_on is not None:
            self.state[...], self.going_on = self.going_on, None

    def saved(self, state: Array | None = None, rates: Array | None = None) -> dict[str, str]:
        """A state, by default that from which steps go on, and its rates for a checkpoint."""
        if state is None:
            state = self.state if self.going_on is None else self.going_on
        rates = np.zeros_like(state) if rates is None else rates
        return {_SAVED: json.dumps(state.tolist()), _SAVED_RATES: json.dumps(rates.tolist())}

    def take(self, saved: Mapping[str, Any]) -> None:
        """Set the state to that of a checkpoint."""
        self.state[...] = json.loads(saved[_SAVED])

    @staticmethod
    def saved_rates(saved: Mapping[str, Any]) -> Array:
        """The rates of a checkpoint, shape (nodes, 5)."""
        return np.array(json.loads(saved[_SAVED_RATES]))
