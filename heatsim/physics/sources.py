"""Heat set free in the body, and beams on its faces, averaged over each time step.

A power is shared evenly by the cells that it heats, so it is exact on the grid whatever its cells. A beam's Gaussian is
integrated over each cell by differences of the error function. The cells of a spot that lies inside its face receive
the whole power, however coarse they are; the part of a spot that falls beside the face misses it. On a periodic axis
that part comes back in at the other end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, erf, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.cell_types import CellTypes
from heatsim.scenario import Beam, Periodic, Scenario, Source, face_axes

Array = NDArray[np.float64]

# A spot is followed to 4 radii from its centre along each axis. The flux there is exp(-32) of its peak, and what lies
# beyond is 3e-15 of the power.
_REACH = 4.0
# A spot this many times as wide as a periodic axis is long heats it evenly, to exp(-44) of its flux.
_EVEN = 3.0

_erf: Callable[[Array], Array] = np.vectorize(erf, otypes=[np.float64])


@dataclass(frozen=True, eq=False)
class BeamRows:
    """The flux of a beam on its face in n steps, in W/m²: u-weight times v-weight at cell (u, v).

    Attributes:
        face: its number.
        first: the cell at which the weights start, along the face's two axes; shape (n, 2).
        weights: along u in W/m², and along v; shapes (n, cells).
    """

    face: int
    first: NDArray[np.int32]
    weights: tuple[Array, Array]


@dataclass(frozen=True)
class Sources:
    """The sources of a scenario on a grid.

    Attributes:
        scenario: the scenario.
        materials: the cell types; the sources that they name count those without a beam.
    """

    scenario: Scenario
    materials: CellTypes

    @property
    def volumetric(self) -> list[Source]:
        """The sources in the body, in the order in which the cell types count them."""
        return [source for source in self.scenario.sources if source.beam is None]

    @property
    def beams(self) -> list[Source]:
        """The sources on faces."""
        return [source for source in self.scenario.sources if source.beam is not None]

    @property
    def heat_constant(self) -> bool:
        """Whether the heat of each step is that of every other of the same length."""
        return all(source.scale.constant and source.during is None for source in self.volumetric)

    def beam_faces(self) -> set[int]:
        """The numbers of the faces that beams fall on."""
        return {FACES.index(source.beam.face) for source in self.beams if source.beam is not None}

    def heat(self, times: Array, dt: float, lengths: Array | None = None) -> Array:
        """What steps of ``dt`` seconds give to the cells of each type, in K, shape (times, types).

        Args:
            times: starts in s of the intervals over which the sources are averaged.
            dt: in s.
            lengths: of these intervals in s; None for ``dt``.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        materials = self.materials
        density = np.zeros((len(times), len(materials.types)))
        for number, source in enumerate(self.volumetric):
            heated = np.array([number in cell_type.sources for cell_type in materials.types])
            if source.power_density is None:
                assert source.power is not None
                amount = source.power / (float(materials.counts[heated].sum()) * materials.grid.cell_volume)
            else:
                amount = source.power_density
            density[:, heated] += (amount * self._scale(source, times, dt if lengths is None else lengths))[:, None]
        capacity = np.where(materials.heat_capacity > 0.0, materials.heat_capacity, 1.0)
        return density * dt / capacity

    def total(self, heat: Array, factors: Array, precision: str) -> float:
        """Heat in J that sources in the body give in stages, as rounded for kernels.

        Args:
            heat: as in :class:`heatsim.physics.rows.Rows`, shape (n or 1, types).
            factors: of the n stages, as there.
            precision: of the kernels.
        """
        if not self.volumetric:
            return 0.0
        rounded, steps = (numbers.astype(precision).astype(np.float64) for numbers in (heat, factors))
        if len(rounded) == 1:
            steps = steps.sum(keepdims=True)
        capacities = self.materials.counts * self.materials.cell_heat_capacity
        return float(steps @ (rounded @ capacities))

    def powers(self, times: Array, dt: float) -> Array:
        """Mean power in W of every source in the body in steps of ``dt`` seconds from ``times``.

        Returns:
            Shape (times, sources), in the order of ``volumetric``.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        materials = self.materials
        powers = np.zeros((len(times), len(self.volumetric)))
        for number, source in enumerate(self.volumetric):
            if source.power is not None:
                whole = source.power
            else:
                assert source.power_density is not None
                heated = np.array([number in cell_type.sources for cell_type in materials.types])
                whole = source.power_density * float(materials.counts[heated].sum()) * materials.grid.cell_volume
            powers[:, number] = whole * self._scale(source, times, dt)
        return powers

    def beam_rows(self, times: Array, dt: float | Array) -> list[BeamRows]:
        """What every beam brings in steps of ``dt`` seconds, one length or one for each, from ``times``.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        return [self._beam(source, times, dt) for source in self.beams]

    def absorbed(self, times: Array, dt: float | Array) -> Array:
        """What all beams bring to their faces and beside them in steps of ``dt`` seconds, in W by magnitude."""
        powers = [np.abs(self._spot(source, times, dt)[1]) for source in self.beams]
        return np.asarray(sum(powers, start=np.zeros(len(times))))

    def beam_bytes(self, itemsize: int) -> int:
        """Bytes of one step's weights."""
        return itemsize * sum(
            self._window(source.beam, axis)
            for source in self.beams
            if source.beam is not None
            for axis in face_axes(source.beam.face)
        )

    def _scale(self, source: Source, times: Array, dt: float | Array) -> Array:
        scale = source.scale.mean(times, dt)
        if source.during is not None:
            start, stop = source.during
            middle = times + dt / 2.0  # switching happens between steps
            scale = np.where((middle > start) & (middle < stop), scale, 0.0)
        if not np.isfinite(scale).all():
            time = float(times[int(np.argmin(np.isfinite(scale)))])
            number = self.scenario.sources.index(source)
            problem = Mistake(f"sources.{number}.scale", f"is not finite in the step from t = {time!r} s")
            raise ScenarioError(self.scenario.path, [problem])
        return scale

    def _spot(self, source: Source, times: Array, dt: float | Array) -> tuple[tuple[Array, Array], Array]:
        """Where the spot is in the middle of its part of each step, and what it brings over the whole step in W."""
        beam = source.beam
        assert beam is not None
        points = np.array(beam.path)
        lengths = np.concatenate(([0.0], np.cumsum([hypot(*step) for step in np.diff(points, axis=0)])))
        stop = beam.start + lengths[-1] / beam.speed if beam.speed is not None and len(points) > 1 else np.inf
        begin, end = np.maximum(times, beam.start), np.minimum(times + dt, stop)
        share = np.clip((end - begin) / dt, 0.0, 1.0)
        way = ((begin + end) / 2.0 - beam.start) * (beam.speed if np.isfinite(stop) and beam.speed is not None else 0.0)
        place = (np.interp(way, lengths, points[:, 0]), np.interp(way, lengths, points[:, 1]))
        return place, beam.power * beam.absorptivity * share * self._scale(source, times, dt)

    def _wraps(self, beam: Beam, axis: int) -> bool:
        """Whether the spot reaches over an end of a periodic axis somewhere on its path."""
        grid, reach = self.materials.grid, _REACH * beam.radius
        along = [point[face_axes(beam.face).index(axis)] - grid.origin[axis] for point in beam.path]
        periodic = isinstance(self.scenario.boundaries.face(FACES[2 * axis]), Periodic)
        return periodic and (min(along) < reach or max(along) > grid.size[axis] - reach)

    def _window(self, beam: Beam, axis: int) -> int:
        """How many cells along an axis of its face a beam can reach in a step."""
        n = self.materials.grid.cells[axis]
        if self._wraps(beam, axis):
            return n
        return min(n, ceil(2.0 * _REACH * beam.radius / self.materials.grid.spacing[axis]) + 1)

    def _radius(self, beam: Beam, axis: int) -> float:
        """The radius in m that a beam's weights along an axis are made with."""
        return min(beam.radius, _EVEN * self.materials.grid.size[axis]) if self._wraps(beam, axis) else beam.radius

    def _images(self, beam: Beam, axis: int) -> list[float]:
        """Distances in m at which an axis repeats itself within the reach of a beam; 0 alone where it does not."""
        if not self._wraps(beam, axis):
            return [0.0]
        size = self.materials.grid.size[axis]
        most = ceil(_REACH * self._radius(beam, axis) / size) + 1
        return [size * number for number in range(-most, most + 1)]

    def _beam(self, source: Source, times: Array, dt: float | Array) -> BeamRows:
        beam, grid = source.beam, self.materials.grid
        assert beam is not None
        (u, v), power = self._spot(source, times, dt)
        first, weights = [], []
        for axis, centre in zip(face_axes(beam.face), (u, v), strict=True):
            d, origin, n = grid.spacing[axis], grid.origin[axis], grid.cells[axis]
            count = self._window(beam, axis)
            start = np.clip(np.floor((centre - _REACH * beam.radius - origin) / d), 0, n - count)
            edges = origin + d * (start[:, None] + np.arange(count + 1))
            part, radius = np.zeros((len(times), count)), self._radius(beam, axis)
            for image in self._images(beam, axis):
                # The error function rises by 2 over the whole Gaussian.
                part += np.diff(_erf(sqrt(2.0) / radius * (edges + image - centre[:, None])), axis=1) / 2.0
            first.append(start.astype(np.int32))
            weights.append(part / d)
        return BeamRows(FACES.index(beam.face), np.stack(first, axis=1), (power[:, None] * weights[0], weights[1]))
