"""What each sum of an energy ledger belongs to: a plane of the grid, a cell type, an owner.

From this follow the share of a rank and the heat through each face, patch and region. With several ranks, the kernels
of a rank also enter heat for its halo planes. That heat is a duplicate and partly wrong, so these sums are left out.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import FACES
from heatsim.kernels.reductions.fused import WHOLE, Labelling, PlaneWeights, Sections
from heatsim.kernels.reductions.statistics import MAGNITUDE, NUMBERS, TOTAL, Partials, exact_sums
from heatsim.parallel.slab import Share
from heatsim.parallel.team import Team
from heatsim.physics.conditions.mixed_cells import TOWARDS_VOID
from heatsim.physics.geometry.cell_faces import distinct
from heatsim.physics.operator.boundary_faces import boundary_faces
from heatsim.physics.operator.heat_sums import SumLayout
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.contact_balances import contact_balances
from heatsim.solver.ledger.heats import HeatRows

Indices = NDArray[np.int64]
# A function that reads entries of an array of the whole grid. Arguments: name of the array, first entry, end.
Read = Callable[[str, int, int], NDArray[Any]]
# TOTAL and MAGNITUDE of the sections of each part, one after the other: shape (sections of all parts, 2).
OwnSums = NDArray[np.float64]

# The names of the sums in checkpoints.
SURFACES, BEAMS, CELLS = "ledger_surfaces", "ledger_beams", "ledger_cells"

_FIRST_PATCH = len(FACES)  # the first owner behind the faces
_TYPES = 256  # a cell type is below it


def layout_of(problem: HeatProblem) -> SumLayout:
    """Where the sums of a problem's ledger lie."""
    grid, nothing = problem.grid, (0, 0)
    return SumLayout(
        face_shapes=tuple(
            grid.face_shape(face) if is_open else nothing for face, is_open in enumerate(problem.open_faces)
        ),
        parts=len(problem.boundary.mixed.numbers),
        beside_void=problem.materials.exposed_cells,
        has_beams=bool(problem.whole.sources.beam_faces()),  # all ranks store sums of the same names
        heated=len(problem.materials.heated),
    )


class _Stretch(NamedTuple):
    """Sums that lie one behind the other, of cells in ascending planes.

    Attributes:
        name: that of checkpoints.
        face: of the box; TOWARDS_VOID for void; −1 for heated cells.
        first: the place of the first one in the array.
        planes: of the cells, in the problem's arrays.
    """

    name: str
    face: int
    first: int
    planes: NDArray[np.int32]

    @property
    def place(self) -> slice:
        """Where the sums lie."""
        return slice(self.first, self.first + len(self.planes))


class SumTable:
    """The sums of a rank's ledger by planes: which of them are the rank's own.

    Attributes:
        problem: with several ranks, that of this rank's slab.
        layout: where the sums lie.
    """

    def __init__(self, problem: HeatProblem, layout: SumLayout, team: Team) -> None:
        self.problem, self.layout, self._team = problem, layout, team

    @cached_property
    def runs(self) -> Sequence[_Stretch]:
        """All sums."""
        if not self.layout.size:
            return []
        layout, materials, mixed = self.layout, self.problem.materials, self.problem.boundary.mixed
        nx, ny, _ = self.problem.grid.cells
        found = []
        for face, (place, (rows, columns)) in enumerate(zip(layout.faces, layout.face_shapes, strict=True)):
            found.append(_Stretch(SURFACES, face, place.start, self._planes_of(face, np.arange(rows * columns))))
        for face in range(TOWARDS_VOID + 6):
            parts, cells = mixed.on_face(face)
            first = layout.listed.start + parts.start
            found.append(_Stretch(SURFACES, min(face, TOWARDS_VOID), first, self._planes_of(face, cells)))
        beside_void = materials.weighted_surfaces.cells if layout.beside_void else np.zeros(0, np.int64)
        planes = self._planes_of(TOWARDS_VOID, beside_void)
        found.append(_Stretch(SURFACES, TOWARDS_VOID, layout.first_towards_void, planes))
        if layout.has_beams:
            found += [run._replace(name=BEAMS, first=run.first + layout.to_beams) for run in found]
        found.append(_Stretch(CELLS, -1, layout.cells.start, (materials.heated.cells // (nx * ny)).astype(np.int32)))
        return [run for run in found if len(run.planes)]

    def _planes_of(self, face: int, cells: Indices) -> NDArray[np.int32]:
        """The planes of cells of a face, or, for a side towards void, of the grid."""
        nx, ny, nz = self.problem.grid.cells
        if face in (4, 5):
            return np.full(len(cells), (nz - 1) * (face - 4), dtype=np.int32)
        return (cells // (nx * ny if face >= TOWARDS_VOID else ny if face < 2 else nx)).astype(np.int32)

    def shares(self, device: Device, values: Any) -> dict[str, Share]:
        """The rank's share of the sums of the whole grid, by name; ``values``: the array on its device. Collective.

        The sums of the whole grid are in the order of planes, and within a plane in that of :class:`SumLayout`.
        """
        found = {}
        for name, places in self._own.items():
            first, end = self._stretch(name)
            found[name] = Share((end,), first, device.to_host(values[device.xp.asarray(places)]))
        return found

    def put(self, xp: Any, values: Any, read: Read) -> None:
        """Copy this rank's part of the sums of the whole grid into its array on the device. Collective."""
        for name, places in self._own.items():
            first, _ = self._stretch(name)
            values[xp.asarray(places)] = xp.asarray(read(name, first, first + len(places)))

    def _stretch(self, name: str) -> tuple[int, int]:
        """The place of the rank's own sums among those of the whole grid, and the number of all of them."""
        counts = self._counts[name]
        return sum(counts[: self._team.rank]), sum(counts)

    @cached_property
    def _own(self) -> dict[str, Indices]:
        """The places of the rank's own sums by name; names that no rank has are left out. Collective."""
        own = self.problem.slab.own
        places: dict[str, list[Indices]] = {SURFACES: [], BEAMS: [], CELLS: []}
        planes: dict[str, list[NDArray[np.int32]]] = {name: [] for name in places}
        for run in self.runs:
            first, end = np.searchsorted(run.planes, (own.start, own.stop))
            places[run.name].append(np.arange(run.first + first, run.first + end))
            planes[run.name].append(run.planes[first:end])
        nothing = np.zeros(0, np.int64)
        found = {}
        for name, some in places.items():
            order = np.argsort(np.concatenate((nothing, *planes[name])), kind="stable")
            found[name] = np.concatenate((nothing, *some))[order]
        of_ranks = self._team.gathered({name: len(some) for name, some in found.items()})
        self._counts = {name: [of_rank[name] for of_rank in of_ranks] for name in found}
        return {name: some for name, some in found.items() if any(self._counts[name])}

    @cached_property
    def volumes(self) -> NDArray[np.float64]:
        """For each sum the volume of its cell in mean volumes of a cell; 1 where no sum lies."""
        problem, layout = self.problem, self.layout
        found = np.ones(layout.size)
        for faces in boundary_faces(problem.boundary, problem.materials, problem.open_faces):
            found[layout.places_of(faces)] = problem.grid.volume_factors(faces.cells)
        if layout.has_beams:
            found[layout.to_beams :][: layout.boundary_faces] = found[: layout.boundary_faces]
        found[layout.cells] = problem.grid.volume_factors(problem.materials.heated.cells)
        return found

    @cached_property
    def keys(self) -> Sequence[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """For each run the key of each sum (see :func:`_key`), and whether it belongs to a boundary face or a cell."""
        problem, layout = self.problem, self.layout
        size = layout.boundary_faces
        keys, used, lit = np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        owners, with_beams = np.asarray(problem.boundary.accounts, dtype=np.int64), problem.sources.beam_faces()
        for faces in boundary_faces(problem.boundary, problem.materials, problem.open_faces):
            places = layout.places_of(faces)
            keys[places] = _key(faces.types(problem.materials), owners[faces.conditions])
            used[places] = True
            if faces.side in with_beams and (reached := faces.lit(problem.materials)) is not None:
                lit[places] = reached >= 0
        found = []
        for run in self.runs:
            place = slice(run.first - layout.to_beams * (run.name == BEAMS), None)
            place = slice(place.start, place.start + len(run.planes))
            if run.name == CELLS:
                types = problem.materials.types_of(np.unravel_index(problem.materials.heated.cells, problem.grid.shape))
                found.append((_key(types, np.int64(0)), np.ones(len(types), np.bool_)))
            else:
                found.append((keys[place], (used if run.name == SURFACES else lit)[place]))
        return found


def _key(cell_type: Any, owner: Any) -> Any:
    """A number for a cell type and the condition to which the heat is booked, of ``Boundary.accounts``."""
    return owner * _TYPES + cell_type


class _Part(NamedTuple):
    """The sums of the runs of a face that have one cell type and one owner."""

    name: str
    face: int
    owner: int
    cell_type: int


class SumSections:
    """Divides a rank's own sums into sections and parts, and calculates the heat from them.

    Sections lie between the same planes as those of a field (:class:`heatsim.grid.PlaneGroups`). Each run is divided
    into parts by cell type and owner. On graded grids each sum counts with the volume of its cell.

    Args:
        table: the sums.
        xp: NumPy or CuPy, the library of the sums.
        team: the ranks. The constructor is collective.
    """

    def __init__(self, table: SumTable, xp: Any, team: Team) -> None:
        problem = table.problem
        self._patches, self._named = len(problem.scenario.patches), [*problem.boundary.named.values()]
        self._capacities = problem.materials.cell_heat_capacity
        self._levels = list(contact_balances(problem.whole).values())
        own = problem.slab.own
        planes = own.start + problem.whole.grid.groups.starts(own.stop - own.start)
        runs = [(run, *own) for run, own in zip(table.runs, table.keys, strict=True) if own[1].any()]
        found = [(run.name, run.face, len(planes) - 1, distinct(keys[used]).tolist()) for run, keys, used in runs]
        parts = self._agree(team.gathered(found))
        # All ranks must agree on this, because sums with labels are formed in another order than sums without.
        most = max(map(len, parts.values()), default=1)
        entries, bounds, labels = (
            [np.zeros(0, np.int64)],
            [np.zeros(1, np.int64)],
            np.zeros(table.layout.size, np.uint16),
        )
        for run, keys, _ in runs:
            own_parts = parts[run.name, run.face]
            labels[run.place] = np.minimum(np.searchsorted(own_parts, keys), len(own_parts) - 1)
            # A gap between two runs (halo planes, or zeros) counts as a section too.
            first = sum(map(len, bounds))
            bounds.append(run.first + np.searchsorted(run.planes, planes))
            sections = np.arange(first, first + len(planes) - 1)
            entries += [sections * most + number for number in range(len(own_parts))]
        self._bounds, self._entries = np.concatenate(bounds), np.concatenate(entries)
        self.division = WHOLE if most == 1 else Labelling(most)
        self._labels = None if most == 1 else xp.asarray(labels.astype(np.uint8 if most <= 256 else np.uint16))
        graded = not problem.grid.uniform
        self._weights = PlaneWeights(xp.asarray(table.volumes), xp.ones(1)) if graded else None

    def _agree(self, of_ranks: Sequence[Sequence[tuple[str, int, int, list[int]]]]) -> dict[tuple[str, int], list[int]]:
        """The keys of the sums of each face that at least one rank has; notes where all ranks have their sums.

        Args:
            of_ranks: of each rank, for each run its name and face, the number of its sections, and its keys.
        """
        found: dict[tuple[str, int], set[int]] = {}
        for name, face, _, keys in (run for runs in of_ranks for run in runs):
            found.setdefault((name, face), set()).update(keys)
        agreed = {face: sorted(keys) for face, keys in found.items()}
        places: dict[_Part, list[int]] = {}
        self._count = 0
        for name, face, sections, _ in (run for runs in of_ranks for run in runs):
            for key in agreed[name, face]:
                part = _Part(name, face, *divmod(key, _TYPES))
                places.setdefault(part, []).extend(range(self._count, self._count + sections))
                self._count += sections
        self._of_parts = _padded(list(places.values()), self._count)
        self._part_capacities = self._capacities[[part.cell_type for part in places]]
        self._of_heats = _padded(self._terms(list(places)), 2 * len(places))
        return agreed

    def _terms(self, parts: Sequence[_Part]) -> list[list[int]]:
        """The terms of each number of :class:`HeatRows`: twice the number of a part; 1 more for a magnitude."""
        faces: list[list[int]] = [[] for _ in FACES]
        patches: list[list[int]] = [[] for _ in range(self._patches)]
        named: list[list[int]] = [[] for _ in self._named]
        void, beams, cells = list[int](), list[int](), list[int]()
        contacts: list[list[int]] = [[] for _ in self._levels]
        for number, (name, face, owner, cell_type) in enumerate(parts):
            heat = 2 * number
            for behind, levels in zip(contacts, self._levels, strict=True):
                behind += [heat] * int(levels[cell_type])
            if name == SURFACES:
                (void if face == TOWARDS_VOID else faces[face]).append(heat)
                if _FIRST_PATCH <= owner < _FIRST_PATCH + self._patches:
                    patches[owner - _FIRST_PATCH].append(heat)
                for of_surface, numbers in zip(named, self._named, strict=True):
                    of_surface += [heat] * (owner in numbers)
            else:
                (cells if name == CELLS else beams).append(heat)
        heats = [*faces, *patches, void, *named, *contacts, beams, cells]
        return [*heats, *([heat + 1 for heat in of_one] for of_one in heats)]

    def sections(self, values: Any) -> Sections:
        """The sections of all sums; ``values``: the array of the layout."""
        return Sections(values, self._bounds, self._labels, weights=self._weights)

    def heats(self, rows: Sequence[OwnSums]) -> HeatRows:
        """The heats in J at some times.

        Args:
            rows: for each time the results of :meth:`of_rank` on all ranks, joined.
        """
        sums = np.zeros((len(rows), self._count + 1, 2))  # the last one stays 0
        for own, of_row in zip(sums, rows, strict=True):
            own[:-1] = of_row
        of_parts = sums[:, self._of_parts].transpose(0, 1, 3, 2)
        terms = np.zeros((len(rows), 2 * len(self._of_parts) + 1))
        found = exact_sums(of_parts) * self._part_capacities[:, np.newaxis]
        terms[:, :-1] = found.reshape(len(rows), -1)
        numbers = exact_sums(terms[:, self._of_heats]).reshape(len(rows), 2, -1)
        return HeatRows(numbers, self._patches, len(self._named), len(self._levels))

    def of_rank(self, found: Partials) -> OwnSums:
        """The sums and the sums of magnitudes of this rank's sections, part by part.

        Args:
            found: STATISTICS of the sections of the sums, shape (…, sections, parts).

        Returns:
            Shape (…, sections of all parts, 2).
        """
        values = np.ascontiguousarray(found).view(np.float64)
        *several, sections, numbers = values.shape
        columns = values.reshape(*several, sections * numbers // NUMBERS, NUMBERS)
        return np.asarray(columns[..., self._entries, TOTAL : MAGNITUDE + 1])

    def lies_like(self, other: "SumSections") -> bool:
        """Whether other sums lie at the same places."""
        same = np.array_equal(self._bounds, other._bounds) and np.array_equal(self._entries, other._entries)
        return same and self.division == other.division


def _padded(places: Sequence[Sequence[int]], nothing: int) -> Indices:
    """Lists of places as the rows of an array; shorter ones end with the place of a number that is 0, ``nothing``."""
    found = np.full((len(places), max(map(len, places), default=0)), nothing)
    for row, own in zip(found, places, strict=True):
        row[: len(own)] = own
    return found
