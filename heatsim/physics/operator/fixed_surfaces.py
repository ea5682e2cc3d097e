"""Which surfaces of cells are held at temperatures."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.geometry.cell_faces import Indices
from heatsim.physics.geometry.division import Division
from heatsim.physics.operator.boundary_faces import at_box
from heatsim.physics.operator.rooms import numbers_towards_void
from heatsim.scenario import Temperature

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FixedSurfaces:
    """The surfaces of a body that are held at temperatures.

    Attributes:
        boundary: the conditions.
        conditions: which of them hold a temperature, shape (conditions,).
        towards_void: on the surface of which kinds of cells towards void that each region painted, shape
            (kinds, 1 + regions).
        painted: a function that gives the number of the region that painted cells; None without regions.
    """

    boundary: Boundary
    conditions: Mask
    towards_void: Mask
    painted: Callable[[Indices], NDArray[np.uint8]] | None

    @classmethod
    def of(
        cls, boundary: Boundary, division: Division, painted: Callable[[Indices], NDArray[np.uint8]] | None
    ) -> "FixedSurfaces":
        """Those of a body, from its conditions and its kinds of cells."""
        conditions = np.array([isinstance(condition, Temperature) for condition in boundary.conditions])
        return cls(boundary, conditions, conditions[numbers_towards_void(boundary, division)], painted)

    def parts(self, side: int, cells: Indices, kinds: NDArray[np.uint8]) -> Array:
        """The parts of surfaces of cells on a side that are held, 0 to 1.

        Args:
            side: 0 for x−, …, 5 for z+.
            cells: by their index in the flattened grid; on this side lies a face of the box or void.
            kinds: of the cells.
        """
        grid = self.boundary.scenario.grid
        different, which = np.unique(cells, return_inverse=True)
        at, faces = at_box(self.boundary, grid, side).of(different)
        found, at_face = np.zeros(len(different)), np.zeros(len(different), dtype=bool)
        np.add.at(found, at, np.where(self.conditions[faces.conditions], faces.fractions, 0.0))
        at_face[at] = True
        which = which.reshape(cells.shape)
        n, stride = grid.cells[side // 2], int(np.prod(grid.cells[: side // 2]))
        place = cells // stride % n
        beyond = cells + ((place + 2 * (side % 2) - 1) % n - place) * stride
        rooms = 0 if self.painted is None else self.painted(beyond)
        return np.where(at_face[which], found[which], self.towards_void[kinds, rooms])
