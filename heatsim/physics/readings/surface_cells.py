"""The temperatures of all cells of a surface: a face of the box, or the surface towards void.

Each cell has the surface temperature T_s of its condition, from the balance of
:mod:`heatsim.physics.conditions.surface_balance`. An insulated surface has the temperature of its cell.

A rank finds the cells in its own planes. Cells gathered from all ranks have the same order as on one rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.geometry.regions import region_number
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.operator.balance_surfaces import VOID, at_stage, find_surfaces
from heatsim.physics.operator.face_cells import cells_at
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.surface_temperature import acting_at
from heatsim.scenario import Probe

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_INSULATED = 1 << 30  # sort key of insulated parts, instead of face and condition: they come last


@dataclass(frozen=True, eq=False)
class _Part:
    """Cells of a surface with one condition.

    Attributes:
        surface: the surface with its condition; None for insulated cells.
        some: which cells of the surface belong to the part.
        first: the place of the first of these cells among all cells of this rank.
    """

    surface: BalanceSurface | None
    some: NDArray[np.intp]
    first: int


class SurfaceCells:
    """The cells of a surface, and their surface temperatures. Several ranks create it together.

    A cell occurs once for each of its faces on the surface, and for each condition that shares such a face.

    Args:
        problem: the problem of the planes that this rank steps.
        surface: the name of a face, or "void".
        region: the region whose cells belong to it; None for all.
        team: the ranks.

    Attributes:
        count: the number of cells on all ranks.
        order: the places of this rank's cells among those of all ranks, shape (own,).
        own_places: the indices x, y, z in the whole grid of this rank's cells, three arrays of shape (own,).
        own_areas: the areas of their surfaces in m², shape (own,).
    """

    def __init__(self, problem: HeatProblem, surface: str, region: str | None = None, team: Team = ALONE) -> None:
        self._problem, slab = problem, problem.slab
        self._parts, count = list[_Part](), 0
        cells, areas, keys = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros((0, 4), np.int64)]
        for part, own, area in self._found(surface):
            some = np.flatnonzero(self._wanted(own, region))
            self._parts.append(_Part(part, some, count))
            cells.append(own[some])
            areas.append(area[some])
            key = np.full((len(some), 4), _INSULATED)
            if part is not None:
                key[:, 0], key[:, 1] = part.face, part.number
                key[:, 2] = 0 if part.parts is None else part.parts[some] >= 0
            keys.append(key)
            count += len(some)
        z, y, x = np.unravel_index(np.concatenate(cells), problem.grid.shape)
        self._types = problem.materials.types_of((z, y, x))
        self.own_places = x, y, slab.place[z]
        self.own_areas: Array = np.concatenate(areas)
        key = np.concatenate(keys)
        key[:, 3] = (self.own_places[2] * problem.grid.shape[1] + y) * problem.grid.shape[2] + x
        of_ranks = team.gathered(key)
        before = sum(len(of_rank) for of_rank in of_ranks[: team.rank])
        everything = np.concatenate(of_ranks)
        self.count = len(everything)
        self.order: NDArray[np.intp] = np.argsort(np.lexsort(everything.T[::-1]))[before : before + count]

    def of(self, temperatures: Array, step: int) -> Array:
        """Surface temperatures in K of this rank's cells after ``step`` steps; not finite where a condition is not.

        Args:
            temperatures: the temperatures of these cells in K, shape (own,).
            step: the number of steps done, for conditions that vary in time.
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

    def _found(self, surface: str) -> Iterator[tuple[BalanceSurface | None, Indices, Array]]:
        """Each condition with its cells and their areas in m²; None for the rest of a face, which is insulated."""
        problem = self._problem
        covered, parts = [np.zeros(0, np.int64)], find_surfaces(np, problem, 0.0, changing=True)
        for part in sorted(parts, key=lambda part: (part.face, part.number)):
            if part.name == surface:
                cells = np.asarray(part.cells)
                covered.append(cells)
                yield part, cells, np.broadcast_to(part.area / part.weight, cells.shape)
        if surface != VOID and not self._is_cut(FACES.index(surface)):
            face, grid = FACES.index(surface), problem.grid
            rest = np.setdiff1d(cells_at(np, grid, face).reshape(-1), np.concatenate(covered))
            yield None, rest, np.full(len(rest), grid.cell_volume / grid.spacing[face // 2])

    def _wanted(self, cells: Indices, region: str | None) -> NDArray[np.bool_]:
        """Which cells are in own planes, conduct, and belong to a region if one is named."""
        problem, slab = self._problem, self._problem.slab
        z, y, x = np.unravel_index(cells, problem.grid.shape)
        wanted = np.asarray((z >= slab.own.start) & (z < slab.own.stop))
        if problem.materials.void is not None:
            wanted &= problem.materials.types_of((z, y, x)) != problem.materials.void
        if region is not None:
            assert problem.parts is not None, "a scenario with regions is painted"
            held = problem.parts.held.local(slab.place[z])
            wanted &= problem.parts.owner[held, y, x] == region_number(region, problem.scenario)
        return wanted

    def _is_cut(self, face: int) -> bool:
        """Whether a face of this rank's planes is a cut."""
        return face >= 4 and self._problem.slab.cut[face - 4]


def check_probes(problem: HeatProblem, part: HeatProblem, team: Team) -> None:
    """Refuse probes of surfaces without cells. Collective.

    Args:
        problem: the problem of the whole grid.
        part: the problem of the planes that this rank steps.
        team: the ranks.

    Raises:
        ScenarioError: there are such probes; names each of them.
    """
    if problem.parts is None:  # on a box of one material all faces have cells
        return
    if problem.parts.held.slab is None:
        part, team = problem, ALONE
    mistakes = []
    for index, probe in enumerate(problem.scenario.probes):
        if probe.surface is not None and not SurfaceCells(part, probe.surface, probe.region, team).count:
            mistakes.append(Mistake(f"probes.{index}.surface", _reason(probe)))
    if mistakes:
        raise ScenarioError(problem.scenario.path, mistakes)


def _reason(probe: Probe) -> str:
    if probe.region is not None:
        return f'got "{probe.surface}", where region "{probe.region}" has no cell; choose another surface or region'
    return f'got "{probe.surface}", where no cell conducts; choose another surface'


def _taken(surface: BalanceSurface, some: NDArray[np.intp]) -> BalanceSurface:
    """A surface with some of its cells."""
    half, weight, beam = (
        values if isinstance(values, float) else values[some] for values in (surface.half, surface.weight, surface.beam)
    )
    return replace(surface, half=half, weight=weight, beam=beam)
