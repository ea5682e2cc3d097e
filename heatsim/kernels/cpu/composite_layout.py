"""The cells of a composite body in the order in which the compiled CPU kernel steps them.

Every cell has a stencil: its own type, the types of its neighbours, and the weights of its links. A row along x is
divided into runs, whose cells are all stepped with one stencil, as vectors:

    cells      a a a a a a a a a b b b b b b b
    stencils   1 1 1 1 1 1 1 1 2 3 4 4 4 4 4 4      2 and 3 have neighbours of two types
    runs       1 1 1 1 1 1 1 1 1 4 4 4 4 4 4 4      and then the odd cells, 2 and 3, each with its own

So an interface across y or z is a run too. A separate list holds the surfaces towards void.

Rows with odd cells are often alike, as in layers. If there are few different ones, they are dense rows: the
coefficients of all their cells are stored one after the other, and no cell is odd.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import HostBody
from heatsim.kernels.cpu.oracle import FACE_SLICES
from heatsim.kernels.cpu.planes import graded
from heatsim.kernels.cpu.ring_axes import RingAxes, Shape, Wraps
from heatsim.physics.cells.cell_types import CELL_TYPE, INTERIOR, planes_at_once

Numbers = NDArray[np.int32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class VoidSurfaces:
    """The surfaces towards void, those of a cell one after the other.

    Attributes:
        first: as in :class:`Runs`.
        row: number of the row of the cell behind each surface.
        x: place of this cell along x.
        axis: direction of the surface.
        type: the type of the cell.
        condition: the number of the condition. A surface that several conditions share stands here once for each.
        fraction: the part of the surface that has it.
        weight: area of the voxel surface / area of the smooth surface.
        sum: the place of its sum among those of the parts of mixed cells and, behind them, of the cells beside void.
        last: 1 for the last surface of a cell, else 0.
        side: direction of the surface from the cell, 0 for x−, …, 5 for z+.
        lit: 1 if beams through the face of the box on this side fall on it, else 0.
        u, v: place of the cell along the axes of this face.
    """

    first: Numbers
    row: Numbers
    x: Numbers
    axis: Bytes
    type: Bytes
    condition: Numbers
    fraction: NDArray[np.floating]
    weight: NDArray[np.floating]
    sum: Numbers
    last: Bytes
    side: Numbers
    lit: Bytes
    u: Numbers
    v: Numbers


def void_surfaces(body: HostBody, periodic: Wraps, ring: Shape) -> VoidSurfaces:
    """The surfaces of a body towards void; ``ring``: the cells along the axes of the ring, along whose x rows lie."""
    nz, ny, nx = ring
    each = list(body.surfaces_towards_void(periodic))
    lit = [places if (places := of.lit(body.materials)) is not None else np.full(len(of), -1) for of in each]
    sides = [np.full(len(of), of.side) for of in each]
    types = [of.types(body.materials) for of in each]
    columns = [(of.places, of.cells, of.parts, of.conditions, of.fractions) for of in each]
    nothing = [np.zeros(0, np.int64)]
    rank, cells, part, condition, fraction = (
        np.concatenate(column) for column in zip((*nothing * 5,), *columns, strict=True)
    )
    side, cell_type, place = (np.concatenate((*nothing, *column)) for column in (sides, types, lit))
    order = np.argsort(rank, kind="stable")  # by cells; those of a cell by sides and conditions
    rank, cells, part, condition, side, place = (of[order] for of in (rank, cells, part, condition, side, place))
    shapes = np.array([body.materials.grid.face_shape(face)[1] for face in range(6)])
    row = cells // nx
    return VoidSurfaces(
        first=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=nz * ny)))).astype(np.int32),
        row=row.astype(np.int32),
        x=(cells % nx).astype(np.int32),
        axis=(side // 2).astype(np.uint8),
        type=cell_type[order].astype(np.uint8),
        condition=condition.astype(np.int32),
        fraction=fraction[order].astype(body.weights.dtype),
        weight=body.weights[rank, side],
        sum=np.where(part < 0, len(body.mixed.numbers) + rank, part).astype(np.int32),
        last=np.append(rank[1:] != rank[:-1], True)[: len(rank)].astype(np.uint8),
        side=side.astype(np.int32),
        lit=(place >= 0).astype(np.uint8),
        u=(place % shapes[side]).astype(np.int32),
        v=(place // shapes[side]).astype(np.int32),
    )


def weighted_cells(body: HostBody, count: int) -> NDArray[np.int64]:
    """The cells with weights, in the order of the weights."""
    return np.flatnonzero(np.unpackbits(body.bits.view(np.uint8), bitorder="little")[:count])


def types_around(
    cells: NDArray[np.uint8], shape: Shape, periodic: Wraps, places: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The types of the neighbours of some cells towards x−, x+, …, z+, shape (n, 6); at an end the cell's own."""
    around, stride = np.empty((len(places), 6), dtype=np.uint8), 1
    for axis, n in enumerate(reversed(shape)):
        place = places // stride % n
        for side in (-1, 1):
            other = (place + side) % n if periodic[axis] else np.clip(place + side, 0, n - 1)
            around[:, 2 * axis + (side > 0)] = cells[places + (other - place) * stride] & CELL_TYPE
        stride *= n
    return around


@dataclass(frozen=True, eq=False)
class Stencils:
    """All stencils of a body.

    Attributes:
        own: the type of the cell, shape (stencils,).
        around: the types of its neighbours towards x−, x+, …, z+, shape (stencils, 6).
        weights: the weights of the links to them, shape (stencils, 6).
        between: a bit for each neighbour of another material, if materials vary with temperature; shape (stencils,).
    """

    own: Bytes
    around: Bytes
    weights: NDArray[np.floating]
    between: Bytes

    def plain(self, axis: int) -> NDArray[np.bool_]:
        """Which cells have neighbours of the same type on both sides along an axis, and no weights there."""
        sides = slice(2 * axis, 2 * axis + 2)
        alike = (self.around[:, sides] == self.own[:, None]) & (self.weights[:, sides] == 1.0)
        return np.asarray(alike.all(axis=1))

    def unweighted(self, axis: int) -> NDArray[np.bool_]:
        """Which cells have no weights on both sides along an axis."""
        return np.asarray((self.weights[:, 2 * axis : 2 * axis + 2] == 1.0).all(axis=1))


class StencilFinder:
    """Numbers the stencils of a body: first those of cells inside each type, then the others as they are found."""

    def __init__(self, body: HostBody, shape: Shape, periodic: Wraps) -> None:
        self._shape, self._periodic, self._body, self.bases = shape, periodic, body, body.enthalpies.bases
        self._cells = body.cells.reshape(-1)
        self._count = int((self._cells & CELL_TYPE).max()) + 1
        own = np.arange(self._count, dtype=np.uint8)
        self._own, self._around = [own], [np.repeat(own[:, None], 6, axis=1)]
        self._weights = [np.ones((self._count, 6), body.weights.dtype)]
        self._weighted = weighted_cells(body, self._cells.size) if body.contacts else np.zeros(0, np.int64)
        self._numbers: dict[bytes, int] = {}

    def stencils_of(self, first: int, end: int) -> Numbers:
        """The stencils of some cells, shape (end − first,)."""
        cells = self._cells[first:end]
        numbers = (cells & CELL_TYPE).astype(np.int32)
        others = np.flatnonzero((cells & INTERIOR) == 0)
        places = others + first
        types = np.column_stack(
            (numbers[others].astype(np.uint8), types_around(self._cells, self._shape, self._periodic, places))
        )
        weights = np.ones((len(others), 6), self._body.weights.dtype)
        if len(self._weighted):
            rank = np.minimum(np.searchsorted(self._weighted, places), len(self._weighted) - 1)
            has = self._weighted[rank] == places
            weights[has] = self._body.weights[rank[has]]
        if self._body.void >= 0:  # nothing reaches void, whatever is beside it
            is_void = types[:, 0] == self._body.void
            types[is_void], weights[is_void] = self._body.void, 1.0
        keys = np.column_stack((types, weights.view(np.uint8))) if len(self._weighted) else types
        keys = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").reshape(-1)
        found, at, inverse = np.unique(keys, return_index=True, return_inverse=True)
        if len(others):
            numbers[others] = self._numbers_of(found, types[at], weights[at])[inverse]
        return numbers

    def stencils(self) -> Stencils:
        """All stencils found so far."""
        own, around, bases = np.concatenate(self._own), np.concatenate(self._around), self._body.enthalpies.bases
        others = bases[around] != bases[own][:, None] if bases.size else np.zeros(around.shape, bool)
        between = np.packbits(others, axis=1, bitorder="little")[:, 0]
        return Stencils(own, around, np.concatenate(self._weights), between)

    def _numbers_of(self, keys: NDArray[Any], types: Bytes, weights: NDArray[np.floating]) -> Numbers:
        """The numbers of stencils with different keys: the types of cells and neighbours, and the weights of links."""
        numbers, known = types[:, 0].astype(np.int32), self._numbers
        first = self._count + len(known)
        inside = (types == types[:, :1]).all(axis=1) & (weights == 1.0).all(axis=1)
        others = np.flatnonzero(~inside)
        numbers[others] = [known.setdefault(keys[i].tobytes(), self._count + len(known)) for i in others]
        new = others[numbers[others] >= first]
        self._own.append(types[new, 0])
        self._around.append(types[new, 1:])
        self._weights.append(weights[new])
        return numbers


# A shorter run takes longer than its cells one by one.
_SHORTEST_RUN = 8
# How many stretches of odd cells a row has, and what part of it they are, if all its cells become odd.
_MANY_STRETCHES, _ODD_PART = 4, 16
# Of the coefficients of dense rows.
_DENSE_BYTES = 2**19
_layouts: WeakKeyDictionary[HostBody, dict[tuple[Shape, Wraps, RingAxes], "CompositeLayout"]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of all rows; those of row n = z·ny + y begin at first[n].

    Attributes:
        first: where those of each row begin, and their number; shape (rows + 1,).
        end: one after the last cell of each run, along x.
        stencil: that of each run.
    """

    first: Numbers
    end: Numbers
    stencil: Numbers


@dataclass(frozen=True, eq=False)
class OddCells:
    """The odd cells of all rows.

    Attributes:
        first: as in :class:`Runs`.
        x: place of each cell along x.
        stencil: that of each cell.
    """

    first: Numbers
    x: Numbers
    stencil: Numbers


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows whose cells have stored coefficients, and the heated cells of these rows.

    Attributes:
        of: for each row of the grid the number of the dense row that is like it, or −1; shape (rows,).
        stencils: those of the cells of each dense row, shape (dense rows, nx).
        first: where the heated stretches of each dense row begin, and their number; shape (dense rows + 1,).
        begin, end: the cells of each stretch.
        type: the type of these cells.
    """

    of: Numbers
    stencils: Numbers
    first: Numbers
    begin: Numbers
    end: Numbers
    type: Numbers


@dataclass(frozen=True, eq=False)
class CompositeLayout:
    """The cells of a body in the order in which they are stepped.

    Attributes:
        run, odd, dense, surface: runs, odd cells, dense rows, and surfaces towards void.
        stencils: the stencils.
        face_types: for each face the types of its cells, or an empty array if there is one type.
    """

    run: Runs
    odd: OddCells
    dense: DenseRows
    surface: VoidSurfaces
    stencils: Stencils
    face_types: tuple[Bytes, ...]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that the kernel reads, by their names in a plan."""
        parts = {"run_": self.run, "odd_": self.odd, "dense_": self.dense, "surface_": self.surface, "": self.stencils}
        named = {prefix + name: array for prefix, part in parts.items() for name, array in vars(part).items()}
        del named["surface_axis"], named["dense_stencils"]
        return named


def layout_of(body: HostBody, shape: Shape, periodic: Wraps, axes: RingAxes) -> CompositeLayout:
    """The layout of a body, made once.

    Args:
        body: the body.
        shape: cells along z, y, x.
        periodic: which of x, y, z wrap.
        axes: those of the ring; rows lie along its x.
    """
    layouts, key = _layouts.setdefault(body, {}), (shape, periodic, axes)
    if key not in layouts:
        layouts[key] = _lay_out(body, *key)
    return layouts[key]


def _lay_out(body: HostBody, shape: Shape, periodic: Wraps, axes: RingAxes) -> CompositeLayout:
    ring = axes.shape(shape)
    nz, ny, nx = ring
    surfaces = void_surfaces(body, periodic, ring)
    if not body.cells.size:
        rows, nothing = nz * ny, np.zeros(0, np.int32)
        runs = Runs(np.arange(rows + 1, dtype=np.int32), np.full(rows, nx, np.int32), np.zeros(rows, np.int32))
        weights = np.ones((1, 6), body.weights.dtype)
        stencils = Stencils(np.zeros(1, np.uint8), np.zeros((1, 6), np.uint8), weights, np.zeros(1, np.uint8))
        odd = OddCells(np.zeros(rows + 1, np.int32), nothing, nothing)
        dense_rows = _DenseRowFinder(body, ring).found()
        return CompositeLayout(runs, odd, dense_rows, surfaces, stencils, (np.zeros((0, 0), np.uint8),) * 6)
    finder = StencilFinder(body, shape, periodic)
    runs_of, odds_of, dense = _Rows(), _Rows(), _DenseRowFinder(body, ring)
    planes = planes_at_once(ring)
    for first in range(0, nz, planes):
        stencil = finder.stencils_of(first * ny * nx, min(first + planes, nz) * ny * nx)
        _divide(stencil.reshape(-1, nx), finder, runs_of, odds_of, dense, axes if graded(body.planes) else None)
    types = tuple(np.ascontiguousarray(body.cells[cells] & CELL_TYPE) for cells in FACE_SLICES)
    runs, odd = Runs(*runs_of.arrays()), OddCells(*odds_of.arrays())
    return CompositeLayout(runs, odd, dense.found(finder), surfaces, finder.stencils(), types)


class _Rows:
    """Lists of things in rows: how many each row has, where they are, and their stencils."""

    def __init__(self) -> None:
        self._counts, self._places, self._stencils = list[NDArray[np.intp]](), list[Numbers](), list[Numbers]()

    def add(self, rows: int, row: NDArray[np.intp], place: NDArray[np.intp], stencil: Numbers) -> None:
        """What the next ``rows`` rows have."""
        self._counts.append(np.bincount(row, minlength=rows))
        self._places.append(place.astype(np.int32))
        self._stencils.append(stencil)

    def arrays(self) -> tuple[Numbers, Numbers, Numbers]:
        """Where each row begins, the places, the stencils."""
        first = np.concatenate(([0], np.cumsum(np.concatenate(self._counts)))).astype(np.int32)
        return first, np.concatenate(self._places), np.concatenate(self._stencils)


class _DenseRowFinder:
    """Collects rows that are different, as long as their coefficients fit a core's cache beside the field."""

    def __init__(self, body: HostBody, shape: Shape) -> None:
        self._most = _DENSE_BYTES // (6 * body.weights.itemsize * shape[2]) * (not body.enthalpies.vary)
        self._rows, self._first_heated, self._nx = shape[0] * shape[1], body.first_heated, shape[2]
        self._numbers: dict[bytes, int] = {}
        self._of = list[Numbers]()

    def add(self, stencil: Numbers, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of some rows are dense; ``stencil`` is that of their cells, shape (rows, nx)."""
        of = np.full(len(stencil), -1, np.int32)
        for row in np.flatnonzero(wanted).tolist():
            key = stencil[row].tobytes()
            if key in self._numbers or len(self._numbers) < self._most:
                of[row] = self._numbers.setdefault(key, len(self._numbers))
        self._of.append(of)
        return of >= 0

    def found(self, finder: StencilFinder | None = None) -> DenseRows:
        """The dense rows; without ``finder`` none."""
        stencils = np.frombuffer(b"".join(self._numbers), np.int32).reshape(-1, self._nx)
        if finder is None:
            nothing = np.zeros(0, np.int32)
            return DenseRows(np.full(self._rows, -1, np.int32), stencils, np.zeros(1, np.int32), *(nothing,) * 3)
        types = finder.stencils().own[stencils].astype(np.int32)
        flat = types.reshape(-1)
        starts = np.flatnonzero((np.diff(flat, prepend=-1) != 0) | (np.arange(flat.size) % self._nx == 0))
        ends = np.append(starts[1:], flat.size)[: len(starts)]
        starts, ends = (places[flat[starts] >= self._first_heated] for places in (starts, ends))
        counts = np.bincount(starts // self._nx, minlength=len(stencils))
        first = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        begin, end = (starts % self._nx).astype(np.int32), ((ends - 1) % self._nx + 1).astype(np.int32)
        return DenseRows(np.concatenate(self._of), stencils, first, begin, end, flat[starts])


def _divide(
    stencil: Numbers,
    finder: StencilFinder,
    runs_of: _Rows,
    odds_of: _Rows,
    dense: _DenseRowFinder,
    graded_axes: RingAxes | None,
) -> None:
    """Divide some rows into runs and odd cells, or into dense rows.

    Args:
        stencil: that of their cells.
        finder: of all stencils.
        runs_of: to which runs are added.
        odds_of: to which odd cells are added.
        dense: to which dense rows are added.
        graded_axes: if cells have several widths, the axes of the ring. Then the links of runs along x have no weights
            and lead to cells of one type, and the links of dense rows across x have no weights; see graded_sums.py.
    """
    nx = stencil.shape[1]
    flat = stencil.reshape(-1)
    stencils, bases = finder.stencils(), finder.bases
    # Potentials are looked up in one table for a run.
    segment = (bases[stencils.own] if bases.size else np.zeros(len(stencils.own), np.int64))[flat]
    between, unweighted = stencils.between != 0, np.ones(len(stencils.own), dtype=bool)
    if graded_axes is not None:
        between |= ~stencils.plain(graded_axes.x)
        unweighted = stencils.unweighted(graded_axes.y) & stencils.unweighted(graded_axes.z)
    row_starts = np.arange(len(flat)) % nx == 0
    new_segment = row_starts | np.concatenate(([True], segment[1:] != segment[:-1]))
    starts = np.flatnonzero(new_segment | np.concatenate(([True], flat[1:] != flat[:-1])))
    ends = np.append(starts[1:], len(flat))
    # 1. Stretches of one stencil that are long enough are runs; a segment without any is one run all the same.
    long = (ends - starts >= _SHORTEST_RUN) & ~between[flat[starts]]
    of_segment = np.cumsum(new_segment[starts]) - 1
    has_long = np.bincount(of_segment, weights=long) > 0
    longest = np.lexsort((starts - ends, between[flat[starts]], of_segment))
    alone = longest[np.searchsorted(of_segment[longest], np.arange(len(has_long)))]
    is_run = long.copy()
    is_run[alone[~has_long]] = True
    # 2. Each run reaches to the next; the first of a segment begins with it, the last ends with it.
    run = np.flatnonzero(is_run)
    last = np.append(of_segment[run][1:] != of_segment[run][:-1], True)
    segment_ends = np.append(np.flatnonzero(new_segment)[1:], len(flat))
    end = np.where(last, segment_ends[of_segment[run]], np.append(starts[run][1:], len(flat)))
    runs_of.add(len(flat) // nx, (end - 1) // nx, (end - 1) % nx + 1, flat[starts[run]])
    # 3. The cells of all other stretches are odd.
    odd = np.repeat(~is_run | between[flat[starts]], ends - starts)
    wanted = (np.bincount((end - 1) // nx) > 1) | odd.reshape(-1, nx).any(axis=1)
    odd &= ~np.repeat(dense.add(stencil, wanted & unweighted[stencil].all(axis=1)), nx)
    if graded_axes is not None and not bases.size:
        odd |= np.repeat(_many_stretches(odd.reshape(-1, nx)), nx)
    cells = np.flatnonzero(odd)
    odds_of.add(len(flat) // nx, cells // nx, cells % nx, flat[cells])


def _many_stretches(odd: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows take less time if all cells are odd: one long stretch instead of many runs and short stretches."""
    begins = odd & ~np.pad(odd[:, :-1], ((0, 0), (1, 0)))
    return np.asarray((begins.sum(axis=1) >= _MANY_STRETCHES) & (odd.sum(axis=1) * _ODD_PART >= odd.shape[1]))
