"""The temperatures of all cells of a surface: a face of the box, or the surface towards void.

Each cell has the surface temperature T_s of its condition, from the balance of
:mod:`heatsim.physics.conditions.surface_balance`. An insulated surface has the temperature of its cell.

A rank finds the cells in its own planes. Cells gathered from all ranks have the same order as on one rank.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.conditions.surface_laws import SurfaceConditions
from heatsim.physics.geometry.regions import region_number
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.operator.balance_surfaces import beam_fluxes
from heatsim.physics.operator.boundary_faces import BoundaryFaces, boundary_faces
from heatsim.physics.operator.rooms import rooms_beyond
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.surface_temperature import Acting, acting_at
from heatsim.scenario import TOWARDS_VOID, Probe

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class SurfaceCells:
    """The cells of a surface, and their surface temperatures. Several ranks create it together.

    A cell occurs once for each of its faces on the surface, and for each condition of the scenario that shares such a
    face. If the values of a condition vary in space, a face has a mixture of them and the mean of their temperatures.

    Args:
        problem: the problem of the planes that this rank steps.
        surface: the name of a face, "void", or the name of a room; None for all.
        region: the region whose cells belong to it; None for all.
        team: the ranks.
        conditions: the numbers of the conditions of its cells; None for all.

    Attributes:
        faces: the boundary faces of this rank's cells, side by side.
        count: the number of cells on all ranks.
        shape: (count,).
        order: the places of this rank's cells among those of all ranks, shape (own,).
        own_places: the indices x, y, z in the whole grid of this rank's cells, three arrays of shape (own,).
        own_areas: the areas of their surfaces in m², shape (own,).
    """

    def __init__(
        self,
        problem: HeatProblem,
        surface: str | None,
        region: str | None = None,
        team: Team = ALONE,
        conditions: Sequence[int] | None = None,
    ) -> None:
        self._problem, slab = problem, problem.slab
        self.faces = list[BoundaryFaces]()
        # For each boundary face the place of its cell among those of this side, and its share in the temperature.
        self._groups = list[tuple[NDArray[np.intp], Array]]()
        keys, areas = [np.zeros((0, 3), np.int64)], [np.zeros(0)]
        cells, nx, ny = [np.zeros(0, np.int64)], problem.grid.shape[2], problem.grid.shape[1]
        for faces in boundary_faces(problem.boundary, problem.materials, not_cut(problem)):
            if surface in FACES and (faces.towards_void or surface != FACES[faces.side]):
                continue
            if surface not in (None, *FACES) and not faces.towards_void:
                continue
            wanted = True if conditions is None else np.isin(faces.conditions, conditions)
            if surface in problem.scenario.rooms:
                assert problem.parts is not None, "a scenario with regions is painted"
                room = problem.scenario.rooms[surface]
                wanted = wanted & (rooms_beyond(faces, problem.parts, slab) == room)
            faces = faces.where(wanted & self._wanted(faces.cells, region))
            owners = np.array(problem.boundary.owners)[faces.conditions]
            every = problem.grid.cell_count
            groups, group = np.unique(owners * every + faces.cells, return_inverse=True)
            owner, of_groups = np.divmod(groups, every)
            parts = np.bincount(group, faces.fractions, len(groups))
            self.faces.append(faces)
            self._groups.append((group, faces.fractions / parts[group]))
            cells.append(of_groups)
            sizes = np.zeros(len(groups))
            np.add.at(sizes, group, faces.area * faces.fractions * faces.ratios)
            areas.append(sizes)
            z = slab.place[of_groups // (ny * nx)]
            side, in_grid = np.full(len(groups), faces.side), z * (ny * nx) + of_groups % (ny * nx)
            keys.append(np.stack([side, owner, in_grid], axis=1))
        z, y, x = np.unravel_index(np.concatenate(cells), problem.grid.shape)
        self._types = problem.materials.types_of((z, y, x))
        self.own_places = x, y, slab.place[z]
        self.own_areas: Array = np.concatenate(areas)
        of_ranks = team.gathered(np.concatenate(keys))
        before = sum(len(of_rank) for of_rank in of_ranks[: team.rank])
        everything = np.concatenate(of_ranks)
        self.count = len(everything)
        self.shape = (self.count,)
        self.order: NDArray[np.intp] = np.argsort(np.lexsort(everything.T[::-1]))[before : before + len(z)]

    def of(self, temperatures: Array, step: int) -> Array:
        """Surface temperatures in K of this rank's cells after ``step`` steps; not finite where a condition is not.

        Args:
            temperatures: the temperatures of these cells in K, shape (own,).
            step: the number of steps done, for conditions that vary in time.
        """
        problem, found, first = self._problem, temperatures.copy(), 0
        acting = acting_at(problem, step)
        fluxes = beam_fluxes(acting.beams, problem.grid)
        conducting = conducting_of(problem, self._types, temperatures)
        for faces, (group, shares) in zip(self.faces, self._groups, strict=True):
            count = int(group.max(initial=-1)) + 1
            at = first + group
            rises = rises_of(problem, faces, self._types[at], conducting[at], temperatures[at], acting, fluxes)
            found[first : first + count] += np.bincount(group, shares * rises, count)
            first += count
        return found

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


def not_cut(problem: HeatProblem) -> list[bool]:
    """Which faces of a rank's planes are faces of the box."""
    return [True] * 4 + [not cut for cut in problem.slab.cut]


def conducting_of(problem: HeatProblem, types: NDArray[np.intp], temperatures: Array) -> Array:
    """The conductivity of cells at their temperatures in K, as a factor of that at the reference temperature."""
    if not problem.materials.varies:
        return np.ones(len(temperatures))
    deviation = temperatures - problem.reference
    return np.asarray(problem.materials.by_enthalpy(EnthalpyTable.conductivity_at, types, deviation))


def rises_of(
    problem: HeatProblem,
    faces: BoundaryFaces,
    types: NDArray[np.intp],
    conducting: Array,
    temperatures: Array,
    acting: Acting,
    fluxes: Mapping[int, Array],
) -> Array:
    """T_s − T in K of boundary faces.

    Args:
        problem: the problem.
        faces: on one side of cells.
        types: of the cells.
        conducting: their conductivities, from :func:`conducting_of`.
        temperatures: of the cells in K.
        acting: the conditions at one time.
        fluxes: those of beams at that time, from :func:`heatsim.physics.operator.balance_surfaces.beam_fluxes`.
    """
    half = conducting / (problem.materials.half[faces.axis, types] * faces.half_factors * faces.ratios)
    lit, beam = faces.lit(problem.materials), np.zeros(len(faces))
    if lit is not None and faces.side in fluxes:
        beam = np.where(lit >= 0, fluxes[faces.side][lit], 0.0) / faces.ratios
    conditions = SurfaceConditions(acting.conditions, faces.conditions)
    return np.asarray(conditions.rises(half, 0.0, temperatures, beam))


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
    if probe.surface not in (*FACES, TOWARDS_VOID):
        return f'got "{probe.surface}"; no cell that conducts borders on what later regions leave of this void region'
    return f'got "{probe.surface}", where no cell conducts; choose another surface'
