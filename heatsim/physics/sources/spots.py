"""The spots of a beam on its face: where they are, which cells they reach, how a Gaussian is spread over them.

The mean over a step of a spot that moves is a sum of spots at rest. The way within the step is divided into equal
parts of at most half a radius, h. Each part has one spot, at the mean place of its heat. So turns of the path and a
power that changes in time shift no heat; only its width is too small. Along a straight way the spots are a midpoint
rule: the error of the flux is 5e-9 inside, and at both ends h²/24 times its slope, at most 1 % of the flux on the way.
Steps that follow each other with the same h have such ends at the ends of the path alone.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Axis
from heatsim.physics.sources.error_function import error_function
from heatsim.physics.sources.passing import passing_times
from heatsim.scenario import Beam, Constant, Periodic, Scenario, Source, TimeFunction, face_axes
from heatsim.scenario.values.averages import mean_of_product
from heatsim.scenario.values.timefunction import Table

Array = NDArray[np.float64]

# A spot is cut off 4 radii from its centre along each axis. The flux there is exp(-32) of its peak; 3e-15 of the power
# is lost.
REACH = 4.0
# A spot whose radius is this many times the length of a periodic axis heats it evenly, to exp(-44) of its flux.
_EVEN = 3.0
# The longest part of the way that one spot stands for, in radii; and the most spots in a step of a method with a
# tolerance. Steps of Euler's method have as many as they need.
PART_OF_WAY, MOST_SPOTS = 0.5, 64
_ROUNDING = 1e-9  # of a number of parts
# Edges of cells whose weights are found together, so that arrays stay in a cache.
_EDGES_AT_ONCE = 2**13


class OnTime(NamedTuple):
    """When something is on, in intervals of time; arrays of shape (n,).

    Attributes:
        starts, lengths: in s, of the part of each interval; lengths are ≥ 0.
        shares: of the interval, from 0 to 1.
    """

    starts: Array
    lengths: Array
    shares: Array

    @classmethod
    def within(cls, on: tuple[float, float], times: Array, dt: float | Array) -> "OnTime":
        """The part of intervals of ``dt`` seconds from ``times`` that lies between the two times ``on``."""
        starts, stops = np.maximum(times, on[0]), np.minimum(times + dt, on[1])
        cut = (starts > times) | (stops < times + dt)  # the other intervals keep the bits of their lengths
        lengths = np.where(cut, np.maximum(stops - starts, 0.0), dt)
        return cls(starts, lengths, np.where(cut, lengths / dt, 1.0))


class Spots(NamedTuple):
    """The spots of a beam in n steps; arrays of shape (spots of all steps,).

    Attributes:
        counts: how many spots each step has, shape (n,).
        steps: the step of each spot.
        numbers: its number among those of the step.
        starts: in s, of the time for which it stands.
        places: in m along the two axes of the face.
        powers: that it brings, averaged over the whole step, in W.
    """

    counts: NDArray[np.intp]
    steps: NDArray[np.intp]
    numbers: NDArray[np.intp]
    starts: Array
    places: tuple[Array, Array]
    powers: Array


@dataclass(frozen=True, eq=False)
class Track:
    """The way of the spot of a beam.

    Attributes:
        source: the source.
        beam: that of the source.
    """

    source: Source
    beam: Beam

    @property
    def moves(self) -> bool:
        """Whether the spot moves."""
        return len(self.beam.path) > 1

    @cached_property
    def on(self) -> tuple[float, float]:
        """The times in s between which the beam is on."""
        start, stop = self.source.during or (0.0, inf)
        return max(start, self.beam.start), min(stop, float(self._passing[-1])) if self.moves else stop

    def spans(self, end: float) -> Array:
        """The times in s between which it may bring something; shape (spans, 2), ascending.

        Between them its ``scale`` is 0. It is known up to ``end`` (s); later the beam may bring something.
        """
        scale = self.source.factor
        if self.beam.power * self.beam.absorptivity == 0.0:
            return np.zeros((0, 2))
        if not (scale.foreseen and scale.resolved(end)):
            return np.array([self.on])
        nodes = scale.nodes(end)
        brings = scale.at(nodes) != 0.0  # also where it is not finite
        brings = np.concatenate(([False], brings[:-1] | brings[1:], [True, False]))
        found = np.append(nodes, inf)[np.flatnonzero(brings[1:] != brings[:-1])].reshape(-1, 2)
        found = np.clip(found, *self.on)
        return np.asarray(found[found[:, 0] < found[:, 1]])

    @cached_property
    def _passing(self) -> Array:
        return passing_times(self.beam)

    @cached_property
    def _places(self) -> tuple[TimeFunction, TimeFunction]:
        """Where the spot is along each axis of the face, in m."""
        times = tuple(self._passing.tolist())
        u, v = (
            Constant(along[0]) if len(set(along)) == 1 else Table(times, along)
            for along in zip(*self.beam.path, strict=True)
        )
        return u, v

    @property
    def _rate(self) -> float:
        """Spots per second."""
        return self.beam.speed / (PART_OF_WAY * self.beam.radius) if self.moves and self.beam.speed is not None else 0.0

    def most_spots(self, dt: float) -> int:
        """The most spots in a step of ``dt`` seconds."""
        start, stop = self.on
        return max(1, ceil(min(dt, stop - start) * self._rate))

    def spots(self, times: Array, dt: float | Array) -> Spots:
        """The spots in steps of ``dt`` seconds, one length or one for each, from ``times``."""
        on = OnTime.within(self.on, times, dt)
        parts = np.maximum(np.ceil(on.lengths * self._rate - _ROUNDING), 1.0)
        counts = np.where(on.shares > 0.0, parts, 0.0).astype(np.intp)
        steps = np.repeat(np.arange(len(times)), counts)
        numbers = np.arange(len(steps)) - np.repeat(np.cumsum(counts) - counts, counts)
        lengths = (on.lengths / parts)[steps]
        starts = on.starts[steps] + numbers * lengths
        scale = mean_of_product([self.source.factor], starts, lengths)
        u, v = (self._centres(place, scale, starts, lengths) for place in self._places)
        powers = self.beam.power * self.beam.absorptivity * (on.shares / parts)[steps] * scale
        return Spots(counts, steps, numbers, starts, (u, v), powers)

    def _centres(self, place: TimeFunction, scale: Array, starts: Array, lengths: Array) -> Array:
        """The mean place in m along an axis of the heat that comes in intervals of time."""
        centres = place.mean(starts, lengths)
        if place.constant or self.source.factor.constant:
            return centres
        moments = mean_of_product([place, self.source.factor], starts, lengths)
        weighted = np.divide(moments, scale, out=centres.copy(), where=scale != 0.0)
        # A power that changes its sign has no mean place.
        way = lengths * (self.beam.speed or 0.0)
        return np.clip(weighted, centres - way, centres + way)


def wraps(scenario: Scenario, beam: Beam, axis: int) -> bool:
    """Whether the spot crosses an end of a periodic axis somewhere on its path."""
    grid, reach = scenario.grid, REACH * beam.radius
    along = [point[face_axes(beam.face).index(axis)] - grid.origin[axis] for point in beam.path]
    periodic = isinstance(scenario.boundaries.face(FACES[2 * axis]), Periodic)
    return periodic and (min(along) < reach or max(along) > grid.size[axis] - reach)


def window(scenario: Scenario, beam: Beam, axis: int) -> int:
    """The most cells along an axis of its face that a spot of a beam can reach."""
    n, cells = scenario.grid.cells[axis], scenario.grid.axes[axis]
    if wraps(scenario, beam, axis):
        return n
    if cells.uniform:
        return min(n, ceil(2.0 * REACH * beam.radius / cells.spacing) + 1)
    along = [point[face_axes(beam.face).index(axis)] for point in beam.path]
    ends = np.array([min(along), max(along)]) + REACH * beam.radius
    first, last = np.clip(np.floor(cells.places(ends)), 0, n - 1).astype(np.intp)
    # Of the spots that end in a cell, the one that ends at its border begins first.
    begins = np.maximum(cells.borders[first : last + 1], ends[0]) - 2.0 * REACH * beam.radius
    reached = np.arange(first, last + 1) - np.maximum(np.floor(cells.places(begins)), 0.0) + 1.0
    return min(n, int(reached.max()))


def weights_along(scenario: Scenario, beam: Beam, axis: int, centre: Array) -> tuple[NDArray[np.int32], Array]:
    """How spots are spread along an axis of their face.

    Args:
        scenario: the scenario.
        beam: the beam.
        axis: one of the two axes of its face.
        centre: the centres of n spots along the axis in m, shape (n,).

    Returns:
        The first cell of each window, shape (n,), and the fraction of the power in each cell, divided by the length of
        the cell, in 1/m, shape (n, cells of the window). In axial domains the spot is around the axis, and its weights
        along the radius are divided by the areas of rings, in 1/m².
    """
    cells = scenario.grid.axes[axis]
    count = window(scenario, beam, axis)
    centre, which = np.unique(centre, return_inverse=True)  # beams usually move along one axis at a time
    start = np.clip(np.floor(cells.places(centre - REACH * beam.radius)), 0, len(cells) - count).astype(np.int32)
    images, scale = _images(scenario, beam, axis), sqrt(2.0) / _radius(scenario, beam, axis)
    if scenario.grid.radial:
        return start[which], (_of_rings(cells, beam.radius, count) / cells.measures[:count])[which]
    part, most = np.zeros((len(centre), count)), max(1, _EDGES_AT_ONCE // count)
    for first in range(0, len(centre), most):
        some = slice(first, first + most)
        edges = cells.coordinates(start[some, None] + np.arange(count + 1))
        for image in images:
            # The error function rises by 2 over the whole Gaussian.
            rises = error_function(scale * (edges + image - centre[some, None]))
            part[some] += (rises[:, 1:] - rises[:, :-1]) / 2.0
    return start[which], (part / cells.widths[start[:, None] + np.arange(count)])[which]


def _of_rings(cells: Axis, radius: float, count: int) -> Array:
    """The parts of a Gaussian around the axis that fall on the first rings, or on whole circles; shape (1, count)."""
    if not cells.rings:
        return np.ones((1, count))
    squares = 2.0 * (cells.borders[: count + 1] / radius) ** 2
    return np.asarray(-np.exp(-squares[:-1]) * np.expm1(-np.diff(squares)))[None]


def _radius(scenario: Scenario, beam: Beam, axis: int) -> float:
    """The radius in m for a beam's weights along an axis."""
    return min(beam.radius, _EVEN * scenario.grid.size[axis]) if wraps(scenario, beam, axis) else beam.radius


def _images(scenario: Scenario, beam: Beam, axis: int) -> list[float]:
    """Distances in m at which a periodic axis repeats within the reach of a beam; only 0 for other axes."""
    if not wraps(scenario, beam, axis):
        return [0.0]
    size = scenario.grid.size[axis]
    most = ceil(REACH * _radius(scenario, beam, axis) / size) + 1
    return [size * number for number in range(-most, most + 1)]
