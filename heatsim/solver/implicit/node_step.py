"""The nodes in the two stages of an implicit step; heatsim/solver/implicit/scheme.py has the formulas."""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.nodes.network import TEMPERATURE, Given, Network
from heatsim.physics.time.stage_times import StageTimes
from heatsim.solver.implicit.scheme import GAMMA
from heatsim.solver.implicit.stage_equations import StageEquations

Array = NDArray[np.float64]


class NodeStep:
    """The nodes in a step.

    Args:
        network: the nodes.
        times: of both stages.
        start: their state at the start of the step, shape (nodes, 5).

    Attributes:
        first, second: what is given in each stage, and the temperatures in K from which the nodes change; the second
            one is known after :meth:`end_first`.
    """

    def __init__(self, network: Network, times: StageTimes, start: Array) -> None:
        network.state[...] = start
        given = network.given(times)
        mean, last = given.power
        of_first = given.at(0)._replace(power=np.where(mean == last, mean, (mean - GAMMA * last) / (1.0 - GAMMA)))
        self._network, self._start = network, start
        self.first: tuple[Given, Array] = of_first, start[:, TEMPERATURE]
        self.second: tuple[Given, Array] = given.at(1), start[:, TEMPERATURE]
        self._rates = np.zeros_like(start)

    def end_first(self, equations: StageEquations, h: float) -> None:
        """Take the rates of the first stage of a step of ``h`` s."""
        self._rates = equations.node_rates
        begun = self._start[:, TEMPERATURE] + (1.0 - GAMMA) * h * self._rates[:, TEMPERATURE]
        self.second = self.second[0], begun

    def end_second(self, equations: StageEquations, h: float) -> tuple[Array, Array]:
        """The state at the end of the step, and its rates."""
        rates = equations.node_rates
        state = self._start + h * ((1.0 - GAMMA) * self._rates + GAMMA * rates)
        massless = self._network.massless
        state[massless, TEMPERATURE] = self._network.temperatures[massless]
        return state, rates
