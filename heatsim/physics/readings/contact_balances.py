"""Which heat through contacts follows from balances of parts of the body.

No sum over the steps knows the heat through a contact. But heat that a group of cell types has stored, and that neither
sources nor boundary faces brought, has come from other cells. With a whole number w for each cell type,

    Σ_types w·(stored − sources − boundary faces) = Σ_links heat·(w of the second cell − w of the first)

So the heat through a contact follows if w can rise by 1 from its first side to its second at all of its links, and be
equal on both sides of all other links. This is so if contacts alone separate both sides. Where other links join them,
or other contacts form a ring with this one, there are no such numbers.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CellTypes, planes_at_once
from heatsim.physics.geometry.division import Division
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.contact_links import joins

Levels = NDArray[np.int64]


def contact_balances(problem: HeatProblem) -> dict[int, Levels]:
    """The whole numbers w of the cell types, from 0, for each contact whose heat follows from balances. Collective.

    Args:
        problem: the problem of the whole grid. Without `output.region_heat` the answer is empty.

    Returns:
        By the number of the contact; shape (types,).
    """
    if not problem.scenario.output.region_heat or not problem.scenario.contacts:
        return {}
    division, materials = Division.of(problem.scenario), problem.materials
    touching = _touching(materials, problem.periodic)
    found = {}
    for number in range(len(problem.scenario.contacts)):
        rises = joins(problem, division, number)
        levels = _levels(touching & ~(rises | rises.T), touching & rises)
        if levels is not None:
            found[number] = levels
    return found


def _touching(materials: CellTypes, periodic: tuple[bool, bool, bool]) -> NDArray[np.bool_]:
    """Whether cells of two different types that conduct are neighbours, shape (types, types). Collective."""
    shape, count = materials.grid.shape, len(materials.types)
    found = np.zeros((count, count), dtype=bool)
    begin, end = materials.held.own_planes(shape[0])
    step = planes_at_once(shape)
    for start in range(begin, end, step):
        planes = np.arange(start, min(start + step, end))
        here = materials.types_of(planes)
        for dimension, n in enumerate(shape):
            last = n if periodic[2 - dimension] else n - 1
            if dimension == 0:
                some = planes[planes < last]
                one, other = here[: len(some)], materials.types_of((some + 1) % n)
            else:
                below = (slice(None),) * dimension + (slice(0, last),)
                one, other = here[below], np.roll(here, -1, dimension)[below]
            differ = one != other
            found[one[differ], other[differ]] = True
    found |= found.T
    if materials.void is not None:
        found[materials.void] = found[:, materials.void] = False
    return np.asarray(materials.held.any(found))


def _levels(equal: NDArray[np.bool_], rises: NDArray[np.bool_]) -> Levels | None:
    """Numbers that are equal, or rise by 1, between pairs of types; the least of each connected group is 0.

    Args:
        equal: whether two types have the same number, shape (types, types), symmetric.
        rises: whether the number of the second type is that of the first plus 1.

    Returns:
        Shape (types,); None if there are no such numbers.
    """
    count = len(equal)
    found = np.zeros(count, dtype=np.int64)
    open_types = set(range(count))
    while open_types:
        group = [open_types.pop()]
        for one in group:  # which grows
            for step, others in ((0, equal[one]), (1, rises[one]), (-1, rises[:, one])):
                for other in _numbers(others):
                    if other in open_types:
                        open_types.remove(other)
                        found[other] = found[one] + step
                        group.append(other)
                    elif found[other] != found[one] + step:
                        return None
        found[group] -= found[group].min()
    return found


def _numbers(mask: NDArray[np.bool_]) -> Iterable[int]:
    numbers: list[int] = np.flatnonzero(mask).tolist()
    return numbers
