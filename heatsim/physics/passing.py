"""When the spot of a beam is where on its path, and points of a body at which functions of time are looked at."""

from math import hypot

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.scenario import Beam

Array = NDArray[np.float64]

# Where values in space and time are looked at, in parts of the domain.
_PLACES = (0.0, 0.234, 0.5, 0.618, 1.0)
# A smaller change of the direction is rounding.
_STRAIGHT = 1e-6


def passing_times(beam: Beam) -> Array:
    """When the spot of a beam is at each point of its path, in s; a spot that does not move starts and never ends."""
    if beam.speed is None or len(beam.path) == 1:
        return np.array([beam.start])
    lengths = [hypot(*step) for step in np.diff(np.array(beam.path), axis=0)]
    return np.asarray(beam.start + np.concatenate(([0.0], np.cumsum(lengths))) / beam.speed)


def turning_times(beam: Beam) -> Array:
    """When a beam changes its direction, in s."""
    if len(beam.path) < 3:
        return np.zeros(0)
    steps = np.diff(np.array(beam.path), axis=0)
    steps /= np.hypot(steps[:, 0], steps[:, 1])[:, None]
    turns = np.abs(np.diff(steps, axis=0)).max(axis=1) > _STRAIGHT
    return np.asarray(passing_times(beam)[1:-1][turns])


def some_points(grid: Grid) -> list[tuple[float, float, float]]:
    """Points of a domain in m: what a(t) + b(t)·f(x, y, z) does in time shows at some of them."""
    parts = [[origin + part * size for part in _PLACES] for origin, size in zip(grid.origin, grid.size, strict=True)]
    return [(x, y, z) for x, y, z in zip(*parts, strict=True)]
