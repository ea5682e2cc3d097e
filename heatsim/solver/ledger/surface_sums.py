"""Divide the sums of an energy ledger into sections and parts, and calculate the heat from them.

Sections lie between the same planes as those of a field (:class:`heatsim.grid.PlaneGroups`). A z face is one section.
The sums of a face are divided into parts by cell type and patch, those of surfaces towards void by cell type and
condition.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.kernels.reductions.fused import WHOLE, Labelling, Sections
from heatsim.kernels.reductions.statistics import MAGNITUDE, NUMBERS, TOTAL, Partials, exact_sums
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.solver.ledger.heat_sums import SumLayout
from heatsim.solver.ledger.heats import HeatRows

FACE_SUMS = tuple(f"ledger_{name}" for name in FACES)
BEAM_SUMS = tuple(f"ledger_beam_{name}" for name in FACES)
EXPOSED_SUMS, PART_SUMS, CELL_SUMS, LIT_SUMS = "ledger_exposed", "ledger_parts", "ledger_cells", "ledger_lit"

_NO_OWNER = -1
_FIRST_PATCH = 6

Indices = NDArray[np.int64]


class _SumPart(NamedTuple):
    """A part of the sums of a surface.

    Attributes:
        name: of the array of sums.
        face: its number; −1 for surfaces towards void and heated cells.
        cell_type: the cell type.
        owner: the number of the patch or of the condition towards void, or _NO_OWNER.
    """

    name: str
    face: int
    cell_type: int
    owner: int


class _Surface(NamedTuple):
    """The sums of a surface.

    Attributes:
        name, face: as in :class:`_SumPart`.
        place: in the array of the layout.
        starts: the first sum of each section, then the number of sums.
        types: the cell type of each sum.
        owners: for each sum the number of its patch or condition towards void, or _NO_OWNER.
    """

    name: str
    face: int
    place: slice
    starts: Indices
    types: Indices
    owners: Indices


# For each array of sums that are to be added, TOTAL and MAGNITUDE of the sections of each part, one after the other:
# shape (arrays, sections of all parts, 2).
OwnSums = NDArray[np.float64]


class SurfaceSums:
    """Maps a rank's own sums in the ledger to surfaces and parts of the body.

    Args:
        problem: the problem; with several ranks, the problem of this rank's slab.
        layout: the place of the sums of each name.
        xp: NumPy or CuPy, the library of the sums.
        team: the ranks. The constructor is collective.
    """

    def __init__(self, problem: HeatProblem, layout: SumLayout, xp: Any, team: Team) -> None:
        self._patch_count, self._surface_count = len(problem.scenario.patches), len(problem.scenario.surfaces)
        self._team = team
        self._capacities = problem.materials.cell_heat_capacity
        surfaces = list(_surfaces(problem, layout))
        divided = [_divided(surface.types, surface.owners) for surface in surfaces]
        parts = self._agree(
            [
                ([_SumPart(surface.name, surface.face, *pair) for pair in pairs], len(surface.starts) - 1)
                for surface, (pairs, _) in zip(surfaces, divided, strict=True)
            ]
        )
        entries = [np.zeros(0, dtype=np.int64)]
        # All ranks must agree on this, because sums with labels are formed in another order than sums without.
        most = max(map(len, parts.values()), default=1)
        bounds, labels = [np.zeros(1, dtype=np.int64)], np.zeros(layout.size, dtype=np.uint16)
        for surface, (pairs, which) in zip(surfaces, divided, strict=True):
            its_parts = parts[surface.name, surface.face]
            numbers = {(part.cell_type, part.owner): number for number, part in enumerate(its_parts)}
            labels[surface.place] = np.array([numbers[pair] for pair in pairs], int)[which]
            # A gap between the sums of two surfaces (zeros, or halo planes) counts as a section too.
            first = sum(map(len, bounds))
            bounds.append(surface.place.start + surface.starts)
            its_sections = np.arange(first, first + len(surface.starts) - 1)
            entries += [its_sections * most + number for number in range(len(its_parts))]
        self._bounds, self._entries = np.concatenate(bounds), np.concatenate(entries)
        self.division = WHOLE if most == 1 else Labelling(most)
        self._labels = None if most == 1 else xp.asarray(labels.astype(np.uint8 if most <= 256 else np.uint16))

    def _agree(self, of_rank: Sequence[tuple[Sequence[_SumPart], int]]) -> dict[tuple[str, int], list[_SumPart]]:
        """The parts that each surface has on at least one rank, and where all ranks together have their sums.

        Args:
            of_rank: for each surface of this rank its parts and the number of its sections.
        """
        of_ranks = self._team.gathered(of_rank)
        found: dict[tuple[str, int], set[_SumPart]] = {}
        for surfaces in of_ranks:
            for parts, _ in surfaces:
                found.setdefault(parts[0][:2], set()).update(parts)
        agreed = {surface: sorted(parts) for surface, parts in found.items()}
        places: dict[_SumPart, list[int]] = {}
        self._count = 0
        for surfaces in of_ranks:
            for parts, sections in surfaces:
                for part in agreed[parts[0][:2]]:
                    places.setdefault(part, []).extend(range(self._count, self._count + sections))
                    self._count += sections
        self._of_parts = _padded(list(places.values()), self._count)
        self._part_capacities = self._capacities[[part.cell_type for part in places]]
        self._of_heats = _padded(self._terms(list(places)), 2 * len(places))
        return agreed

    def _terms(self, parts: Sequence[_SumPart]) -> list[list[int]]:
        """The terms of each number of :class:`Heats`: twice the number of a part; 1 more for a magnitude."""
        faces: list[list[int]] = [[] for _ in FACES]
        owned: list[list[int]] = [[] for _ in range(self._patch_count + 1 + self._surface_count)]
        void, beams, magnitudes, cells = list[int](), list[int](), list[int](), list[int]()
        for number, (name, face, _, owner) in enumerate(parts):
            heat = 2 * number
            if owner != _NO_OWNER:
                owned[owner - _FIRST_PATCH].append(heat)
            if name in BEAM_SUMS or name == LIT_SUMS:
                beams.append(heat)
            elif name == CELL_SUMS:
                cells.append(heat)
            elif name == EXPOSED_SUMS:
                void.append(heat)
            elif name in FACE_SUMS:
                faces[face].append(heat)
            if name == EXPOSED_SUMS or name in FACE_SUMS:
                magnitudes.append(heat + 1)
        patches, surfaces = owned[: self._patch_count], owned[self._patch_count + 1 :]
        return [*faces, *patches, void, *surfaces, beams, magnitudes, cells, [heat + 1 for heat in cells]]

    def sections(self, values: Any) -> Sections:
        """The sections of all sums; ``values``: the array of the layout."""
        return Sections(values, self._bounds, self._labels)

    def heats(self, rows: Sequence[OwnSums]) -> HeatRows:
        """The heats in J at some times.

        Args:
            rows: for each time the results of :meth:`of_rank` on all ranks, joined along their second axis.
        """
        sums = np.zeros((len(rows), max(map(len, rows)), self._count + 1, 2))  # the last one stays 0
        for all_sums, of_row in zip(sums, rows, strict=True):
            all_sums[: len(of_row), :-1] = of_row
        of_parts = sums[:, :, self._of_parts].transpose(0, 2, 4, 1, 3)
        of_parts = of_parts.reshape(*of_parts.shape[:3], sums.shape[1] * self._of_parts.shape[1])
        terms = np.zeros((len(rows), 2 * len(self._of_parts) + 1))
        found = exact_sums(of_parts) * self._part_capacities[:, np.newaxis]
        terms[:, :-1] = found.reshape(len(rows), -1)
        return HeatRows(exact_sums(terms[:, self._of_heats]), self._patch_count, self._surface_count)

    def of_rank(self, found: Sequence[Partials]) -> OwnSums:
        """The sums and the sums of magnitudes of this rank's sections, part by part.

        Args:
            found: STATISTICS of the sections of one array of sums, or of several arrays to add, shape (…, sections,
                parts).

        Returns:
            Shape (…, arrays, sections of all parts, 2).
        """
        together = [np.ascontiguousarray(one).view(np.float64) for one in found]
        return self.of_each(np.stack(together, axis=-3))

    def of_each(self, found: Partials) -> OwnSums:
        """:meth:`of_rank` for arrays in one, of shape (…, arrays, sections, parts)."""
        values = np.ascontiguousarray(found).view(np.float64)
        *arrays, sections, numbers = values.shape
        columns = values.reshape(*arrays, sections * numbers // NUMBERS, NUMBERS)
        return np.asarray(columns[..., self._entries, TOTAL : MAGNITUDE + 1])

    def lies_like(self, other: "SurfaceSums") -> bool:
        """Whether other sums lie at the same places."""
        same = np.array_equal(self._bounds, other._bounds) and np.array_equal(self._entries, other._entries)
        return same and self.division == other.division


def _padded(places: Sequence[Sequence[int]], nothing: int) -> Indices:
    """Lists of places as the rows of an array; shorter ones end with the place of a number that is 0, ``nothing``."""
    found = np.full((len(places), max(map(len, places), default=0)), nothing)
    for row, own in zip(found, places, strict=True):
        row[: len(own)] = own
    return found


def _surfaces(problem: HeatProblem, layout: SumLayout) -> Iterator[_Surface]:
    """All sums of a ledger, in the order in which they lie."""
    materials, boundary = problem.materials, problem.boundary
    _, ny, nx = problem.grid.shape
    for name in layout.shapes:
        place = layout.place(name)
        if name in (EXPOSED_SUMS, LIT_SUMS, CELL_SUMS):
            cells = materials.heated.cells if name == CELL_SUMS else materials.weighted_surfaces.cells
            types = materials.types_of(np.unravel_index(cells, problem.grid.shape))
            starts = np.searchsorted(cells, _planes(problem) * (ny * nx))
            owners = np.full(len(cells), _NO_OWNER)
            if name == EXPOSED_SUMS:
                regions = [materials.palette[cell_type.material].region for cell_type in materials.types]
                owners = np.array([boundary.towards_void(region) for region in regions])[types]
            yield _Surface(name, -1, place, starts, types, owners)
        elif name == PART_SUMS:
            yield from _mixed(problem, place.start)
        else:
            face = (FACE_SUMS if name in FACE_SUMS else BEAM_SUMS).index(name)
            types = materials.types_on_face(face).reshape(-1)
            owners = np.full(types.shape, _NO_OWNER)
            numbers = boundary.maps[face].reshape(-1).astype(np.int64)
            if name in FACE_SUMS and numbers.size:
                owners = np.where(_are_patches(problem, numbers), numbers, _NO_OWNER)
            yield _Surface(name, face, place, _starts(problem, face, np.arange(len(types))), types, owners)


def _divided(types: Indices, owners: Indices) -> tuple[list[tuple[int, int]], Indices]:
    """The different pairs of cell type and owner of some sums, ascending, and the number of the pair of each sum."""
    least = int(owners.min(initial=_NO_OWNER))
    base = int(owners.max(initial=_NO_OWNER)) - least + 1
    keys, which = np.unique(types.astype(np.int64) * base + (owners - least), return_inverse=True)
    return [(key // base, key % base + least) for key in keys.tolist()], which


def _mixed(problem: HeatProblem, start: int) -> Iterator[_Surface]:
    """The sums of cells with several conditions, face by face; they begin at ``start``."""
    of_scenario = np.asarray(problem.boundary.owners, dtype=np.int64)
    for face in range(6):
        parts, cells = problem.boundary.mixed.on_face(face)
        if len(cells):
            numbers = of_scenario[problem.boundary.mixed.numbers[parts]]
            owners = np.where(_are_patches(problem, numbers), numbers, _NO_OWNER)
            types = problem.materials.types_on_face(face).reshape(-1)[cells]
            place = slice(start + parts.start, start + parts.stop)
            yield _Surface(PART_SUMS, face, place, _starts(problem, face, cells), types, owners)


def _are_patches(problem: HeatProblem, numbers: Indices) -> NDArray[np.bool_]:
    """Which condition numbers belong to patches."""
    return (numbers >= _FIRST_PATCH) & (numbers < _FIRST_PATCH + len(problem.scenario.patches))


def _starts(problem: HeatProblem, face: int, cells: Indices) -> Indices:
    """The index of the first cell of each section, then the number of cells; the cells of a face are ascending."""
    if face >= 4:
        return np.array([0, len(cells)])
    return np.searchsorted(cells, _planes(problem) * problem.grid.face_shape(face)[1])


def _planes(problem: HeatProblem) -> Indices:
    """The first own plane of each group, then the end of the own planes, as indices in the problem's arrays."""
    own = problem.slab.own
    return np.asarray(own.start + problem.whole.grid.groups.starts(own.stop - own.start))
