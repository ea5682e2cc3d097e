"""What a steady state balances: conductances between cells, exchange with the surroundings, sources, all in W.

    Σ link·(T_neighbour − T) + exchange(T) + source = 0        for every cell

Values that change in time are those of t = 0. This file and steady_surfaces.py are the only places where the solver of
steady states meets bodies, conditions and sources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.boundary import AMBIENT
from heatsim.physics.cell_types import INTERIOR, Medium
from heatsim.physics.enthalpy import EnthalpyTable
from heatsim.physics.link_weights import link_factors
from heatsim.physics.steady_surfaces import Balanced, SteadySurface, find_surfaces
from heatsim.physics.time_steps import INSTANT

Array = NDArray[np.float64]

_CELLS_AT_ONCE = 2**22
_KIND = np.uint8(INTERIOR - 1)


class SteadyBalance:
    """The balance of a body at t = 0.

    Attributes:
        medium: the kinds of cells.
        periodic: which axes wrap.
        reference: the temperature in K that deviations are counted from.
        surfaces: faces that exchange heat, then what borders on void.
        cell_sources: heat set free in a cell of each kind in W, shape (kinds,).
    """

    def __init__(self, body: Balanced, reference: float) -> None:
        """Look at the conditions and sources at t = 0.

        Raises:
            ScenarioError: a value is not finite then.
        """
        self.body, self.medium, self.periodic, self.reference = body, body.materials, body.periodic, reference
        capacities = self.medium.cell_heat_capacity
        self.cell_sources: Array = body.sources.heat(np.zeros(1), INSTANT)[0] / INSTANT * capacities
        self.surfaces = find_surfaces(body, reference)

    @property
    def shift(self) -> float:
        """The offset in K from these deviations to those of the materials' enthalpy tables."""
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
        scenario = self.body.boundary.scenario
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

    def exchange(self, surface: SteadySurface, T: Array) -> tuple[Array, Array]:
        """Heat and slope of :meth:`SteadySurface.exchange` at deviations T in K of the surface's cells."""
        if not self.medium.varies:
            return surface.exchange(T)
        conducting, potential, held = (
            self.medium.by_enthalpy(of, surface.kinds, deviation + self.shift)
            for of, deviation in (
                (EnthalpyTable.conductivity_at, T),
                (EnthalpyTable.potential_at, T),
                (EnthalpyTable.potential_at, surface.condition[AMBIENT]),
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
