"""The nodes of a channel: one without heat capacity for each plane of cells across the way of the fluid.

    ṁc·(u_p − u_{p−1}) = g_p·(T_w − u_p),      g_p = ṁc·(e^NTU − 1),      NTU = h·A_p/(ṁc)

A node has the temperature at which the fluid leaves its plane. With the conductance g_p this is exact where the wall of
the plane has one temperature T_w: T_w − u_p = (T_w − u_{p−1})·e^(−NTU). Source: Incropera, *Fundamentals of Heat and
Mass Transfer*, §8.3.3.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.scenario import Channel, Node, Scenario
from heatsim.scenario.tables.marks import extent
from heatsim.scenario.values.function_of_time import Mapped

Array = NDArray[np.float64]

# Beyond, the fluid leaves at the temperature of the wall to 2e-9 of the difference.
_MOST_UNITS = 20.0


@dataclass(frozen=True)
class ChannelNodes:
    """The nodes of a channel.

    Attributes:
        channel: as the scenario has it.
        index: its place in the scenario.
        first: the number of its first node, at the inlet.
        planes: the planes of the axis that have a node, ascending.
        axis: the axis along which the fluid flows.
        backwards: whether it flows towards smaller coordinates.
    """

    channel: Channel
    index: int
    first: int
    planes: range
    axis: int
    backwards: bool

    @property
    def last(self) -> int:
        """The number of the node at the outlet."""
        return self.first + len(self.planes) - 1

    def name(self, node: int) -> str:
        """The name of one of its nodes, by its number from the inlet on."""
        return f"{self.channel.name}[{node}]"

    def nodes_of(self, planes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers from the inlet on of the nodes of planes."""
        from_low = planes - self.planes.start
        return len(self.planes) - 1 - from_low if self.backwards else from_low


@dataclass(frozen=True)
class PlaneFilm(Mapped):
    """The conductance g/A of a plane in W/(m² K), as a function of time.

    Attributes:
        function: h.
        per_unit: A/(ṁc) of the plane in m² K/W.
    """

    per_unit: float

    def of(self, values: Array) -> Array:
        """The conductances of values of h."""
        units = np.minimum(values * self.per_unit, _MOST_UNITS)
        return np.asarray(np.expm1(units) / self.per_unit)


def channels_of(scenario: Scenario) -> tuple[ChannelNodes, ...]:
    """The channels of a scenario; their nodes follow those of [[nodes]]."""
    found, first = [], len(scenario.nodes)
    regions = {region.name: region for region in scenario.regions}
    for index, channel in enumerate(scenario.channels):
        side = FACES.index(channel.from_)
        centres = scenario.grid.centres(side // 2)
        planes = range(len(centres))
        if (ends := extent(regions[channel.region])) is not None:
            start = min(int(np.searchsorted(centres, ends[0][side // 2])), len(centres) - 1)
            stop = int(np.searchsorted(centres, ends[1][side // 2], side="right"))
            planes = range(start, max(stop, start + 1))
        found.append(ChannelNodes(channel, index, first, planes, side // 2, bool(side % 2)))
        first += len(planes)
    return tuple(found)


def nodes_of(scenario: Scenario) -> tuple[Node, ...]:
    """The nodes of a scenario, those of channels among them."""
    channels = channels_of(scenario)
    ends = {nodes.channel.name: nodes.name(len(nodes.planes) - 1) for nodes in channels}
    found = list(scenario.nodes)
    for nodes in channels:
        channel = nodes.channel
        before = None if channel.before is None else ends[channel.before]
        for number in range(len(nodes.planes)):
            origin = {"inlet": channel.inlet} if before is None else {"node": before}
            fluid = {**origin, "mass_flow": channel.mass_flow, "specific_heat": channel.specific_heat}
            found.append(Node.model_validate({"name": nodes.name(number), "flows": [fluid]}))
            before = nodes.name(number)
    return tuple(found)
