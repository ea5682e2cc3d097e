"""The temperature of a node as a function of time: known only while the run calculates it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.function_of_time import Unchanging

# The keys of a node in the place of an ambient temperature.
NODE, AT = "node", "at"


@dataclass(frozen=True)
class NodeTemperature(Unchanging):
    """The temperature of a node.

    As a function of time it counts as smooth; its values here stand for those that the run finds.

    Attributes:
        node: the name of the node.
        at_temperature: the temperature in K at which a law in T and Tamb is taken; None if the scenario has none.
        bounds: the lowest and highest known temperature of the network in K; the scenario sets it.
    """

    node: str
    at_temperature: float | None = None
    bounds: tuple[float, float] = field(default=(np.nan, np.nan), compare=False)

    @property
    def constant(self) -> bool:
        """False."""
        return False

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The temperature at which laws are taken, or the middle of the bounds."""
        middle = 0.5 * (self.bounds[0] + self.bounds[1])
        return np.full(np.shape(times), middle if self.at_temperature is None else self.at_temperature)

    def extremes(self, end: float) -> tuple[float, float]:
        """The bounds."""
        return self.bounds
