"""The heat problem of one rank: the problem of the whole grid, cut to the rank's slab.

Faces at cuts are insulated. Conditions, sources, steps and errors are those of the whole grid, so all ranks raise the
same error at the same step.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_heat import GAPS, HeatedCells
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.cells.weighted_surfaces import NO_WEIGHTED_SURFACES, WeightedSurfaces, listed
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.mixed_cells import TOWARDS_VOID, MixedCells, place_of
from heatsim.physics.conditions.surface_balance import FREE
from heatsim.physics.geometry.painted_planes import EVERYTHING
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.problem import HeatProblem
from heatsim.physics.sources.beam_rows import BeamRows
from heatsim.physics.sources.sources import Sources
from heatsim.physics.sources.spots import Track
from heatsim.physics.time.stage_times import StageTimes
from heatsim.scenario import Scenario

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SlabProblem(HeatProblem):
    """The problem of a slab with its halos.

    Attributes:
        cut_from: the problem of the whole grid.
        planes: the planes.
        parts_here: for each part of a mixed cell in this slab, its index among those of the whole grid.
    """

    cut_from: HeatProblem = field(kw_only=True)
    planes: Slab = field(kw_only=True)
    parts_here: NDArray[np.intp] = field(kw_only=True)

    @property
    def whole(self) -> HeatProblem:
        """The problem of the whole grid."""
        return self.cut_from

    @property
    def slab(self) -> Slab:
        """The planes that kernels step."""
        return self.planes

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Which axes wrap within the slab."""
        x, y, z = self.whole.periodic
        return x, y, z and not any(self.slab.cut)

    @cached_property
    def linear(self) -> bool:
        """Whether kernels use the form f − g·(T − T_ref); the same on all ranks."""
        return self.whole.linear

    @cached_property
    def open_faces(self) -> tuple[bool, ...]:
        """Which of x_min … z_max let heat through; cuts do not."""
        return tuple(is_open and face not in self._cuts for face, is_open in enumerate(self.whole.open_faces))

    @property
    def _cuts(self) -> list[int]:
        """The faces at cuts."""
        return [4 + end for end, is_cut in enumerate(self.slab.cut) if is_cut]

    def _linear_terms(self, stages: StageTimes, exchange: Array, reference: float) -> tuple[NDArray[Any], NDArray[Any]]:
        f, g = super()._linear_terms(stages, exchange, reference)
        f[:, self._cuts] = g[:, self._cuts] = 0.0
        return f, g

    def _rows(self, stages: StageTimes, dt: float, reference: float) -> StepInputs:
        rows = super()._rows(stages, dt, reference)
        conditions = rows.conditions.copy()
        conditions[:, self._cuts] = 0.0
        conditions[:, self._cuts, FREE] = 1.0
        return replace(rows, conditions=conditions)


def on_slab(problem: HeatProblem, slab: Slab) -> HeatProblem:
    """The problem of a slab; ``problem`` itself if the slab is the whole grid."""
    if slab.alone:
        return problem
    grid = problem.grid.planes(slab.start, slab.depth)
    boundary, parts_here = _cut_boundary(problem.boundary, problem.grid, slab)
    kept = {each.name: getattr(problem, each.name) for each in fields(HeatProblem)}
    return SlabProblem(
        **kept
        | {
            "grid": grid,
            "materials": _cut_materials(problem.materials, problem.scenario, grid, slab),
            "boundary": boundary,
            "held": EVERYTHING,
            "sources": _SlabSources(problem.scenario, problem.materials, slab),
        },
        cut_from=problem,
        planes=slab,
        parts_here=parts_here,
    )


@dataclass(frozen=True)
class _SlabSources(Sources):
    """The sources of a scenario, beams cut to a slab.

    Attributes:
        slab: the planes.
    """

    slab: Slab

    @property
    def beams(self) -> list[Track]:
        """The ways of the beams that this slab needs."""
        return [track for track in self.tracks if self._needs(FACES.index(track.beam.face))]

    def _needs(self, face: int) -> bool:
        """Whether beams through a face can bring something to this slab."""
        # Light that passes a face at a cut can heat cells of this slab.
        return face not in self._cuts or self.heated.has_beams or len(self.heated.lit) > 0

    @property
    def _cuts(self) -> list[int]:
        """The faces at cuts."""
        return [4 + end for end, is_cut in enumerate(self.slab.cut) if is_cut]

    def beam_faces(self) -> set[int]:
        """The numbers of the faces whose surfaces absorb beams; cuts have none."""
        return super().beam_faces().difference(self._cuts)

    def rows_of(self, number: int, times: Array, dt: float | Array) -> BeamRows | None:
        """What a beam brings to the planes of the slab; None if it brings nothing."""
        rows = super().rows_of(number, times, dt)  # of all beams, so that all ranks raise the error of any
        if rows is None or not self._needs(rows.face):
            return None
        return rows if rows.face >= 4 else self._cut(rows)

    def _cut(self, beam: BeamRows) -> BeamRows:
        """A beam on an x or y face: its weights in all planes of the slab."""
        u, v = beam.weights
        column = self.slab.place - beam.first[..., 1:]
        there = (column >= 0) & (column < v.shape[-1])
        weights = np.where(there, np.take_along_axis(v, np.where(there, column, 0), axis=-1), 0.0)
        first = beam.first.copy()
        first[..., 1] = 0
        return replace(beam, first=first, weights=(u, weights))

    def beam_bytes(self, itemsize: int, dt: float) -> int:
        """Bytes of one step's weights; the same on all ranks."""
        planes = itemsize * self.scenario.grid.cells[2]
        faces = [(track.beam.face, track.most_spots(dt)) for track in self.tracks]
        along = sum(spots for face, spots in faces if face in FACES[:4])
        return super().beam_bytes(itemsize, dt) + along * planes


def _cut_materials(materials: CellTypes, scenario: Scenario, grid: Grid, slab: Slab) -> CellTypes:
    cells = materials.cells[materials.held.local(slab.place)] if materials.cells.size else materials.cells
    surfaces, found = _cut_surfaces(materials.weighted_surfaces, grid, slab)
    heated = _cut_heated(materials.heated, scenario, grid, slab)
    lit = materials.heated.lit
    return replace(
        materials,
        grid=grid,
        cells=cells,
        weighted_surfaces=surfaces,
        heated=replace(heated, lit=lit[found] if len(lit) else lit),
        held=EVERYTHING,
        face_types=(),
        of_whole=materials,
    )


def _cut_heated(heated: HeatedCells, scenario: Scenario, grid: Grid, slab: Slab) -> HeatedCells:
    """The heated cells of a slab."""
    plane = grid.cells[0] * grid.cells[1]
    found, cells = slab.rows_of(heated.cells, plane)
    first, entries = lists_of(heated.first, found)
    numbers, weights, spots = heated.numbers[entries], heated.weights[entries], heated.spots
    if len(spots):
        # Across x and y the second axis of a face is z, and light stays in its plane.
        faces = [FACES.index(source.beam.face) for source in scenario.sources if source.beam is not None]
        along_z = np.array([*[False] * len(heated.amounts), *(face < 4 for face in faces), False])
        along_z = along_z[np.minimum(numbers, len(along_z) - 1)]
        planes = np.repeat(cells // plane, np.diff(first))
        spots = spots[entries]
        spots[along_z, 1] = planes[along_z]
        across = numbers >= GAPS
        for end, outermost in enumerate((0, slab.depth - 1)):
            if slab.cut[end]:  # the neighbour is missing there: nothing passes, to the other side
                out = across & (planes == outermost) & (spots[:, 0] == 4 + end)
                weights[out], spots[out, 0] = 0.0, 5 - end
    return replace(
        heated,
        cells=cells,
        first=first,
        numbers=numbers,
        weights=weights,
        spots=spots,
        heat_capacity=heated.heat_capacity[found],
        volume_factors=heated.volume_factors[found],
    )


def lists_of(first: NDArray[np.int64], which: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Choose some of many lists that lie one behind the other.

    Args:
        first: where each list begins, and where the last one ends.
        which: the numbers of the chosen lists.

    Returns:
        Where the chosen lists begin if only they lie one behind the other, and the old places of their entries.
    """
    counts = np.diff(first)[which]
    ends = np.cumsum(counts)
    entries = np.arange(counts.sum()) + np.repeat(first[which] - (ends - counts), counts)
    return np.concatenate(([0], ends)), entries.astype(np.intp)


def _cut_surfaces(surfaces: WeightedSurfaces, grid: Grid, slab: Slab) -> tuple[WeightedSurfaces, NDArray[np.intp]]:
    """The weighted surfaces of a slab, and the indices of their cells among those of the whole grid.

    The list must have all cells that kernels treat as weighted, also those in the outermost halo planes: kernels look
    up the place of a cell in the list, and store heat there.
    """
    if surfaces is NO_WEIGHTED_SURFACES:
        return surfaces, np.zeros(0, dtype=np.intp)
    plane = grid.cells[0] * grid.cells[1]
    found, cells = slab.rows_of(surfaces.cells, plane)
    bits, before = listed(cells, grid.cell_count)
    links = surfaces.links[found] if len(surfaces.links) else surfaces.links
    area = surfaces.area[found]
    for end, outermost in enumerate((0, slab.depth - 1)):
        if slab.cut[end]:  # the neighbour is missing there
            at = slice(*np.searchsorted(cells, (outermost * plane, (outermost + 1) * plane)))
            area[at, 4 + end] = 1.0
            links[at, 4 + end] = 0.0
    cut = replace(surfaces, bits=bits, before=before, cells=cells, area=area, links=links, held=EVERYTHING)
    return cut, found


def _cut_boundary(boundary: Boundary, grid: Grid, slab: Slab) -> tuple[Boundary, NDArray[np.intp]]:
    """The boundary of a slab, and the indices of its parts of mixed cells among all parts."""
    maps, mixed = list(boundary.maps), boundary.mixed
    places, cells_here = [], []
    for face in range(TOWARDS_VOID + 6):
        first, last = np.searchsorted(mixed.places, (place_of(face, 0), place_of(face + 1, 0)))
        if face >= TOWARDS_VOID:
            plane = grid.cells[0] * grid.cells[1]
            found, numbers = slab.rows_of(mixed.places[first:last] - place_of(face, 0), plane)
        elif face < 4:
            if maps[face].size:
                maps[face] = maps[face][slab.place]
            row = grid.face_shape(face)[1]
            found, numbers = slab.rows_of(mixed.places[first:last] - place_of(face, 0), row)
        elif slab.cut[face - 4]:
            maps[face] = np.zeros((0, 0), dtype=np.uint8)
            continue
        else:
            found, numbers = np.arange(last - first), mixed.places[first:last] - place_of(face, 0)
        places.append(place_of(face, 0) + numbers)
        cells_here.append(first + found)
    cells = np.concatenate(cells_here)
    starts, parts = lists_of(mixed.first, cells)
    cut = MixedCells(np.concatenate(places), starts, mixed.numbers[parts], mixed.fractions[parts])
    return replace(boundary, maps=tuple(maps), mixed=cut), parts
