"""The spot of a beam on its face: which cells it reaches, and how its Gaussian is spread over them."""

from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.error_function import error_function
from heatsim.scenario import Beam, Periodic, Scenario, face_axes

Array = NDArray[np.float64]

# A spot is cut off 4 radii from its centre along each axis. The flux there is exp(-32) of its peak; 3e-15 of the power
# is lost.
REACH = 4.0
# A spot whose radius is this many times the length of a periodic axis heats it evenly, to exp(-44) of its flux.
_EVEN = 3.0
# Edges of cells whose weights are found together, so that arrays stay in a cache.
_EDGES_AT_ONCE = 2**13


def wraps(scenario: Scenario, beam: Beam, axis: int) -> bool:
    """Whether the spot crosses an end of a periodic axis somewhere on its path."""
    grid, reach = scenario.grid, REACH * beam.radius
    along = [point[face_axes(beam.face).index(axis)] - grid.origin[axis] for point in beam.path]
    periodic = isinstance(scenario.boundaries.face(FACES[2 * axis]), Periodic)
    return periodic and (min(along) < reach or max(along) > grid.size[axis] - reach)


def window(scenario: Scenario, beam: Beam, axis: int) -> int:
    """The number of cells along an axis of its face that a beam can reach in a step."""
    n = scenario.grid.cells[axis]
    if wraps(scenario, beam, axis):
        return n
    return min(n, ceil(2.0 * REACH * beam.radius / scenario.grid.spacing[axis]) + 1)


def weights_along(scenario: Scenario, beam: Beam, axis: int, centre: Array) -> tuple[NDArray[np.int32], Array]:
    """How spots are spread along an axis of their face.

    Args:
        scenario: the scenario.
        beam: the beam.
        axis: one of the two axes of its face.
        centre: the centres of n spots along the axis in m, shape (n,).

    Returns:
        The first cell of each window, shape (n,), and the fraction of the power in each cell, divided by the length of
        the cell, in 1/m, shape (n, cells of the window).
    """
    grid = scenario.grid
    d, origin, n = grid.spacing[axis], grid.origin[axis], grid.cells[axis]
    count = window(scenario, beam, axis)
    centre, which = np.unique(centre, return_inverse=True)  # beams usually move along one axis at a time
    start = np.clip(np.floor((centre - REACH * beam.radius - origin) / d), 0, n - count)
    images, scale = _images(scenario, beam, axis), sqrt(2.0) / _radius(scenario, beam, axis)
    part, most = np.zeros((len(centre), count)), max(1, _EDGES_AT_ONCE // count)
    for first in range(0, len(centre), most):
        some = slice(first, first + most)
        edges = origin + d * (start[some, None] + np.arange(count + 1))
        for image in images:
            # The error function rises by 2 over the whole Gaussian.
            rises = error_function(scale * (edges + image - centre[some, None]))
            part[some] += (rises[:, 1:] - rises[:, :-1]) / 2.0
    return start.astype(np.int32)[which], (part / d)[which]


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
