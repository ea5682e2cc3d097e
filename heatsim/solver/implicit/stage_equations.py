"""The equations of a stage of an implicit step, as Newton's method wants them.

    C·σ·(θ(T) − θ*) = conduction(T) + exchange(T) + sources,      σ = 1/(γh)

θ is T where no material changes with temperature, else the content (matter/enthalpy.py). Unknown is the change
of T from the last guess: its right-hand side is small, and so are roundings of it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from heatsim.errors import NotConvergedError
from heatsim.kernels.multigrid.operator import Operator
from heatsim.kernels.multigrid.sweeps import LevelSweeps
from heatsim.physics.nodes.network import Given
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.cell_exchange import CellExchange
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.solver.steady.steady_equations import Equations, LinearSystem

# Slopes of surfaces may be off by this part of the largest one, if Newton's method goes on anyway.
_NEARLY = 0.02


class StageEquations(Equations):
    """A stage on a device, where no material changes with temperature.

    Attributes:
        capacity: C of each cell in J/K, float64, or one number where all are equal.
        node_rates: rates of the state of the nodes after :meth:`settle_nodes`.
    """

    node_rates: Any = None

    sought = "solution of a step"

    def __init__(self, balance: Balance, precision: str, sweeps: LevelSweeps) -> None:
        """Make conductances.

        Args:
            balance: of the body, with arrays of the device; it is moved from stage to stage.
            precision: of conductances and right-hand sides.
            sweeps: work on the device's arrays.
        """
        xp, materials = balance.xp, balance.materials
        super().__init__(balance, precision, xp.zeros(materials.grid.shape), sweeps)
        # Surfaces change from stage to stage: here they are no part of ground and sources.
        self._conduction = self._operator
        self._conduction.ground[...] = 0.0
        empty = xp.empty_like(self._conduction.ground)
        self._operator = replace(self._conduction, ground=empty, capacity=empty.copy())
        if self._safe is not None:
            self._safe = replace(self._operator, ground=empty.copy())
        self._given, self._given_table = balance.sources(precision, self._scale), balance.cell_sources
        alike = materials.uniform and materials.grid.uniform
        capacities = materials.cell_heat_capacity
        self.capacity: Any = float(capacities[0]) if alike else balance.in_cells(capacities)
        self._sigma, self._start = 0.0, self.temperature
        self._solved_for: tuple[float, list[Any]] = (0.0, [])

    def begin_step(self) -> None:
        """Discard the operator of the previous step, so that a step depends only on data that a checkpoint keeps.

        In a linear problem the next operator is the same.
        """
        if not self.linear:
            self._solved_for = (0.0, [])

    def begin(
        self, stage: StepInputs, sigma: float, start: Any, guess: Any, nodes: tuple[Given, Any] | None = None
    ) -> None:
        """Take a stage.

        Args:
            stage: its conditions, sources, beams.
            sigma: σ in 1/s.
            start: θ* in K, float64; it is kept.
            guess: θ in K, float64, to begin the search with.
            nodes: the given heats of the nodes, and their temperatures u* in K.
        """
        self._balance.move_to(stage)
        if self.nodes is not None and nodes is not None:
            self.nodes.begin(nodes[0], sigma, nodes[1])
            self._balance.take_nodes()
        self._sigma, self._start = sigma, start
        self._set_contents(guess)

    def contents(self) -> Any:
        """θ in K of the present temperatures."""
        return self.temperature

    def linearise(self) -> LinearSystem:
        """The system whose solution is the change of temperatures."""
        operator, b = self._operator, self._b
        if self.nodes is not None:
            self.nodes.settle(self.temperature)
        b[...] = self._gains()
        heats, slopes = self.exchange()
        self._enter(heats)
        b -= (self._sigma / self._scale) * self.capacity * (self.contents() - self._start)
        changed = self._differs(slopes)
        if changed:
            self._make_operator(slopes)
            self._solved_for = self._sigma, slopes
        self._change[...] = 0.0
        self._linearise_nodes(b)
        return LinearSystem(operator, b, self._change, self.temperature, self.linear, changed, self._safe, self.nodes)

    def settle_nodes(self) -> None:
        """Find the nodes for the present cells; their rates are those of :attr:`node_rates`."""
        if self.nodes is not None:
            self.node_rates = self.nodes.flows(self.nodes.settle(self.temperature))

    def _linearise_nodes(self, b: Any) -> None:
        """Linearise the equations of the nodes, and add what they miss to the right-hand side."""
        if self.nodes is not None:
            self.nodes.linearise(self.temperature, self._scale)
            self.nodes.add_missing(b)

    @property
    def linear(self) -> bool:
        """Whether one system is enough: each is for a change."""
        return self._balance.linear and (self.nodes is None or self.nodes.exact)

    def turn_rises(self) -> None:
        """Give up, so that the step is done again with a shorter length, for which the operator is positive.

        Raises:
            NotConvergedError: always.
        """
        raise NotConvergedError("heat that grows with the temperature needs shorter steps")

    def _differs(self, slopes: list[Any]) -> bool:
        """Whether the operator must be made again. Newton's method also converges with one that is nearly right.

        Collective. Slopes are compared condition by condition, because ranks have different surfaces.
        """
        sigma, before = self._solved_for
        if sigma != self._sigma:
            return True
        allowed = 0.0 if self.linear else _NEARLY
        changes = [now - then for now, then in zip(slopes, before, strict=True)]
        largest, change = (self._balance.sums.largest_of_conditions(self._of_cells(of)) for of in (before, changes))
        return any(change[label] > allowed * largest[label] for label in change)

    def update(self, system: LinearSystem) -> None:
        """Add the change."""
        if self.nodes is not None:
            self.nodes.move(system.x)
        if self.linear:
            self.temperature += system.x
        else:
            self._move_to(self.temperature + system.x)

    @property
    def largest_change(self) -> float:
        """The largest change in K that the last system was solved for; of potentials where materials change.

        Collective.
        """
        return self._balance.sums.largest_of_array(self._change)

    def exchange(self) -> tuple[list[Any], list[Any]]:
        """The heat through each surface into its cells in W, and the slopes in W/K."""
        T = self.temperature.reshape(-1)
        found = [self._balance.exchange(surface, T[surface.cells]) for surface in self._balance.surfaces]
        return [heat for heat, _ in found], [self.xp.asarray(slope) for _, slope in found]

    def through(self, heats: list[Any]) -> float:
        """The sum of what passes all surfaces; ``heats`` as of :meth:`exchange`, or slopes. Collective."""
        return self._balance.sums.of_surfaces(self._of_cells(heats))

    def stored(self, K: Any) -> float:
        """Σ C·K over all cells; collective."""
        return self._balance.sums.of_arrays([self.capacity * K])[0]

    def shift(self, power: float, slopes: list[Any]) -> None:
        """Change all temperatures alike, so that the equations of all cells together gain a power. Collective.

        The search leaves an error in each cell. The sum of the equations is the balance of energy: this makes it hold.

        Args:
            power: in W.
            slopes: those of :meth:`exchange`, in W/K, one number for each surface or one for each of its cells.
        """
        xp = self.xp
        change = power / (self._sigma * self._stored_per_kelvin() + self.through(slopes))
        self.temperature += xp.where(xp.asarray(self.capacity) > 0.0, change, 0.0)

    def rate(self, stage: StepInputs, contents: Any) -> Any:
        """dθ/dt in K/s at some contents, with the conditions and sources of a stage, float64. Collective.

        Gains are rounded to float32. The mean of the rates is shifted, so that the balance of energy holds in float64.
        """
        xp = self.xp
        self.begin(stage, 0.0, contents, contents)
        self._b[...] = self._gains()
        heats, _ = self.exchange()
        self._enter(heats)
        capacity = xp.asarray(self.capacity)
        rate = xp.where(capacity > 0.0, self._b * self._scale / xp.where(capacity > 0.0, capacity, 1.0), 0.0)
        return self.balanced(rate, self.stored(rate) - self.through(heats) - self._balance.source_power)

    def balanced(self, rate: Any, left: float) -> Any:
        """Rates in K/s, all shifted alike, so that Σ C·rate is less by ``left`` (W): void has none."""
        return rate - self.xp.where(self.xp.asarray(self.capacity) > 0.0, left / self._capacity_of_all(), 0.0)

    def warming(self, power: float) -> float:
        """By how many K/s a power in W warms all cells."""
        return abs(power) / self._capacity_of_all()

    def _capacity_of_all(self) -> float:
        """Σ C over all cells in J/K."""
        materials = self._balance.materials
        return float(materials.cell_heat_capacity @ materials.volumes)

    def _stored_per_kelvin(self) -> float:
        """Heat in J that all cells store for each kelvin more."""
        return self._capacity_of_all()

    def _of_cells(self, numbers: list[Any]) -> Iterator[tuple[BalanceSurface | CellExchange, Any]]:
        """Each surface with its numbers, one for each of its cells."""
        for surface, of in zip(self._balance.surfaces, numbers, strict=True):
            yield surface, self.xp.broadcast_to(of, surface.cells.shape)

    def _make_operator(self, slopes: list[Any]) -> None:
        operator = self._operator
        operator.capacity[...] = (self._sigma / self._scale) * self.capacity
        operator.ground[...] = operator.capacity
        self._add_slopes(operator, [slope / self._scale for slope in slopes])

    def _add_slopes(self, operator: Operator, slopes: list[Any]) -> None:
        """Add slopes of surfaces in units of the scale to the ground, and to that of the preconditioner."""
        if self._safe is not None:
            self._safe.ground[...] = operator.ground
        for surface, slope in zip(self._balance.surfaces, slopes, strict=True):
            surface.add(slope, operator.ground)
            if self._safe is not None:
                surface.add(abs(slope), self._safe.ground)

    def _set_contents(self, contents: Any) -> None:
        self.temperature[...] = contents

    def _gains(self) -> Any:
        """What each cell gains from its neighbours and from sources, in units of the scale."""
        self._sweeps.residual(self._conduction, self.temperature, self._sources_of_stage(), self._gain)
        return self._gain

    def _sources_of_stage(self) -> Any:
        """What sources give to each cell in units of the scale."""
        balance = self._balance
        if not np.array_equal(self._given_table, balance.cell_sources):
            self._given = balance.sources(str(self._b.dtype), self._scale)
            self._given_table = balance.cell_sources
        return self._given

    def _enter(self, heats: list[Any]) -> None:
        """Add the heat through surfaces to the right-hand side. A cell at an edge of the body has several surfaces."""
        for surface, heat in zip(self._balance.surfaces, heats, strict=True):
            surface.add(heat / self._scale, self._b)


class VaryingStageEquations(StageEquations):
    """Where materials change with temperature: each system is for a change of potentials; see steady_varying.py."""

    def contents(self) -> Any:
        """θ in K of the present temperatures."""
        return self._balance.contents(self.temperature)

    def update(self, system: LinearSystem) -> None:
        """Move the potentials."""
        if self.nodes is not None:
            self.nodes.move(system.x)
        self._move_to(self._balance.moved(self._linearised, system.x))

    def _linearise_nodes(self, b: Any) -> None:
        if self.nodes is not None:
            weights = self._linearised.weight / self._linearised.conducting
            self.nodes.linearise(self.temperature, self._scale, weights)
            self.nodes.add_missing(b)

    def _set_contents(self, contents: Any) -> None:
        self.temperature[...] = self._balance.temperatures(contents)

    def _stored_per_kelvin(self) -> float:
        return self.stored(self._balance.content_slopes(self.temperature))

    def _gains(self) -> Any:
        self._sweeps.fill_halo(self._operator, self.temperature)
        self._linearised = self._balance.linearise(self.temperature)
        return self._linearised.gain / self._scale + self._sources_of_stage()

    def _differs(self, slopes: list[Any]) -> bool:
        return True

    def _make_operator(self, slopes: list[Any]) -> None:
        found, operator = self._linearised, self._operator
        for link, values in zip(operator.links, found.links, strict=True):
            link[...] = values / self._scale
        weights = found.weight / found.conducting
        rising = self._balance.content_slopes(self.temperature)
        operator.capacity[...] = (self._sigma / self._scale) * self.capacity * rising * weights
        operator.ground[...] = operator.capacity
        pairs = zip(self._balance.surfaces, slopes, strict=True)
        flat = weights.reshape(-1)
        self._add_slopes(operator, [slope * flat[surface.cells] / self._scale for surface, slope in pairs])
