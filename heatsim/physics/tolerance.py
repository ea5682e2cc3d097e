"""The error that a step of a method with a tolerance may have."""

from dataclasses import asdict, dataclass, replace

import numpy as np

DEFAULT_PART = 2e-4  # of the range of temperatures
LEAST_DEFAULT = 1e-3  # K
# The least tolerance in roundings of a temperature.
_ROUNDINGS = 16.0


@dataclass(frozen=True)
class Tolerance:
    """The error that a step may have, in K.

    Attributes:
        given: set by the user in K, or None for the default.
        span: between the extremes of initial and boundary temperatures, in K.
        low, high: extremes of the field so far, in K.
    """

    given: float | None
    span: float
    low: float
    high: float

    @property
    def kelvin(self) -> float:
        """The given one, or 0.02 % of the larger range, at least 1 mK."""
        if self.given is not None:
            return self.given
        return max(DEFAULT_PART * max(self.span, self.high - self.low), LEAST_DEFAULT)

    def widened(self, low: float, high: float) -> "Tolerance":
        """With a field that has these extremes."""
        return replace(self, low=min(self.low, low), high=max(self.high, high))

    def to_dict(self) -> dict[str, float]:
        """The range of the field so far, for a checkpoint."""
        return {key: value for key, value in asdict(self).items() if key in ("low", "high")}


def least_tolerance(precision: str, largest: float) -> float:
    """The least tolerance in K that the precision resolves, if temperatures differ by ``largest`` K from the reference.

    Below it rounding hides the error of a step, and steps would become ever shorter.
    """
    return _ROUNDINGS * float(np.finfo(precision).eps) / 2.0 * largest
