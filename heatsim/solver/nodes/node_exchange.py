"""The heat that nodes take up from the surfaces of a body, and its slopes.

A surface at T_s gives a fluid node at u the heat a·h·(T_s − u), and a node to which it radiates a·εσ·(T_s⁴ − u⁴), with
its real area a. Where T_s follows u, with the conductance K of the half cell and w = h + 4·εσ·T_s³ of all exchange,

    −∂(heat into node i)/∂u_j = a·(f_i·δ_ij − b_i·f_j/(K + w))      f: h, or 4·εσ·u³ of radiation
    ∂(heat into the cell)/∂u_i = a·f_i·K/(K + w)                    b: h, or 4·εσ·T_s³ of radiation
    ∂(heat into node i)/∂T = a·b_i·K/(K + w)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.surface_balance import FILM, film_at
from heatsim.physics.conditions.surface_laws import rise_and_slope
from heatsim.physics.operator.cell_sums import CellSums
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.scenario import is_linear

Array = NDArray[np.float64]

FLUID, RADIATION = 0, 1


class _Exchange(NamedTuple):
    """What one kind of exchange does at the faces of a surface.

    Attributes:
        kind: FLUID or RADIATION.
        heat: into the surroundings in W, of each face.
        film: a·f in W/K.
        back: a·b in W/K.
        own: f/(K + w).
    """

    kind: int
    heat: Any
    film: Any
    back: Any
    own: Any


class Exchanged(NamedTuple):
    """The exchange of all nodes with the body.

    Attributes:
        heat: into each node in W, shape (nodes,).
        slopes: −∂heat/∂u in W/K, shape (nodes, nodes).
    """

    heat: Array
    slopes: Array


@dataclass(frozen=True, eq=False)
class Column:
    """How the heat into the cells of a surface changes with the temperatures of its nodes.

    Attributes:
        surface: the surface.
        kind: FLUID or RADIATION.
        slopes: ∂(heat into the cell)/∂u in W/K of each face.
        back: ∂(heat into the node)/∂T in W/K of each face, T: of its cell.
        nodes: the number of the node of each face, −1 without one.
    """

    surface: BalanceSurface
    kind: int
    slopes: Any
    back: Any
    nodes: Any


class NodeExchange:
    """Finds what nodes exchange with surfaces.

    Args:
        boundary: the conditions, with a network.
        sums: gives sums over the cells of surfaces.
    """

    def __init__(self, boundary: Boundary, sums: CellSums) -> None:
        assert boundary.network is not None
        self.network, self._of_nodes, self._sums = boundary.network, boundary.of_nodes, sums
        self.linear = all(is_linear(boundary.conditions[number]) for number in self._of_nodes)

    def couples(self, surface: Any) -> bool:
        """Whether any face of a surface exchanges heat with a node."""
        return isinstance(surface, BalanceSurface) and any(
            condition.number in self._of_nodes for condition in surface.conditions
        )

    def exchanged(self, surfaces: Sequence[tuple[BalanceSurface, Any, Any]]) -> Exchanged:
        """The heat into the nodes, and its slopes. Collective.

        Args:
            surfaces: each surface at this moment, the deviations T in K of its cells, and their conductivities over
                those at the reference temperature.
        """
        count = len(self.network)
        heat, slopes = np.zeros(count), np.zeros((count, count))
        every = [(surface, self._parts(surface, T, conducting)) for surface, T, conducting in surfaces]
        for kind in (FLUID, RADIATION):
            own = [(surface, part) for surface, parts in every for part in parts if part.kind == kind]
            heats = self._sums.of_conditions((surface, part.heat) for surface, part in own)
            films = self._sums.of_conditions((surface, part.film) for surface, part in own)
            for (_, number), watts in heats.items():
                if (node := self._node(number, kind)) >= 0:
                    heat[node] += watts
            for (_, number), film in films.items():
                if (node := self._node(number, kind)) >= 0:
                    slopes[node, node] += film
            for other in (FLUID, RADIATION):
                crossed = self._sums.of_conditions(
                    (surface, part.back * beside.own)
                    for surface, parts in every
                    for part in parts
                    for beside in parts
                    if (part.kind, beside.kind) == (kind, other)
                )
                for (_, number), film in crossed.items():
                    node, second = self._node(number, kind), self._node(number, other)
                    if node >= 0 and second >= 0:
                        slopes[node, second] -= film
        return Exchanged(heat, slopes)

    def columns(self, surfaces: Sequence[tuple[BalanceSurface, Any, Any]]) -> list[Column]:
        """How the heat into cells changes with the temperatures of nodes; arguments as of :meth:`exchanged`."""
        found = []
        for surface, T, conducting in surfaces:
            half = surface.half * conducting * surface.weight
            kept = half / (half + self._film(surface, T, conducting))
            for part in self._parts(surface, T, conducting):
                numbers = [condition.number for condition in surface.conditions]
                of_conditions = {number: node for number in numbers if (node := self._node(number, part.kind)) >= 0}
                if of_conditions:
                    nodes = surface.xp.full(T.shape, -1)
                    for condition in surface.conditions:
                        nodes[condition.place] = of_conditions.get(condition.number, -1)
                    found.append(Column(surface, part.kind, part.film * kept, part.back * kept, nodes))
        return found

    def gathered(self, columns: Sequence[Column], changes: Sequence[Any]) -> Array:
        """How much more heat each node gets in W, shape (nodes,), where cells change by some kelvins. Collective.

        Args:
            columns: from :meth:`columns`.
            changes: of the cells of the surface of each column.
        """
        heat, pairs = np.zeros(len(self.network)), [*zip(columns, changes, strict=True)]
        for kind in (FLUID, RADIATION):
            every = [(column.surface, column.back * change) for column, change in pairs if column.kind == kind]
            for (_, number), watts in self._sums.of_conditions(every).items():
                if (node := self._node(number, kind)) >= 0:
                    heat[node] += watts
        return heat

    def _node(self, number: int, kind: int) -> int:
        return self._of_nodes.get(number, (-1, -1))[kind]

    def _film(self, surface: BalanceSurface, T: Any, conducting: Any) -> Any:
        """W = −∂q/∂T_s of each face in W/(m² K)."""
        half = surface.half * conducting
        if surface.law is not None:
            return rise_and_slope(surface.law, half * surface.weight, T, surface.beam, surface.xp)[1]
        at_surface = surface.xp.maximum(T + surface.rise(T, conducting) + surface.reference, 0.0)
        return film_at(surface.condition, at_surface) if surface.radiates else surface.condition[FILM]

    def _parts(self, surface: BalanceSurface, T: Any, conducting: Any) -> list[_Exchange]:
        """The exchange of a surface by kind."""
        xp, reference, real = surface.xp, surface.reference, surface.area / surface.weight
        half = surface.half * conducting
        K = half * surface.weight
        rise = surface.rise(T, conducting)
        if surface.law is not None:
            _, film = rise_and_slope(surface.law, K, T, surface.beam, xp)
            heat, slope = real * surface.beam - surface.area * half * rise, real * film
            return [_Exchange(FLUID, heat, slope, slope, film / (K + film))]
        film, ambient, flux, emission, surroundings, _ = surface.condition
        at_surface = T + rise
        all_films = self._film(surface, T, conducting)
        each = xp.ones(T.shape)  # sums need a number for each face
        found, left = [], real * (flux + surface.beam) - surface.area * half * rise
        if surface.radiates:
            hot, cold = at_surface + reference, surroundings + reference
            radiating = 4.0 * emission * cold**3
            watts = real * emission * (hot - cold) * (hot + cold) * (hot * hot + cold * cold)
            slope, back = real * radiating * each, real * 4.0 * emission * hot**3 * each
            found, left = [_Exchange(RADIATION, watts, slope, back, radiating / (K + all_films))], left - watts
        # Behind a strong film T_s − u is small and rounded; what the half cell conducts is not.
        heat, slope = xp.where(film * each > K, left, real * film * (at_surface - ambient)), real * film * each
        return [_Exchange(FLUID, heat, slope, slope, film / (K + all_films)), *found]
