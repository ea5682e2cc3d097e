"""The heat of regions and the heat flow through contacts, which energy.csv has with `output.region_heat`.

A region's heat in J is what it has stored since t = 0. The heat flow through a contact in W, from the first material
or region to the second, is that at the time of the row. No sum over the steps knows the heat through a contact in J.
Where contacts alone separate what lies on its two sides, the balance of one side gives it: what that side has stored,
less what sources and boundary faces have brought there. Other contacts have no column in J.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.contact_balances import contact_balances
from heatsim.physics.readings.contact_links import ContactLinks, contact_links, flow_through
from heatsim.solver.field.cell_parts import regions_with_heat
from heatsim.storage.tables import CONTACT, REGION, SURFACE


def region_names(problem: HeatProblem) -> list[str]:
    """The columns of the regions' heats; none unless the scenario asks for them."""
    return [REGION + name for name in regions_with_heat(problem)]


def surface_names(problem: HeatProblem) -> list[str]:
    """The names of the heats through named surfaces towards void."""
    return [SURFACE + name for name in problem.boundary.named]


def contact_names(problem: HeatProblem) -> list[str]:
    """The columns of the flows through contacts; none unless the scenario asks for them."""
    scenario = problem.scenario
    if not scenario.output.region_heat:
        return []
    return [CONTACT + contact.name for contact in scenario.contacts]


def contact_heat_names(problem: HeatProblem) -> list[str]:
    """The columns of the heats through contacts, for those that separate parts of the body. Collective."""
    return [CONTACT + problem.scenario.contacts[number].name for number in contact_balances(problem)]


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


class ContactHeats:
    """The heat through each contact that separates parts of the body, from their balance.

    Attributes:
        initial: of each contact what its second side contained at the start, in J.
    """

    def __init__(self, state: RunState, initial: list[float] | None) -> None:
        """``initial``: from a checkpoint; None at the start, when the field is that of t = 0."""
        self._state, types = state, len(state.problem.materials.types)
        self._levels = [*contact_balances(state.problem).values()]
        self._weights = np.array(self._levels, dtype=np.float64).reshape(-1, types)
        self.initial = initial
        if initial is None:
            totals = state.statistics.totals([state.field.reduction().sums])
            self.initial = self._contents(totals)[0].tolist()

    def stored(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the second sides have stored since the start, in J; shape (times, contacts).

        Args:
            totals: as for :meth:`RegionHeats.rows`.
        """
        return np.asarray(self._contents(totals) - np.array(self.initial))

    def heats_of_sources(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The heat of each source that heats its cells alike between times in s, and its magnitude, in J.

        Returns:
            Shape (spans, 2 · sources); (spans, 0) if no contact needs it.
        """
        if not self._levels:
            return np.zeros((len(edges) - 1, 0))
        heat = self._state.problem.sources.heats(edges)
        return np.concatenate([heat, np.abs(heat)], axis=1)

    def sources(self, heats: NDArray[np.float64], released: NDArray[np.float64]) -> NDArray[np.float64]:
        """What these sources have given to the second sides since the start, in J; shape (times, contacts).

        Args:
            heats: sums of :meth:`heats_of_sources` since the start.
            released: heat in J of all these sources as the ledger has it. Kernels round it, and rows within a step
                interpolate it: the difference is shared out like the heat.
        """
        if not heats.shape[1]:
            return np.zeros((len(heats), len(self._levels)))
        heat, magnitude = np.split(heats, 2, axis=1)
        all_of_them = magnitude.sum(axis=1, keepdims=True)
        shares = magnitude / np.where(all_of_them > 0.0, all_of_them, 1.0)
        heat = heat + shares * (released - heat.sum(axis=1))[:, np.newaxis]
        # Not a product of matrices, whose bits depend on how many rows are made together.
        return np.asarray((heat[:, :, np.newaxis] * self._state.problem.sources.parts(self._weights)).sum(axis=1))

    def _contents(self, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        found = [self._state.statistics.weighted_heats(totals, levels) for levels in self._levels]
        return np.array(found).reshape(len(self._levels), len(totals)).T


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
        problem, time = self._state.problem, self._state.time
        return [
            flow_through(problem, links, (both[0].temperatures(), both[1].temperatures()), time) if both else 0.0
            for links, both in zip(self._links, self._points, strict=True)
        ]
