"""Conditions whose values vary over a surface, as mixtures of conditions with one value each.

Kernels know conditions of six numbers, and cells that several conditions share
(:mod:`heatsim.physics.conditions.mixed_cells`). So a value v(x, y, z, t) = a(t) + b(t)·f(x, y, z) becomes two
conditions with its smallest and its largest value. Each cell has the part s of the second one that gives it the mean
value over the part of its face with the condition (:mod:`heatsim.scenario.values.space_means`); where its face stands
for a smooth surface that is not flat, the value at the centre of this:

    v = (1 − s)·v_low + s·v_high,    q = (1 − s)·q_low + s·q_high

This is exact where the flux q is linear in the value: for held temperatures, fluxes, and ambient temperatures without
radiation. Where it is not, :mod:`heatsim.physics.operator.spread_values` gives more conditions between lowest and
highest value, and a cell is a mixture of the two nearest. The parts of a film coefficient h are those of the flux
through film and half cell in series, U = K·h/(K + h). They are exact too, unless something radiates, the conductivity
varies with temperature, or h varies in time.

All that follows from conditions therefore follows the extremes over the surface: stability limit, temperature range,
energy bound, steady states.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import Condition
from heatsim.physics.conditions.mixed_cells import MIXED, TOWARDS_VOID, MixedCells, place_of
from heatsim.physics.geometry.cell_faces import FaceAreas
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.physics.operator.boundary_faces import at_box, towards_void
from heatsim.physics.operator.spread_values import Levels, SurfacePoints, around, levels_of, points_in
from heatsim.scenario import Insulated, SpaceFormula, TimeFunction
from heatsim.scenario.values.functions import functions_in_time

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


def with_values_in_space(
    boundary: Boundary, materials: CellTypes, surfaces: FaceAreas | None, varies: bool
) -> tuple[Boundary, CellTypes]:
    """The conditions of a body, where those that vary in space are mixtures of conditions that do not. Collective.

    Args:
        boundary: the conditions.
        materials: the cell types, at the reference temperature.
        surfaces: those towards void, with their centres; not read if no condition towards void varies in space.
        varies: whether any material varies with temperature.

    Returns:
        Conditions, and the cell types with MIXED as the condition towards void where it varies in space.

    Raises:
        ScenarioError: a value is not physical, or does not have the form a(t) + b(t)·f(x, y, z).
    """
    varying = {number for number in range(len(boundary.conditions)) if is_in_space(boundary.conditions[number])}
    if not varying:
        return boundary, materials
    found, maps = _Conditions(boundary, varying), list(boundary.maps)
    for face in range(6):
        faces = at_box(boundary, materials.grid, face)
        touched = faces.places[np.isin(faces.conditions, list(varying))]
        if len(touched):
            whole = np.full(materials.grid.face_shape(face), face, dtype=np.uint8)
            maps[face] = maps[face].copy() if maps[face].size else whole
            maps[face].reshape(-1)[touched] = MIXED
        if not maps[face].size:
            continue
        for number, own in faces.where(maps[face].reshape(-1)[faces.places] == MIXED).by_condition():
            cells = SurfacePoints.on_face(materials, boundary, own, varies)
            found.spread(number, place_of(face, 0) + own.places, own.fractions, cells)
    of_void = [number for number in sorted(varying) if boundary.is_towards_void(number)]
    if of_void and surfaces is not None:
        for number in of_void:
            places, cells = _towards_void(number, boundary, materials, surfaces, varies)
            if cells.count:
                found.spread(number, places, np.ones(len(places)), cells)
        shared = np.isin(materials.void_conditions, of_void)
        marked = np.where(shared, MIXED, materials.void_conditions).astype(np.int32)
        materials = replace(materials, void_conditions=marked)
    # Surfaces towards rooms whose conditions do not vary in space.
    mixed = boundary.mixed
    of_parts = np.repeat(mixed.places, np.diff(mixed.first))[mixed.parts_on_faces :]
    for number in np.unique(mixed.numbers[mixed.parts_on_faces :]).tolist():
        if number not in varying:
            some = np.flatnonzero(mixed.numbers[mixed.parts_on_faces :] == number)
            found.keep(number, of_parts[some], mixed.fractions[mixed.parts_on_faces :][some])
    return (
        replace(
            boundary,
            conditions=tuple(found.conditions),
            keys=tuple(found.keys),
            owners=tuple(found.owners),
            rooms=tuple(found.rooms),
            maps=tuple(maps),
            mixed=found.mixed(),
        ),
        materials,
    )


def is_in_space(condition: Condition) -> bool:
    """Whether a condition has values that vary in space."""
    return any(isinstance(value, SpaceFormula) for _, value, _ in functions_in_time(condition))


class _Conditions:
    """All conditions, with those added that stand for values between others, and the cells that are mixtures."""

    def __init__(self, boundary: Boundary, varying: Set[int]) -> None:
        # A condition without cells lets nothing through. The others are replaced in `spread`.
        self.conditions: list[Condition] = [
            Insulated() if number in varying else condition for number, condition in enumerate(boundary.conditions)
        ]
        self.keys, self.owners, self.rooms = list(boundary.keys), list(boundary.owners), list(boundary.rooms)
        self._boundary, self._varying, self._replaced = boundary, varying, set[int]()
        self._parts = list[tuple[Numbers, int, Array]]()

    def spread(self, number: int, places: Numbers, fractions: Array, cells: SurfacePoints) -> None:
        """Give fractions of the surfaces of cells a condition. Collective.

        Args:
            number: the number of the condition.
            places: the places of the cells, as in :class:`heatsim.physics.conditions.mixed_cells.MixedCells`.
            fractions: the fractions of their surfaces.
            cells: the cells of the surface.
        """
        if number not in self._varying:
            self.keep(number, places, fractions)
            return
        values = [*levels_of(self._boundary, number, cells)]
        for levels, some, weights in _mixtures(values, len(places), cells.held):
            update = {name: value.levels[at] for value, at in zip(values, levels, strict=True) for name in value.names}
            self._parts.append((places[some], self._add(number, update), fractions[some] * weights))

    def keep(self, number: int, places: Numbers, fractions: Array) -> None:
        """Give fractions of the surfaces of cells a condition that does not vary; arguments as for :meth:`spread`."""
        self._parts.append((places, number, fractions))

    def mixed(self) -> MixedCells:
        """The mixed cells of all parts."""
        places = np.concatenate([np.zeros(0, np.int64), *(places for places, _, _ in self._parts)])
        counts = [len(places) for places, _, _ in self._parts]
        numbers = np.repeat(np.array([number for _, number, _ in self._parts], np.int64), counts)
        fractions = np.concatenate([np.zeros(0), *(fractions for *_, fractions in self._parts)])
        order = np.lexsort((numbers, places))
        cells, first = np.unique(places[order], return_index=True)
        return MixedCells(cells, np.append(first, len(order)), numbers[order], fractions[order])

    def _add(self, number: int, update: Mapping[str, TimeFunction]) -> int:
        """The number of a condition like condition ``number``, with other values. The first one takes its place."""
        condition = self._boundary.conditions[number].model_copy(update=dict(update))
        if number not in self._replaced:
            self._replaced.add(number)
            self.conditions[number] = condition
            return number
        # In maps MIXED is no condition, so the one of this number stays without cells.
        for _ in range(2 if len(self.conditions) == MIXED else 1):
            self.conditions.append(condition)
            self.keys.append(self.keys[number])
            self.owners.append(self.owners[number])
            self.rooms.append(self.rooms[number])
        return len(self.conditions) - 1


def _mixtures(
    values: Sequence[Levels], count: int, held: PaintedPlanes
) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp], Array]]:
    """Every combination of levels that occurs on any rank, with this rank's cells that have it, and their fractions."""
    counts = [len(value.levels) for value in values]
    keys, weights = [], []
    for some in product((0, 1), repeat=len(values)):
        levels = tuple(value.below + step for value, step in zip(values, some, strict=True))
        keys.append(np.ravel_multi_index(levels, counts))
        parts = [value.part if step else 1.0 - value.part for value, step in zip(values, some, strict=True)]
        weights.append(np.prod(parts, axis=0))
    key, weight, cells = np.concatenate(keys), np.concatenate(weights), np.tile(np.arange(count), len(keys))
    has = np.flatnonzero(weight > 0.0)
    order = has[np.argsort(key[has], kind="stable")]
    for combination in held.union(np.unique(key[order]).tolist()):
        first, last = np.searchsorted(key[order], (combination, combination + 1))
        some_parts, found = order[first:last], np.unravel_index(combination, counts)
        yield tuple(int(level) for level in found), cells[some_parts], weight[some_parts]


def _towards_void(
    number: int, boundary: Boundary, materials: CellTypes, surfaces: FaceAreas, varies: bool
) -> tuple[Numbers, SurfacePoints]:
    """The places of the cells with a condition towards void, and these cells as :class:`SurfacePoints`. Collective."""
    grid, held = materials.grid, materials.weighted_surfaces.held
    places, faces, conductances = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    every = [np.zeros(0, np.int64)]
    is_own, axes, flat = [np.zeros(0, dtype=bool)], [np.zeros(0, np.int64)], [np.zeros(0, dtype=bool)]
    for of_side in towards_void(materials, boundary.periodic, boundary.mixed):
        some = of_side.where(of_side.conditions == number)
        side, axis, cells = some.side, some.axis, some.cells
        n, stride = grid.cells[axis], int(np.prod(grid.cells[:axis]))
        below = (cells // stride - 1) % n - cells // stride % n
        faces.append(3 * (cells if side % 2 else cells + below * stride) + axis)
        places.append(place_of(TOWARDS_VOID + side, 0) + cells)
        every.append(cells)
        conductances.append(1.0 / (some.resistances(materials) * some.ratios))
        is_own.append(held.owns(cells // (grid.cells[0] * grid.cells[1])))
        axes.append(np.full(len(cells), axis))
        flat.append(some.ratios == 1.0)
    # The order of one rank: side after side, and within a side plane after plane.
    counts = np.array(held.gathered([np.count_nonzero(of_side) for of_side in is_own]))
    before = (np.cumsum(counts.T) - counts.T.reshape(-1)).reshape(counts.T.shape)[:, held.team.rank]
    order = [first + np.arange(np.count_nonzero(of_side)) for first, of_side in zip(before, is_own, strict=True)]
    middles, along = surfaces.centres[np.searchsorted(surfaces.faces, np.concatenate(faces))].T, np.concatenate(axes)
    low, high = around(middles, along, np.concatenate(flat), np.concatenate(every), grid)
    return np.concatenate(places), SurfacePoints(
        low=low,
        high=high,
        points=points_in(low, high, boundary.conditions[number]),
        conductance=np.concatenate(conductances),
        varies=varies,
        held=held,
        own=np.flatnonzero(np.concatenate(is_own)),
        order=np.concatenate(order),
        count=int(counts.sum()),
        turned=grid.radial,
    )
