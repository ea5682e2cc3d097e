"""The half cells in series with a film or a contact: they decide how much of a change of it a body feels."""

from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.operator.boundary_faces import at_box

Array = NDArray[np.float64]


def half_cells(boundary: Boundary, materials: CellTypes) -> list[list[float]]:
    """Resistances of the half cells behind each condition in m² K/W: the least and the largest, if any conducts."""
    found = [list[float]() for _ in boundary.conditions]
    for side in range(6):
        faces = at_box(boundary, materials.grid, side)
        for number, some in faces.by_condition() if len(faces) else ():
            found[number] += _ends(some.resistances(materials))
    everywhere = _ends(_in_all_planes(materials, materials.half))
    return [everywhere if boundary.is_towards_void(number) else of for number, of in enumerate(found)]


def half_cells_of_gap(materials: CellTypes, row: int) -> list[float]:
    """The least and the largest resistance in m² K/W of both half cells at contacts, by the row of their law."""
    both = materials.half[:, :, np.newaxis] + materials.half[:, np.newaxis, :]
    return _ends(_in_all_planes(materials, both[:, materials.gap_of == row]))


def ratios(largest: float, resistances: list[float]) -> Array:
    """The products of the largest film and resistances from the least to the largest, a factor of two apart or less.

    Which of them feels most of a change depends on the film during the change.
    """
    if not resistances or largest <= 0.0:
        return np.zeros(1)
    low, high = min(resistances), max(resistances)
    return np.asarray(largest * np.geomspace(low, high, 1 + ceil(log2(high / low))))


def _in_all_planes(materials: CellTypes, resistances: Array) -> Array:
    """Resistances for each axis, times the factors of the widths of its planes."""
    pairs = zip(materials.grid.axes, resistances, strict=True)
    return np.concatenate([np.outer(axis.half_factors.ravel(), of.ravel()).ravel() for axis, of in pairs])


def _ends(resistances: Array) -> list[float]:
    """The least and the largest finite one."""
    finite = resistances[np.isfinite(resistances) & (resistances > 0.0)]
    return [float(finite.min()), float(finite.max())] if len(finite) else []
