"""The sums of an energy ledger in sections and parts, and the heat that follows from them.

Sections lie between the same planes as those of a field (:class:`heatsim.grid.PlaneGroups`); a face across z is one
section. The sums of a face are divided by the type of their cell and by their patch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.kernels.reductions.fused import WHOLE, Division, Sections
from heatsim.kernels.reductions.statistics import Partials, exact_sum
from heatsim.physics.problem import HeatProblem
from heatsim.solver.heat_sums import SumLayout

FACE_SUMS = tuple(f"ledger_{name}" for name in FACES)
BEAM_SUMS = tuple(f"ledger_beam_{name}" for name in FACES)
EXPOSED_SUMS, PART_SUMS = "ledger_exposed", "ledger_parts"

_NO_PATCH = -1
_FIRST_PATCH = 6

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Heats:
    """Heat in J into a body since the start.

    Attributes:
        faces: through each face, that of its patches among it, that of beams left out.
        patches: through each patch.
        void: through the surfaces towards void.
        beams: absorbed from beams.
        magnitude: Σ |heat through the faces of each cell|, beams left out, void included.
    """

    faces: tuple[float, ...]
    patches: tuple[float, ...]
    void: float
    beams: float
    magnitude: float


@dataclass(frozen=True, eq=False)
class _Surface:
    """Some sums that lie side by side.

    Attributes:
        name: of the sums.
        face: its number; −1 for surfaces towards void.
        sections: where its sections stand among all.
        capacities: heat capacity in J/K of the cells of each part.
        patches: the number of the patch of each part, or _NO_PATCH.
    """

    name: str
    face: int
    sections: slice
    capacities: Sequence[float]
    patches: Sequence[int]


class SurfaceSums:
    """Where the sums of a ledger lie, and what they mean.

    Args:
        problem: the problem.
        layout: where the sums of each name lie.
        xp: NumPy or CuPy, the library of the sums.
    """

    def __init__(self, problem: HeatProblem, layout: SumLayout, xp: Any) -> None:
        self._patch_count = len(problem.scenario.patches)
        self._surfaces: list[_Surface] = []
        bounds, labels = [np.zeros(1, dtype=np.int64)], np.zeros(layout.size, dtype=np.uint16)
        for name, face, place, starts, types, patches in _surfaces(problem, layout):
            pairs, numbers = np.unique(np.stack([types, patches]), axis=1, return_inverse=True)
            labels[place] = numbers.reshape(-1)
            # Between the sums of two surfaces there may be a gap of zeros, which is a section too.
            first = sum(map(len, bounds))
            bounds.append(place.start + starts)
            sections = slice(first, first + len(starts) - 1)
            capacities = problem.materials.cell_heat_capacity[pairs[0]].tolist()
            self._surfaces.append(_Surface(name, face, sections, capacities, pairs[1].tolist()))
        self._bounds = np.concatenate(bounds)
        parts = max((len(surface.capacities) for surface in self._surfaces), default=1)
        self.division = WHOLE if parts == 1 else Division(parts)
        self._labels = None if parts == 1 else xp.asarray(labels.astype(np.uint8 if parts <= 256 else np.uint16))

    def sections(self, values: Any) -> Sections:
        """The sections of all sums; ``values``: the array of the layout."""
        return Sections(values, self._bounds, self._labels)

    def heats(self, found: Sequence[Partials]) -> Heats:
        """The heats in J.

        Args:
            found: STATISTICS of the sections of one array of sums, or of several that are to be added.
        """
        totals, magnitudes = ([one[name].T.tolist() for one in found] for name in ("total", "magnitude"))
        faces: list[list[float]] = [[] for _ in FACES]
        patches: list[list[float]] = [[] for _ in range(self._patch_count)]
        void, beams, all_magnitudes = list[float](), list[float](), list[float]()
        for surface in self._surfaces:
            for part, (capacity, patch) in enumerate(zip(surface.capacities, surface.patches, strict=True)):
                heat, magnitude = (
                    capacity * exact_sum([number for one in lists for number in one[part][surface.sections]])
                    for lists in (totals, magnitudes)
                )
                if patch != _NO_PATCH:
                    patches[patch - _FIRST_PATCH].append(heat)
                if surface.name in BEAM_SUMS:
                    beams.append(heat)
                elif surface.name == EXPOSED_SUMS:
                    void.append(heat)
                elif surface.name in FACE_SUMS:
                    faces[surface.face].append(heat)
                if surface.name == EXPOSED_SUMS or surface.name in FACE_SUMS:
                    all_magnitudes.append(magnitude)
        return Heats(
            tuple(map(exact_sum, faces)),
            tuple(map(exact_sum, patches)),
            *map(exact_sum, (void, beams, all_magnitudes)),
        )


# The name of some sums, their face, their place in the array of the layout, the first of each section and their number,
# and for each the type of its cell and its patch.
_Found = tuple[str, int, slice, Indices, Indices, Indices]


def _surfaces(problem: HeatProblem, layout: SumLayout) -> Iterator[_Found]:
    """All sums of a ledger, in the order in which they lie."""
    materials, boundary = problem.materials, problem.boundary
    nz, ny, nx = problem.grid.shape
    groups = problem.grid.groups.starts(nz)
    for name in layout.shapes:
        place = layout.place(name)
        if name == EXPOSED_SUMS:
            cells = materials.weighted_surfaces.cells
            types = materials.types_of(np.unravel_index(cells, problem.grid.shape))
            starts = np.searchsorted(cells, groups * (ny * nx))
            yield name, -1, place, starts, types, np.full(len(cells), _NO_PATCH)
        elif name == PART_SUMS:
            yield from _mixed(problem, place.start)
        else:
            face = (FACE_SUMS if name in FACE_SUMS else BEAM_SUMS).index(name)
            types = materials.types_on_face(face).reshape(-1)
            patches = np.full(types.shape, _NO_PATCH)
            numbers = boundary.maps[face].reshape(-1).astype(np.int64)
            if name in FACE_SUMS and numbers.size:
                patches = np.where(_are_patches(problem, numbers), numbers, _NO_PATCH)
            yield name, face, place, _starts(problem, face, np.arange(len(types))), types, patches


def _mixed(problem: HeatProblem, start: int) -> Iterator[_Found]:
    """The sums of cells that several conditions share, face by face; they begin at ``start``."""
    owners = np.asarray(problem.boundary.owners, dtype=np.int64)
    for face in range(6):
        parts, cells = problem.boundary.mixed.on_face(face)
        if len(cells):
            numbers = owners[problem.boundary.mixed.numbers[parts]]
            patches = np.where(_are_patches(problem, numbers), numbers, _NO_PATCH)
            types = problem.materials.types_on_face(face).reshape(-1)[cells]
            place = slice(start + parts.start, start + parts.stop)
            yield PART_SUMS, face, place, _starts(problem, face, cells), types, patches


def _are_patches(problem: HeatProblem, numbers: Indices) -> NDArray[np.bool_]:
    """Which numbers of conditions are those of patches."""
    return (numbers >= _FIRST_PATCH) & (numbers < _FIRST_PATCH + len(problem.scenario.patches))


def _starts(problem: HeatProblem, face: int, cells: Indices) -> Indices:
    """The first of each section, and the number, of ascending cells of a face."""
    rows, length = problem.grid.face_shape(face)
    if face >= 4:
        return np.array([0, len(cells)])
    return np.searchsorted(cells, problem.grid.groups.starts(rows) * length)
