"""What gives and takes heat: conductances between cells, exchange with the surroundings, sources, all in W.

    Σ link·(T_neighbour − T) + exchange(T) + source            of every cell; 0 in a steady state

Values that change in time are those of t = 0, or of a stage of an implicit step. This file and balance_surfaces.py are
the only places where the solvers meet bodies, conditions and sources.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.cells.link_weights import link_factors
from heatsim.physics.conditions.surface_balance import AMBIENT
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.operator.balance_surfaces import VOID, Balanced, at_stage, find_surfaces, with_conditions
from heatsim.physics.operator.cell_exchange import CellExchange
from heatsim.physics.operator.cell_sums import CellSums, LocalSums
from heatsim.physics.operator.gap_links import GapFaces
from heatsim.physics.operator.heat_sums import SumLayout
from heatsim.physics.operator.steady_flows import Flows
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.operator.varying_conduction import (
    Across,
    Linearised,
    content_slopes,
    contents,
    linearise,
    moved,
    temperatures,
)
from heatsim.physics.sources.sources import Power
from heatsim.physics.time.time_steps import INSTANT

Array = NDArray[np.float64]

_CELLS_AT_ONCE = 2**24


class Balance:
    """The balance of a body at t = 0, or at a stage of a step.

    Attributes:
        xp: NumPy or CuPy, the library of all arrays of cells.
        materials: the cell types.
        periodic: which axes wrap.
        reference: the temperature in K that deviations are counted from.
        cell_sources: power of the sources in a cell of each type in W, shape (types,).
        surfaces: faces that exchange heat, then void surfaces, then the cells that sources heat individually.
        sums: gives sums over the cells of the whole body.
        linear: whether nothing radiates and no conductivity depends on temperature, on any rank.
    """

    def __init__(
        self,
        body: Balanced,
        reference: float,
        xp: Any = np,
        cells: Any = None,
        *,
        changing: bool = False,
        ledger: SumLayout | None = None,
        sums: CellSums | None = None,
        exchange: Callable[..., tuple[Any, Any]] = BalanceSurface.exchange,
    ) -> None:
        """Look at the conditions and sources at t = 0. Collective.

        Args:
            body: materials, boundary, sources; with several ranks those of this rank's slab.
            reference: the temperature in K that deviations are counted from.
            xp: NumPy, or CuPy.
            cells: the bytes ``materials.cells`` on the device; copied from there if not given.
            changing: whether :meth:`move_to` will be called.
            ledger: where a ledger has its sums; None if their places are not needed.
            sums: gives sums over cells; needed if several ranks share the body.
            exchange: does the work of :meth:`BalanceSurface.exchange`.

        Raises:
            ScenarioError: a value is not finite then.
        """
        self._exchange = exchange
        self.xp, self.body, self.materials, self.periodic = xp, body, body.materials, body.periodic
        self.reference, self.sums = reference, sums or LocalSums()
        capacities = self.materials.cell_heat_capacity
        self.cell_sources: Array = body.sources.heat(np.zeros(1), INSTANT)[0] / INSTANT * capacities
        self._types = xp.asarray(self.materials.cells) if cells is None else cells
        self._rows: Array = body.boundary.rows(np.zeros(1), reference)[0]
        self.surfaces: tuple[BalanceSurface | CellExchange, ...] = (
            *find_surfaces(xp, body, reference, changing=changing, ledger=ledger),
            *self._heated_cells(),
        )
        self._gaps: GapFaces | None = None
        if self.materials.has_gaps:
            self._gaps = GapFaces(xp, self.materials)
            self._gaps.move_to(self._rows)
        # Ranks have different surfaces.
        bends = self.materials.by_halves or any(surface.bends for surface in self.surfaces)
        self.linear = not self.sums.largest(float(bends))

    def _heated_cells(self) -> Iterator[CellExchange]:
        """The cells that sources heat individually, if there are any."""
        body, heated, start = self.body, self.materials.heated, np.zeros(1)
        if len(heated):
            amounts = body.sources.amounts(start, INSTANT)[0, :-1] / INSTANT
            types = None if self.materials.uniform else self._types.reshape(-1) & CELL_TYPE
            beams = body.sources.beam_rows(start, INSTANT)
            yield CellExchange.beginning(self.xp, heated, types, amounts, beams, self.reference)

    def move_to(self, stage: StepInputs) -> None:
        """Take the conditions, sources and beams of a stage; its heat is that of a step of 1 s."""
        self.cell_sources = stage.heat[0] * self.materials.cell_heat_capacity
        grid, conditions = self.materials.grid, stage.conditions[0]
        self._rows = conditions
        surfaces = [surface for surface in self.surfaces if isinstance(surface, BalanceSurface)]
        cells = [cells for cells in self.surfaces if isinstance(cells, CellExchange)]
        self.surfaces = (
            *at_stage(surfaces, grid, conditions, stage.beams),
            *(each.at(stage.amounts[0, :-1], stage.beams) for each in cells),
        )
        if self._gaps is not None:
            self._gaps.move_to(conditions)

    def take_nodes(self) -> None:
        """Take the present temperatures of nodes into the conditions."""
        of_nodes = self.body.boundary.of_nodes
        self.body.boundary.take_nodes(self._rows, self.reference)
        self.surfaces = tuple(
            with_conditions(surface, self._rows)
            if isinstance(surface, BalanceSurface) and any(of.number in of_nodes for of in surface.conditions)
            else surface
            for surface in self.surfaces
        )

    @property
    def shift(self) -> float:
        """The offset in K from these deviations to those of the materials' enthalpy tables."""
        return self.reference - self.body.reference if self.materials.varies else 0.0

    @property
    def slab(self) -> Slab | None:
        """The planes that the arrays have, if several ranks share the body; None if they have all of them."""
        return None if self.body.slab.alone else self.body.slab

    def is_linear(self, surface: BalanceSurface | CellExchange) -> bool:
        """Whether the exchange of a surface is a linear function of the temperature; see its ``linear_terms``."""
        return not self.materials.by_halves and not surface.bends

    def links(self, precision: str, scale: float) -> tuple[Any, Any, Any]:
        """Conductances at the reference temperature between each cell and the one before it along x, y, z.

        Args:
            precision: of the arrays.
            scale: the conductance in W/K that they are counted in.

        Returns:
            Device arrays of shape (nz, ny, nx); the links of the first cells are those to the last where an axis wraps,
            else 0.
        """
        xp, materials, grid = self.xp, self.materials, self.materials.grid
        found, surfaces = [], materials.weighted_surfaces
        factors = xp.asarray(link_factors(materials).astype(precision))
        for axis, area in enumerate(grid.mean_areas):
            link = self._between(2 - axis, (materials.link[axis] * (area / scale)).astype(precision))
            if not grid.uniform:
                # A link of the mean cell, times the factors of the cell's volume and of its plane.
                for other, of in enumerate(grid.axes):
                    of_planes = of.volume_factors * (of.link_factors[:, 0] if other == axis else 1.0)
                    link *= xp.asarray(grid.along(other, of_planes.astype(precision)))
            if surfaces.contacts:
                link.reshape(-1)[xp.asarray(surfaces.cells)] *= factors[:, 2 * axis]
            first = xp.moveaxis(link, 2 - axis, 0)
            if not self.periodic[axis] or len(first) == 1:
                first[0] = 0.0
            found.append(link)
        return found[0], found[1], found[2]

    def _between(self, dimension: int, table: NDArray[Any]) -> Any:
        """For each cell the entry of a table [before, here] with the cell before it along a dimension of the array."""
        xp, shape = self.xp, self.materials.grid.shape
        if (table == table[0, 0]).all():
            return xp.full(shape, table[0, 0], dtype=table.dtype)
        out, flat = xp.empty(shape, dtype=table.dtype), xp.asarray(table.reshape(-1))
        # A slab at a time across the axis, so that temporary arrays stay small.
        across = 1 if dimension == 0 else 0
        for slab in _slabs(shape, across):
            place = (slice(None), slab) if across else (slab,)
            here = xp.moveaxis(self._types[place] & CELL_TYPE, dimension, 0)
            into = xp.moveaxis(out[place], dimension, 0)
            pairs = here.astype(np.uint16) * np.uint16(len(table))
            into[1:] = flat[pairs[:-1] + here[1:]]
            into[0] = flat[pairs[-1] + here[0]]
        return out

    def sources(self, precision: str, scale: float) -> Any:
        """Heat set free in each cell in units of ``scale`` (W), a device array of shape (nz, ny, nx)."""
        return self.in_cells((self.cell_sources / scale).astype(precision))

    def in_cells(self, table: NDArray[Any]) -> Any:
        """For each cell the entry of its type, for a cell of the mean volume, times the factor of its volume."""
        found, grid = self.per_cell(table), self.materials.grid
        if not grid.uniform:
            for axis, of in enumerate(grid.axes):
                found *= self.xp.asarray(grid.along(axis, of.volume_factors.astype(table.dtype)))
        return found

    def per_cell(self, table: NDArray[Any]) -> Any:
        """For each cell the entry of its type, a device array of shape (nz, ny, nx)."""
        xp = self.xp
        if (table == table[0]).all():
            return xp.full(self.materials.grid.shape, table[0], dtype=table.dtype)
        entries, out = xp.asarray(table), xp.empty(self.materials.grid.shape, dtype=table.dtype)
        for planes in _slabs(out.shape):
            out[planes] = entries[self._types[planes] & CELL_TYPE]
        return out

    @property
    def source_power(self) -> float:
        """What sources in the body give, in W."""
        return float(self.cell_sources @ self.materials.volumes)

    @cached_property
    def scale(self) -> float:
        """Twice the largest conductance of a half cell in W/K. Collective.

        Numbers in units of it do not leave float32.
        """
        grid, halves = self.materials.grid, self.materials.link.max(axis=(1, 2)).tolist()
        largest = 0.0
        for axis, (half, d) in enumerate(zip(halves, grid.mean_spacing, strict=True)):
            most = half * grid.mean_volume / d
            for other, of in enumerate(grid.axes):
                factors = of.volume_factors[:, np.newaxis]
                if other == axis:
                    factors = factors * of.gain_factors / of.half_factors
                most *= float(factors.max())
            largest = max(largest, most)
        return 4.0 * self.sums.largest(largest)

    def flows(self, temperatures: Sequence[Any]) -> Flows:
        """Where heat enters and leaves, for deviations in K of the cells of each surface. Collective."""
        pairs = [*zip(self.surfaces, temperatures, strict=True)]
        heats = [(surface, self._heat(surface, T)) for surface, T in pairs if isinstance(surface, BalanceSurface)]
        powers = self._source_powers([(each.cells, T) for each, T in pairs if isinstance(each, CellExchange)])
        positive = [(surface, self.xp.maximum(heat, 0.0)) for surface, heat in heats]
        entering = self._flows(positive, {name: power.entering for name, power in powers.items()})
        return replace(self._flows(heats, {name: power.net for name, power in powers.items()}), entering=entering)

    def _flows(self, heats: Sequence[tuple[BalanceSurface, Any]], powers: dict[str, float]) -> Flows:
        """Flows from the heat of each boundary face, and of each source, in W. Collective."""
        scenario = self.body.boundary.scenario
        faces, patches = dict.fromkeys((*FACES, VOID), 0.0), dict.fromkeys(range(6, 6 + len(scenario.patches)), 0.0)
        named = self.body.boundary.named
        of_surfaces = dict.fromkeys(named, 0.0)
        for (name, number), heat in sorted(self.sums.of_conditions(heats).items()):
            faces[name] += heat
            owner = self.body.boundary.owners[number]
            if owner in patches:
                patches[owner] += heat
            for surface, numbers in named.items():
                of_surfaces[surface] += heat * (number in numbers)
        names = (patch.name for patch in scenario.patches)
        void, surfaces = faces.pop(VOID), tuple(of_surfaces.values())
        return Flows(powers, faces, dict(zip(names, patches.values(), strict=True)), void, surfaces)

    def _heat(self, surface: BalanceSurface, T: Any) -> Any:
        """Heat in W through a surface into each of its cells, without that of beams."""
        if self.is_linear(surface) and surface.alike:
            heat, slope = surface.linear_terms()
            return heat - slope * T
        return self.exchange(surface, T)[0] - surface.brought

    def exchange(self, surface: BalanceSurface | CellExchange, T: Any) -> tuple[Any, Any]:
        """Heat and slope of :meth:`BalanceSurface.exchange` at deviations T in K of the surface's cells."""
        if isinstance(surface, CellExchange):
            return surface.exchange(T)
        if not self.materials.varies:
            return self._exchange(surface, T)
        at_ambient = surface.condition[AMBIENT] + self.xp.zeros_like(T)
        conducting, potential, held = (
            self.materials.by_enthalpy(of, surface.cell_types, deviation + self.shift, self.xp)
            for of, deviation in (
                (EnthalpyTable.conductivity_at, T),
                (EnthalpyTable.potential_at, T),
                (EnthalpyTable.potential_at, at_ambient),
            )
        )
        return self._exchange(surface, T, conducting, held - potential)

    def linearise(self, T: Any) -> Linearised:
        """Conduction at deviations T in K, on the device. Collective."""
        across: Across | None = None
        if self._gaps is not None:
            across = partial(self._gaps.of, self.reference, T.reshape(-1))
        return linearise(self.xp, self.materials, self._types, self.periodic, T + self.shift, self.sums, across)

    def moved(self, linearised: Linearised, v: Any) -> Any:
        """T where the potentials have changed by w·v, as deviations in K."""
        return moved(self.xp, self.materials, self._types, linearised, v) - self.shift

    def contents(self, T: Any) -> Any:
        """What a field holds for deviations T in K."""
        return contents(self.xp, self.materials, self._types, T + self.shift) if self.materials.varies else T

    def temperatures(self, held: Any) -> Any:
        """Deviations T in K where the field holds these contents."""
        return temperatures(self.xp, self.materials, self._types, held) - self.shift if self.materials.varies else held

    def content_slopes(self, T: Any) -> Any:
        """How much more a field holds for each kelvin, at deviations T in K."""
        return content_slopes(self.xp, self.materials, self._types, T + self.shift)

    def _source_powers(self, heated: Sequence[tuple[Any, Any]]) -> dict[str, Power]:
        """W of each source by its label: in the body, and of beams what the body takes up. Collective.

        ``heated``: the cells that sources heat individually, if there are any here, and their deviations in K.
        """
        sources, start = self.body.whole.sources, np.zeros(1)
        even = iter(sources.powers(start, INSTANT)[0].tolist())
        beams = iter(range(len(sources.tracks)))
        shining = {rows.number: rows for rows in sources.beam_rows(start, INSTANT)}
        T = None
        if sources.heated.tables:
            nothing = self.xp.zeros(0, dtype=np.int64), self.xp.zeros(0)
            T = self.sums.listed(*next(iter(heated), nothing)) + self.reference
        in_cells = sources.cell_powers(0.0, INSTANT, T)
        powers = {}
        for number, source in enumerate(sources.scenario.sources):
            if source.beam is not None:
                rows = shining.get(next(beams))
                powers[source.label] = Power.alike(0.0 if rows is None else sources.absorbed_by(rows))
            elif source.even:
                powers[source.label] = Power.alike(next(even))
            else:
                powers[source.label] = in_cells.get(number, Power(0.0, 0.0))
        return powers


def _slabs(shape: tuple[int, int, int], dimension: int = 0) -> Iterator[slice]:
    """Slabs of an array of this shape across a dimension."""
    n = shape[dimension]
    thickness = max(1, _CELLS_AT_ONCE * n // (shape[0] * shape[1] * shape[2]))
    for first in range(0, n, thickness):
        yield slice(first, min(first + thickness, n))
