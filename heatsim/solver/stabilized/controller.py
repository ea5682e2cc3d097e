"""How long the next step is, from the errors of the steps before. It knows numbers only: no field, no kernel.

The error of a step of order 2 is C·h³, so the next step may be 0.8·h·(tolerance/error)^(1/3) long. If the step before
was accepted too, the controller expects C to change by the same factor once more (Sommeijer, Shampine & Verwer,
*J. Comput. Appl. Math.* 88 (1998) 315). It trusts a fall of C less than a rise: bodies that swing would have one step
in ten rejected.
"""

from dataclasses import dataclass, replace
from math import ceil, isfinite, sqrt
from typing import TypedDict

_SAFETY = 0.8
# From one step to the next the length changes by no more than these factors.
_LEAST, _MOST = 0.1, 5.0
# From one kink to the next the length of the first step changes by no more than these factors.
_RESTART_LEAST, _RESTART_MOST = 0.3, 3.0
# The largest factor for a fall of C that is expected.
_TRUST = 1.3
# A smaller error in parts of the tolerance says nothing about how the error changes.
_ERROR_FLOOR = 1e-4
# Rounding of times must not leave a tiny last step.
_ROUNDING = 1e-9


class SavedController(TypedDict):
    """The numbers of a :class:`Controller` as a checkpoint keeps them; −1 stands for None."""

    h: float
    previous_h: float
    previous_error: float
    rejected: bool
    restart: float
    first: bool


@dataclass(frozen=True)
class Controller:
    """What the lengths of the next steps depend on.

    Attributes:
        h: the length proposed for the next step in s; None at the start and after a jump.
        previous_h: the length of the last step in s; None if it was rejected, or if there was none since the jump.
        previous_error: its error as a part of the tolerance.
        rejected: whether the last step was rejected: then the next one does not grow.
        restart: the length in s for the first step after the next kink; None before the first kink.
        first: whether the next step is the first one after a kink.
    """

    h: float | None = None
    previous_h: float | None = None
    previous_error: float | None = None
    rejected: bool = False
    restart: float | None = None
    first: bool = False

    def started(self, trial: float, change: float, left: float) -> "Controller":
        """With a first step.

        Args:
            trial: the length in s of an Euler step that was tried.
            change: ‖h·(F' − F)‖ of it as a part of the tolerance: F' is the rate after it.
            left: time in s until the next jump.
        """
        if not isfinite(change):
            return replace(self, h=trial)
        h = 0.1 * trial / sqrt(change) if change > 0 else left
        return replace(self, h=min(max(trial, h), left))

    def length(self, left: float, longest: float) -> float:
        """Length of the step to try in s: not above the proposed and the longest one.

        The steps that are left are made equal. The result is ``left`` itself if the step reaches it.
        """
        assert self.h is not None
        h = min(self.h, longest * (1 - 2 * _ROUNDING))
        return left if h >= left * (1 - _ROUNDING) else left / ceil(left / h * (1 - _ROUNDING))

    def accepted(self, h: float, error: float) -> "Controller":
        """After an accepted step of ``h`` s with an ``error`` ≤ 1, as a part of the tolerance."""
        assert self.h is not None
        factor = _MOST
        if error > 0:
            factor = _SAFETY * error ** (-1 / 3)
            if self.previous_h is not None and self.previous_error is not None:
                factor *= min(_TRUST, (self.previous_error / error) ** (1 / 3) * (h / self.previous_h))
        factor = min(1.0 if self.rejected else _MOST, max(_LEAST, factor))
        proposed = h * factor
        if factor >= 1:  # a step that was shortened to meet the end says nothing against the length before
            proposed = max(proposed, self.h)
        restart = self.restart
        if self.first:
            restart = h * min(_RESTART_MOST, max(_RESTART_LEAST, _SAFETY * max(error, _ERROR_FLOOR) ** (-1 / 3)))
        return Controller(proposed, h, max(error, _ERROR_FLOOR), restart=restart)

    def jumped(self) -> "Controller":
        """After a step that ends at a jump: the next length is found by a trial."""
        return Controller(restart=self.restart)

    def kinked(self) -> "Controller":
        """After a step that ends at a kink: the next step is as long as the one after the last kink should have been.

        Kinks of one body are alike: those of hourly weather, or of a schedule of every day.
        """
        return Controller(h=self.restart, restart=self.restart, first=True)

    def refused(self, h: float, error: float) -> "Controller":
        """After a rejected step of ``h`` s; the error is above 1, or not finite."""
        factor = max(_LEAST, _SAFETY * error ** (-1 / 3)) if isfinite(error) else _LEAST
        return replace(self, h=h * factor, previous_h=None, previous_error=None, rejected=True)

    def to_dict(self) -> SavedController:
        """For a checkpoint."""
        numbers = (self.h, self.previous_h, self.previous_error, self.restart)
        h, previous_h, error, restart = (-1.0 if x is None else x for x in numbers)
        return {
            "h": h,
            "previous_h": previous_h,
            "previous_error": error,
            "rejected": self.rejected,
            "restart": restart,
            "first": self.first,
        }

    @classmethod
    def from_dict(cls, saved: SavedController) -> "Controller":
        """Back from :meth:`to_dict`, to the bit."""
        numbers = (saved["h"], saved["previous_h"], saved["previous_error"], saved["restart"])
        h, previous_h, error, restart = (None if x < 0 else float(x) for x in numbers)
        return cls(h, previous_h, error, bool(saved["rejected"]), restart, bool(saved["first"]))
