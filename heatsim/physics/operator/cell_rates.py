"""The rate at which each cell of a body loses heat, in 1/s. Its reciprocal is the largest stable time step of the cell.

In a time dt a cell loses the fraction dt·rate of its heat, with

    rate = Σ over its six sides of 1/(ρ·cp·d) · conductance

where the conductance is that of the link to a neighbour, or of the half cell in series with the film of a surface. A
film that grows with the temperature of the surface, as radiation does, has no largest value: the half cell alone bounds
the conductance. Where a layer lies on the surface there is no half cell. The film then counts with the larger one of
its slope at the highest temperature of the initial field and the surroundings, and the conductance of 1/64 of a cell.

A source whose heat q falls with the temperature T of the cell adds its largest −(dq/dT)/(ρ·cp). Where q rises, the
cell's own coefficient grows. Steps of any length then stay monotone, and follow the growth of T with an error of first
order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells import cell_types, layer_types, link_weights
from heatsim.physics.cells.cell_types import CELL_TYPE, INTERIOR, CellTypes
from heatsim.physics.cells.link_weights import types_around
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.layers.layering import DEPTH
from heatsim.physics.operator.boundary_faces import BoundaryFaces, boundary_faces

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellRates:
    """The rates of the cells of a body.

    Attributes:
        materials: the cell types.
        boundary: its conditions.
    """

    materials: CellTypes
    boundary: Boundary

    def of_cells(self, films: Array) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """Cells of own planes, by their index in the flattened grid, and what they lose in 1/s. Collective.

        One cell represents all equal ones.

        Args:
            films: the largest h of each condition in W/(m² K).
        """
        materials, grid = self.materials, self.materials.grid
        nx, ny, nz = grid.cells
        rates = materials.rates()
        inner = sum(2.0 * rates[axis].diagonal() for axis in range(3) if grid.cells[axis] > 1)
        inner = inner + self._source_rates_of_types
        if not grid.uniform:
            yield from self._of_unequal_cells(rates, films)
            return
        if materials.uniform and not any(numbers.size for numbers in self.boundary.maps):
            cells, special = self._different_cells()
            yield cells[special], self._rates_of(cells[special], rates, films)
            others = cells[~special][:1]
            yield others, np.broadcast_to(np.asarray(inner, dtype=np.float64), len(others))
            return
        seen = np.zeros(len(materials.types), dtype=bool)
        sides = np.zeros((ny, nx), dtype=bool)
        if not self.boundary.periodic[0]:
            sides[:, [0, -1]] = True
        if not self.boundary.periodic[1]:
            sides[[0, -1]] = True
        count = cell_types.planes_at_once(grid.shape)
        begin, end = materials.held.own_planes(nz)
        for first in range(begin, end, count):
            z = np.arange(first, min(first + count, end))
            shape, here = (len(z), ny, nx), slice(first, first + len(z))
            planes = (
                np.full(shape, INTERIOR, dtype=np.uint8)
                if materials.uniform
                else materials.cells[materials.held.local(here)]
            )
            ends = np.isin(z, (0, nz - 1)) & (not self.boundary.periodic[2])
            special = sides | ends[:, None, None] | (planes < INTERIOR) | (1 in grid.cells)
            cells = np.flatnonzero(special) + first * ny * nx
            yield cells, self._rates_of(cells, rates, films)
            numbers = planes & CELL_TYPE
            for cell_type in np.flatnonzero(~seen).tolist():
                one = np.flatnonzero(~special & (numbers == cell_type))[:1] + first * ny * nx
                if len(one):
                    seen[cell_type] = True
                    yield one, np.asarray(inner)[[cell_type]]

    def _of_unequal_cells(self, rates: Array, films: Array) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """:meth:`of_cells` where no two cells need be equal: the fastest interior cell of each type in each plane."""
        materials, grid = self.materials, self.materials.grid
        (nx, ny, nz), plane = grid.cells, grid.cells[0] * grid.cells[1]
        begin, end = materials.held.own_planes(nz)
        inner = [rates[axis].diagonal() if grid.cells[axis] > 1 else 0.0 * rates[axis].diagonal() for axis in range(3)]
        along_x, along_y, along_z = (axis.link_factors.sum(axis=1) for axis in grid.axes)
        sides = np.zeros((ny, nx), dtype=bool)
        sides[:, [0, -1]] = sides[[0, -1]] = True
        for z in range(begin, end):
            own = materials.types_of(slice(z, z + 1))[0]
            special = sides | (z in (0, nz - 1)) | (1 in grid.cells)
            if not materials.uniform:
                special |= materials.cells[materials.held.local(z)] < INTERIOR
            cells = np.flatnonzero(special)
            yield cells + z * plane, self._rates_of(cells + z * plane, rates, films)
            loss = inner[0][own] * along_x + inner[1][own] * along_y[:, None] + inner[2][own] * along_z[z]
            loss = np.where(special, -1.0, loss + self._source_rates_of_types[own])
            for cell_type in np.unique(own[~special]).tolist():
                fastest = np.array([int(np.argmax(np.where(own == cell_type, loss, -1.0)))])
                yield fastest + z * plane, loss.reshape(-1)[fastest]

    def _different_cells(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The first, second and last cells along each axis, and which of them are at a face: no others differ."""
        nx, ny, nz = self.materials.grid.cells
        along = (sorted({0, min(1, n - 1), n - 1}) for n in (nz, ny, nx))
        z, y, x = (place.reshape(-1) for place in np.meshgrid(*along, indexing="ij"))
        special = np.full(x.shape, 1 in self.materials.grid.cells)
        for place, n, periodic in zip((x, y, z), (nx, ny, nz), self.boundary.periodic, strict=True):
            special |= (not periodic) & ((place == 0) | (place == n - 1))
        return np.asarray((z * ny + y) * nx + x, dtype=np.int64), special

    def _rates_of(self, cells: NDArray[np.int64], rates: Array, films: Array) -> Array:
        materials, grid = self.materials, self.materials.grid
        nx, ny, _ = grid.cells
        place = (cells % nx, cells // nx % ny, cells // (nx * ny))
        own, around = types_around(materials, cells)
        total = self._source_rates_at(cells, own)
        factors = self._factors_of(cells)
        for face in range(6):
            axis, n = face // 2, grid.cells[face // 2]
            total += self._surface_rates_of(face, cells, own, films)
            outside = place[axis] == (n - 1) * (face % 2)
            no_link = outside & (not self.boundary.periodic[axis]) | (n == 1)
            of_planes = grid.axes[axis].link_factors[place[axis], face % 2]
            total += np.where(no_link, 0.0, factors[:, face] * of_planes * rates[axis, own, around[:, face]])
        return total

    def _surface_rates_of(self, side: int, cells: NDArray[np.int64], own: NDArray[np.intp], films: Array) -> Array:
        """What cells of the types ``own`` lose through boundary faces on one side."""
        materials, total = self.materials, np.zeros(len(cells))
        gains = materials.half_cells(1.0)[:, :, 2] * materials.warming[:, None]
        with np.errstate(divide="ignore", over="ignore"):
            resistances = 1.0 / films
        for faces in self._boundary_faces:
            if faces.side != side:
                continue
            places, faces = faces.of(cells)
            types, numbers = own[places], faces.conditions
            held = resistances[numbers] == 0.0  # no film: a smaller area does not raise the resistance
            film = np.where(held, 0.0, resistances[numbers] / faces.ratios)
            least = self._least_resistances[numbers, faces.axis, types] / faces.ratios
            resistance = np.maximum(materials.least_half[faces.axis, types] * faces.half_factors + film, least)
            np.add.at(total, places, faces.fractions / resistance * faces.gain_factors)
        return np.asarray(total * gains[own, side // 2])

    @cached_property
    def _boundary_faces(self) -> tuple[BoundaryFaces, ...]:
        return tuple(boundary_faces(self.boundary, self.materials))

    @cached_property
    def _least_resistances(self) -> Array:
        """The least resistances in m² K/W between nodes and surroundings that count, shape (conditions, 3, types).

        They are 0 unless a film without a largest value acts on a layer.
        """
        materials, boundary = self.materials, self.boundary
        near, end = np.zeros((3, len(materials.types))), boundary.scenario.time.end
        if not len(materials.layering.cells):
            return np.zeros((len(boundary.conditions), *near.shape))
        slopes = boundary.largest_slopes(end)
        slopes[np.isfinite(boundary.largest_films(end))] = np.inf
        for number, cell_type in enumerate(materials.types):
            if cell_type.half is not None:
                plain = layer_types.half(materials.grid, materials.palette[cell_type.material])
                near[:, number] = DEPTH * np.array(plain)
        with np.errstate(divide="ignore"):
            return np.minimum(near, 1.0 / slopes[:, None, None])

    @cached_property
    def _source_rates(self) -> Array:
        """The largest −(dq/dT)/(ρ·cp) in 1/s, at least 0, of cells that sources heat individually, shape (cells,)."""
        heated, scenario = self.materials.heated, self.boundary.scenario
        falls = np.zeros(len(heated.amounts) + 1)
        for number, amount in enumerate(heated.amounts):
            if amount.table >= 0:
                scales = scenario.sources[amount.source].factor.extremes(scenario.time.end)
                products = np.multiply.outer(scales, heated.tables[amount.table].slopes)
                falls[number] = max(0.0, -float(products.min()))
        entries = heated.per_kelvin() * falls[np.minimum(heated.numbers, len(heated.amounts))]
        return np.asarray(np.bincount(heated.owners, entries, len(heated)), dtype=np.float64)

    @cached_property
    def _source_rates_of_types(self) -> Array:
        """The largest of these rates in each cell type. Collective at the first access."""
        heated, materials = self.materials.heated, self.materials
        found = np.zeros(len(materials.types))
        if heated.tables:
            nx, ny, _ = materials.grid.cells
            types = materials.types_at(heated.cells % nx, heated.cells // nx % ny, heated.cells // (nx * ny))
            np.maximum.at(found, types, self._source_rates)
        return found * materials.warming

    def _source_rates_at(self, cells: NDArray[np.int64], own: NDArray[np.intp]) -> Array:
        """These rates of some cells of the types ``own``."""
        heated, total = self.materials.heated, np.zeros(len(cells))
        if heated.tables:
            at = np.minimum(np.searchsorted(heated.cells, cells), len(heated) - 1)
            total = np.where(heated.cells[at] == cells, self._source_rates[at] * self.materials.warming[own], 0.0)
        return total

    @cached_property
    def _link_factors(self) -> Array:
        """Factors of the links of weighted cells."""
        return link_weights.link_factors(self.materials)

    def _factors_of(self, cells: NDArray[np.int64]) -> Array:
        """Factors of the links of cells, shape (n, 6)."""
        factors = np.ones((len(cells), 6))
        listed, places = self.materials.weighted_surfaces.find(cells)
        factors[listed] = self._link_factors[places]
        return factors
