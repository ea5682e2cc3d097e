"""Links between neighbouring cells of two types: the places of contacts and gaps."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.geometry.cell_faces import between, cells_beside

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class TypeLinks(NamedTuple):
    """Links, each once, sorted by the cell below and by the axis; arrays of the length or the shape (2, links).

    Attributes:
        cells: below and above, by their index in the flattened grid.
        axes: along which they are neighbours, 0 = x.
        types: of both cells.
        halves: the factors of both half cells, see `Axis.half_factors`.
        gains: area over volume of both cells in 1/m.
    """

    cells: Indices
    axes: Indices
    types: NDArray[np.intp]
    halves: Array
    gains: Array

    def part(self, some: NDArray[np.bool_]) -> "TypeLinks":
        """Some of the links."""
        return TypeLinks(
            self.cells[:, some], self.axes[some], self.types[:, some], self.halves[:, some], self.gains[:, some]
        )


def links_between(materials: CellTypes, periodic: tuple[bool, bool, bool], wanted: NDArray[np.bool_]) -> TypeLinks:
    """The links between cells of types a ≠ b with ``wanted[a, b]``, which is symmetric. Collective."""
    grid, held = materials.grid, materials.held
    nx, ny, _ = grid.cells
    faces = np.zeros(0, dtype=np.int64)
    if materials.cells.size:
        local = between(held.grid(grid), materials.cells & CELL_TYPE, wanted, held.periodic(periodic))
        faces = 3 * held.global_cells(local // 3, nx * ny) + local % 3
        first, last = held.own_planes(grid.shape[0])
        faces = faces[(faces // 3 >= first * nx * ny) & (faces // 3 < last * nx * ny)]
    faces = np.sort(np.concatenate(held.gathered(faces)))
    cells, axes = np.array(cells_beside(grid, faces)).reshape(2, -1), faces % 3
    places = cells % nx, cells // nx % ny, cells // (nx * ny)
    types = np.array([materials.types_at(*(of[end] for of in places)) for end in (0, 1)]).reshape(2, -1)
    halves, gains = np.ones((2, 2, len(faces)))
    for axis, of in enumerate(grid.axes):
        here = axes == axis
        for end in (0, 1):
            place = places[axis][end, here]
            halves[end, here] = of.half_factors[place, 1 - end]
            gains[end, here] = of.gain_factors[place, 1 - end] / of.spacing
    return TypeLinks(cells, axes, types, halves, gains)
