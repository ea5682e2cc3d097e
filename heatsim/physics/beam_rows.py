"""The flux of a beam on a face in each of many steps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BeamRows:
    """The flux of a beam on its face in n steps, in W/m²: u-weight times v-weight at cell (u, v).

    Attributes:
        face: its number.
        first: the cell at which the weights start, along the face's two axes; shape (n, 2).
        weights: along u in W/m², and along v; shapes (n, cells).
        at_face: whether cells at the face absorb it with their surface. Whatever else becomes of it is in
            :class:`heatsim.physics.cell_heat.HeatedCells`.
    """

    face: int
    first: NDArray[np.int32]
    weights: tuple[Array, Array]
    at_face: bool = True

    def fluxes(self, step: int, spots: NDArray[np.int32]) -> Array:
        """The flux in W/m² at cells (u, v) of the face in a step, shape (spots,); 0 beyond the window."""
        row, (along_u, along_v) = min(step, len(self.first) - 1), self.weights
        found = np.ones(len(spots))
        for number, along in enumerate((along_u[row], along_v[row])):
            place = spots[:, number] - int(self.first[row, number])
            inside = (place >= 0) & (place < len(along))
            found *= np.where(inside, along[np.clip(place, 0, len(along) - 1)], 0.0)
        return found
