"""How far a step of a method with a tolerance may go while beams move."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import expm1, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.sources.passing import passing_times
from heatsim.physics.sources.sources import Sources
from heatsim.physics.sources.spots import MOST_SPOTS, PART_OF_WAY
from heatsim.scenario import Beam

Array = NDArray[np.float64]

# A cell on the way of a beam takes a pulse exp(−2·(t/τ)²) with τ = radius/speed. The cubic misses q·τ·min(0.6, 0.03·
# (h/τ)⁴) of its heat: the largest distance of ∫ from the straight line, and 11·(h/τ)⁴/384 from the third derivative.
_WHOLE_PULSE, _PART_OF_PULSE = 0.6, 0.03


@dataclass(frozen=True, eq=False)
class MovingBeam:
    """A beam whose spot moves.

    Attributes:
        spans: the times in s between which it moves and may bring something, shape (n, 2), ascending.
        pace: its radius/speed in s.
        rate: the K/s by which it warms the hottest cell.
    """

    spans: Array
    pace: float
    rate: float

    def longest(self, time: float, h: float, allowed: float) -> float:
        """The longest step in s from ``time`` (s), not above ``h`` s, that may miss ``allowed`` K."""
        for start, stop in self.spans[np.searchsorted(self.spans[:, 1], time, "right") :]:
            if start >= time + h:
                break
            on_way = max(start - time, 0.0) + MOST_SPOTS * PART_OF_WAY * self.pace
            if time + on_way < stop:
                h = min(h, float(on_way))
            if _WHOLE_PULSE * self.rate * self.pace > allowed:
                h = min(h, self.pace * (allowed / (_PART_OF_PULSE * self.rate * self.pace)) ** 0.25)
        return h

    def moves(self, edges: Array) -> Array:
        """For how many s it moves and may bring something between each two of some times in s, which ascend."""
        lengths = np.diff(self.spans, axis=1)
        so_far = np.cumsum(np.column_stack((np.zeros(len(lengths)), lengths)).ravel())
        return np.diff(np.interp(edges, self.spans.ravel(), so_far))


def moving_beams(sources: Sources) -> Iterator[MovingBeam]:
    """The beams that move while they may bring something."""
    end = sources.scenario.time.end
    for track in sources.beams:
        if track.moves and track.beam.speed is not None:
            passing, largest = passing_times(track.beam), max(map(abs, track.source.factor.extremes(end)))
            spans = np.clip(track.spans(end), passing[0], passing[-1])
            spans = spans[spans[:, 0] < spans[:, 1]]
            if len(spans):
                rate = beam_rate(sources, track.beam) * largest
                yield MovingBeam(spans, track.beam.radius / track.beam.speed, rate)


def beam_rate(sources: Sources, beam: Beam) -> float:
    """By how many K/s a beam warms the cell in the middle of its spot, if nothing is conducted."""
    materials = sources.materials
    axis = FACES.index(beam.face) // 2
    widths = [along.widths for along in materials.grid.axes]
    depth = float(widths[axis][-(FACES.index(beam.face) % 2)] if materials.void is None else widths[axis].min())
    if beam.absorption_depth is not None:
        depth /= -expm1(-depth / beam.absorption_depth)
    across = [float(of_axis.min()) for other, of_axis in enumerate(widths) if other != axis]
    spot = np.prod([max(beam.radius * sqrt(pi / 2.0), d) for d in across])  # m², over which its peak flux gives all
    capacity = float(materials.heat_capacity[materials.heat_capacity > 0.0].min())
    return abs(beam.power * beam.absorptivity) / (float(spot) * depth * capacity)
