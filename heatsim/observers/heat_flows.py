"""The heat flows of a steady state, written to energy.csv: one row, in W, positive into the body.

Columns: sources, the six faces, patches, all void surfaces, the surface of each region with a condition towards void,
what enters and what leaves at each of these, and the imbalance in W and in % of the heat flow through the body. `in
x_min` and `out x_min` are the sums over the boundary faces of x_min of positive and of negative heat, so a face half
hot and half cold has both; of a source they are the sums over the cells that it heats and those that it cools. The heat
flow through the body is the mean of all that enters and all that leaves. The heat of a patch is included in the column
of its face. The heat of a beam is in the column of its source, not in that of the face.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Values
from heatsim.observers.parts import ContactFlows, contact_names, surface_names
from heatsim.observers.state import RunState
from heatsim.observers.table import Column, TableObserver
from heatsim.physics.operator.steady_flows import Flows
from heatsim.physics.problem import HeatProblem
from heatsim.solver.steady.steady_state import SteadyState
from heatsim.storage import folder
from heatsim.storage.run_tables import PERCENT, WATT, header, split_header
from heatsim.storage.tables import GROSS

IMBALANCE, RELATIVE = header("imbalance", WATT), header("imbalance", PERCENT)


def row(problem: HeatProblem, state: SteadyState) -> dict[str, float]:
    """The row of energy.csv by column, without the time."""
    flows = state.flows
    assert flows.entering is not None
    net, entering = _by_name(problem, flows), _by_name(problem, flows.entering)
    leaving = {name: heat - net[name] for name, heat in entering.items()}
    relative = 100.0 * flows.imbalance / flows.turnover if flows.turnover > 0.0 else 0.0
    found = {header(name, WATT): heat for name, heat in net.items()}
    for way, gross in zip(GROSS, (entering, leaving), strict=True):
        found |= {header(way + name, WATT): heat for name, heat in gross.items()}
    return {**found, IMBALANCE: flows.imbalance, RELATIVE: relative}


def _by_name(problem: HeatProblem, flows: Flows) -> dict[str, float]:
    """The flows of each source and surface."""
    surfaces = {**flows.sources, **flows.faces, **flows.patches}
    if problem.materials.weighted_surfaces.void:
        surfaces["void"] = flows.void
        surfaces |= dict(zip(surface_names(problem), flows.surfaces, strict=True))
    return surfaces


class HeatFlows(TableObserver):
    """Writes the row."""

    file = folder.ENERGY
    saved_as = "heat_flows"

    def due(self, state: RunState) -> NDArray[np.int64]:
        """The only step."""
        return state.problem.timeline.steps

    def start(self, state: RunState, saved: Values | None) -> None:
        """Find the heat flows and create the table."""
        assert state.steady is not None, "the steady state is solved before observers start"
        contacts = zip(contact_names(state.problem), ContactFlows(state).row(), strict=True)
        self._row = row(state.problem, state.steady)
        imbalance = {name: self._row.pop(name) for name in (IMBALANCE, RELATIVE)}
        self._row |= {header(name, WATT): flow for name, flow in contacts} | imbalance
        super().start(state, saved)

    def columns(self, state: RunState) -> list[Column]:
        """The heat flows."""
        return [split_header(text) for text in self._row]

    def row(self, state: RunState) -> list[float]:
        """The heat flows."""
        return list(self._row.values())
