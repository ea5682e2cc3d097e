"""Boundary faces: every place where heat enters a cell from something that is no neighbouring cell.

    heat into a cell = Σ area·K·(T_s − T)    area: of the voxel face, times the fraction that has the condition
                                             K: conductance of the half cell, over the ratio of smooth to voxel area

A boundary face lies at a face of the box, or towards void. Where several conditions share the face of a cell, the cell
has one boundary face for each of them. Everything that needs boundary faces reads this table: powers, stability, the
energy bound, balances, probes, heat fluxes.

The table is made side by side. A face of the box with one condition stays a dense run of it: its columns are single
numbers, broadcast to the shape of the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.cells.link_weights import types_around
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.mixed_cells import MIXED, TOWARDS_VOID, MixedCells

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# The faces of boxes that were found: many points of probes ask for the same ones.
_at_box: "WeakKeyDictionary[Boundary, dict[tuple[Grid, int], BoundaryFaces]]" = WeakKeyDictionary()

_ALONE = -1  # instead of a part's number: the condition has the whole face of the cell


@dataclass(frozen=True, eq=False)
class BoundaryFaces:
    """Boundary faces on one side of cells, ordered by their condition. All arrays have the shape (n,).

    Attributes:
        grid: the cells.
        side: 0 for x−, 1 for x+, …, 5 for z+.
        towards_void: whether void lies beyond them, instead of the outside of the box.
        places: of the cells in the flattened map of the face; towards void among the weighted cells.
        conditions: the numbers of the conditions.
        fractions: of the cell's face that has the condition.
        parts: numbers of the parts of mixed cells, −1 for cells with one condition.
        ratios: of the area of the smooth surface to that of the voxel face.
        listed: the cells towards void, by their index in the flattened grid; None at a face of the box.
    """

    grid: Grid
    side: int
    towards_void: bool
    places: Indices
    conditions: Indices
    fractions: Array
    parts: Indices
    ratios: Array
    listed: Indices | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def cells(self) -> Indices:
        """The cells, by their index in the flattened grid."""
        if self.listed is not None:
            return self.listed
        v, u = np.divmod(self.places, self.grid.face_shape(self.side)[1])
        first, second = (self._strides[axis] for axis in range(3) if axis != self.axis)
        last = (self.grid.cells[self.axis] - 1) * self._strides[self.axis]
        return np.asarray(u * first + v * second + last * (self.side % 2))

    @property
    def axis(self) -> int:
        """The axis across the faces."""
        return self.side // 2

    @property
    def area(self) -> float | Array:
        """The areas of the voxel faces in m²; one number if all cells are equal."""
        return self.grid.side_areas(self.side, self.cells) if not self.grid.uniform else self.grid.mean_areas[self.axis]

    @property
    def half_factors(self) -> float | Array:
        """Resistances of the half cells over those of cells of the mean width; one number where all are equal."""
        return self._of_planes(self.grid.axes[self.axis].half_factors[:, self.side % 2])

    @property
    def gain_factors(self) -> float | Array:
        """Area over volume of the cells, over that of cells of the mean width; as :attr:`half_factors`."""
        return self._of_planes(self.grid.axes[self.axis].gain_factors[:, self.side % 2])

    def _of_planes(self, factors: Array) -> float | Array:
        """The factors of the cells, from those of the planes across the faces."""
        if self.listed is None:
            return float(factors[-(self.side % 2)])
        n = self.grid.cells[self.axis]
        return 1.0 if self.grid.axes[self.axis].uniform else factors[self.listed // self._strides[self.axis] % n]

    def resistances(self, materials: CellTypes, half: Array | None = None) -> Array:
        """The resistances of the half cells in m² K/W, at the reference temperature.

        Args:
            materials: the cell types.
            half: the resistances for each axis and type; those of ``materials`` if not given.
        """
        of_types = (materials.half if half is None else half)[self.axis]
        return np.asarray(of_types[self.types(materials)] * self.half_factors)

    @property
    def dense(self) -> bool:
        """Whether all cells of a face of the box have one condition each, the same for all."""
        return not any(np.any(column.strides) for column in (self.conditions, self.parts)) and len(self) > 1

    @property
    def full(self) -> bool:
        """Whether each condition has the whole face of its cell."""
        return self.dense or bool((self.fractions == 1.0).all())

    @property
    def _strides(self) -> tuple[int, int, int]:
        nx, ny, _ = self.grid.cells
        return 1, nx, nx * ny

    def types(self, materials: CellTypes) -> NDArray[np.intp]:
        """The types of the cells."""
        if self.listed is None:
            return materials.types_on_face(self.side).reshape(-1)[self.places]
        return materials.types_of(np.unravel_index(self.listed, self.grid.shape))

    def lit(self, materials: CellTypes) -> Indices | None:
        """The place on the face of the box of the light that falls on each boundary face; −1 where none can fall.

        None if no beam can reach any of them.
        """
        if not self.towards_void:
            return self.places
        lit = materials.heated.lit >> self.side & 1 > 0
        if not lit.any():
            return None
        u, v = (
            self.cells // stride % n
            for axis, (stride, n) in enumerate(zip(self._strides, self.grid.cells, strict=True))
            if axis != self.axis
        )
        return np.where(lit[self.places], v * self.grid.face_shape(self.side)[1] + u, -1)

    def where(self, some: NDArray[np.integer] | NDArray[np.bool_]) -> "BoundaryFaces":
        """Some of them."""
        columns = {
            column.name: value[some]
            for column in fields(self)
            if isinstance(value := getattr(self, column.name), np.ndarray)
        }
        return BoundaryFaces(self.grid, self.side, self.towards_void, **columns)

    def by_condition(self) -> Iterator[tuple[int, "BoundaryFaces"]]:
        """Each condition with its boundary faces."""
        if self.dense:
            yield int(self.conditions[0]), self
            return
        numbers, first = np.unique(self.conditions, return_index=True)
        for number, begin, end in zip(numbers.tolist(), first, np.append(first, len(self))[1:], strict=True):
            yield number, self.where(np.arange(begin, end))

    def of(self, cells: Indices) -> tuple[NDArray[np.intp], "BoundaryFaces"]:
        """The boundary faces of some cells.

        Args:
            cells: by their index in the flattened grid; each occurs once.

        Returns:
            For each boundary face the place of its cell in ``cells``, and the boundary faces.
        """
        if self.listed is None:
            along = [cells // stride % n for stride, n in zip(self._strides, self.grid.cells, strict=True)]
            at_face = np.flatnonzero(along.pop(self.axis) == (self.grid.cells[self.axis] - 1) * (self.side % 2))
            wanted = along[1][at_face] * self.grid.face_shape(self.side)[1] + along[0][at_face]
            if self.dense:
                return at_face, self.where(wanted)
            own = self.places
        else:
            at_face, wanted, own = np.arange(len(cells)), cells, self.listed
        order = np.argsort(wanted)
        found = np.searchsorted(wanted[order], own)
        found[found == len(wanted)] = 0
        some = np.flatnonzero(wanted[order][found] == own) if len(wanted) else np.zeros(0, np.intp)
        return at_face[order[found[some]]], self.where(some)


def boundary_faces(
    boundary: Boundary, materials: CellTypes, open_faces: Sequence[bool] = (True,) * 6
) -> Iterator[BoundaryFaces]:
    """The boundary faces of all cells that conduct: at the faces of the box, then towards void, side by side.

    Args:
        boundary: the conditions.
        materials: the cell types.
        open_faces: which faces of the box to look at; faces at cuts between ranks have no boundary faces.
    """
    for side in range(6):
        found = at_box(boundary, materials.grid, side)
        if len(found) and open_faces[side]:
            yield found if materials.void is None else found.where(found.types(materials) != materials.void)
    yield from towards_void(materials, boundary.periodic, boundary.mixed)


def at_box(boundary: Boundary, grid: Grid, side: int) -> BoundaryFaces:
    """The boundary faces of all cells at a face of the box, of void cells too; none where the axis wraps.

    Cells with one condition come before the parts of mixed cells that have the same condition.
    """
    known = _at_box.setdefault(boundary, {})
    if (grid, side) not in known:
        nothing = np.zeros(0, np.int64)
        known[grid, side] = (
            BoundaryFaces(grid, side, False, nothing, nothing, np.zeros(0), nothing, np.zeros(0))
            if boundary.periodic[side // 2]
            else of_map(boundary.maps[side], boundary.mixed, grid, side)
        )
    return known[grid, side]


def of_map(numbers: NDArray[np.uint8], mixed: MixedCells, grid: Grid, side: int) -> BoundaryFaces:
    """The boundary faces of all cells at a face of the box, from the map of its conditions (``Boundary.maps``)."""
    if not numbers.size:
        rows, columns = grid.face_shape(side)
        every = np.arange(rows * columns)
        number, one, alone = (np.broadcast_to(value, every.shape) for value in (np.int64(side), 1.0, np.int64(_ALONE)))
        return BoundaryFaces(grid, side, False, every, number, one, alone, one)
    numbers, (shared, cells) = numbers.reshape(-1), mixed.on_face(side)
    whole = np.flatnonzero(numbers != MIXED)
    found = BoundaryFaces(
        grid,
        side,
        towards_void=False,
        places=np.concatenate((whole, cells)),
        conditions=np.concatenate((numbers[whole], mixed.numbers[shared])).astype(np.int64),
        fractions=np.concatenate((np.ones(len(whole)), mixed.fractions[shared])),
        parts=np.concatenate((np.full(len(whole), _ALONE), np.arange(shared.start, shared.stop))),
        ratios=np.broadcast_to(1.0, (len(whole) + len(cells),)),
    )
    return found.where(np.argsort(found.conditions, kind="stable"))


def towards_void(materials: CellTypes, periodic: tuple[bool, bool, bool], mixed: MixedCells) -> Iterator[BoundaryFaces]:
    """The boundary faces towards void, side by side; only of the planes that are held."""
    surfaces, grid, stride = materials.weighted_surfaces, materials.grid, 1
    if not surfaces.void:
        return
    own, around = types_around(materials, surfaces.cells)
    conditions = materials.void_conditions[own].astype(np.int64)
    for side in range(6):
        n, wraps = grid.cells[side // 2], periodic[side // 2]
        # Beyond a face that does not wrap there is nothing.
        at_end = surfaces.cells // stride % n == (n - 1) * (side % 2)
        passes = (own != materials.void) & (around[:, side] == materials.void) & (surfaces.area[:, side] > 0.0)
        passes &= wraps | ~at_end
        whole = np.flatnonzero(passes & (conditions != MIXED))
        shared, cells = mixed.on_face(TOWARDS_VOID + side)
        numbers, place = np.arange(shared.start, shared.stop), np.searchsorted(surfaces.cells, cells)
        numbers, place = numbers[passes[place]], place[passes[place]]
        places = np.concatenate((whole, place))
        found = BoundaryFaces(
            grid,
            side,
            towards_void=True,
            places=places,
            conditions=np.concatenate((conditions[whole], mixed.numbers[numbers])),
            fractions=np.concatenate((np.ones(len(whole)), mixed.fractions[numbers])),
            parts=np.concatenate((np.full(len(whole), _ALONE), numbers)),
            ratios=surfaces.area[places, side],
            listed=surfaces.cells[places],
        )
        yield found.where(np.argsort(found.conditions, kind="stable"))
        stride *= n if side % 2 else 1


def areas(boundary: Boundary, materials: CellTypes, least_ratio: float = 0.0) -> Array:
    """The area of each condition in m² on cells that conduct, shape (conditions,). Collective.

    Args:
        boundary: the conditions.
        materials: the cell types.
        least_ratio: towards void each voxel face counts with its area times the larger one of this number and the
            ratio of smooth to voxel area.
    """
    found, plane = np.zeros(len(boundary.conditions)), materials.grid.cells[0] * materials.grid.cells[1]
    planes, numbers, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for of_side in boundary_faces(boundary, materials):
        if of_side.towards_void:
            planes.append(of_side.cells // plane)
            numbers.append(of_side.conditions)
            sizes.append(of_side.area * of_side.fractions * np.maximum(of_side.ratios, least_ratio))
        elif isinstance(of_side.area, float):
            found += of_side.area * np.bincount(of_side.conditions, of_side.fractions, len(found))
        else:
            found += np.bincount(of_side.conditions, of_side.fractions * of_side.area, len(found))
    if materials.weighted_surfaces.void:
        of_void = materials.held.sums(np.concatenate(planes), np.concatenate(numbers), np.concatenate(sizes))
        for number, area in of_void.items():
            found[number] += area
    return found
