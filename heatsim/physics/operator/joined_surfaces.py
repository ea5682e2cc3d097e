"""Join surfaces of a body, so that one calculation with arrays finds the heat of cells with different conditions.

A condition that varies in space becomes many conditions: if void surfaces on six sides cross 40 planes, there are 240
surfaces. Joining does not change the operations on a cell, nor the order in which a cell gets the heat of its surfaces.
So results have the same bits.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.mixed_cells import TOWARDS_VOID
from heatsim.physics.conditions.surface_balance import FREE
from heatsim.physics.conditions.surface_laws import law_of, laws_of
from heatsim.physics.operator.surface_exchange import BalanceSurface, SameCondition


def joined(surfaces: Sequence[BalanceSurface], rows: Any) -> tuple[BalanceSurface, ...]:
    """The same surfaces, with all surfaces of one type joined.

    Args:
        surfaces: each with one condition, as :func:`heatsim.physics.operator.balance_surfaces.find_surfaces` gives
            them.
        rows: the conditions and tables at one time, shape (rows, 6), on the host.
    """
    kinds = [_kind(surface) for surface in surfaces]
    if max(Counter(kind for kind in kinds if kind is not None).values(), default=0) < 2:
        return tuple(surfaces)
    groups, newest = list[list[BalanceSurface]](), dict[Hashable, int]()
    places, count = _places(surfaces)
    # For each cell the last group that contains it. Later surfaces of this cell must not come before this group.
    last = np.full(count, -1)
    for surface, kind, cells in zip(surfaces, kinds, places, strict=True):
        group = -1 if kind is None else newest.get(kind, -1)
        if group < last[cells].max(initial=0):
            group = newest[kind] = len(groups)
            groups.append([])
        groups[group].append(surface)
        last[cells] = group
    return tuple(_join(group, rows) for group in groups)


def conditions_at(surface: BalanceSurface, rows: Any) -> dict[str, Any]:
    """The attributes of a surface that change with its conditions: ``condition``, ``law``.

    Args:
        surface: any surface.
        rows: the conditions and tables at one time, shape (rows, 6), on the host.
    """
    if surface.which is None:
        number = surface.conditions[0].number
        law = None if surface.law is None else law_of(rows, number)
        return {"condition": tuple(rows[number].tolist()), "law": law}
    numbers: NDArray[np.int64] = np.array([condition.number for condition in surface.conditions])
    if surface.law is not None:
        return {"law": laws_of(rows, numbers, surface.which, surface.xp)}
    columns = surface.xp.take(surface.xp.asarray(rows[numbers].T), surface.which, axis=1)
    return {"condition": (*(columns[column] for column in range(FREE)), float(rows[numbers[0], FREE]))}


def _kind(surface: BalanceSurface) -> Hashable:
    """The type of a surface. Surfaces of equal types are joined, but never whole faces, whose cells are slices."""
    if isinstance(surface.cells, tuple) or surface.alike:
        return None
    lit = None if surface.lit is None else surface.lit[0]
    law = surface.law is not None
    free = None if law else surface.condition[FREE]
    face = min(surface.face, TOWARDS_VOID)  # the side does not matter towards void
    return surface.name, face, surface.grounded, surface.radiates, law, free, lit


def _places(surfaces: Sequence[BalanceSurface]) -> tuple[list[NDArray[np.intp]], int]:
    """For each surface the places of its cells among the cells of all surfaces; and the number of all. On the host."""
    cells = [_listed(surface) for surface in surfaces]
    found, places = np.unique(np.concatenate(cells), return_inverse=True)
    return np.split(places, np.cumsum([len(of) for of in cells])[:-1]), len(found)


def _listed(surface: BalanceSurface) -> NDArray[np.int64]:
    """The cells of a surface by their index in the flattened grid, on the host."""
    cells = surface.cells
    if isinstance(cells, tuple):
        return np.zeros(0, np.int64)
    return np.asarray(cells if isinstance(cells, np.ndarray) else cells.get())


def _join(surfaces: Sequence[BalanceSurface], rows: Any) -> BalanceSurface:
    """One surface with the cells of several."""
    first = surfaces[0]
    if len(surfaces) == 1:
        return first
    xp, counts = first.xp, [len(surface.cells) for surface in surfaces]
    ends = np.cumsum(counts).tolist()

    def all_of(name: str, missing: Any = None) -> Any:
        """The values for all cells, or one number if it holds for all cells."""
        values = [getattr(surface, name) for surface in surfaces]
        if all(isinstance(value, float | int) or value is None for value in values) and len(set(values)) == 1:
            return values[0]
        values = [missing if value is None else value for value in values]
        return xp.concatenate([xp.broadcast_to(xp.asarray(v), (n,)) for v, n in zip(values, counts, strict=True)])

    conditions = tuple(
        SameCondition(surface.conditions[0].number, slice(end - count, end))
        for surface, end, count in zip(surfaces, ends, counts, strict=True)
    )
    whole = replace(
        first,
        cells=all_of("cells"),
        conditions=conditions,
        places=all_of("places"),
        parts=all_of("parts", missing=-1),
        **{name: all_of(name) for name in ("cell_types", "area", "half", "weight", "beam")},
        lit=None if first.lit is None else (first.lit[0], xp.concatenate([at.lit[1] for at in surfaces if at.lit])),
        which=xp.asarray(np.repeat(np.arange(len(surfaces)), counts)),
        occurrences=_occurrences(xp, np.concatenate([_listed(surface) for surface in surfaces])),
    )
    return replace(whole, **conditions_at(whole, rows))


def _occurrences(xp: Any, cells: NDArray[np.int64]) -> tuple[Any, ...] | None:
    """The places of the first occurrences of cells, of the second ones, and so on; None if no cell occurs twice."""
    order = np.argsort(cells, kind="stable")
    begins = np.flatnonzero(np.diff(cells[order], prepend=-1))
    if len(begins) == len(cells):
        return None
    occurrence = np.empty(len(cells), np.int64)
    occurrence[order] = np.arange(len(cells)) - np.repeat(begins, np.diff(begins, append=len(cells)))
    return tuple(xp.asarray(np.flatnonzero(occurrence == number)) for number in range(occurrence.max() + 1))
