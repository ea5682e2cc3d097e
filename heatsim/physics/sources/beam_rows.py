"""The flux of a beam on a face in each of many steps."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BeamRows:
    """The flux of a beam on its face in n steps, in W/m²: at cell (u, v) the sum over spots of u-weight times v-weight.

    Attributes:
        face: its number.
        first: the cell at which the weights of each spot start, along the face's two axes; shape (n, spots, 2).
        weights: along u in W/m², and along v; shapes (n, spots, cells).
        spots: how many spots each step has, shape (n,). The weights of further ones are 0.
        number: of the beam among those of the scenario.
        at_face: whether cells at the face absorb it with their surface. Whatever else becomes of it is in
            :class:`heatsim.physics.cells.cell_heat.HeatedCells`.
    """

    face: int
    first: NDArray[np.int32]
    weights: tuple[Array, Array]
    spots: NDArray[np.int32]
    number: int = 0
    at_face: bool = True

    def __getitem__(self, some: slice) -> "BeamRows":
        """The flux in some of the steps; one step holds for all."""
        if len(self.first) == 1:
            return self
        u, v = self.weights
        return replace(self, first=self.first[some], weights=(u[some], v[some]), spots=self.spots[some])

    def combined(self, other: "BeamRows", own: float, others: float) -> "BeamRows":
        """The sum of the flux in one step of this and one of another, each times a factor."""
        spots, more = int(self.spots[0]), int(other.spots[0])
        weights = [
            np.concatenate((factor * mine[:, :spots], other_factor * theirs[:, :more]), axis=1)
            for mine, theirs, factor, other_factor in zip(
                self.weights, other.weights, (own, 1.0), (others, 1.0), strict=True
            )
        ]
        first = np.concatenate((self.first[:, :spots], other.first[:, :more]), axis=1)
        return replace(
            self, first=first, weights=(weights[0], weights[1]), spots=np.array([spots + more], self.spots.dtype)
        )

    def of_spots(self, step: int) -> list[tuple[NDArray[np.int32], Array, Array]]:
        """For each spot of a step the first cell, and the weights along u and v."""
        row, (u, v) = min(step, len(self.first) - 1), self.weights
        return [(self.first[row, spot], u[row, spot], v[row, spot]) for spot in range(int(self.spots[row]))]

    def add_to(self, flux: Array, step: int) -> None:
        """Add the flux in a step to that at all cells of the face, shape of the face's map."""
        for (first_u, first_v), u, v in self.of_spots(step):
            flux[first_v : first_v + len(v), first_u : first_u + len(u)] += np.outer(v, u)

    def fluxes(self, step: int, cells: NDArray[np.int32]) -> Array:
        """The flux in W/m² at cells (u, v) of the face in a step, shape (cells,); 0 beyond the windows."""
        found = np.zeros(len(cells), self.weights[0].dtype)
        for first, *weights in self.of_spots(step):
            part = np.ones(len(cells), found.dtype)
            for place, along in zip((cells - first).T, weights, strict=True):
                inside = (place >= 0) & (place < len(along))
                part *= np.where(inside, along[np.clip(place, 0, len(along) - 1)], found.dtype.type(0.0))
            found += part
        return found
