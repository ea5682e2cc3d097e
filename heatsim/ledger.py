"""The heat that has passed each face, summed over every step, not sampled.

One float64 sum for each cell of a face, in kelvin of that cell, added to by the thread that updates the cell; turned
into joules in a fixed order when a row is due, so that two runs give the same digits.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import FACES, Grid
from heatsim.physics.faces import Faces


class Ledger:
    """Sums of f − g·T for the faces that exchange heat.

    Attributes:
        faces: six device arrays of float64; those of x faces are [z, y], of y faces [z, x], of z faces [y, x]. Faces
            that exchange nothing, and all of them when the ledger is off, have empty arrays.
    """

    def __init__(self, device: Device, grid: Grid, faces: Faces, enabled: bool) -> None:
        nz, ny, nx = grid.shape
        shapes = ((nz, ny), (nz, nx), (ny, nx))
        self.faces: tuple[Any, ...] = tuple(
            device.xp.zeros(shapes[face // 2] if enabled and faces.exchanging(face) else (0, 0)) for face in range(6)
        )
        self._device = device

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(sums.nbytes) for sums in self.faces)

    def heats(self, cell_heat_capacity: float) -> tuple[float, ...]:
        """Heat through each face into the body since the start, in J, from a cell's ρ·cp·V in J/K."""
        return tuple(float(sums.sum()) * cell_heat_capacity for sums in self.faces)

    def save(self) -> dict[str, NDArray[np.float64]]:
        """The sums by face name, on the host."""
        return {
            f"ledger_{name}": self._device.to_host(sums)
            for name, sums in zip(FACES, self.faces, strict=True)
            if sums.size
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what :meth:`save` gave."""
        for name, sums in zip(FACES, self.faces, strict=True):
            if sums.size:
                sums[...] = self._device.xp.asarray(arrays[f"ledger_{name}"])
