"""Which surfaces of cells are held at temperatures."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.geometry.cell_faces import Indices
from heatsim.physics.geometry.division import Division
from heatsim.physics.operator.boundary_faces import at_box
from heatsim.scenario import Temperature

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FixedSurfaces:
    """The surfaces of a body that are held at temperatures.

    Attributes:
        boundary: the conditions.
        conditions: which of them hold a temperature, shape (conditions,).
        towards_void: on the surface of which kinds of cells towards void, shape (kinds,).
    """

    boundary: Boundary
    conditions: Mask
    towards_void: Mask

    @classmethod
    def of(cls, boundary: Boundary, division: Division) -> "FixedSurfaces":
        """Those of a body, from its conditions and its kinds of cells."""
        conditions = np.array([isinstance(condition, Temperature) for condition in boundary.conditions])
        towards_void = [boundary.towards_void(region) for _, region in division.kinds]
        return cls(boundary, conditions, conditions[towards_void])

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
        return np.where(at_face[which], found[which], self.towards_void[kinds])
