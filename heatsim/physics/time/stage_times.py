"""When the stages of time steps are, and how long they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.timefunction import NEAR_JUMP

Array = NDArray[np.float64]

# Sources and fluxes at one moment are their means over this fraction of the end. Times are rounded to 1e-16 of it.
MOMENT = 1e-11


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
        steps: start and length in s of the step to which a stage belongs, and the place of the stage in it, from −½ to
            ½; shape (n, 3). None where stages do not share what a step has; see :meth:`means`.
    """

    times: Array
    starts: Array
    lengths: Array
    sizes: Array
    steps: Array | None = None

    def means(self, mean: Callable[[Array, Array], Array]) -> Array:
        """What sources or given fluxes have in the stages; ``mean`` returns means over intervals, or one row for all.

        Within a step each stage takes the value that the straight line with the means of both halves of the step has
        at its place. All stages together take the mean over the step if their places have the mean 0.
        """
        if self.steps is None:
            return mean(self.starts, self.lengths)
        steps, of_stages = np.unique(self.steps[:, :2], axis=0, return_inverse=True)
        starts, halves = steps[:, 0], 0.5 * steps[:, 1]
        first, second = np.broadcast_arrays(mean(starts, halves), mean(starts + halves, halves))
        if len(first) == 1:
            of_stages = np.zeros(len(self) if (first != second).any() else 1, dtype=np.intp)
        places = self.steps[: len(of_stages), 2].reshape(-1, *[1] * (first.ndim - 1))
        return np.asarray(first[of_stages] + (0.5 + 2.0 * places) * (second - first)[of_stages])

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
        apart, length = NEAR_JUMP * end, MOMENT * end
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
        steps = None
        if any(part.steps is not None for part in parts):
            steps = np.concatenate([part._own_steps if part.steps is None else part.steps for part in parts])
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**joined, steps=steps)

    @property
    def _own_steps(self) -> Array:
        """Each stage as the middle of a step over its interval."""
        return np.column_stack((self.starts, self.lengths, np.zeros(len(self))))

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, some: slice) -> "StageTimes":
        steps = None if self.steps is None else self.steps[some]
        return StageTimes(self.times[some], self.starts[some], self.lengths[some], self.sizes[some], steps)
