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
from heatsim.kernels.cpu.ring_axes import RingAxes, Shape, Wraps
from heatsim.kernels.cpu.stencils import Bytes, Numbers, StencilFinder, Stencils
from heatsim.kernels.cpu.void_layout import VoidSurfaces, void_surfaces
from heatsim.physics.cells.cell_types import CELL_TYPE, planes_at_once

# A shorter run takes longer than its cells one by one.
_SHORTEST_RUN = 8
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
        _divide(stencil.reshape(-1, nx), finder, runs_of, odds_of, dense)
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


def _divide(stencil: Numbers, finder: StencilFinder, runs_of: _Rows, odds_of: _Rows, dense: _DenseRowFinder) -> None:
    """Divide some rows into runs and odd cells, or into dense rows; ``stencil`` is that of their cells."""
    nx = stencil.shape[1]
    flat = stencil.reshape(-1)
    stencils, bases = finder.stencils(), finder.bases
    # Potentials are looked up in one table for a run.
    segment = (bases[stencils.own] if bases.size else np.zeros(len(stencils.own), np.int64))[flat]
    between = stencils.between != 0
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
    odd &= ~np.repeat(dense.add(stencil, wanted), nx)
    cells = np.flatnonzero(odd)
    odds_of.add(len(flat) // nx, cells // nx, cells % nx, flat[cells])
