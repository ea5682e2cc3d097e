"""When the stages of time steps are, and how long they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.timefunction import NEAR_JUMP

Array = NDArray[np.float64]

# Sources and fluxes at one moment are their means over this fraction of the end. Times are rounded to 1e-16 of it.
_MOMENT = 1e-9


class Side(Enum):
    """From which side a time is approached: where something jumps, its value before the jump or the one after it."""

    BEFORE = 0
    AFTER = 1


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

    @classmethod
    def beside(cls, time: float, side: Side, size: float, end: float) -> "StageTimes":
        """One stage with everything as it is at one moment, approached from a side.

        The stage lies off ``time`` by 1e-12 of the end, which is more than the rounding of the times of jumps.

        Args:
            time: in s.
            side: the side.
            size: how far the stage moves the field, in s.
            end: of the run in s.
        """
        apart, length = NEAR_JUMP * end, _MOMENT * end
        if side is Side.AFTER:
            return cls(*(np.array([number]) for number in (time + apart, time + apart, length, size)))
        return cls(*(np.array([number]) for number in (time - apart, max(time - apart - length, 0.0), length, size)))

    def after(self, time: float, end: float) -> "StageTimes":
        """The same stages, where those at ``time`` see values after a jump there; ``end`` is that of the run in s."""
        return replace(self, times=np.maximum(self.times, time + NEAR_JUMP * end))

    @classmethod
    def joined(cls, parts: "Sequence[StageTimes]") -> "StageTimes":
        """All stages of several in their order."""
        names = ("times", "starts", "lengths", "sizes")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, some: slice) -> "StageTimes":
        return StageTimes(self.times[some], self.starts[some], self.lengths[some], self.sizes[some])
