"""What a steady state balances: conductances between cells, exchange with the surroundings, sources, all in W.

    Σ link·(T_neighbour − T) + exchange(T) + source = 0        for every cell

Values that change in time are those of t = 0. A surface exchanges, by the balance of :mod:`heatsim.physics.conditions`
and with its derivative by the temperature T of the cell behind it,

    exchange = area·K·(T_s − T),     slope = −∂exchange/∂T = area·K·(h + h_r)/(free·K + h + h_r),     h_r = 4·ε·σ·T_s³

Where a surface is larger than the smooth one that it stands for, K is weighted as in
:mod:`heatsim.physics.link_weights`.
This file is the only place where the solver of steady states meets bodies, conditions and sources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.body import Body
from heatsim.physics.cell_types import INTERIOR, Medium
from heatsim.physics.conditions import AMBIENT, EMISSION, FILM, FREE, surface_rise
from heatsim.physics.enthalpy import Law
from heatsim.physics.link_weights import kinds_around, link_factors
from heatsim.physics.time_steps import INSTANT

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

_CELLS_AT_ONCE = 2**22
_KIND = np.uint8(INTERIOR - 1)


@dataclass(frozen=True, eq=False)
class Surface:
    """A face of the box, or the surfaces across one axis towards void.

    Attributes:
        name: the face's, or "void".
        cells: the cells behind it, by their index in the flattened grid; shape (n,).
        kinds: what they are.
        area: in m², shape (n,).
        half: conductance K of the half cell behind it in W/(m² K) at the reference temperature, shape (n,).
        weight: area of the cells' faces over the smooth area that they stand for, shape (n,).
        numbers: of the conditions, shape (n,).
        condition: the six numbers of each, shape (6, n).
        beam: flux of beams in W/m², shape (n,).
        reference: the temperature in K that deviations are counted from.
    """

    name: str
    cells: Cells
    kinds: NDArray[np.intp]
    area: Array
    half: Array
    weight: Array
    numbers: NDArray[np.intp]
    condition: Array
    beam: Array
    reference: float

    def exchange(
        self, T: Array, conducting: Array | float = 1.0, below_held: Array | None = None
    ) -> tuple[Array, Array]:
        """Heat into each cell in W, that of beams included, and its slope in W/K.

        Args:
            T: of the cells, as deviations in K.
            conducting: their conductivities over those at the reference temperature.
            below_held: by how much their potentials are below that at the ambient temperature, in K; it drives the
                heat through a held face where the conductivity varies.
        """
        half = self.half * conducting
        rise = surface_rise(self.condition, half * self.weight, self.reference, T, self.beam)
        surface = np.maximum(T + rise + self.reference, 0.0)
        film = self.condition[FILM] + 4.0 * self.condition[EMISSION] * surface**3
        passing = half * rise
        if below_held is not None:
            passing = np.where(self.condition[FREE] > 0.0, passing, self.half * below_held)
        return self.area * passing, self.area * half * film / (self.condition[FREE] * half * self.weight + film)

    @property
    def grounded(self) -> NDArray[np.bool_]:
        """Whether what passes depends on the temperature of the cell, shape (n,)."""
        return np.asarray((self.condition[FILM] > 0.0) | (self.condition[EMISSION] > 0.0))

    @property
    def radiates(self) -> bool:
        """Whether any of it radiates."""
        return bool((self.condition[EMISSION] > 0.0).any())


class SteadyBalance:
    """The balance of a body at t = 0.

    Attributes:
        medium: the kinds of cells.
        periodic: which axes wrap.
        reference: the temperature in K that deviations are counted from.
        surfaces: faces that exchange heat, then what borders on void.
        cell_sources: heat set free in a cell of each kind in W, shape (kinds,).
    """

    def __init__(self, body: Body, reference: float) -> None:
        """Look at the conditions and sources at t = 0.

        Raises:
            ScenarioError: a value is not finite then.
        """
        self.body, self.medium, self.periodic, self.reference = body, body.medium, body.periodic, reference
        capacities = self.medium.cell_heat_capacity
        self.cell_sources: Array = body.sources.heat(np.zeros(1), INSTANT)[0] / INSTANT * capacities
        rows = body.conditions.rows(np.zeros(1), reference)[0]
        self.surfaces = (*self._faces(rows), *self._void(rows))

    @property
    def shift(self) -> float:
        """What to add to deviations for those that the laws of materials count in, in K."""
        return self.reference - self.body.reference if self.medium.varies else 0.0

    @cached_property
    def linear(self) -> bool:
        """Whether nothing radiates and no conductivity depends on temperature."""
        return not self.medium.varies and not any(surface.radiates for surface in self.surfaces)

    def links(self, xp: Any, precision: str, scale: float) -> tuple[Any, Any, Any]:
        """Conductances at the reference temperature between each cell and the one before it along x, y, z.

        Args:
            xp: NumPy, or CuPy.
            precision: of the arrays.
            scale: the conductance in W/K that they are counted in.

        Returns:
            Device arrays of shape (nz, ny, nx); the links of the first cells are those to the last where an axis wraps,
            else 0.
        """
        medium, volume = self.medium, self.medium.grid.cell_volume
        found = []
        for axis, d in enumerate(medium.grid.spacing):
            table = (medium.link[axis] * (volume / d / scale)).astype(precision)
            link = _between(xp, medium, 2 - axis, table)
            if medium.exposure is not None and medium.exposure.contacts:
                cells = xp.asarray(medium.exposure.cells)
                link.reshape(-1)[cells] *= xp.asarray(link_factors(medium)[:, 2 * axis].astype(precision))
            first = xp.moveaxis(link, 2 - axis, 0)
            if not self.periodic[axis] or len(first) == 1:
                first[0] = 0.0
            found.append(link)
        return found[0], found[1], found[2]

    def sources(self, xp: Any, precision: str, scale: float) -> Any:
        """Heat set free in each cell in units of ``scale`` (W), a device array of shape (nz, ny, nx)."""
        table = (self.cell_sources / scale).astype(precision)
        if self.medium.uniform:
            return xp.full(self.medium.grid.shape, float(table[0]), dtype=precision)
        table, out = xp.asarray(table), xp.empty(self.medium.grid.shape, dtype=precision)
        for planes in _slabs(out):
            out[planes] = table[xp.asarray(self.medium.cells[planes] & _KIND)]
        return out

    @cached_property
    def scale(self) -> float:
        """The largest conductance of a cell in W/K, or nearly: numbers in units of it do not leave float32."""
        volume, spacing = self.medium.grid.cell_volume, self.medium.grid.spacing
        links = [float(self.medium.link[axis].max()) * volume / d for axis, d in enumerate(spacing)]
        halves = [float((surface.area * surface.half).max()) for surface in self.surfaces if len(surface.area)]
        return 2.0 * max((*links, *halves))

    def flows(self, temperatures: Sequence[Array]) -> "Flows":
        """Where heat enters and leaves, for deviations in K of the cells of each surface."""
        scenario = self.body.conditions.scenario
        faces, patches, void = dict.fromkeys(FACES, 0.0), dict.fromkeys(range(6, 6 + len(scenario.patches)), 0.0), 0.0
        for surface, T in zip(self.surfaces, temperatures, strict=True):
            heat, _ = self.exchange(surface, T)
            heat = heat - surface.area * surface.beam
            if surface.name not in faces:
                void += float(heat.sum())
                continue
            faces[surface.name] += float(heat.sum())
            for number in np.unique(surface.numbers[surface.numbers >= 6]).tolist():
                patches[number] += float(heat[surface.numbers == number].sum())
        names = (patch.name for patch in scenario.patches)
        return Flows(self._source_powers(), faces, dict(zip(names, patches.values(), strict=True)), void)

    def exchange(self, surface: Surface, T: Array) -> tuple[Array, Array]:
        """What a surface exchanges at deviations T in K of its cells, and the slope; see :meth:`Surface.exchange`."""
        if not self.medium.varies:
            return surface.exchange(T)
        conducting, potential, held = (
            self.medium.by_law(of, surface.kinds, deviation + self.shift)
            for of, deviation in (
                (Law.conductivity_at, T),
                (Law.potential_at, T),
                (Law.potential_at, surface.condition[AMBIENT]),
            )
        )
        return surface.exchange(T, conducting, held - potential)

    def _source_powers(self) -> dict[str, float]:
        """W of each source by its name: in the body, and of beams what the body takes up."""
        sources, grid = self.body.sources, self.medium.grid
        in_body = iter(sources.powers(np.zeros(1), INSTANT)[0].tolist())
        beams = iter(sources.beam_rows(np.zeros(1), INSTANT))
        powers = {}
        for source in sources.scenario.sources:
            if source.beam is None:
                powers[source.name] = next(in_body)
            else:
                rows = next(beams)
                flux = float(rows.weights[0][0].sum() * rows.weights[1][0].sum())
                powers[source.name] = flux * grid.cell_volume / grid.spacing[rows.face // 2]
        return powers

    def _faces(self, rows: Array) -> Iterator[Surface]:
        medium = self.medium
        places = np.arange(medium.grid.cell_count).reshape(medium.grid.shape)
        beams = self.body.sources.beam_rows(np.zeros(1), INSTANT)
        for face, name in enumerate(FACES):
            axis = face // 2
            on_face = [beam for beam in beams if beam.face == face]
            if self.periodic[axis] or not (on_face or self.body.conditions.exchanging(face)):
                continue
            behind = np.moveaxis(places, 2 - axis, 0)[-(face % 2)]
            flux = np.zeros(behind.shape)
            for beam in on_face:
                (first_u, first_v), (u, v) = beam.first[0], (weight[0] for weight in beam.weights)
                flux[first_v : first_v + len(v), first_u : first_u + len(u)] += np.outer(v, u)
            area = medium.grid.cell_volume / medium.grid.spacing[axis]
            v, u = np.indices(behind.shape)
            for numbers, fractions in self.body.conditions.shares(face, v, u):
                some = fractions > 0.0
                yield self._surface(
                    *(name, axis, behind[some], area * fractions[some], np.ones(int(some.sum()))),
                    *(np.asarray(numbers)[some], rows, flux[some]),
                )

    def _void(self, rows: Array) -> Iterator[Surface]:
        medium, condition = self.medium, self.body.conditions.void
        if condition is None or medium.exposure is None or not medium.exposed_cells:
            return
        cells, ratios = medium.exposure.cells, medium.exposure.area
        own, around = kinds_around(medium, cells)
        for side in range(6):
            axis = side // 2
            passes = (own != medium.void) & (around[:, side] == medium.void) & (ratios[:, side] > 0.0)
            passes &= self._inside(cells, side)
            count = int(passes.sum())
            area = np.full(count, medium.grid.cell_volume / medium.grid.spacing[axis])
            weight, numbers = 1.0 / ratios[passes, side], np.full(count, condition)
            yield self._surface("void", axis, cells[passes], area, weight, numbers, rows, np.zeros(count))

    def _inside(self, cells: Cells, side: int) -> NDArray[np.bool_]:
        """Whether the neighbours towards x−, x+, …, z+ are inside of the box, or joined to it by an axis that wraps."""
        axis, grid = side // 2, self.medium.grid
        place = cells // int(np.prod(grid.cells[:axis])) % grid.cells[axis]
        return np.asarray(self.periodic[axis] | (place != (grid.cells[axis] - 1 if side % 2 else 0)))

    def _surface(
        self,
        name: str,
        axis: int,
        cells: Cells,
        area: Array,
        weight: Array,
        numbers: NDArray[np.intp],
        rows: Array,
        beam: Array,
    ) -> Surface:
        """A surface of those of the cells that conduct."""
        medium = self.medium
        kinds = np.zeros(len(cells), dtype=np.intp)
        if not medium.uniform:
            kinds = (medium.cells.reshape(-1)[cells] & _KIND).astype(np.intp)
        conducts = np.isfinite(medium.half[axis, kinds])
        cells, kinds, area, weight, numbers, beam = (
            values[conducts] for values in (cells, kinds, area, weight, numbers, beam)
        )
        half = 1.0 / medium.half[axis, kinds]
        return Surface(name, cells, kinds, area, half, weight, numbers, rows[numbers].T, beam, self.reference)


@dataclass(frozen=True)
class Flows:
    """Heat in W into the body.

    Attributes:
        sources: of each source by its name, beams among them.
        faces: through each face, that of its patches among it, that of beams left out.
        patches: through each patch.
        void: through the surfaces towards void.
    """

    sources: dict[str, float]
    faces: dict[str, float]
    patches: dict[str, float]
    void: float

    @property
    def imbalance(self) -> float:
        """What enters and does not leave, in W."""
        return float(sum((*self.sources.values(), *self.faces.values(), self.void)))

    @property
    def turnover(self) -> float:
        """The heat in W that flows through the body: half of the sum of all magnitudes."""
        parts = (*self.sources.values(), *self.faces.values(), self.void)
        return sum(map(abs, parts)) / 2.0


def _between(xp: Any, medium: Medium, dimension: int, table: NDArray[Any]) -> Any:
    """For each cell the entry of a table [before, here] with the cell before it along a dimension of the array."""
    if medium.uniform:
        return xp.full(medium.grid.shape, float(table[0, 0]), dtype=table.dtype)
    out = xp.empty(medium.grid.shape, dtype=table.dtype)
    kinds, flat = len(table), xp.asarray(table.reshape(-1))
    for planes in _slabs(out):
        here = medium.cells[planes] & _KIND
        if dimension:
            before = np.roll(here, 1, dimension)
        else:
            before = medium.cells[np.arange(planes.start - 1, planes.stop - 1)] & _KIND
        out[planes] = flat[xp.asarray(before.astype(np.uint16) * np.uint16(kinds) + here)]
    return out


def _slabs(array: Any) -> Iterator[slice]:
    """A few planes at a time of an array [z, y, x]."""
    planes = max(1, _CELLS_AT_ONCE // max(1, array[0].size))
    for first in range(0, len(array), planes):
        yield slice(first, min(first + planes, len(array)))
