"""The error that a step of a method with a tolerance may have."""

from dataclasses import asdict, dataclass, replace
from math import inf, sqrt

import numpy as np

DEFAULT_PART = 2e-4  # of the range of temperatures
STEADY_PART = 1e-4  # the default tolerance of a steady state, in parts of the range of its temperatures
LEAST_DEFAULT = 1e-3  # K; less only where the whole run has a smaller range
_FINEST = 1e-9  # K, a thousand roundings in float64
# The estimate that a step may have at the default tolerance, in parts of it. With 1, runs of smooth bodies had errors
# of 0.3 to 2 times the tolerance, and one in 80 random bodies, with heats that change fast, more than three times it;
# with 0.5, two of 10,000 had 2.7 and 3.1 times it: errors of 25 periods with one sign.
_PART_OF_STEP = 0.4
# In the root, a tolerance above the default counts as at most this multiple of it. Rows between the ends of a step may
# be off by 0.37 times its estimate: with 16, by 0.6 times the tolerance.
_MOST_RATIO = 16.0
# The least tolerance in roundings of a temperature.
_ROUNDINGS = 16.0


@dataclass(frozen=True)
class Tolerance:
    """The error that a run may have, and that of one step which follows from it, in K.

    The errors of steps of second order add up to an error of the run that grows with the power 2/3 of that of a step.
    So for an error of the run, tol, the estimate e of a step may be 0.4·tol·√(tol/(2e-4·range)), and at most 1.6·tol.
    It is about twice the error of the step.

    Attributes:
        given: of the run, set by the user in K, or None for the default.
        span: between the extremes of initial and boundary temperatures, in K.
        low, high: extremes of the field so far, in K.
        foreseen: the widest range that the run can have, in K.
    """

    given: float | None
    span: float
    low: float
    high: float
    foreseen: float = inf

    @property
    def range(self) -> float:
        """The larger of both ranges of temperatures, in K."""
        return max(self.span, self.high - self.low)

    @property
    def default(self) -> float:
        """The default: 0.02 % of the range, at least 1 mK, or 0.02 % of the widest range that can be foreseen."""
        return max(DEFAULT_PART * self.range, least_default(self.foreseen))

    @property
    def of_run(self) -> float:
        """The error that the run may have, in K."""
        return self.default if self.given is None else self.given

    @property
    def fraction(self) -> float:
        """The same in parts of the range; that of the default where the range is not known yet."""
        return self.of_run / self.range if self.range > self.of_run else DEFAULT_PART

    @property
    def kelvin(self) -> float:
        """The error that a step may have, in K."""
        return _PART_OF_STEP * self.of_run * sqrt(min(self.of_run / self.default, _MOST_RATIO))

    @property
    def fraction_of_step(self) -> float:
        """The error of a step in parts of the range; that of the default where the range is not known yet."""
        return self.kelvin / self.range if self.range > self.kelvin else _PART_OF_STEP * DEFAULT_PART

    def run_with(self, of_step: float) -> float:
        """The tolerance of a run in K whose steps may have an error of ``of_step`` K."""
        return float(((of_step / _PART_OF_STEP) ** 2 * self.default) ** (1.0 / 3.0))

    def widened(self, low: float, high: float) -> "Tolerance":
        """With a field that has these extremes."""
        return replace(self, low=min(self.low, low), high=max(self.high, high))

    def to_dict(self) -> dict[str, float]:
        """The range of the field so far, for a checkpoint."""
        return {key: value for key, value in asdict(self).items() if key in ("low", "high")}


def least_default(foreseen: float) -> float:
    """The least default tolerance in K of a run whose temperatures can have at most the range ``foreseen``.

    A range that begins at 0 grows by heat. A part of it would be too small a tolerance until the range is complete.
    """
    return float(np.clip(DEFAULT_PART * foreseen, _FINEST, LEAST_DEFAULT)) if foreseen > 0.0 else LEAST_DEFAULT


def least_tolerance(precision: str, largest: float) -> float:
    """The least error of a step in K that the precision resolves.

    Temperatures differ by at most ``largest`` K from the reference. Below it rounding hides the error of a step, and
    steps would become ever shorter.
    """
    return _ROUNDINGS * float(np.finfo(precision).eps) / 2.0 * largest
