"""The time of a method's work, and a fit of it to timed steps."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.estimates.method_work import RunWork

# Seconds for the steps of one method. Reading the initial field and compiling come before.
SECONDS = 0.4
LONGEST = 1.2  # s for the steps of a method, apart from the last batch, and from places in a long run of "euler"
# Two batches give a slope if one has at least this many times the units of the other.
_APART = 1.25


@dataclass(frozen=True)
class WorkTime:
    """The time of a method's work.

    Attributes:
        unit: seconds of a unit of work.
        step: seconds of a step without its units.
        row: seconds to interpolate the field for a row within a step.
    """

    unit: float
    step: float = 0.0
    row: float = 0.0

    def of(self, work: RunWork) -> float:
        """Seconds of the work of a run."""
        return self.unit * work.units + self.step * work.steps + self.row * work.rows

    def scaled(self, factor: float) -> "WorkTime":
        """The time on a grid with ``factor`` times as many cells."""
        return WorkTime(self.unit * factor, self.step * factor, self.row * factor)


def fitted(units: NDArray[np.float64], seconds: NDArray[np.float64]) -> WorkTime:
    """The time of units and of steps, from the units and the seconds of some steps.

    Medians of slopes and of remainders (Theil–Sen), so a few interrupted steps do not affect it.
    """
    each = weighted_median(seconds / units, units)
    one, other = np.nonzero(units[None, :] >= _APART * units[:, None])
    if not len(one):
        return WorkTime(each)
    slopes = (seconds[other] - seconds[one]) / (units[other] - units[one])
    unit = float(np.clip(np.median(slopes), 0.0, each))
    return WorkTime(unit, max(float(np.median(seconds - unit * units)), 0.0))


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The weighted median. A few values that include compilation do not change it."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, 0.5 * below[-1])])
