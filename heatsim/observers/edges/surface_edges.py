"""The temperatures at edges and corners of a surface, where planes of boxes meet, to second order in the cells.

They are corners of cells. Each conducting cell at such a corner gives an estimate: its temperature, to which the
balance of each of its surfaces at the corner is applied, one after the other. The temperature at the corner is their
mean:

    T_e = Σ k·T' / Σ k      T' = T + Σ (T_s − T)      k: conductivity of the cell at the reference temperature

Along each axis two cells face each other across the corner. If both conduct, the errors of first order cancel, because
heat flows from one to the other: k·∂T/∂x is equal. (If cells have different widths, the weight is k over the widths of
the cell: its deviation grows with them.) If one conducts, its surface lies at the corner. So any edge or
corner, convex or concave, is exact for fields that are linear in each cell, and for a product of linear fields beside
films. Behind a concave edge across x and y, the term of x·y is removed: rise_x(T) − rise_x(T + rise_y(T)) is added,
where rise(T) = T_s − T with the surfaces that meet there; at a corner of three planes also that of x·y·z. Beside
edges and corners temperatures are no polynomials: :mod:`heatsim.observers.edges.edge_weights` corrects that.

- A corner of a cell counts where the surface bends: surfaces across two or three axes meet there. If only the surface
  of a region is wanted, corners at its border to other regions count too.
- All regions around it, except the one painted first, are boxes. The staircases of spheres, cylinders, STL files and
  label images have no edges.
- The cells around it touch each other with faces. No contact and no layer lies between them.
- Beside a held surface the edge has its temperature, that at the middles of the faces there. Where surfaces that are
  held at different temperatures meet, the temperature jumps: there only the surfaces themselves count.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.edges.edge_blocks import LocalProblems, patterns_around
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.geometry.regions import region_number
from heatsim.physics.operator.balance_surfaces import beam_fluxes
from heatsim.physics.operator.boundary_faces import BoundaryFaces, boundary_faces
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.surface_cells import SurfaceCells, conducting_of, not_cut, rises_of
from heatsim.physics.readings.surface_temperature import acting_at
from heatsim.scenario import Temperature

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

_AT_ONCE = 2**18  # corners
_OFFSETS = np.array(list(product((-1, 0), repeat=3)))  # of the eight cells around a corner, along x, y, z
_BITS = (4, 2, 1)  # the cell on the other side along an axis differs in this bit of its place
_PAIRS = ((0, 1), (0, 2), (1, 2))  # of axes
_CORNER = (0, 1, 2)
_NUMBERS = 9  # of an entry, see `of`
_FREE, _SEVERAL = -1, -2  # instead of the owner of the condition that holds a cell at a corner


class _Around(NamedTuple):
    """The eight cells around each of n corners, shape (n, 8); along x, y, z shape (3, n, 8).

    Attributes:
        places: indices in the whole grid; any where the cell lies outside.
        cells: in the flattened grid of this rank.
        types: of the cells.
        conducts: whether they lie inside and conduct.
        beside: whether the cell on the other side of the corner along each axis conducts, shape (3, n, 8).
        wanted: whether they conduct and belong to the region, if one is named.
    """

    places: Indices
    cells: Indices
    types: NDArray[np.intp]
    conducts: Mask
    beside: Mask
    wanted: Mask


# Boundary faces on one side, and for each of them the entry whose corner it touches.
_Touching = tuple[BoundaryFaces, NDArray[np.intp]]


class SurfaceEdges:
    """The edges and corners of a surface, and their temperatures. Several ranks create it together.

    Args:
        problem: the problem of the planes that this rank steps.
        surface: the cells of the surface.
        region: the region whose cells belong to it; None for all.
        team: the ranks.

    Attributes:
        count: the number of entries on all ranks: pairs of a corner and a cell at it.
        order: the places of this rank's numbers among those of all ranks, shape (own,): those of its entries, then a
            temperature for each other cell around edges.
        shape: (numbers,) of all ranks.
        own_places: the indices x, y, z in the whole grid of this rank's cells: of its entries, then of the other cells.
        points: the corners in m, shape (corners, 3).
        cells: a cell (x, y, z) of the surface at each corner, shape (corners, 3).
    """

    def __init__(
        self, problem: HeatProblem, surface: SurfaceCells, region: str | None = None, team: Team = ALONE
    ) -> None:
        self._problem, self._region = problem, region
        x, y, z = problem.whole.grid.cells
        self._cells, self._nodes = (x, y, z), (z + 1, y + 1, x + 1)
        around, corners = self._of(np.unique(np.concatenate(team.gathered(self._corners(surface)))))
        own = around.conducts & problem.slab.holds(around.places[2])
        touches = own & around.wanted & ~around.beside.all(axis=0)
        number = np.ravel_multi_index(tuple(around.places[::-1]), (z, y, x))
        corner, which = np.nonzero(own)
        keys = np.stack([corners[corner], ~touches[own], number[own], which], axis=1)
        sorting = np.lexsort(keys.T[::-1])
        corner, which = corner[sorting], which[sorting]
        own_places = around.places[:, corner, which]
        self._types = around.types[corner, which]
        faces = list(boundary_faces(problem.boundary, problem.materials, not_cut(problem)))
        ends = ~around.beside[:, corner, which]
        self._touching, held = self._held_last(_touched(faces, around.cells[corner, which], ends, which))
        cells = [around.cells[corner, which ^ number] for number in range(8)]
        self._across = list[tuple[tuple[int, ...], Mask, Mask, list[list[_Touching]]]]()
        for axes in (*_PAIRS, _CORNER):
            concave, convex = (kind(around.conducts, corner, which, axes) for kind in (_concave, _convex))
            others = [sum(_BITS[other] for other in axes if other != axis) for axis in axes]
            across = [
                _touched(faces, np.where(convex, cells[0], cells[other]), _only(axis, concave | convex), which)
                for axis, other in zip(axes, others, strict=True)
            ]
            self._across.append((axes, concave, concave | convex, across))
        of_ranks = team.gathered(np.column_stack((keys[sorting], held)))
        before = sum(len(of_rank) for of_rank in of_ranks[: team.rank])
        everything = np.concatenate(of_ranks)
        self.count = len(everything)
        sorting = np.lexsort(everything.T[3::-1])
        order = np.argsort(sorting)[before : before + len(keys)]
        own_weights = 1.0 / problem.materials.half[:, self._types].sum(axis=0) / self._sizes(which, own_places)
        weights = np.concatenate(team.gathered(own_weights))
        self._arrange(everything[sorting], weights[sorting])
        self._bent, blocks = self._bent_of(everything[sorting], team)
        self._numbers = _NUMBERS if self._bent else 1
        numbers = (order[:, None] * self._numbers + np.arange(self._numbers)).reshape(-1)
        self.shape = (self.count * self._numbers + len(blocks),)
        at = np.stack(np.unravel_index(blocks, (z, y, x))[::-1])
        held = np.flatnonzero(problem.slab.holds(at[2]))
        self.own_places = tuple(np.concatenate((own_places, at[:, held]), axis=1))
        self.order: NDArray[np.intp] = np.concatenate((numbers, self.count * self._numbers + held))

    def of(self, temperatures: Array, step: int) -> Array:
        """What this rank's cells know after ``step`` steps, for :meth:`mean`; not finite where a condition is not.

        Args:
            temperatures: of the cells of `own_places` in K.
            step: the number of steps done, for conditions that vary in time.

        Returns:
            Shape (own,). For each entry the estimate in K; if there are local problems also the temperature, T_s − T on
            the surfaces across x, y and z behind which the cell lies, the parts of T − T∞ that these rises are, and the
            part of T − T∞ that its own surfaces leave. Then the temperatures of the other cells.
        """
        problem, others = self._problem, temperatures[len(self._types) :]
        temperatures = temperatures[: len(self._types)]
        found, acting = temperatures.copy(), acting_at(problem, step)
        fluxes = beam_fluxes(acting.beams, problem.grid)
        conducting = conducting_of(problem, self._types, temperatures)

        def rise(some: Sequence[_Touching], kelvins: Array) -> Array:
            total = np.zeros(len(kelvins))
            for faces, at in some:
                rises = rises_of(problem, faces, self._types[at], conducting[at], kelvins[at], acting, fluxes)
                total += np.bincount(at, faces.fractions * rises, len(total))
            return total

        for touching in self._touching:
            found += rise([touching], found)
        own = found - temperatures
        behind = np.zeros((_NUMBERS - 2, len(found)))
        behind[-1] = _ratio(rise(self._touching, found), own) if self._bent else 0.0
        for axes, concave, some, across in self._across:
            if axes != _CORNER:
                one, other = across
                found += np.where(concave, rise(one, found) - rise(one, found + rise(other, found)), 0.0)
            for axis, faces in zip(axes, across, strict=True) if self._bent else ():
                first = rise(faces, temperatures)
                behind[axis, some] = first[some]
                behind[3 + axis, some] = 1.0 - _ratio(rise(faces, temperatures + first), first)[some]
        numbers = np.concatenate([found[:, None], temperatures[:, None], behind.T], axis=1)[:, : self._numbers]
        return np.concatenate((numbers.reshape(-1), others))

    def mean(self, numbers: Array) -> Array:
        """The temperatures of the corners in K, from the results of :meth:`of` of all ranks, in their order."""
        estimates = numbers[: self.count * self._numbers].reshape(self.count, self._numbers)
        others = numbers[self.count * self._numbers :]
        found, more = estimates[:, 0].copy(), np.zeros(len(self._first))
        for group in self._bent:
            group.correct(estimates, others, found, more)
        first = found[self._first]
        # Differences from the first estimate, so that the mean of equal estimates is equal to them.
        excess = np.add.reduceat(self._shares * (found - first[self._corner]), self._first)
        return np.asarray(first + excess + more)[self._even]

    def _bent_of(self, entries: Indices, team: Team) -> tuple[list["LocalProblems"], Indices]:
        """The edges and corners with a local problem, from the sorted entries of all ranks. Collective.

        Returns:
            They, and the cells of their blocks by their index in the whole grid, each once.
        """
        which, slot = entries[:, 3], np.full((len(self._first), 8), -1)
        slot[self._corner, which] = np.arange(len(which))
        conducts = slot >= 0
        free = (slot < 0) | (entries[slot, 4] == _FREE)
        corner, place = np.nonzero(conducts & free.all(axis=1)[:, None])
        count = conducts.sum(axis=1)[corner]
        bends = np.sum([_concave(conducts, corner, place, pair) for pair in _PAIRS], axis=0)
        found = list[LocalProblems]()
        for axes in (*_PAIRS, _CORNER):
            concave, convex = (kind(conducts, corner, place, axes) for kind in (_concave, _convex))
            concave &= (axes == _CORNER) | ((bends == 1) & (count != 7))
            some = np.flatnonzero(concave | (convex & (count <= 2)))
            flips = [
                sum(_BITS[axis] for axis, flip in zip(axes, flips, strict=True) if flip)
                for flips in product((0, 1), repeat=len(axes))
            ]
            if not len(some):
                continue
            around = slot[corner[some, None], place[some, None] ^ np.array(flips)]
            parts = np.where(around < 0, 0.0, self._shares[around]).sum(axis=1)
            for pattern, of_pattern, cells in patterns_around(
                self._problem, axes, entries[around[:, 0], 2], 1 + 2 * _OFFSETS[place[some]], team
            ):
                behind, at = around[of_pattern, 0], some[of_pattern]
                found.append(LocalProblems(axes, corner[at], behind, concave[at], parts[of_pattern], pattern, cells))
        blocks, places = np.unique(
            np.concatenate([np.zeros(0, np.int64), *(bent.cells.reshape(-1) for bent in found)]), return_inverse=True
        )
        ends = np.cumsum([bent.cells.size for bent in found], dtype=np.intp)
        for bent, own in zip(found, np.split(places, ends)[:-1], strict=True):
            bent.cells = own.reshape(bent.cells.shape)
        return found, blocks

    def _sizes(self, which: NDArray[np.intp], own_places: Indices) -> Array:
        """The volumes of this rank's entries' cells on their side of the corner, over those of cells of mean widths."""
        found = np.ones(len(which))
        for number, (axis, places) in enumerate(zip(self._problem.whole.grid.axes, own_places, strict=True)):
            found *= axis.half_factors[places, (_OFFSETS[which, number] < 0).astype(np.intp)]
        return found

    def _arrange(self, entries: Indices, weights: Array) -> None:
        """Group the sorted entries by their corners; find what surfaces with a held temperature change."""
        corners, self._first, self._corner = np.unique(entries[:, 0], return_index=True, return_inverse=True)
        by = entries[:, 4]
        holds = by > _FREE
        low, high = np.full(len(corners), np.iinfo(np.int64).max), np.full(len(corners), _FREE)
        np.minimum.at(low, self._corner[holds], by[holds])
        np.maximum.at(high, self._corner[holds], by[holds])
        several = np.zeros(len(corners), bool)
        several[self._corner[by == _SEVERAL]] = True
        held = high > _FREE
        self._even = np.flatnonzero(~several & (~held | (low == high)))
        weights = np.where((by == _FREE) & held[self._corner], 0.0, weights)
        self._shares = weights / np.bincount(self._corner, weights)[self._corner]
        grid, at = self._problem.whole.grid, np.unravel_index(corners[self._even], self._nodes)[::-1]
        number = entries[self._first[self._even], 2]
        self.points = np.stack([axis.coordinates(along) for axis, along in zip(grid.axes, at, strict=True)], axis=1)
        self.cells = np.stack(np.unravel_index(number, self._cells[::-1])[::-1], axis=1)

    def _corners(self, surface: SurfaceCells) -> Indices:
        """The corners of this rank's cells where the surface bends, by their index among all corners of cells."""
        problem, found = self._problem, [np.zeros(0, np.int64)]
        for faces in surface.faces:
            z, y, x = np.unravel_index(np.unique(faces.cells), problem.grid.shape)
            at, one, other = [x, y, problem.slab.place[z]], *(axis for axis in range(3) if axis != faces.axis)
            at[faces.axis] = at[faces.axis] + faces.side % 2
            nodes = list[Indices]()
            for steps in product((0, 1), repeat=2):
                node = list(at)
                node[one], node[other] = at[one] + steps[0], at[other] + steps[1]
                for axis, n in enumerate(self._cells):
                    node[axis] = node[axis] % n if problem.whole.periodic[axis] else node[axis]
                nodes.append(np.ravel_multi_index(tuple(node[::-1]), self._nodes))
            distinct, counts = np.unique(np.concatenate(nodes), return_counts=True)
            found.append(distinct[counts < 4])  # between four faces in a plane the surface is even
        every = np.unique(np.concatenate(found))
        parts = np.array_split(every, max(1, -(-len(every) // _AT_ONCE)))
        return np.concatenate([part[self._bends(self._around(part))] for part in parts])

    def _of(self, corners: Indices) -> tuple[_Around, Indices]:
        """The cells around those corners that touch own cells, and these corners."""
        z, ring = corners // (self._nodes[1] * self._nodes[2]), self._problem.whole.periodic[2]
        below = (z - 1) % self._cells[2] if ring else z - 1
        corners = corners[self._problem.slab.holds(z) | self._problem.slab.holds(below)]
        return self._around(corners), corners

    def _around(self, corners: Indices) -> _Around:
        problem, slab = self._problem, self._problem.slab
        inside, places = np.ones((len(corners), 8), bool), list[Indices]()
        for axis, at in enumerate(np.unravel_index(corners, self._nodes)[::-1]):
            place, n = at[:, None] + _OFFSETS[:, axis], self._cells[axis]
            if problem.whole.periodic[axis]:
                place = place % n
            inside &= (place >= 0) & (place < n)
            places.append(np.clip(place, 0, n - 1))
        x, y, z = places
        here = ((z - slab.start) % slab.planes, y, x)
        types = problem.materials.types_of(here)
        conducts = inside if problem.materials.void is None else inside & (types != problem.materials.void)
        wanted = conducts
        if self._region is not None:
            wanted = conducts & (self._owners(x, y, z) == region_number(self._region, problem.scenario))
        beside = np.stack([conducts[:, np.arange(8) ^ bit] for bit in _BITS])
        cells = np.ravel_multi_index(here, problem.grid.shape)
        return _Around(np.stack(places), cells, types, conducts, beside, wanted)

    def _owners(self, x: Indices, y: Indices, z: Indices) -> NDArray[np.uint8]:
        parts = self._problem.parts
        assert parts is not None, "a scenario with regions is painted"
        return np.asarray(parts.owner[parts.held.local(z), y, x])

    def _bends(self, around: _Around) -> Mask:
        """Which corners lie on an edge of the wanted surface whose temperature the cells around it give."""
        problem, materials = self._problem, self._problem.materials
        across = (around.conducts & ~around.beside).any(axis=2).sum(axis=0)
        found = (across >= 2) | (around.conducts & ~around.wanted).any(axis=1)
        found &= _joined()[around.conducts @ (1 << np.arange(8))]
        if problem.parts is not None:
            owners = self._owners(*around.places)
            boxes = np.array([True, *(region.box is not None for region in problem.scenario.regions)])
            found &= (boxes[owners] | (owners == owners.min(axis=1, keepdims=True))).all(axis=1)
        if materials.resistance.any():
            resists = materials.resistance > 0.0
            pairs = resists[around.types[:, :, None], around.types[:, None, :]]
            found &= ~(pairs & around.conducts[:, :, None] & around.conducts[:, None, :]).any(axis=(1, 2))
        if len(materials.layering.cells):
            x, y, z = around.places
            number = (z * self._cells[1] + y) * self._cells[0] + x
            found &= ~(np.isin(number, materials.layering.cells) & around.conducts).any(axis=1)
        return np.asarray(found)

    def _held_last(self, touching: Sequence[_Touching]) -> tuple[list[_Touching], Indices]:
        """Boundary faces, those with a held temperature last; and the owner of the condition that holds each entry."""
        problem, held = self._problem, np.full(len(self._types), _FREE)
        holds = np.array([isinstance(condition, Temperature) for condition in problem.boundary.conditions])
        parts = list[tuple[bool, BoundaryFaces, NDArray[np.intp]]]()
        for faces, entries in touching:
            free = np.bincount(entries, ~holds[faces.conditions], len(held)) > 0
            whole = ~free[entries]
            owners = np.array(problem.boundary.owners)[faces.conditions[whole]]
            for entry, number in zip(entries[whole].tolist(), owners.tolist(), strict=True):
                held[entry] = number if held[entry] in (_FREE, number) else _SEVERAL
            parts += [(last, faces.where(part), entries[part]) for last, part in ((False, ~whole), (True, whole))]
        return [part[1:] for part in sorted(parts, key=lambda part: part[0]) if len(part[2])], held


def _ratio(one: Array, other: Array) -> Array:
    """The ratio one / other between 0 and 1; 1 where the other is 0 or not finite."""
    sound = np.isfinite(other) & (other != 0.0)
    return np.where(sound, np.clip(one / np.where(sound, other, 1.0), 0.0, 1.0), 1.0)


def _concave(conducts: Mask, corner: NDArray[np.intp], which: NDArray[np.intp], axes: tuple[int, ...]) -> Mask:
    """Which entries lie behind a concave edge or corner: of the cells across these axes only the opposite is void."""
    beyond = sum(_BITS[axis] for axis in axes)
    near = [conducts[corner, which ^ bits] for bits in _within(axes) if bits != beyond]
    return np.asarray(np.all(near, axis=0) & ~conducts[corner, which ^ beyond])


def _convex(conducts: Mask, corner: NDArray[np.intp], which: NDArray[np.intp], axes: tuple[int, ...]) -> Mask:
    """Which entries lie behind a convex edge or corner: of the cells across these axes only they conduct."""
    return np.asarray(~np.any([conducts[corner, which ^ bits] for bits in _within(axes)], axis=0))


def _within(axes: tuple[int, ...]) -> list[int]:
    """The bits of the other cells around a corner that lie across some of these axes."""
    return [bits for bits in range(1, 8) if not bits & ~sum(_BITS[axis] for axis in axes)]


def _only(axis: int, entries: Mask) -> Mask:
    """Some entries along one axis, none along the others; shape (3, entries)."""
    return np.asarray((np.arange(3) == axis)[:, None] & entries)


def _touched(every: Sequence[BoundaryFaces], cells: Indices, ends: Mask, which: NDArray[np.intp]) -> list[_Touching]:
    """The boundary faces of cells that touch corners.

    Args:
        every: all boundary faces.
        cells: for each entry a cell, in the flattened grid of this rank.
        ends: whether the faces across each axis are wanted, shape (3, entries).
        which: the place of the cell among the eight around its corner, along these axes.
    """
    found = []
    for faces in every:
        beyond = _OFFSETS[which, faces.axis] + 1 != faces.side % 2  # the surface lies on the side of the corner
        some = np.flatnonzero(ends[faces.axis] & beyond)
        distinct, inverse = np.unique(cells[some], return_inverse=True)
        place, of_cells = faces.of(distinct)
        by_cell = np.argsort(inverse, kind="stable")
        first, last = (np.searchsorted(inverse[by_cell], place, side) for side in ("left", "right"))
        counts = last - first
        rows = np.repeat(np.arange(len(place)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        if len(rows):
            found.append((of_cells.where(rows), some[by_cell[first[rows] + within]]))
    return found


def _joined() -> Mask:
    """For each set of the eight cells around a corner, as bits, whether they touch each other with faces."""
    found = np.zeros(256, bool)
    for cells in range(1, 256):
        reached, before = cells & -cells, 0
        while reached != before:
            before = reached
            for cell, bit in product(range(8), (1, 2, 4)):
                reached |= (reached >> cell & 1) << (cell ^ bit) & cells
        found[cells] = reached == cells
    return found
