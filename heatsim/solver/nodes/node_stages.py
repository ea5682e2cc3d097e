"""Nodes in explicit stages: each stage moves them as it moves the cells, u' = u + size·du/dt.

The conditions of a stage have the temperatures that the nodes have at its start. Those of
nodes without a heat capacity are found from the field at the start of the stage.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotConvergedError
from heatsim.kernels.cuda_graphs import Before
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.nodes.network import TEMPERATURE, Given, has_settled
from heatsim.physics.operator.balance_surfaces import at_stage, find_surfaces
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import Side, StageTimes
from heatsim.solver.field.field import Field
from heatsim.solver.field.plane_sums import PlaneSums
from heatsim.solver.nodes.linear_exchange import LinearExchange
from heatsim.solver.nodes.node_exchange import Exchanged, NodeExchange

Array = NDArray[np.float64]

# Newton's method for nodes without a heat capacity: its most steps, and the change that ends it, of |u|.
_MOST_STEPS, _SMALL = 50, 1e-12


class NodeStages:
    """The nodes of a problem beside its field.

    Attributes:
        network: their state.
        rate: of the state, shape (nodes, 5), as :meth:`begin` has found it.
        change: of the state in the last stage.

    Args:
        problem: with a network; with several ranks that of this rank's slab.
        field: whose device and reference are used.
    """

    def __init__(self, problem: HeatProblem, field: Field) -> None:
        network = problem.boundary.network
        assert network is not None
        self.network = network
        self._problem, self._field = problem, field
        self._device, self._reference = field.device, field.reference
        self._exchange = NodeExchange(problem.boundary, PlaneSums(field))
        every = find_surfaces(field.device.xp, problem, field.reference, changing=True)
        self._surfaces = [surface for surface in every if self._exchange.couples(surface)]
        self.rate = self.change = np.zeros(network.state.shape)
        # Where nothing but temperatures changes, all slopes stay: then one sum of the cells' temperatures is enough.
        stays = self._exchange.linear and not problem.materials.varies and problem.boundary.same_towards_nodes
        self._stays = stays and not problem.whole.sources.beams
        self._linear: LinearExchange | None = None

    def begin(self, T: Any, inputs: StepInputs, given: Given) -> None:
        """Find the rates at the start of a stage, and enter the temperatures of the nodes into its conditions.

        Args:
            T: the buffer of the field.
            inputs: of the stage alone; its conditions are changed.
            given: of the stage.
        """
        network, massless = self.network, self.network.massless
        size = np.inf
        for _ in range(_MOST_STEPS):
            found = self._exchanged(T, inputs)
            heat = found.heat
            if not massless.any():
                break
            missing = (network.flows_at(given, heat)[:, 1:].sum(axis=1))[massless]
            slopes = network.matrix + found.slopes
            change = network.solved(slopes[np.ix_(massless, massless)], missing)
            network.state[massless, TEMPERATURE] += change
            heat = heat - found.slopes[:, massless] @ change
            before, size = size, float(np.abs(change).max())
            largest = float(np.abs(network.temperatures[massless]).max())
            if self._exchange.linear or has_settled(size, before, largest, _SMALL):
                break
        else:
            raise NotConvergedError("the temperatures of nodes without a heat_capacity were not found")
        self._problem.boundary.take_nodes(inputs.conditions, self._reference)
        self.rate = network.rate(given, heat)

    def show(self, T: Any, time: float) -> None:
        """Find the nodes without a heat capacity for a field at a time in s; steps go on from the state before."""
        network = self.network
        network.going_on = network.state.copy()
        if not network.massless.any():
            return
        side, end = Side.AFTER if time == 0.0 else Side.BEFORE, self._problem.scenario.time.end
        moment = StageTimes.beside(time, side, 1.0, end)
        self.begin(T, self._problem.stage_rows(moment, 1.0, self._reference), network.given(moment).at(0))

    def move(self, size: float) -> None:
        """Move the nodes by a stage of ``size`` s from where :meth:`begin` found the rates."""
        self.change = size * self.rate
        self.network.state += self.change

    @property
    def queues(self) -> bool:
        """Whether a GPU moves the nodes without the host: nothing but temperatures changes."""
        return self._stays and self._device.backend == "cuda"

    def begin_queue(self, inputs: StepInputs, conditions: Sequence[int], sizes: Array, given: Given) -> Before:
        """Begin stages that a GPU does without the host, at most MOST_STAGES; call :meth:`end_queue` after them.

        Args:
            inputs: of any stage.
            conditions: the addresses of the conditions of each stage; they get the temperatures of the nodes.
            sizes: their lengths in s.
            given: of the stages.

        Returns:
            What has to be queued before each stage of the field.
        """
        linear = self._linear_exchange(inputs)
        linear.begin_stages(sizes, conditions, given)
        return linear.queue_stage

    def end_queue(self) -> None:
        """Set the nodes to where the stages have moved them; waits for the GPU."""
        assert self._linear is not None
        self.change = self._linear.end_stages()

    def _exchanged(self, T: Any, inputs: StepInputs) -> Exchanged:
        return self._linear_exchange(inputs).exchanged(T) if self._stays else self._exchanged_at(T, inputs)

    def _linear_exchange(self, inputs: StepInputs) -> LinearExchange:
        if self._linear is None:
            network, field = self.network, self._field
            before, nothing = network.temperatures.copy(), field.device.xp.zeros(field.deviation.shape)
            network.state[:, TEMPERATURE] = self._reference
            found = self._exchanged_at(nothing, inputs)
            columns = self._exchange.columns([(of, *self._cells(of, nothing)) for of in self._surfaces_at(inputs)])
            network.state[:, TEMPERATURE] = before
            self._linear = LinearExchange(self._problem.boundary, field, found, columns)
        return self._linear

    def _exchanged_at(self, T: Any, inputs: StepInputs) -> Exchanged:
        self._problem.boundary.take_nodes(inputs.conditions, self._reference)
        return self._exchange.exchanged([(of, *self._cells(of, T)) for of in self._surfaces_at(inputs)])

    def _surfaces_at(self, inputs: StepInputs) -> tuple[BalanceSurface, ...]:
        return at_stage(self._surfaces, self._problem.materials.grid, inputs.conditions[0], inputs.beams)

    def _cells(self, surface: BalanceSurface, T: Any) -> tuple[Any, Any]:
        """Deviations in K of the cells of a surface, and their conductivities over those at the reference."""
        xp, materials = self._device.xp, self._problem.materials
        held = surface.of(T).astype(np.float64)
        if not materials.varies:
            return held, 1.0
        of_tables = materials.by_enthalpy(EnthalpyTable.temperature_of, surface.cell_types, held, xp)
        conducting = materials.by_enthalpy(EnthalpyTable.conductivity_at, surface.cell_types, of_tables, xp)
        return of_tables - (self._reference - self._problem.reference), conducting


def node_stages(problem: HeatProblem, field: Field) -> NodeStages | None:
    """The nodes of a problem; None without nodes."""
    return None if problem.boundary.network is None else NodeStages(problem, field)
