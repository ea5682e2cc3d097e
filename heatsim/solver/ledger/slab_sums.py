"""The shapes of an energy ledger's sums, and which of them belong to a rank.

With several ranks, the kernels of a rank also enter heat for its halo planes. That heat is a duplicate and partly
wrong, so these sums are left out.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.parallel.slab import Share
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.physics.slab_problem import SlabProblem
from heatsim.solver.ledger.surface_sums import BEAM_SUMS, CELL_SUMS, EXPOSED_SUMS, FACE_SUMS, LIT_SUMS, PART_SUMS

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
# A function that reads entries of an array of the whole grid. Arguments: name of the array, first entry, end.
Read = Callable[[str, int, int], NDArray[Any]]


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
        self._problem, self._team = problem, team
        shapes = shapes_of_sums(problem.whole) if enabled else {}
        if enabled and not self.alone:
            shapes |= {name: (sum(counts),) for name, counts in self._counts.items()}
        self.shapes = {name: shape for name, shape in shapes.items() if prod(shape)}

    @property
    def alone(self) -> bool:
        """Whether this rank has the sums of the whole grid."""
        return self._problem.slab.alone

    def has(self, name: str) -> bool:
        """Whether any rank enters sums of this name."""
        return name in self.shapes

    def shares(self, sums: Mapping[str, NDArray[Any]]) -> dict[str, Share]:
        """The rank's share of the sums of the whole grid, by name. Collective.

        Args:
            sums: the sums of this rank by name, on the host; ranks may have sums of different names.
        """
        if self.alone:
            return {name: Share(of.shape, 0, of) for name, of in sums.items()}
        return {name: self._share(name, sums.get(name)) for name in self.shapes}

    def _share(self, name: str, sums: NDArray[Any] | None) -> Share:
        """The rank's share of the sums of a name; ``sums``: those of this rank, None if it has none."""
        shape, (here, there) = self.shapes[name], self._places[name]
        own = None if sums is None or not sums.size else sums[here]
        if isinstance(there, slice):
            first, last, _ = there.indices(shape[0])
            return Share(shape, first, np.zeros((last - first, *shape[1:])) if own is None else own)
        # Parts of mixed cells are stored face by face, so a rank's parts are not contiguous. There are few of them.
        whole = np.zeros(shape)
        for place, of in self._team.gathered((there, own)):
            if of is not None:
                whole[place] = of
        return Share.of_first(whole, self._team.first)

    def put(self, xp: Any, name: str, sums: Any, read: Read) -> None:
        """Copy this rank's part of the sums with a name from those of the whole grid to the array on the device."""
        shape = self.shapes[name]
        if self.alone:
            sums[...] = xp.asarray(read(name, 0, shape[0]))
            return
        here, there = self._places[name]
        if isinstance(there, slice):
            first, last, _ = there.indices(shape[0])
            sums[here] = xp.asarray(read(name, first, last))
        else:
            sums[xp.asarray(here)] = xp.asarray(read(name, 0, shape[0])[there])

    @cached_property
    def _own_cells(self) -> dict[str, slice]:
        """For sums by lists of cells, the rank's own sums in its array."""
        problem, heated = self._problem, self._problem.materials.heated
        lists = {EXPOSED_SUMS: problem.materials.weighted_surfaces.cells, CELL_SUMS: heated.cells}
        plane, own = problem.grid.cells[0] * problem.grid.cells[1], problem.slab.own
        found = {
            name: slice(*np.searchsorted(cells, (own.start * plane, own.stop * plane)).tolist())
            for name, cells in lists.items()
        }
        exposed = found[EXPOSED_SUMS] if problem.materials.weighted_surfaces.void else slice(0, 0)
        return found | {EXPOSED_SUMS: exposed, LIT_SUMS: found[EXPOSED_SUMS] if len(heated.lit) else slice(0, 0)}

    @cached_property
    def _counts(self) -> dict[str, list[int]]:
        """For sums by lists of cells, how many of the sums are own ones of each rank. Collective at the first time."""
        counts = {name: own.stop - own.start for name, own in self._own_cells.items()}
        of_ranks = self._team.gathered(counts)
        return {name: [of_rank[name] for of_rank in of_ranks] for name in counts}

    @cached_property
    def _places(self) -> dict[str, tuple[Place, Place]]:
        """For each name the places of the rank's own sums: in its array, and in that of the whole grid."""
        problem = self._problem
        assert isinstance(problem, SlabProblem)
        slab, everything = problem.slab, slice(None)
        by_planes = slab.own, slice(slab.first, slab.last)
        places: dict[str, tuple[Place, Place]] = dict.fromkeys(_BY_PLANES, by_planes)
        for side, is_cut in enumerate(slab.cut):  # the rank at a z face has all sums of this face
            for names in (FACE_SUMS, BEAM_SUMS):
                places[names[4 + side]] = everything, slice(0, 0) if is_cut else everything
        for name, counts in self._counts.items():
            first = sum(counts[: self._team.rank])
            places[name] = self._own_cells[name], slice(first, first + counts[self._team.rank])
        parts = _own_parts(problem)
        places[PART_SUMS] = parts, problem.parts_here[parts]
        return places


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
