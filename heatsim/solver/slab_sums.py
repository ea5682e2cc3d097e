"""The shapes of an energy ledger's sums, and which of them belong to a rank.

With several ranks, the kernels of a rank also enter heat for its halo planes. That heat is a duplicate and partly
wrong, so these sums are left out.
"""

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.physics.slab_problem import SlabProblem
from heatsim.solver.surface_sums import BEAM_SUMS, CELL_SUMS, EXPOSED_SUMS, FACE_SUMS, LIT_SUMS, PART_SUMS

# The shapes of all sums of a ledger that records nothing.
SHAPES_OF_NOTHING: dict[str, tuple[int, ...]] = dict.fromkeys((*FACE_SUMS, *BEAM_SUMS), (0, 0)) | {
    EXPOSED_SUMS: (0,),
    PART_SUMS: (0,),
    CELL_SUMS: (0,),
    LIT_SUMS: (0,),
}
# Sums with one row for each plane of the grid.
_BY_PLANES = (*FACE_SUMS[:4], *BEAM_SUMS[:4])

Place = slice | NDArray[np.intp]


def shapes_of_sums(problem: HeatProblem) -> dict[str, tuple[int, ...]]:
    """The shapes of the sums that a problem needs, by their names in checkpoints; faces first, then beams."""
    beams, grid = problem.sources.beam_faces(), problem.grid
    faces = {FACE_SUMS[face]: grid.face_shape(face) for face in range(6) if problem.open_faces[face]}
    shapes: dict[str, tuple[int, ...]] = {**faces}
    shapes |= {BEAM_SUMS[face]: grid.face_shape(face) for face in range(6) if face in beams}
    shapes[EXPOSED_SUMS] = (problem.materials.exposed_cells,)
    shapes[PART_SUMS] = (problem.boundary.mixed.parts_on_faces,)
    shapes[CELL_SUMS] = (len(problem.materials.heated),)
    shapes[LIT_SUMS] = (len(problem.materials.heated.lit),)
    return shapes


class SlabSums:
    """Maps the sums of a rank to those of the whole grid.

    Attributes:
        shapes: the shapes of the sums of the whole grid by name; empty sums are left out.
    """

    def __init__(self, problem: HeatProblem, team: Team, enabled: bool) -> None:
        """``problem`` is that of the rank's slab; without ``enabled`` there are no sums."""
        shapes = shapes_of_sums(problem.whole) if enabled else {}
        self.shapes = {name: shape for name, shape in shapes.items() if prod(shape)}
        self._problem, self._team = problem, team

    @property
    def alone(self) -> bool:
        """Whether this rank has the sums of the whole grid."""
        return self._problem.slab.alone

    def has(self, name: str) -> bool:
        """Whether any rank enters sums of this name."""
        return name in self.shapes

    def whole(self, sums: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The sums of all ranks in the order of the whole grid, on the host. Collective.

        Args:
            sums: the sums of this rank by name, on the host; ranks may have sums of different names.
        """
        if self.alone:
            return dict(sums)
        own = {name: (self._places[name][1], of[self._places[name][0]]) for name, of in sums.items() if of.size}
        whole: dict[str, NDArray[Any]] = {}
        for of_rank in self._team.gathered(own):
            for name, (place, of) in of_rank.items():
                whole.setdefault(name, np.zeros(self.shapes[name]))[place] = of
        return {name: whole[name] for name in self.shapes if name in whole}

    def put(self, xp: Any, name: str, sums: Any, whole: NDArray[Any]) -> None:
        """Copy this rank's own sums of a name from those of the whole grid (host) to its array (device)."""
        if self.alone:
            sums[...] = xp.asarray(whole)
        else:
            here, there = self._places[name]
            sums[xp.asarray(here) if isinstance(here, np.ndarray) else here] = xp.asarray(whole[there])

    @cached_property
    def _places(self) -> dict[str, tuple[Place, Place]]:
        """For each name the places of the rank's own sums: in its array, and in that of the whole grid."""
        problem = self._problem
        assert isinstance(problem, SlabProblem)
        slab, everything = problem.slab, slice(None)
        by_planes = slab.own, slice(slab.first, slab.last)
        places: dict[str, tuple[Place, Place]] = {
            name: by_planes if name in _BY_PLANES else (everything, everything) for name in (*FACE_SUMS, *BEAM_SUMS)
        }
        here, there = problem.materials, problem.whole.materials
        exposed = _own_cells(problem, here.weighted_surfaces.cells, there.weighted_surfaces.cells)
        places[EXPOSED_SUMS] = places[LIT_SUMS] = exposed
        places[CELL_SUMS] = _own_cells(problem, here.heated.cells, there.heated.cells)
        parts = _own_parts(problem)
        places[PART_SUMS] = parts, problem.parts_here[parts]
        return places


def _own_cells(problem: SlabProblem, here: NDArray[np.int64], there: NDArray[np.int64]) -> tuple[Place, Place]:
    """Where a rank's own cells lie in an ascending list of cells of its slab, and in that of the whole grid."""
    plane, slab = problem.grid.cells[0] * problem.grid.cells[1], problem.slab
    return (
        slice(*np.searchsorted(here, (slab.own.start * plane, slab.own.stop * plane))),
        slice(*np.searchsorted(there, (slab.first * plane, slab.last * plane))),
    )


def _own_parts(problem: SlabProblem) -> NDArray[np.intp]:
    """The parts of mixed cells that belong to own planes, or to z faces that are not cuts."""
    mixed, own = problem.boundary.mixed, problem.slab.own
    found = []
    for face in range(6):
        parts, cells = mixed.on_face(face)
        row = problem.grid.face_shape(face)[1]
        here = (cells >= own.start * row) & (cells < own.stop * row) if face < 4 else np.ones(len(cells), dtype=bool)
        found.append(parts.start + np.flatnonzero(here))
    return np.concatenate(found)
