"""The contact resistances with which gaps let the heat of one moment through."""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.gap_laws import GapLinks
from heatsim.physics.conditions.surface_balance import NUMBERS
from heatsim.physics.problem import HeatProblem

Array = NDArray[np.float64]


def with_gap_resistances(
    problem: HeatProblem,
    rows: Array,
    types: tuple[NDArray[np.intp], NDArray[np.intp]],
    temperatures: tuple[Array, Array],
    halves: tuple[Array, Array],
    contact: Array,
) -> Array:
    """Contact resistances in m² K/W of voxel faces, with those of gaps at the temperatures of the cells beside them.

    Args:
        problem: the problem.
        rows: of the conditions at one time, with temperatures in K.
        types: of the cells on both sides of each face.
        temperatures: of these cells in K.
        halves: the resistances of their half cells in m² K/W.
        contact: the resistances of contacts, for gaps the smallest ones, over the ratios of the areas.
    """
    materials = problem.materials
    if not materials.has_gaps:
        return contact
    laws = materials.gap_of[types]
    shape = np.broadcast_shapes(laws.shape, *(np.shape(of) for of in (*temperatures, *halves, contact)))
    found, laws = np.broadcast_to(contact, shape).copy(), np.broadcast_to(laws, shape)
    some = (laws >= 0) & (found > 0.0) & np.isfinite(found)
    if some.any():
        nominal = np.broadcast_to(materials.resistance[types], shape)[some]
        first = NUMBERS * laws[some]
        own = [np.broadcast_to(of, shape)[some] for of in (*halves, *temperatures)]
        links = GapLinks(rows.reshape(-1), first, 0.0, own[0], own[1], nominal / found[some])
        found[some] = links.resistance(own[2], own[3])
    return found
