"""Heat into a body by where it passed: what stays of it, and what has entered and left."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeatRows:
    """Heat in J into a body in several spans of time, each from one row to the next, or from the start to a row.

    Attributes:
        numbers: for each time the heats, and then their magnitudes: Σ |heat| over boundary faces, or over cells; in the
            order of the properties below; shape (times, 2, heats).
        patches: the number of patches.
        surfaces: the number of named surfaces towards void, see ``Boundary.named``.
        contacts: the number of contacts whose heat follows from balances.
    """

    numbers: Array
    patches: int
    surfaces: int
    contacts: int

    @property
    def through(self) -> Array:
        """Through the faces, then through the patches, which the faces contain; without beams; (times, surfaces)."""
        return self.numbers[:, 0, : self._void]

    @property
    def faces(self) -> Array:
        """Through the faces, shape (times, 6)."""
        return self.numbers[:, 0, : len(FACES)]

    @property
    def towards_void(self) -> Array:
        """Through all surfaces towards void, then through each named one, shape (times, 1 + surfaces)."""
        return self.numbers[:, 0, self._void : self._void + 1 + self.surfaces]

    @property
    def behind_contacts(self) -> Array:
        """Σ levels·heat of all cells, for each contact, see :mod:`heatsim.physics.readings.contact_balances`."""
        return self.numbers[:, 0, self._void + 1 + self.surfaces : -2]

    @property
    def beams(self) -> Array:
        """Absorbed from beams by surfaces, shape (times,)."""
        return self.numbers[:, 0, -2]

    @property
    def cells(self) -> Array:
        """From sources that heat single cells, and from beams to cells in the body, shape (times,)."""
        return self.numbers[:, 0, -1]

    @property
    def magnitude(self) -> Array:
        """Σ |heat| of all boundary faces, without beams, shape (times,)."""
        magnitudes = self.numbers[:, 1]
        return np.asarray(magnitudes[:, : len(FACES)].sum(axis=1) + magnitudes[:, self._void])

    @property
    def cells_magnitude(self) -> Array:
        """Σ |heat| of the cells of :attr:`cells`, shape (times,)."""
        return self.numbers[:, 1, -1]

    @property
    def _void(self) -> int:
        return len(FACES) + self.patches


class RunningSums:
    """Sums of numbers from row to row, rounded once: each addition's error is kept and added up beside it.

    Attributes:
        parts: the sums and the errors, whose sum is meant.
    """

    def __init__(self, parts: Array) -> None:
        self.parts = parts

    def add(self, rows: Array) -> Array:
        """The sums after each of some rows; their bits do not depend on which rows are added together."""
        sums = np.add.accumulate(np.concatenate((self.parts[:1], rows)))
        before, after = sums[:-1], sums[1:]
        added = after - before
        errors = (before - (after - added)) + (rows - added)
        lost = np.add.accumulate(np.concatenate((self.parts[1:], errors)))
        self.parts = np.stack((sums[-1], lost[-1]))
        return np.asarray(after + lost[1:])
