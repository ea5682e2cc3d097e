"""The temperature field on its device: two buffers that change places after every sweep."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels.reductions.find import Labelled, first_of_each
from heatsim.kernels.reductions.fused import WHOLE, Labelling, PlaneWeights, Sections, partials
from heatsim.kernels.reductions.statistics import FieldReduction, Partials, Statistics, combined
from heatsim.parallel.halo import Halo
from heatsim.parallel.slab import Slab
from heatsim.parallel.team import Team
from heatsim.physics.matter.enthalpy import Thermometer
from heatsim.solver.field.points import PlacedValues, Points, joined

_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Extremes:
    """Lowest and highest temperature in K."""

    lowest: float
    highest: float


class Field:
    """Deviations from a reference temperature, [z, y, x], double-buffered on the device.

    If several ranks do a run, each has some planes of the field: its own ones, and halos beside them. Indices count
    in the own planes, unless a method says otherwise. Sums, extremes and cells are those of the whole field, equal on
    all ranks; these methods are collective.

    If materials vary with temperature, the buffers hold contents instead of deviations (matter/enthalpy.py).
    Use the methods of this class to get temperatures.

    Attributes:
        device: the device of the buffers.
        grid: the cells of the whole field.
        halo: the planes that this rank has, and those of its neighbours; all planes in a run on one rank.
        precision: of the values, "float32" or "float64".
        reference: the reference temperature in K, constant for a run.
        deviation: the current values in K of own planes and halos, a device array of shape (planes, ny, nx), float32
            or float64.
        spare: the buffer that the next sweep writes.
        thermometer: gives T − T_ref from the contents in the buffers; None if the buffers hold T − T_ref.
        point_thermometer: the same for values on the host.
        division: the parts of the cells, whose statistics are found separately.
        labels: for each cell the number of its part, a device array [z, y, x]; None if there is one part.
        weights: volumes of own cells over their mean, which count in sums; None if all cells are equal.
    """

    def __init__(self, device: Device, grid: Grid, precision: str, reference: float, halo: Halo | None = None) -> None:
        self.device = device
        self.grid = grid
        self.halo = halo or Halo.none(grid.shape[0], device)
        self.precision = precision
        self.reference = reference
        self._own = self.slab.own
        shape = (self.slab.depth, *grid.shape[1:])
        self.deviation: Any = device.xp.empty(shape, dtype=precision)
        self.spare: Any = device.xp.empty(shape, dtype=precision)
        if not self.slab.alone:  # halos are read before the first exchange, although the result is not used
            self.deviation.fill(0.0)
            self.spare.fill(0.0)
        self.thermometer: Thermometer | None = None
        self.point_thermometer: Thermometer | None = None
        _, ny, nx = grid.shape
        self._bounds = grid.groups.starts(self.slab.count) * (ny * nx)
        self.division: Labelling = WHOLE
        self.labels: Any = None
        self.weights = _weights(grid, self.slab, device.xp)
        self._reduction: FieldReduction | None = None
        self._statistics: list[Statistics] | None = None
        self._joined: Statistics | None = None
        self._points: list[Points] = []

    @property
    def slab(self) -> Slab:
        """The planes that this rank has."""
        return self.halo.slab

    @property
    def team(self) -> Team:
        """The ranks that have the field."""
        return self.halo.team

    @property
    def own(self) -> Any:
        """The current values of the own planes, a part of ``deviation``."""
        return self.deviation[self._own]

    def of(self, deviation: Any) -> "Field":
        """A field of other values on the same grid, which shares nothing else that changes."""
        other = copy(self)
        other.deviation = deviation
        other._points = []
        other.changed()
        return other

    def with_values(self, deviation: Any) -> "Field":
        """The same field with the same points, but with the values of another buffer, for launches that read them."""
        other = copy(self)
        other.deviation = deviation
        return other

    def divide(self, labels: Any, division: Labelling) -> None:
        """Divide the cells into parts, whose statistics are found separately from now on; see ``labels``."""
        self.labels, self.division = labels, division
        self.changed()

    def changed(self) -> None:
        """Discard stored statistics. Call this after every change of the current values."""
        self._reduction = self._statistics = self._joined = None
        for points in self._points:
            points.forget()

    def load_temperatures(
        self,
        slabs: Iterable[tuple[int, NDArray[np.float64]]],
        contents: Callable[[int, NDArray[np.float64]], NDArray[np.float64]] = lambda first, deviations: deviations,
    ) -> None:
        """Set the field.

        Args:
            slabs: planes of the whole grid as pairs (first z index in the whole grid, temperatures in K); others than
                own planes are left out.
            contents: a function from first z index and deviations in K to the values of the buffers.
        """
        own, first_own, last_own = self.own, self.slab.first, self.slab.last
        for first, slab in slabs:
            low, high = max(first, first_own), min(first + len(slab), last_own)
            if low < high:
                planes = contents(low, slab[low - first : high - first] - self.reference).astype(self.precision)
                own[low - first_own : high - first_own] = self.device.xp.asarray(planes)
        self.halo.stale()
        self.changed()

    def load_deviations(self, deviation: NDArray[Any]) -> None:
        """Set the own planes to the values of a checkpoint, bit for bit, or to one value for all cells; in K."""
        self.own[...] = self.device.xp.asarray(deviation)
        self.halo.stale()
        self.changed()

    def degrees(self, values: Any, place: Any) -> Any:
        """T − T_ref in K of the cells at an index of the field, from their values in the buffer."""
        return values if self.thermometer is None else self.thermometer(values, place)

    def temperature(self, void: Iterable[NDArray[np.bool_]] = ()) -> NDArray[np.float64]:
        """Temperatures in K of the whole field on the host, shape (nz, ny, nx), float64. Collective.

        Args:
            void: for each own plane, which cells are NaN; empty for none.
        """
        own = self.own
        temperature = np.empty(own.shape)
        count = max(1, _CELLS_AT_ONCE // temperature[0].size)
        for first in range(0, len(temperature), count):
            planes = slice(first, min(first + count, len(temperature)))
            deviation = self.degrees(own[planes], planes)
            temperature[planes] = self.device.to_host(deviation).astype(np.float64) + self.reference
        for plane, hidden in zip(temperature, void, strict=False):
            plane[hidden[0]] = np.nan
        return temperature if self.slab.alone else np.concatenate(self.team.gathered(temperature))

    def beside(self) -> dict[int, NDArray[np.float64]]:
        """Temperatures in K of the planes next to the own ones, shape (1, ny, nx) each. Collective.

        They are found by their number in the whole grid. There are none in a run on one rank.
        """
        edges = []
        for plane in (0, self.slab.count - 1) if any(self.slab.cut) else ():
            place = slice(plane, plane + 1)
            found = self.device.to_host(self.degrees(self.own[place], place))
            edges.append(found.astype(np.float64) + self.reference)
        below, above = self.halo.swap(*edges) if edges else (None, None)
        numbers = (self.slab.first - 1) % self.slab.planes, self.slab.last % self.slab.planes
        return {number: of for number, of in zip(numbers, (below, above), strict=True) if of is not None}

    def temperatures_of(self, values: Any, planes: Any) -> Any:
        """Temperatures in K of some planes, on the device: added in float64, rounded to the field's precision.

        Args:
            values: their values in the buffer, now or at an earlier time.
            planes: the index of the planes.
        """
        xp, deviation = self.device.xp, self.degrees(values, planes)
        out = xp.empty(values.shape, dtype=values.dtype)
        return xp.add(deviation, self.reference, out=out, dtype=np.float64, casting="same_kind")

    def statistics_by_part(self, division: Labelling | None = None) -> list[Statistics]:
        """Statistics of the buffer for each part of the cells, in one pass; stored until the field changes.

        Args:
            division: asks for more statistics than ``self.division``; this needs a separate pass.
        """
        if division is not None:
            return combined(self._partials(self.sections(), division))
        if self._statistics is None:
            self._statistics = combined(self.reduction().partials)
        return self._statistics

    def reduction(self) -> FieldReduction:
        """What a due time reads of the buffer, from one pass; stored until the field changes. Collective."""
        if self._reduction is None:
            (self._reduction,) = FieldReduction.of_each(self._partials(self.sections(), self.division)[np.newaxis])
        return self._reduction

    def statistics(self) -> Statistics:
        """Sums, extremes and number of non-finite values of the whole buffer, from one pass; void is included."""
        if self._joined is None:
            self._joined = Statistics.joined(self.statistics_by_part())
        return self._joined

    def largest_change(self, before: Any) -> float:
        """The largest magnitude in K of the change since ``own`` held ``before``, a device array like it."""
        compared = replace(self.sections(), labels=None, before=before, weights=None)
        return combined(self._partials(compared, WHOLE))[0].largest_change

    def _partials(self, sections: Sections, division: Labelling) -> Partials:
        """STATISTICS of the sections of all ranks."""
        (found,) = partials(self.device, [sections], division)
        return found if self.team.size == 1 else np.concatenate(self.team.gathered(found))

    def sections(self) -> Sections:
        """The current values of the own planes in groups of planes."""
        return Sections(self.own, self._bounds, self.labels, weights=self.weights)

    def total(self) -> float:
        """Sum of the deviations in K, summed in float64 in a fixed order; not finite if any value is not.

        Each counts with the volume of its cell over the mean volume.
        """
        return self.statistics().total

    def first_with(self, *wanted: tuple[float, Labelled | None]) -> list[int]:
        """The index in the flattened whole field of the first cell with each of some values. Collective.

        Args:
            wanted: values that occur in the buffer, each with the cells to search, or None to search all. Labels are
                those of own cells.
        """
        own, found = self.own, list[int | None]()
        offset = self.slab.first * int(own[0].size)
        for some in [wanted] if self.slab.alone else [(each,) for each in wanted]:
            try:
                places = first_of_each(self.device, [own] * len(some), *map(list, zip(*some, strict=True)))
                # On a GPU a very large index means that no cell was found.
                found += [place + offset if place < own.size else None for place in places]
            except ValueError:
                if self.slab.alone:
                    raise
                found.append(None)
        of_ranks = zip(*self.team.gathered(found), strict=True)
        return [min(cell for cell in cells if cell is not None) for cells in of_ranks]

    def points(self, x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> Points:
        """The cells at three index arrays of equal shape."""
        self._points.append(Points(self, x, y, z))
        return self._points[-1]

    @property
    def known(self) -> bool:
        """Whether the statistics of the current values are known."""
        return self._reduction is not None

    @property
    def all_points(self) -> Sequence[Points]:
        """All points that observers have requested."""
        return self._points

    @property
    def labelling_key(self) -> Hashable:
        """A key that is equal for fields whose statistics one launch can find."""
        division, labels = self.division, self.labels
        label = None if labels is None else str(labels.dtype)
        return self.precision, division.parts, division.mask, label, id(division.thermometers), self.weights is None

    def store(self, reduction: FieldReduction, at_points: Sequence[Sequence[PlacedValues]]) -> None:
        """Store the statistics and temperatures of the current values.

        Args:
            reduction: the statistics.
            at_points: places and temperatures in K of the own cells, for each rank and each of the points.
        """
        self._reduction, self._statistics, self._joined = reduction, None, None
        for points, values in zip(self._points, zip(*at_points, strict=True), strict=True):
            points.of_ranks = values

    def joined(self, held: NDArray[np.intp], values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Values of all ranks in one array of a shape. Collective.

        Args:
            held: the places in the flattened array whose values this rank has.
            values: these values.
            shape: of the whole array.
        """
        own = held, values
        return joined([own] if self.slab.alone else self.team.gathered(own), shape)


def _weights(grid: Grid, slab: Slab, xp: Any) -> PlaneWeights | None:
    """The volumes of a rank's own cells over their mean, on the device of ``xp``; None if all cells are equal."""
    if grid.uniform:
        return None
    x, y, z = (axis.volume_factors for axis in grid.axes)
    return PlaneWeights(xp.asarray((y[:, None] * x).reshape(-1)), xp.asarray(z[slab.first : slab.last]))
