"""The temperature field on its device: two buffers that change places after every sweep."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid

# Cells whose magnitudes are made at a time: on the CPU few enough for its caches, on a GPU enough to keep it busy.
_CELLS_SUMMED = {"cpu": 2**16, "cuda": 2**22}


@dataclass(frozen=True)
class Extremes:
    """Lowest and highest temperature in K."""

    lowest: float
    highest: float


class Field:
    """Deviations from a reference temperature, [z, y, x], double-buffered on the device.

    Attributes:
        device: where the buffers are.
        grid: the cells.
        reference: the temperature in K that a deviation of 0 means; constant for a run.
        deviation: the current values in K, a device array of shape (nz, ny, nx), float32 or float64.
        spare: the buffer that the next sweep writes.
    """

    def __init__(self, device: Device, grid: Grid, precision: str, reference: float) -> None:
        self.device = device
        self.grid = grid
        self.reference = reference
        self.deviation: Any = device.xp.empty(grid.shape, dtype=precision)
        self.spare: Any = device.xp.empty(grid.shape, dtype=precision)

    @property
    def precision(self) -> str:
        """The precision of the values, "float32" or "float64"."""
        return str(self.deviation.dtype)

    def swap(self) -> None:
        """What the sweep wrote becomes current; no data moves."""
        self.deviation, self.spare = self.spare, self.deviation

    def load_temperatures(self, slabs: Iterable[tuple[int, NDArray[np.float64]]]) -> None:
        """Set the field from (first z index, temperatures in K) slabs that cover the grid."""
        for first, slab in slabs:
            planes = (slab - self.reference).astype(self.precision)
            self.deviation[first : first + len(slab)] = self.device.xp.asarray(planes)

    def load_deviations(self, deviation: NDArray[Any]) -> None:
        """Set the field to the bit from deviations in K, as a checkpoint keeps them."""
        self.deviation[...] = self.device.xp.asarray(deviation)

    def temperature(self) -> NDArray[np.float64]:
        """Temperatures in K on the host, shape (nz, ny, nx), float64."""
        return self.device.to_host(self.deviation).astype(np.float64) + self.reference

    def temperature_slabs(self) -> Iterator[NDArray[Any]]:
        """Temperatures in K on the host in the field's precision, from the bottom up, a few planes at a time."""
        nz, ny, nx = self.grid.shape
        planes = max(1, 2**24 // (nx * ny))
        for first in range(0, nz, planes):
            slab = self.device.to_host(self.deviation[first : first + planes])
            yield (slab.astype(np.float64) + self.reference).astype(self.precision)

    def total(self) -> float:
        """Sum of the deviations in K, summed in float64 in a fixed order; not finite if any value is not."""
        if self.device.backend == "cuda":
            return float(self.deviation.sum(dtype=np.float64))
        # Plane by plane: bounded temporaries, and the same order whatever the number of cores.
        with np.errstate(invalid="ignore"):  # +∞ − ∞
            return float(np.sum([plane.sum(dtype=np.float64) for plane in self.deviation]))

    def absolute_total(self) -> float:
        """Sum of the deviations' magnitudes in K, summed in float64 in a fixed order, a few planes at a time."""
        nz, ny, nx = self.grid.shape
        planes = max(1, _CELLS_SUMMED[self.device.backend] // (nx * ny))
        parts = [abs(self.deviation[first : first + planes]).sum(dtype=np.float64) for first in range(0, nz, planes)]
        return float(sum(parts))

    def extremes(self) -> Extremes:
        """Lowest and highest temperature in K."""
        return Extremes(
            float(self.deviation.min()) + self.reference,
            float(self.deviation.max()) + self.reference,
        )

    def cells(self, x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> NDArray[np.float64]:
        """Temperatures in K of single cells, one gather on the device; three index arrays of equal shape."""
        xp = self.device.xp
        values = self.deviation[xp.asarray(z), xp.asarray(y), xp.asarray(x)]
        return self.device.to_host(values).astype(np.float64) + self.reference
