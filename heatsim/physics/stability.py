"""The largest stable time step of a body: one limit, one message, for all bodies.

A step is stable while every cell's own coefficient stays ≥ 0, faces included: then no new extremes appear. In a time dt
a cell loses dt·rate, with the rate in 1/s

    rate = Σ over its six sides of 1/(ρ·cp·d) · conductance

where the conductance is that of the link to a neighbour, or of the half cell in series with the film of a surface. A
source whose heat q falls with the temperature T of the cell adds its largest −(dq/dT)/(ρ·cp). Where q rises, the cell's
own coefficient grows: each step stays monotone, whatever its length, and follows the growth of T with an error of first
order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics import cell_types, link_weights
from heatsim.physics.boundary import Boundary
from heatsim.physics.cell_types import CELL_TYPE, INTERIOR, CellTypes
from heatsim.physics.surface_balance import FILM, FREE

Array = NDArray[np.float64]

_TOLERANCE = 1.0 + 1e-9  # of comparisons


def _larger(one: tuple[float, int], other: tuple[float, int]) -> tuple[float, int]:
    """The larger one of two rates with their cells; of equal rates that of the first cell."""
    return max(one, other, key=lambda found: (found[0], -found[1]))


@dataclass(frozen=True)
class StabilityLimit:
    """The largest stable time step.

    Attributes:
        dt: in s; infinite if nothing conducts.
        cell: (x, y, z) of a cell whose own coefficient reaches 0 there.
    """

    dt: float
    cell: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Stability:
    """The limits of a body.

    Attributes:
        materials: the cell types.
        boundary: its conditions.
    """

    materials: CellTypes
    boundary: Boundary

    @cached_property
    def limit(self) -> StabilityLimit:
        """The limit for the largest h of each condition during the run."""
        return self.limit_for(self._films)

    @property
    def setter(self) -> str:
        """The cell that sets the limit, and its material if there are several."""
        x, y, z = self.limit.cell
        several = len(self.materials.palette) > 1
        return f"cell [{x}, {y}, {z}]" + (
            f', material "{self.materials.substance_at(x, y, z).name}"' if several else ""
        )

    def check(self, dt: float) -> None:
        """Compare a time step in s with the limit.

        Raises:
            ScenarioError: it is longer; says which cell sets the limit.
        """
        if dt > self.limit.dt * _TOLERANCE:
            raise self._error(
                f"{dt!r} s is beyond the stability limit {self.limit.dt:.6g} s (set by {self.setter}); use at most "
                'that, "auto", or coarser cells'
            )

    def check_rows(self, dt: float, rows: Array, time: float) -> None:
        """See that no film coefficient in some steps is too large for their length: one that could not be foreseen.

        Args:
            dt: length of the steps in s.
            rows: the six numbers of each condition, shape (n, conditions, 6).
            time: in s, at which the steps start.

        Raises:
            ScenarioError: one is; says when.
        """
        films = np.where(rows[:, :, FREE] > 0.0, rows[:, :, FILM], 0.0)[:, : len(self._films)].max(axis=0)
        if not (films > self._films * _TOLERANCE).any():
            return
        limit = self.limit_for(np.maximum(films, self._films)).dt
        if dt > limit * _TOLERANCE:
            raise self._error(
                f"{dt!r} s is beyond the stability limit {limit:.6g} s that the convection coefficients reach near "
                f"t = {time!r} s, a peak too narrow to be foreseen; lower time.safety or give a table"
            )

    def check_films(self, rows: Array, times: Array) -> None:
        """See that no film coefficient exceeds the largest one that the limit allows for. Stages may exceed the limit.

        Args:
            rows: the six numbers of each condition, shape (n, conditions, 6).
            times: in s, shape (n,).

        Raises:
            ScenarioError: one does; says which and when.
        """
        films = np.where(rows[:, :, FREE] > 0.0, rows[:, :, FILM], 0.0)[:, : len(self._films)]
        beyond = films > self._films * _TOLERANCE
        if beyond.any():
            step, number = np.argwhere(beyond)[0].tolist()
            message = (
                f"reaches {films[step, number]:.6g} W/(m² K) at t = {float(times[step])!r} s, a peak too narrow to be "
                "foreseen; give the coefficient as a table"
            )
            raise ScenarioError(self.boundary.scenario.path, [Mistake(self.boundary.keys[number], message)])

    def limit_for(self, films: Array) -> StabilityLimit:
        """The largest dt for which every cell's own coefficient stays ≥ 0. Collective.

        Args:
            films: the largest h of each condition in W/(m² K).
        """
        found = 0.0, 0
        for cells, rates in self._cell_rates(films):
            if len(rates) and rates.max() > 0.0:
                # Of equal cells the first one counts, whatever part of the grid is looked at.
                largest = float(rates.max())
                found = _larger(found, (largest, int(cells[rates == largest].min())))
        rate, worst = reduce(_larger, self.materials.held.gathered(found))
        nx, ny, _ = self.materials.grid.cells
        cell = (worst % nx, worst // nx % ny, worst // (nx * ny))
        return StabilityLimit(1.0 / rate if rate > 0.0 else inf, cell)

    @cached_property
    def _films(self) -> Array:
        """The largest h of each condition during the run in W/(m² K)."""
        return self.boundary.largest_films(self.boundary.scenario.time.end)

    @cached_property
    def _periodic(self) -> tuple[bool, bool, bool]:
        return self.boundary.periodic

    def _error(self, message: str) -> ScenarioError:
        return ScenarioError(self.boundary.scenario.path, [Mistake("time.dt", message)])

    def _cell_rates(self, films: Array) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """Cells of own planes, by their index in the flattened grid, and what they lose in 1/s.

        One cell represents all equal ones.
        """
        materials, grid = self.materials, self.materials.grid
        nx, ny, nz = grid.cells
        rates = materials.rates()
        inner = sum(2.0 * rates[axis].diagonal() for axis in range(3) if grid.cells[axis] > 1)
        inner = inner + self._source_rates_of_types
        if materials.uniform and not any(numbers.size for numbers in self.boundary.maps):
            cells, special = self._different_cells()
            yield cells[special], self._rates_of(cells[special], rates, films)
            others = cells[~special][:1]
            yield others, np.broadcast_to(np.asarray(inner, dtype=np.float64), len(others))
            return
        seen = np.zeros(len(materials.types), dtype=bool)
        sides = np.zeros((ny, nx), dtype=bool)
        if not self._periodic[0]:
            sides[:, [0, -1]] = True
        if not self._periodic[1]:
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
            ends = np.isin(z, (0, nz - 1)) & (not self._periodic[2])
            special = sides | ends[:, None, None] | (planes < INTERIOR) | (1 in grid.cells)
            cells = np.flatnonzero(special) + first * ny * nx
            yield cells, self._rates_of(cells, rates, films)
            numbers = planes & CELL_TYPE
            for cell_type in np.flatnonzero(~seen).tolist():
                one = np.flatnonzero(~special & (numbers == cell_type))[:1] + first * ny * nx
                if len(one):
                    seen[cell_type] = True
                    yield one, np.asarray(inner)[[cell_type]]

    def _different_cells(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The first, second and last cells along each axis, and which of them are at a face: no others differ."""
        nx, ny, nz = self.materials.grid.cells
        along = (sorted({0, min(1, n - 1), n - 1}) for n in (nz, ny, nx))
        z, y, x = (place.reshape(-1) for place in np.meshgrid(*along, indexing="ij"))
        special = np.full(x.shape, 1 in self.materials.grid.cells)
        for place, n, periodic in zip((x, y, z), (nx, ny, nz), self._periodic, strict=True):
            special |= (not periodic) & ((place == 0) | (place == n - 1))
        return np.asarray((z * ny + y) * nx + x, dtype=np.int64), special

    def _rates_of(self, cells: NDArray[np.int64], rates: Array, films: Array) -> Array:
        materials, grid = self.materials, self.materials.grid
        nx, ny, _ = grid.cells
        place = (cells % nx, cells // nx % ny, cells // (nx * ny))

        def type_at(x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> NDArray[np.intp]:
            if materials.uniform:
                return np.zeros(len(x), dtype=np.intp)
            return materials.types_of((z, y, x))

        own = type_at(*place)
        total = self._source_rates_at(cells, own)
        gains = materials.half_cells(1.0)[:, :, 2] * materials.warming[:, None]
        areas, factors = self._weights_of(cells)
        with np.errstate(divide="ignore", over="ignore"):
            resistances = 1.0 / films
        for face in range(6):
            axis, n = face // 2, grid.cells[face // 2]
            beside = list(place)
            beside[axis] = place[axis] + (2 * (face % 2) - 1)
            outside = (beside[axis] < 0) | (beside[axis] >= n)
            beside[axis] = beside[axis] % n
            if axis == 2:  # beyond a face of the box, where the type does not matter
                beside[2] = np.where(materials.held.has(beside[2]), beside[2], place[2])
            other = type_at(beside[0], beside[1], beside[2])
            u, v = (place[other_axis] for other_axis in range(3) if other_axis != axis)
            surface = outside & (not self._periodic[axis])
            least_half = materials.least_half[axis, own]
            with np.errstate(divide="ignore", invalid="ignore"):
                conductance = sum(
                    fraction / (least_half + resistances[number])
                    for number, fraction in self.boundary.shares(face, v, u)
                )
                if materials.void is not None and len(materials.void_conditions):
                    towards_void = (~outside | self._periodic[axis]) & (other == materials.void)
                    through_void = np.zeros(len(cells))
                    for number, fraction in self.boundary.shares_towards_void(
                        face, cells, np.where(towards_void, materials.void_conditions[own], 0)
                    ):
                        film = np.where(resistances[number] > 0.0, resistances[number] / areas[:, face], 0.0)
                        through_void += fraction / (least_half + film)
                    through_void[areas[:, face] == 0.0] = 0.0
                    conductance = np.where(towards_void, through_void, conductance)
                    surface |= towards_void
            total += np.where(surface, conductance * gains[own, axis], 0.0)
            total += np.where(surface | (n == 1), 0.0, factors[:, face] * rates[axis, own, other])
        return total

    @cached_property
    def _source_rates(self) -> Array:
        """The largest −(dq/dT)/(ρ·cp) in 1/s, at least 0, of cells that sources heat individually, shape (cells,)."""
        heated, scenario = self.materials.heated, self.boundary.scenario
        falls = np.zeros(len(heated.amounts) + 1)
        for number, amount in enumerate(heated.amounts):
            if amount.table >= 0:
                scales = scenario.sources[amount.source].scale.extremes(scenario.time.end)
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
        """Those of some cells of the types ``own``."""
        heated, total = self.materials.heated, np.zeros(len(cells))
        if heated.tables:
            at = np.minimum(np.searchsorted(heated.cells, cells), len(heated) - 1)
            total = np.where(heated.cells[at] == cells, self._source_rates[at] * self.materials.warming[own], 0.0)
        return total

    @cached_property
    def _link_factors(self) -> Array:
        """Factors of the links of weighted cells."""
        return link_weights.link_factors(self.materials)

    def _weights_of(self, cells: NDArray[np.int64]) -> tuple[Array, Array]:
        """Factors of cells' void surfaces and of their links, shape (n, 6) each."""
        areas, factors = np.ones((len(cells), 6)), np.ones((len(cells), 6))
        listed, places = self.materials.weighted_surfaces.find(cells)
        areas[listed] = self.materials.weighted_surfaces.area[places]
        factors[listed] = self._link_factors[places]
        return areas, factors
