"""Nodes in systems of equations: eliminated from the linear systems of Newton's method.

    cells     (A + slopes)·δ − B·η = gain                  δ: change of the cells, η: of the nodes
    nodes     D·η − Bᵀ·δ = missing                          D = σ·C + L + F + slopes of their exchange

so that conjugate gradients solve S·δ = gain + B·D⁻¹·missing with S = A + slopes − B·D⁻¹·Bᵀ, and η = D⁻¹·(missing +
Bᵀ·δ). Multigrid knows A + slopes. Where surfaces hold the cells to nodes, and little ties the nodes, S is much smaller
than that for some changes, such as that of all temperatures alike. So the responses W = MG(B) of the cells to the nodes
correct the preconditioner: MG + W·(Wᵀ·S·W)⁻¹·Wᵀ, with one response for each node, and one for each channel. They
need a symmetric matrix: where fluids carry heat from node to node they take the symmetric part of this one, which is
positive because no more is drawn from a node than enters it. Newton's method then needs more steps, and Anderson's
acceleration.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.multigrid.sweeps import ENERGY
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.nodes.network import TEMPERATURE, Given, has_settled
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.solver.nodes.node_exchange import Column, NodeExchange

Array = NDArray[np.float64]

# Newton's method for the nodes beside cells that stay: its most steps, and the change that ends it, of |u|.
_MOST_STEPS, _SMALL = 50, 1e-14
# The part of the exchange of nodes with surfaces that all of their exchange may be if multigrid needs no responses.
_TIED = 0.8
# Responses that depend on each other to this part are one.
_DEPENDENT = 1e-7


class NodeEquations:
    """The equations of the nodes beside those of the cells of a balance.

    Args:
        balance: of the body; its conditions have the temperatures of the nodes.

    Attributes:
        symmetric: whether no fluid flows from node to node.
        exact: whether a linear system has the solution of the equations of the nodes.
    """

    def __init__(self, balance: Balance) -> None:
        boundary = balance.body.boundary
        self._balance, self._exchange = balance, NodeExchange(boundary, balance.sums)
        self.network = self._exchange.network
        self.symmetric = bool((self.network.flows == self.network.flows.T).all())
        self.exact = self._exchange.linear and self.symmetric and balance.linear
        self._sigma, self._start = 0.0, self.network.temperatures.copy()
        self._given = Given(*np.zeros((3, len(self.network))))
        self._weights: list[Any] = []

    def couples(self, surface: Any) -> bool:
        """Whether a surface exchanges heat with nodes."""
        return self._exchange.couples(surface)

    def begin(self, given: Given, sigma: float = 0.0, start: Array | None = None) -> None:
        """Take a stage: what is given, σ in 1/s, and the temperatures in K from which the nodes with C change."""
        self._given, self._sigma = given, sigma
        self._start = self.network.temperatures.copy() if start is None else start

    @property
    def rates(self) -> Array:
        """σ·(u − u*) in K/s of the nodes."""
        return self._sigma * (self.network.temperatures - self._start)

    def linearise(self, T: Any, scale: float, weights: Any = None) -> None:
        """Find the system at the present temperatures of nodes and cells. Collective.

        Args:
            T: deviations of all cells in K.
            scale: the unit in W of right-hand sides.
            weights: K for each unit of the unknown of each cell; None for 1.
        """
        surfaces, self._scale, self._shape = self._surfaces(T), scale, T.shape
        found = self._exchange.exchanged(surfaces)
        self._columns = self._exchange.columns(surfaces)
        self._weights = [1.0 if weights is None else column.surface.of(weights) for column in self._columns]
        self._places = [self._balance.xp.asarray(column.nodes) for column in self._columns]
        self._missing = self._gain(found.heat)
        matrix = np.diag(self._sigma * self.network.capacities) + self.network.matrix + found.slopes
        self._inverse = np.linalg.inv(matrix)
        self._symmetric_inverse = 0.5 * (self._inverse + self._inverse.T)

    def add_missing(self, b: Any) -> None:
        """Add B·D⁻¹·missing to a right-hand side."""
        self._spread(self._inverse @ self._missing, b, [1.0] * len(self._columns))

    def couple(self, p: Any, Ap: Any, scalars: Any = None) -> None:
        """Subtract B·D⁻¹·Bᵀ·p from A·p, and p·B·D⁻¹·Bᵀ·p from the energy among the scalars. Collective."""
        roots = [weight**0.5 for weight in self._weights]
        changes = [root * column.surface.of(p) for column, root in zip(self._symmetric, roots, strict=True)]
        gathered = self._exchange.gathered(self._symmetric, changes)
        change = self._symmetric_inverse @ gathered
        self._spread(-change, Ap, roots)
        if scalars is not None:
            scalars[ENERGY] -= float(gathered @ change) / self._scale

    @property
    def _symmetric(self) -> list[Column]:
        """The columns with the same slopes both ways."""
        return [replace(column, back=column.slopes) for column in self._columns]

    def begin_coarse(self, solve: Callable[[Any, Any], None], apply: Callable[[Any, Any], None]) -> float:
        """Find the responses W to the nodes, and Wᵀ·S·W. Collective.

        Args:
            solve: writes MG(b) for b to an array.
            apply: writes A·p for p to an array.

        Returns:
            The number of responses; none where other things tie the nodes well.
        """
        self._responses, self._coarse = [], np.zeros((0, 0))
        xp, roots = self._balance.xp, [weight**0.5 for weight in self._weights]
        every = [root * xp.ones(column.nodes.shape) for column, root in zip(self._columns, roots, strict=True)]
        tied = self._symmetric_inverse @ np.diag(self._exchange.gathered(self._symmetric, every))
        if np.abs(np.linalg.eigvals(tied)).max(initial=0.0) < _TIED:  # S is above 1 − _TIED of A + slopes
            return 0.0
        first = len(self.network) - sum(len(channel.planes) for channel in self.network.channels)
        groups = [*np.eye(len(self.network))[:first]]
        for channel in self.network.channels:
            groups.append(np.isin(np.arange(len(self.network)), [*range(channel.first, channel.last + 1)]) * 1.0)
        applied = []
        for group in groups:
            b, response, Sw = (xp.zeros(self._shape, dtype="float32") for _ in range(3))
            self._spread(group, b, roots)
            solve(b, response)
            apply(response, Sw)
            self.couple(response, Sw)
            self._responses.append(response)
            applied.append(Sw)
        products = self._balance.sums.of_arrays(w.astype("float64") * Sw for w in self._responses for Sw in applied)
        matrix = np.array(products).reshape(len(groups), len(groups))
        # Nodes without surfaces, and those whose responses depend on others, add nothing.
        self._coarse = np.linalg.pinv(0.5 * (matrix + matrix.T), rcond=_DEPENDENT, hermitian=True)
        return float(len(groups))

    def correct(self, r: Any, z: Any) -> None:
        """Add W·(Wᵀ·S·W)⁻¹·Wᵀ·r to z = MG(r). Collective."""
        if not self._responses:
            return
        changes = self._coarse @ self._balance.sums.of_arrays(w.astype("float64") * r for w in self._responses)
        for change, response in zip(changes.tolist(), self._responses, strict=True):
            z += np.float32(change) * response

    def move(self, x: Any) -> None:
        """Move the nodes with a change of the unknown of the cells; the conditions follow. Collective."""
        changes = [weight * column.surface.of(x) for column, weight in zip(self._columns, self._weights, strict=True)]
        missing = self._missing + self._exchange.gathered(self._columns, changes)
        self.network.state[:, TEMPERATURE] += self._inverse @ missing
        self._balance.take_nodes()

    def settle(self, T: Any) -> Array:
        """Find the nodes for cells that stay; returns the heat from surfaces in W. Collective."""
        network, size = self.network, np.inf
        for _ in range(_MOST_STEPS):
            found = self._exchange.exchanged(self._surfaces(T))
            matrix = np.diag(self._sigma * network.capacities) + network.matrix + found.slopes
            change = network.solved(matrix, self._gain(found.heat))
            network.state[:, TEMPERATURE] += change
            self._balance.take_nodes()
            before, size = size, float(np.abs(change).max())
            if self._exchange.linear or has_settled(size, before, float(np.abs(network.temperatures).max()), _SMALL):
                break
        heat: Array = found.heat - found.slopes @ change
        return heat

    def flows(self, heat: Array) -> Array:
        """The rates of the state of the nodes with the heat from surfaces; temperatures change by :attr:`rates`."""
        rates = self.network.flows_at(self._given, heat)
        rates[:, TEMPERATURE] = np.where(self.network.massless, 0.0, self.rates)
        return rates

    def _gain(self, heat: Array) -> Array:
        """What is left of the equations of the nodes in W, with the heat from surfaces."""
        network = self.network
        of_network = network.flows_at(self._given, heat)[:, 1:].sum(axis=1)
        gain: Array = of_network - network.capacities * self.rates
        return gain

    def _surfaces(self, T: Any) -> list[tuple[BalanceSurface, Any, Any]]:
        """The surfaces that exchange heat with nodes, with deviations and conductivities of their cells."""
        balance, found = self._balance, []
        for surface in balance.surfaces:
            if isinstance(surface, BalanceSurface) and self.couples(surface):
                here: Any = surface.of(T)
                conducting: Any = 1.0
                if balance.materials.varies:
                    conducting = balance.materials.by_enthalpy(
                        EnthalpyTable.conductivity_at, surface.cell_types, here + balance.shift, balance.xp
                    )
                found.append((surface, here, conducting))
        return found

    def _spread(self, of_nodes: Array, to: Any, weights: Sequence[Any]) -> None:
        """Add B·numbers of nodes to an array of all cells in units of the scale, with weights of its rows."""
        numbers = self._balance.xp.asarray(np.append(of_nodes, 0.0) / self._scale)
        for column, places, weight in zip(self._columns, self._places, weights, strict=True):
            column.surface.add(column.slopes * weight * numbers[places], to)
