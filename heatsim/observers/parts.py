"""The heat of regions and the heat flow through contacts, which energy.csv has with `output.region_heat`.

A region's heat in J is what it has stored since t = 0. The heat flow through a contact in W, from the first material
or region to the second, is that at the time of the row: no sum over the steps knows it.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.contact_links import ContactLinks, contact_links, flow_through
from heatsim.solver.field.cell_parts import regions_with_heat
from heatsim.storage.tables import CONTACT, REGION, SURFACE


def region_names(problem: HeatProblem) -> list[str]:
    """The columns of the regions' heats; none unless the scenario asks for them."""
    return [REGION + name for name in regions_with_heat(problem)]


def surface_names(problem: HeatProblem) -> list[str]:
    """The names of the heats through surfaces of regions that have a condition towards void."""
    return [SURFACE + surface.of for surface in problem.scenario.surfaces]


def contact_names(problem: HeatProblem) -> list[str]:
    """The columns of the flows through contacts; none unless the scenario asks for them."""
    scenario = problem.scenario
    if not scenario.output.region_heat:
        return []
    return [CONTACT + contact.name for contact in scenario.contacts]


class RegionHeats:
    """The heat that each region has stored since the start.

    Attributes:
        initial: Σ ρ·cp·V·(T − T_ref) in J of each region at the start.
    """

    def __init__(self, state: RunState, initial: list[float] | None) -> None:
        """``initial``: from a checkpoint; None at the start, when the field is that of t = 0."""
        self._state = state
        self._names = regions_with_heat(state.problem)
        self.initial = self._contents() if initial is None else initial

    def rows(self, totals: NDArray[np.float64]) -> list[list[float]]:
        """The heat in J of each region at some times, in the order of :func:`region_names`.

        Args:
            totals: from :meth:`heatsim.solver.field.field_statistics.FieldStatistics.totals`.
        """
        contents = [self._state.statistics.heats(totals, name) for name in self._names]
        return [
            [content - initial for content, initial in zip(of_time, self.initial, strict=True)]
            for of_time in (zip(*contents, strict=True) if contents else [()] * len(totals))
        ]

    def _contents(self) -> list[float]:
        return [self._state.statistics.heat(name) for name in self._names]


class ContactFlows:
    """The heat flow through each contact at the time of a row."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        wanted = state.problem.scenario.output.region_heat
        self._links: list[ContactLinks] = contact_links(state.problem) if wanted else []
        # Materials with a contact may touch nowhere.
        self._points = [
            tuple(state.field.points(x, y, z) for z, y, x in (links.first, links.second)) if len(links.axes) else ()
            for links in self._links
        ]

    def row(self) -> list[float]:
        """The flows in W, in the order of :func:`contact_names`."""
        return [
            flow_through(self._state.problem, links, *(points.temperatures() for points in both)) if both else 0.0
            for links, both in zip(self._links, self._points, strict=True)
        ]
