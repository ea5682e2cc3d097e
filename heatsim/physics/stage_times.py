"""When the stages of time steps are, and how long they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StageTimes:
    """The times of n stages in s, arrays of shape (n,). A step of Euler's method is one stage.

    Attributes:
        times: when boundary conditions are evaluated.
        starts, lengths: the interval over which sources, beams and given fluxes are averaged; lengths are > 0.
        sizes: how far the stage moves the field, the factor of F(T) = dT/dt.
    """

    times: Array
    starts: Array
    lengths: Array
    sizes: Array

    @classmethod
    def of_steps(cls, times: Array, dt: float) -> "StageTimes":
        """Steps of ``dt`` seconds by Euler's method from ``times``."""
        lengths = np.full(len(times), dt)
        return cls(times, times, lengths, lengths)

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, some: slice) -> "StageTimes":
        return StageTimes(self.times[some], self.starts[some], self.lengths[some], self.sizes[some])
