"""Heat set free in the body, and beams on its faces, averaged over each time step.

A power is shared evenly by the cells that it heats, so it is exact on the grid whatever its cells. A beam's Gaussian is
integrated over each cell, and what the cells get is brought to the power absorbed: exact while the spot is on the face,
however coarse the grid.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, erf, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES, Grid
from heatsim.physics.cell_types import Medium
from heatsim.scenario import Beam, Scenario, Source, Table, TimeFunction, face_axes

Array = NDArray[np.float64]

# Beyond so many radii from its centre a beam has exp(-32) of its flux.
_REACH = 4.0
# Gauss–Legendre points of [0, 1] and their weights: exact for polynomials of degree 5.
_POINTS = (0.5 - sqrt(0.15), 0.5, 0.5 + sqrt(0.15))
_WEIGHTS = (5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0)

_erf: Callable[[Array], Array] = np.vectorize(erf, otypes=[np.float64])


@dataclass(frozen=True, eq=False)
class BeamRows:
    """What a beam brings to its face in n steps: the flux at cell (u, v) is u-weight times v-weight, in W/m².

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
        scenario: whose they are.
        medium: the kinds of cells, which know the sources by their place among those without a beam.
    """

    scenario: Scenario
    medium: Medium

    @property
    def volumetric(self) -> list[Source]:
        """The sources in the body, in the order in which the medium counts them."""
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

    def heat(self, times: Array, dt: float) -> Array:
        """What steps of ``dt`` seconds from ``times`` give to the cells of each kind, in K, shape (times, kinds).

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        medium = self.medium
        density = np.zeros((len(times), len(medium.kinds)))
        for number, source in enumerate(self.volumetric):
            heated = np.array([number in kind.sources for kind in medium.kinds])
            if source.power_density is None:
                assert source.power is not None
                amount = source.power / (float(medium.counts[heated].sum()) * medium.grid.cell_volume)
            else:
                amount = source.power_density
            density[:, heated] += (amount * self._scale(source, times, dt))[:, None]
        capacity = np.where(medium.heat_capacity > 0.0, medium.heat_capacity, 1.0)
        return density * dt / capacity

    def beam_rows(self, times: Array, dt: float) -> list[BeamRows]:
        """What every beam brings in steps of ``dt`` seconds from ``times``.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        return [self._beam(source, times, dt) for source in self.beams]

    def beam_bytes(self, itemsize: int) -> int:
        """Bytes of one step's weights."""
        counts = (_window(self.medium.grid, source.beam) for source in self.beams if source.beam is not None)
        return itemsize * sum(sum(pair) for pair in counts)

    def _scale(self, source: Source, times: Array, dt: float) -> Array:
        scale = mean(source.scale, times, dt)
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

    def _beam(self, source: Source, times: Array, dt: float) -> BeamRows:
        beam, grid = source.beam, self.medium.grid
        assert beam is not None
        u, v, share = _spot(beam, times, dt)
        power = beam.power * beam.absorptivity * share * self._scale(source, times, dt)
        first, weights = [], []
        for axis, centre, count in zip(face_axes(beam.face), (u, v), _window(grid, beam), strict=True):
            d, origin, n = grid.spacing[axis], grid.origin[axis], grid.cells[axis]
            start = np.clip(np.floor((centre - _REACH * beam.radius - origin) / d), 0, n - count)
            edges = origin + d * (start[:, None] + np.arange(count + 1))
            below = _erf(sqrt(2.0) / beam.radius * (edges - centre[:, None]))
            part = np.diff(below, axis=1)
            first.append(start.astype(np.int32))
            weights.append(part / part.sum(axis=1, keepdims=True) / d)
        return BeamRows(FACES.index(beam.face), np.stack(first, axis=1), (power[:, None] * weights[0], weights[1]))


def mean(function: TimeFunction, times: Array, dt: float) -> Array:
    """The mean of a function over steps of ``dt`` seconds from ``times``: exact for tables and smooth expressions."""
    if function.constant:
        return function.at(times)
    if isinstance(function, Table):
        return _table_mean(function, times, dt)
    return np.asarray(
        sum(weight * function.at(times + point * dt) for point, weight in zip(_POINTS, _WEIGHTS, strict=True))
    )


def _table_mean(table: Table, times: Array, dt: float) -> Array:
    """Where no node lies within a step the value in its middle, else the integral from node to node."""
    nodes, values = np.array(table.times), np.array(table.values)
    means = table.at(times + dt / 2.0)
    period = nodes[-1] if table.repeat else np.inf
    local = np.mod(times, period) if table.repeat else times
    bent = np.searchsorted(nodes, local, "right") != np.searchsorted(nodes, local + dt, "left")
    for index in np.flatnonzero(bent):
        start, stop = float(local[index]), float(local[index]) + dt
        cuts = [nodes]
        if table.repeat:
            # A table may start again, more than once in a long step; its value jumps there.
            cuts = [nodes + period * lap for lap in range(int(stop // period) + 1)]
        total = 0.0
        inside = np.concatenate(cuts)
        ends = np.unique(np.concatenate(([start], inside[(inside > start) & (inside < stop)], [stop])))
        for left, right in pairwise(ends.tolist()):
            # Between nodes the table is a line: its middle is its mean.
            middle = (left + right) / 2.0
            total += (right - left) * float(np.interp(middle % period if table.repeat else middle, nodes, values))
        means[index] = total / dt
    return means


def _window(grid: Grid, beam: Beam) -> tuple[int, int]:
    """How many cells along the face's two axes a beam can reach."""
    u, v = (
        min(grid.cells[axis], ceil(2.0 * _REACH * beam.radius / grid.spacing[axis]) + 1)
        for axis in face_axes(beam.face)
    )
    return u, v


def _spot(beam: Beam, times: Array, dt: float) -> tuple[Array, Array, Array]:
    """Where the spot is in the middle of its part of each step, and how large a share of the step it is on."""
    points = np.array(beam.path)
    lengths = np.concatenate(([0.0], np.cumsum([hypot(*step) for step in np.diff(points, axis=0)])))
    stop = beam.start + lengths[-1] / beam.speed if beam.speed is not None and len(points) > 1 else np.inf
    begin, end = np.maximum(times, beam.start), np.minimum(times + dt, stop)
    share = np.clip((end - begin) / dt, 0.0, 1.0)
    way = ((begin + end) / 2.0 - beam.start) * (beam.speed if np.isfinite(stop) and beam.speed is not None else 0.0)
    return np.interp(way, lengths, points[:, 0]), np.interp(way, lengths, points[:, 1]), share
