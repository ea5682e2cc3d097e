"""Cells of a field that are read repeatedly, such as those of probes."""

from collections.abc import Sequence
from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels.reductions.gather import gather
from heatsim.parallel.slab import Slab
from heatsim.physics.matter.enthalpy import Thermometer

# Places in a flattened array, and the values there.
PlacedValues = tuple[NDArray[np.intp], NDArray[Any]]


class PointsField(Protocol):
    """The part of :class:`heatsim.solver.field.field.Field` that points use."""

    device: Device
    grid: Grid
    reference: float
    point_thermometer: Thermometer | None

    @property
    def slab(self) -> Slab:
        """The planes of this rank."""

    @property
    def own(self) -> Any:
        """The current values of the own planes, on the device."""

    @property
    def all_points(self) -> "Sequence[Points]":
        """All points of the field."""

    def joined(self, held: NDArray[np.intp], values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Values of all ranks in one array."""


class Points:
    """Some cells of a field that are read repeatedly.

    The field has a list of its points. They refer to it weakly, so that it is released with its last other reference.

    Attributes:
        cells: the cells in own planes, as indices in the flattened own planes, on the device, int64.
        held: the places of these cells in the flattened index arrays.
        of_ranks: for each rank the places and temperatures in K of its cells, if they are known.
    """

    def __init__(self, field: PointsField, x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> None:
        _, ny, nx = field.grid.shape
        self._weak_field = ref(field)
        self._shape = x.shape
        held = field.slab.holds(z)
        self._own_places = z[held], y[held], x[held]
        own = ((z[held] - field.slab.first) * ny + y[held]) * nx + x[held]
        self.cells: Any = field.device.xp.asarray(np.ascontiguousarray(own))
        self.held = np.flatnonzero(held)
        self._own: NDArray[np.float64] | None = None
        self.of_ranks: Sequence[PlacedValues] | None = None

    @property
    def _field(self) -> PointsField:
        field = self._weak_field()
        assert field is not None, "points are read only while their field exists"
        return field

    def temperatures(self) -> NDArray[np.float64]:
        """Temperatures in K, in the shape of the index arrays. Collective."""
        if self.of_ranks is None:
            return self._field.joined(self.held, self.own_temperatures(), self._shape)
        return joined(self.of_ranks, self._shape)

    def own_temperatures(self) -> NDArray[np.float64]:
        """Temperatures in K of the cells in own planes, in the order of the flattened index arrays.

        A GPU gathers all points of the field at once.
        """
        field = self._field
        if self._own is None and field.device.backend == "cpu":
            self.take(field.own.reshape(-1)[self.cells])
        elif self._own is None:
            gather_points([field])
        assert self._own is not None
        return self._own

    def take(self, values: NDArray[Any]) -> None:
        """Store the current values of the cells in own planes, read from the buffer."""
        thermometer = self._field.point_thermometer
        deviations = values if thermometer is None else thermometer(values, self._own_places)
        self._own = np.asarray(deviations.astype(np.float64) + self._field.reference)

    def forget(self) -> None:
        """Discard the stored temperatures."""
        self._own = self.of_ranks = None


def joined(of_ranks: Sequence[PlacedValues], shape: tuple[int, ...]) -> NDArray[Any]:
    """The values of all ranks in one array of a shape."""
    if len(of_ranks) == 1:
        return of_ranks[0][1].reshape(shape)
    whole = np.empty(shape, of_ranks[0][1].dtype)
    for places, values in of_ranks:
        whole.reshape(-1)[places] = values
    return whole


def gather_points(fields: Sequence[PointsField]) -> None:
    """Find the values at all points of several fields, of one precision and on one GPU, with one launch."""
    wanted = [(field, points) for field in fields for points in field.all_points]
    values = gather(fields[0].device, [(field.own, points.cells) for field, points in wanted])
    for (_, points), its_values in zip(wanted, values, strict=True):
        points.take(its_values)
