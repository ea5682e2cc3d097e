"""The temperatures of all cells of a surface: a face of the box, or the surface towards void.

Each cell has the surface temperature T_s of its condition, from the balance of
:mod:`heatsim.physics.surface_balance`. An insulated surface has the temperature of its cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.enthalpy import EnthalpyTable
from heatsim.physics.face_cells import cells_at
from heatsim.physics.problem import HeatProblem
from heatsim.physics.regions import region_mask
from heatsim.physics.steady_surfaces import VOID, at_stage, find_surfaces
from heatsim.physics.surface_exchange import SteadySurface
from heatsim.physics.surface_temperature import acting_at
from heatsim.scenario import Probe

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Part:
    """Cells of a surface with one condition.

    Attributes:
        surface: the surface; None where it is insulated.
        some: which cells of the surface belong to the part.
        first: the place of the first of them in :attr:`SurfaceCells.cells`.
    """

    surface: SteadySurface | None
    some: NDArray[np.intp]
    first: int


class SurfaceCells:
    """The cells of a surface, and their surface temperatures.

    A cell occurs once for each of its faces on the surface, and for each condition that shares such a face.

    Attributes:
        cells: their indices in the flattened grid, shape (n,).
        places: their indices x, y, z, three arrays of shape (n,).
        areas: of their surfaces in m², shape (n,).
    """

    def __init__(self, problem: HeatProblem, surface: str, region: str | None = None) -> None:
        self._problem = problem
        wanted = _wanted(problem, region)
        self._parts, cells, areas = list[_Part](), [], []
        count = 0
        for part, own, area in self._found(surface):
            some = np.flatnonzero(wanted[own])
            self._parts.append(_Part(part, some, count))
            cells.append(own[some])
            areas.append(area[some])
            count += len(some)
        self.cells: Indices = np.concatenate([np.zeros(0, np.int64), *cells])
        self.areas: Array = np.concatenate([np.zeros(0), *areas])
        nx, ny, _ = problem.grid.cells
        self.places = self.cells % nx, self.cells // nx % ny, self.cells // (nx * ny)
        self._types = problem.materials.types_of(self.places[::-1])

    def of(self, temperatures: Array, step: int) -> Array:
        """Surface temperatures in K, shape (n,), after ``step`` steps; not finite where a condition is not.

        Args:
            temperatures: of ``cells`` in K.
            step: for conditions that vary in time.
        """
        problem, found = self._problem, temperatures.copy()
        acting = acting_at(problem, step)
        conducting = np.ones(len(found))
        if problem.materials.varies:
            deviation = temperatures - problem.reference
            conducting = problem.materials.by_enthalpy(EnthalpyTable.conductivity_at, self._types, deviation)
        surfaces = [part.surface for part in self._parts if part.surface is not None]
        now = iter(at_stage(surfaces, problem.grid, acting.conditions, acting.beams))
        for part in self._parts:
            if part.surface is not None:
                here = slice(part.first, part.first + len(part.some))
                own = _taken(next(now), part.some)
                found[here] += own.rise(temperatures[here], conducting[here])
        return found

    def _found(self, surface: str) -> Iterator[tuple[SteadySurface | None, Indices, Array]]:
        """Each condition with its cells and their areas in m²; None for the rest of a face, which is insulated."""
        materials = self._problem.materials
        types = materials.cells.reshape(-1)
        covered = [np.zeros(0, np.int64)]
        for part in find_surfaces(np, self._problem, types, 0.0, changing=True):
            if part.name == surface:
                cells = np.asarray(part.cells)
                covered.append(cells)
                yield part, cells, np.broadcast_to(part.area / part.weight, cells.shape)
        if surface != VOID:
            face = FACES.index(surface)
            rest = np.setdiff1d(cells_at(np, materials.grid, face).reshape(-1), np.concatenate(covered))
            area = materials.grid.cell_volume / materials.grid.spacing[face // 2]
            yield None, rest, np.full(len(rest), area)


def check_probes(problem: HeatProblem) -> None:
    """Refuse probes of surfaces without a cell.

    Raises:
        ScenarioError: names each of them.
    """
    mistakes = []
    for index, probe in enumerate(problem.scenario.probes):
        if probe.surface is not None and not len(SurfaceCells(problem, probe.surface, probe.region).cells):
            mistakes.append(Mistake(f"probes.{index}.surface", _reason(probe)))
    if mistakes:
        raise ScenarioError(problem.scenario.path, mistakes)


def _reason(probe: Probe) -> str:
    if probe.region is not None:
        return f'got "{probe.surface}", where region "{probe.region}" has no cell; choose another surface or region'
    return f'got "{probe.surface}", where no cell conducts; choose another surface'


def _wanted(problem: HeatProblem, region: str | None) -> NDArray[np.bool_]:
    """Which cells of the flattened grid conduct, and belong to a region if one is named."""
    if region is not None:
        assert problem.parts is not None, "a scenario with regions is painted"
        return region_mask(region, problem.scenario, problem.parts).reshape(-1)
    materials = problem.materials
    if materials.void is None:
        return np.broadcast_to(np.True_, materials.grid.cell_count)
    return np.asarray(materials.types_of(slice(None)).reshape(-1) != materials.void)


def _taken(surface: SteadySurface, some: NDArray[np.intp]) -> SteadySurface:
    """A surface with some of its cells."""
    half, weight, beam = (
        values if isinstance(values, float) else values[some] for values in (surface.half, surface.weight, surface.beam)
    )
    return replace(surface, half=half, weight=weight, beam=beam)
