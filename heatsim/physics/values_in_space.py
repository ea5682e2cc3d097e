"""Conditions whose values vary over a face, as mixtures of conditions that do not.

Kernels know conditions of six numbers, and cells that several conditions share
(:mod:`heatsim.physics.mixed_cells`). So a value v(x, y, z, t) = a(t) + b(t)·f(x, y, z) becomes two conditions with its
smallest and its largest value. Each cell has the part s of the second one that gives it its own value at the centre of
its face:

    v = (1 − s)·v_low + s·v_high,    q = (1 − s)·q_low + s·q_high

This is exact where the flux q is linear in the value: for held temperatures, fluxes, and ambient temperatures without
radiation. Where it is not, :mod:`heatsim.physics.spread_values` gives more conditions between lowest and highest value,
and a cell is a mixture of the two nearest. The parts of a film coefficient h are those of the flux through film and
half cell in series, U = K·h/(K + h). They are exact too, unless something radiates, the conductivity varies with
temperature, or h varies in time.

All that follows from conditions therefore follows the extremes over the face: stability limit, temperature range,
energy bound, steady states.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.boundary import Boundary
from heatsim.physics.cell_types import CellTypes
from heatsim.physics.mixed_cells import MIXED, MixedCells, place_of
from heatsim.physics.spread_values import FaceCells, Levels, levels_of
from heatsim.scenario import SpaceFormula, TimeFunction
from heatsim.scenario.functions import functions_in_time

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


def with_values_in_space(boundary: Boundary, materials: CellTypes, varies: bool) -> Boundary:
    """The conditions of a body, where those that vary in space are mixtures of conditions that do not.

    Args:
        boundary: the conditions.
        materials: the cell types, at the reference temperature.
        varies: whether any material varies with temperature.

    Raises:
        ScenarioError: a value is not physical, or does not have the form a(t) + b(t)·f(x, y, z).
    """
    varying = {number for number in range(boundary.first_towards_void) if _in_space(boundary, number)}
    if not varying:
        return boundary
    found, parts = _Conditions(boundary), list[tuple[int, Numbers, int, Array]]()
    maps = list(boundary.maps)
    for face in range(6):
        numbers, fractions, places = _on_face(boundary, face)
        touched = places[np.isin(numbers, list(varying))]
        if len(touched):
            whole = np.full(materials.grid.face_shape(face), face, dtype=np.uint8)
            maps[face] = maps[face].copy() if maps[face].size else whole
            maps[face].reshape(-1)[touched] = MIXED
        shared = maps[face].reshape(-1)[places] == MIXED if maps[face].size else np.zeros(len(places), dtype=bool)
        for number in np.unique(numbers[shared]).tolist():
            own = np.flatnonzero(shared & (numbers == number))
            if number not in varying:
                parts.append((face, places[own], number, fractions[own]))
                continue
            values = [*levels_of(boundary, number, FaceCells.of(materials, face, places[own], varies))]
            for levels, cells, weights in _mixtures(values, len(own)):
                update = {
                    name: value.levels[at] for value, at in zip(values, levels, strict=True) for name in value.names
                }
                parts.append((face, places[own][cells], found.add(number, update), fractions[own][cells] * weights))
    return replace(
        boundary,
        conditions=tuple(found.conditions),
        keys=tuple(found.keys),
        owners=tuple(found.owners),
        maps=tuple(maps),
        mixed=_joined(parts),
    )


class _Conditions:
    """All conditions, with those added that stand for values between others."""

    def __init__(self, boundary: Boundary) -> None:
        self.conditions, self.keys = list(boundary.conditions), list(boundary.keys)
        self.owners = list(range(len(self.conditions)))
        self._given, self._replaced = boundary.conditions, set[int]()

    def add(self, number: int, update: Mapping[str, TimeFunction]) -> int:
        """The number of a condition like condition ``number``, with other values. The first one takes its place."""
        condition = self._given[number].model_copy(update=dict(update))
        if number not in self._replaced:
            self._replaced.add(number)
            self.conditions[number] = condition
            return number
        # In maps MIXED is no condition, so the one of this number stays without cells.
        for _ in range(2 if len(self.conditions) == MIXED else 1):
            self.conditions.append(condition)
            self.keys.append(self.keys[number])
            self.owners.append(number)
        return len(self.conditions) - 1


def _in_space(boundary: Boundary, number: int) -> bool:
    return any(isinstance(value, SpaceFormula) for _, value, _ in functions_in_time(boundary.conditions[number]))


def _on_face(boundary: Boundary, face: int) -> tuple[Numbers, Array, Numbers]:
    """The condition, the fraction and the place of each part of each cell at a face."""
    rows, columns = boundary.scenario.grid.face_shape(face)
    v, u = np.divmod(np.arange(rows * columns), columns)
    found = [(numbers, fractions, np.arange(len(v))) for numbers, fractions in boundary.shares(face, v, u)]
    numbers, fractions, places = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    has = fractions > 0.0
    return numbers[has].astype(np.int64), fractions[has], places[has]


def _mixtures(values: Sequence[Levels], count: int) -> Iterator[tuple[tuple[int, ...], NDArray[np.intp], Array]]:
    """Every combination of levels of some values, with the cells that have it and their parts of it."""
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
    combinations, first = np.unique(key[order], return_index=True)
    for combination, some_parts in zip(combinations.tolist(), np.split(order, first[1:]), strict=True):
        found = np.unravel_index(combination, counts)
        yield tuple(int(level) for level in found), cells[some_parts], weight[some_parts]


def _joined(parts: Sequence[tuple[int, Numbers, int, Array]]) -> MixedCells:
    """The mixed cells that consist of parts: faces, places on them, numbers of conditions and fractions."""
    places = np.concatenate([place_of(face, 0) + places for face, places, _, _ in parts])
    numbers = np.concatenate([np.full(len(places), number) for _, places, number, _ in parts])
    fractions = np.concatenate([fractions for *_, fractions in parts])
    order = np.lexsort((numbers, places))
    cells, first = np.unique(places[order], return_index=True)
    return MixedCells(cells, np.append(first, len(order)), numbers[order], fractions[order])
