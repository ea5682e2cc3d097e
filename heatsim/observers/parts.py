"""The heat of regions and the heat flow through contacts, which energy.csv has with `output.region_heat`.

A region's heat in J is what it has stored since t = 0. The heat flow through a contact in W, from the first material
or region to the second, is that at the time of the row: no sum over the steps knows it.
"""

from math import fsum
from typing import Any

import numpy as np

from heatsim.observers.regions import RegionCells
from heatsim.observers.state import RunState
from heatsim.physics.contact_links import ContactLinks, contact_links, flow_through
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import VOID
from heatsim.storage.run_tables import CONTACT, REGION


def region_names(problem: HeatProblem) -> list[str]:
    """The columns of the regions' heats; none unless the scenario asks for them."""
    return [REGION + name for name in _regions(problem)]


def contact_names(problem: HeatProblem) -> list[str]:
    """The columns of the flows through contacts; none unless the scenario asks for them."""
    scenario = problem.scenario
    if not scenario.output.region_heat:
        return []
    return [CONTACT + " to ".join(contact.between) for contact in scenario.contacts]


class RegionHeats:
    """The heat that each region has stored since the start.

    Attributes:
        initial: Σ ρ·cp·V·(T − T_ref) in J of each region at the start.
    """

    def __init__(self, state: RunState, initial: list[float] | None) -> None:
        """``initial``: from a checkpoint; None at the start, when the field is that of t = 0."""
        self._state = state
        self._cells = [RegionCells(name, state) for name in _regions(state.problem)]
        self._capacities: Any = state.field.device.xp.asarray(state.problem.materials.cell_heat_capacity)
        self.initial = [self._content(cells) for cells in self._cells] if initial is None else initial

    def row(self) -> list[float]:
        """The heat in J of each region, in the order of :func:`region_names`."""
        return [self._content(cells) - initial for cells, initial in zip(self._cells, self.initial, strict=True)]

    def _content(self, cells: RegionCells) -> float:
        field, total = self._state.field, 0.0
        for place, mask in cells.slabs():
            heat = field.own[place] * cells.of_type(self._capacities, place)
            total += float(field.device.xp.where(mask, heat, 0.0).sum(dtype=np.float64))
        return fsum(field.team.gathered(total))


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


def _regions(problem: HeatProblem) -> list[str]:
    scenario = problem.scenario
    if not scenario.output.region_heat or problem.parts is None:
        return []
    cells = zip(scenario.regions, problem.parts.region_cells, strict=True)
    return [region.name for region, count in cells if count and {*region.materials} != {VOID}]
