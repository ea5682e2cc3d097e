"""Heat into a body since the start, by where it passed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES


@dataclass(frozen=True)
class Heats:
    """Heat in J into a body since the start.

    Attributes:
        faces: through each face, including its patches, without beams.
        patches: through each patch.
        void: through the surfaces towards void.
        surfaces: through the surface of each region that has a condition towards void; ``void`` contains them.
        beams: absorbed from beams by surfaces.
        magnitude: Σ |heat through the faces of each cell|, including surfaces towards void, without beams.
        cells: from sources that heat single cells, and from beams to cells in the body.
        cells_magnitude: Σ |heat to each of these cells|.
    """

    faces: tuple[float, ...]
    patches: tuple[float, ...]
    void: float
    surfaces: tuple[float, ...]
    beams: float
    magnitude: float
    cells: float
    cells_magnitude: float


@dataclass(frozen=True, eq=False)
class HeatRows:
    """:class:`Heats` at several times.

    Attributes:
        numbers: in the order of its attributes, shape (times, numbers).
        patches: the number of patches.
        regions: the number of regions with a condition towards void.
    """

    numbers: NDArray[np.float64]
    patches: int
    regions: int

    @property
    def through(self) -> NDArray[np.float64]:
        """Through the faces, then through the patches, shape (times, surfaces)."""
        return self.numbers[:, : self._void]

    @property
    def faces(self) -> NDArray[np.float64]:
        """Through the faces, shape (times, 6)."""
        return self.numbers[:, : len(FACES)]

    @property
    def towards_void(self) -> NDArray[np.float64]:
        """Through all surfaces towards void, then through those of each region, shape (times, 1 + regions)."""
        return self.numbers[:, self._void : self._rest]

    @property
    def rest(self) -> NDArray[np.float64]:
        """The other numbers: beams, magnitude, cells, cells_magnitude; one row each, shape (4, times)."""
        return self.numbers[:, self._rest :].T

    def row(self, number: int) -> Heats:
        """The heats at one time."""
        row: list[float] = self.numbers[number].tolist()
        faces, patches, surfaces = row[: len(FACES)], row[len(FACES) : self._void], row[self._void + 1 : self._rest]
        return Heats(tuple(faces), tuple(patches), row[self._void], tuple(surfaces), *row[self._rest :])

    @property
    def _void(self) -> int:
        return len(FACES) + self.patches

    @property
    def _rest(self) -> int:
        return self._void + 1 + self.regions
