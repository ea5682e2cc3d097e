"""When the spot of a beam is where on its path."""

from math import hypot

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import Beam

Array = NDArray[np.float64]


def passing_times(beam: Beam) -> Array:
    """When the spot of a beam is at each point of its path, in s; a spot that does not move starts and never ends."""
    if beam.speed is None or len(beam.path) == 1:
        return np.array([beam.start])
    lengths = [hypot(*step) for step in np.diff(np.array(beam.path), axis=0)]
    return np.asarray(beam.start + np.concatenate(([0.0], np.cumsum(lengths))) / beam.speed)
