"""A body that needs more than one constant material, linear conditions on whole faces and no sources.

Its kinds of cells, its conditions and its sources, and from them what changes from step to step and the time step that
every cell can bear.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics import cell_types as media
from heatsim.physics import link_weights, surface_areas, temperature_range
from heatsim.physics.cell_types import INTERIOR, Medium, Substance, TooManyKindsError
from heatsim.physics.coefficients import StabilityLimit
from heatsim.physics.conditions import AMBIENT, FILM, FREE, Conditions
from heatsim.physics.enthalpy import tabulate
from heatsim.physics.initial import InitialField
from heatsim.physics.regions import Parts, paint, source_mask
from heatsim.physics.sources import BeamRows, Sources
from heatsim.physics.temperature_range import Occurring
from heatsim.scenario import Scenario

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """What changes from step to step, for n steps; arrays of one row hold for all of them.

    Attributes:
        conditions: the six numbers of each condition, shape (n or 1, conditions, 6).
        held: potential in K of each kind of cell at the ambient of each condition, which is the surface's own where
            its temperature is held; shape (n or 1, conditions, kinds), (n or 1, conditions, 0) where no material
            changes with temperature.
        heat: what sources give to the cells of each kind in K, shape (n or 1, kinds).
        beams: what beams bring, each of n steps or of one.
    """

    conditions: Array
    held: Array
    heat: Array
    beams: tuple[BeamRows, ...] = ()


@dataclass(frozen=True, eq=False)
class Body:
    """A composite body.

    Attributes:
        medium: the kinds of cells.
        conditions: on faces, patches and surfaces towards void.
        sources: in the body and on faces.
        parts: who painted which cell; None where nothing is painted.
        periodic: which axes wrap.
        films: the largest h of each condition during the run in W/(m² K).
        reference: the temperature in K at which materials that change are what the medium says; else of no meaning.
    """

    medium: Medium
    conditions: Conditions
    sources: Sources
    parts: Parts | None
    periodic: tuple[bool, bool, bool]
    films: Array
    reference: float = 0.0

    @classmethod
    def from_scenario(cls, scenario: Scenario, periodic: tuple[bool, bool, bool]) -> "Body":
        """Paint the regions and tell the kinds of cells apart.

        Raises:
            ScenarioError: nothing conducts, a region paints no cell, a source heats none, there are too many kinds of
                cells, or a material makes no sense at a temperature that can occur.
        """
        conditions = Conditions.from_scenario(scenario)
        painted = scenario.regions or scenario.uses_void or any(source.shape is not None for source in scenario.sources)
        parts = paint(scenario) if painted else None
        varies = any(material is not None and material.varies for _, material in scenario.palette)
        start = InitialField.from_scenario(scenario, parts) if varies else None
        palette = _palette(scenario, start)
        places = {substance.name: place for place, substance in enumerate(palette)}
        contacts = {
            frozenset(places[name] for name in contact.between): contact.resistance for contact in scenario.contacts
        }
        exposed = conditions.void is not None
        surfaces = None
        if parts is not None and scenario.regions:
            weighted = media.weighted(palette, contacts, exposed)
            surfaces = surface_areas.find(scenario, parts, weighted, periodic)
        try:
            medium = media.build(
                scenario.grid,
                palette,
                parts.material if parts is not None and scenario.regions else None,
                contacts=contacts,
                heated=_heated(scenario, parts),
                periodic=periodic,
                exposed=exposed,
                surfaces=surfaces,
            )
        except TooManyKindsError as error:
            raise ScenarioError(scenario.path, [Mistake("sources", str(error))]) from None
        if start is not None:
            medium = medium.with_palette(_enthalpies(scenario, start, conditions, medium))
        films = conditions.largest_films(scenario.time.end)
        reference = start.reference if start is not None else 0.0
        return cls(medium, conditions, Sources(scenario, medium), parts, periodic, films, reference)

    @property
    def open_faces(self) -> tuple[bool, ...]:
        """Which of x_min … z_max let heat through."""
        beams = self.sources.beam_faces()
        return tuple(self.conditions.exchanging(face) or face in beams for face in range(6))

    def ledger_bytes(self) -> int:
        """Bytes of the ledger beside those of the faces."""
        nx, ny, nz = self.medium.grid.cells
        sides = (ny * nz, nx * nz, nx * ny)
        beams = self.sources.beam_faces()
        faces = sum(sides[face // 2] for face in beams)
        faces += sum(sides[face // 2] for face in beams if not self.conditions.exchanging(face))
        return 8 * (faces + self.medium.exposed_cells + len(self.conditions.mixed.numbers))

    def rows(self, times: Array, dt: float, reference: float) -> Rows:
        """What changes in steps of ``dt`` seconds from ``times``; temperatures as deviations from ``reference`` (K).

        Raises:
            ScenarioError: a value is not finite, or makes the time step unstable at one of the times.
        """
        conditions = self.conditions.rows(times[:1] if self.conditions.constant else times, reference, dt)
        films = np.where(conditions[:, :, FREE] > 0.0, conditions[:, :, FILM], 0.0).max(axis=0)
        if (films > self.films * (1.0 + 1e-9)).any():
            limit = self.stability_limit(np.maximum(films, self.films)).dt
            if dt > limit * (1.0 + 1e-9):
                message = (
                    f"{dt!r} s is beyond the stability limit {limit:.6g} s that the convection coefficients reach near "
                    f"t = {float(times[0])!r} s, a peak too narrow to be foreseen; lower time.safety or give a table"
                )
                raise ScenarioError(self.conditions.scenario.path, [Mistake("time.dt", message)])
        heat = self.sources.heat(times[:1] if self.sources.heat_constant else times, dt)
        held = self.medium.potentials_at(conditions[:, :, AMBIENT])
        return Rows(conditions, held, heat, tuple(self.sources.beam_rows(times, dt)))

    def source_heat(self, times: Array, dt: float, precision: str) -> float:
        """Heat in J that sources in the body give in steps of ``dt`` seconds from ``times``, as rounded for kernels."""
        heat = self.sources.heat(times[:1] if self.sources.heat_constant else times, dt).astype(precision)
        steps = np.full(1, float(len(times))) if len(heat) == 1 else np.ones(len(heat))
        capacities = self.medium.counts * self.medium.cell_heat_capacity
        return float(steps @ (heat.astype(np.float64) @ capacities))

    def stability_limit(self, films: Array | None = None) -> StabilityLimit:
        """The largest dt for which every cell's own coefficient stays ≥ 0, faces included.

        Args:
            films: the largest h of each condition in W/(m² K); those of the whole run if not given.
        """
        films = self.films if films is None else films
        rate, cell = 0.0, (0, 0, 0)
        for cells, rates in self._cell_rates(films):
            if len(rates) and rates.max() > rate:
                rate, worst = float(rates.max()), int(cells[int(rates.argmax())])
                nx, ny, _ = self.medium.grid.cells
                cell = (worst % nx, worst // nx % ny, worst // (nx * ny))
        return StabilityLimit(1.0 / rate if rate > 0.0 else inf, cell)

    def _cell_rates(self, films: Array) -> Iterator[tuple[NDArray[np.int64], Array]]:
        """Cells, by their index in the flattened grid, and what they lose in 1/s; one cell stands for its likes."""
        medium, grid = self.medium, self.medium.grid
        nx, ny, nz = grid.cells
        rates = medium.rates()
        inner = sum(2.0 * rates[axis].diagonal() for axis in range(3) if grid.cells[axis] > 1)
        if medium.uniform and not any(numbers.size for numbers in self.conditions.maps):
            cells, special = self._different_cells()
            yield cells[special], self._rates_of(cells[special], rates, films)
            others = cells[~special][:1]
            yield others, np.broadcast_to(np.asarray(inner, dtype=np.float64), len(others))
            return
        seen = np.zeros(len(medium.kinds), dtype=bool)
        sides = np.zeros((ny, nx), dtype=bool)
        if not self.periodic[0]:
            sides[:, [0, -1]] = True
        if not self.periodic[1]:
            sides[[0, -1]] = True
        count = media.planes_at_once(grid.shape)
        for first in range(0, nz, count):
            z = np.arange(first, min(first + count, nz))
            shape = (len(z), ny, nx)
            planes = np.full(shape, INTERIOR, dtype=np.uint8) if medium.uniform else medium.cells[z[0] : z[-1] + 1]
            ends = np.isin(z, (0, nz - 1)) & (not self.periodic[2])
            special = sides | ends[:, None, None] | (planes < INTERIOR) | (1 in grid.cells)
            cells = np.flatnonzero(special) + first * ny * nx
            yield cells, self._rates_of(cells, rates, films)
            kinds = planes & ~np.uint8(INTERIOR)
            for kind in np.flatnonzero(~seen).tolist():
                one = np.flatnonzero(~special & (kinds == kind))[:1] + first * ny * nx
                if len(one):
                    seen[kind] = True
                    yield one, np.asarray(inner)[[kind]]

    def _different_cells(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The first, second and last cells along each axis, and which of them are at a face: no others differ."""
        nx, ny, nz = self.medium.grid.cells
        along = (sorted({0, min(1, n - 1), n - 1}) for n in (nz, ny, nx))
        z, y, x = (place.reshape(-1) for place in np.meshgrid(*along, indexing="ij"))
        special = np.full(x.shape, 1 in self.medium.grid.cells)
        for place, n, periodic in zip((x, y, z), (nx, ny, nz), self.periodic, strict=True):
            special |= (not periodic) & ((place == 0) | (place == n - 1))
        return np.asarray((z * ny + y) * nx + x, dtype=np.int64), special

    def _rates_of(self, cells: NDArray[np.int64], rates: Array, films: Array) -> Array:
        medium, grid = self.medium, self.medium.grid
        nx, ny, _ = grid.cells
        place = (cells % nx, cells // nx % ny, cells // (nx * ny))

        def kind_at(x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> NDArray[np.intp]:
            if medium.uniform:
                return np.zeros(len(x), dtype=np.intp)
            return (medium.cells[z, y, x] & ~np.uint8(INTERIOR)).astype(np.intp)

        own = kind_at(*place)
        total = np.zeros(len(cells))
        gains = medium.half_cells(1.0)[:, :, 2] * medium.warming[:, None]
        areas, factors = self._weights_of(cells)
        with np.errstate(divide="ignore", over="ignore"):
            resistances = 1.0 / films
        for face in range(6):
            axis, n = face // 2, grid.cells[face // 2]
            beside = list(place)
            beside[axis] = place[axis] + (2 * (face % 2) - 1)
            outside = (beside[axis] < 0) | (beside[axis] >= n)
            beside[axis] = beside[axis] % n
            other = kind_at(beside[0], beside[1], beside[2])
            u, v = (place[other_axis] for other_axis in range(3) if other_axis != axis)
            surface = outside & (not self.periodic[axis])
            least_half = medium.least_half[axis, own]
            with np.errstate(divide="ignore", invalid="ignore"):
                conductance = sum(
                    fraction / (least_half + resistances[number])
                    for number, fraction in self.conditions.shares(face, v, u)
                )
                if medium.void is not None and self.conditions.void is not None:
                    towards_void = (~outside | self.periodic[axis]) & (other == medium.void)
                    film = resistances[self.conditions.void]
                    film = np.where(film > 0.0, film / areas[:, face], 0.0)
                    through_void = np.where(areas[:, face] > 0.0, 1.0 / (least_half + film), 0.0)
                    conductance = np.where(towards_void, through_void, conductance)
                    surface |= towards_void
            total += np.where(surface, conductance * gains[own, axis], 0.0)
            total += np.where(surface | (n == 1), 0.0, factors[:, face] * rates[axis, own, other])
        return total

    @cached_property
    def _link_factors(self) -> Array:
        """What links of weighted cells are multiplied with."""
        return link_weights.link_factors(self.medium)

    def _weights_of(self, cells: NDArray[np.int64]) -> tuple[Array, Array]:
        """What cells' surfaces towards void and their links are multiplied with, shape (n, 6) each."""
        areas, factors = np.ones((len(cells), 6)), np.ones((len(cells), 6))
        exposure = self.medium.exposure
        if exposure is not None:
            place = np.minimum(np.searchsorted(exposure.cells, cells), len(exposure.cells) - 1)
            listed = exposure.cells[place] == cells
            areas[listed] = exposure.area[place[listed]]
            factors[listed] = self._link_factors[place[listed]]
        return areas, factors


def _palette(scenario: Scenario, start: InitialField | None) -> tuple[Substance, ...]:
    """The materials; those that change with temperature as they are at the reference temperature."""
    reference = 0.0
    if start is not None:
        temperature_range.check(scenario, Occurring(start.lowest, start.highest))
        reference = start.reference
    return tuple(
        media.VOID
        if material is None
        else Substance(
            name, material.conductivity_at(reference), material.density * material.specific_heat_at(reference)
        )
        for name, material in scenario.palette
    )


def _enthalpies(
    scenario: Scenario, start: InitialField, conditions: Conditions, medium: Medium
) -> tuple[Substance, ...]:
    """The materials with their enthalpies over the temperatures that can occur."""
    occurring = Occurring.in_run(scenario, start, conditions, medium)
    temperature_range.check(scenario, occurring)
    return tuple(
        substance
        if material is None or not material.varies
        else replace(substance, enthalpy=tabulate(material, start.reference, *occurring.followed(material)))
        for (_, material), substance in zip(scenario.palette, medium.palette, strict=True)
    )


def _heated(scenario: Scenario, parts: Parts | None) -> Iterator[NDArray[np.bool_] | None]:
    """The cells of each source in the body; None for all that conduct."""
    for source in scenario.sources:
        if source.beam is None:
            everywhere = source.region is None and source.shape is None
            yield None if everywhere or parts is None else source_mask(source, scenario, parts)
