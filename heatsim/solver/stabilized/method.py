"""The method "stabilized": steps of lengths that follow a tolerance, between jumps of what drives the body.

A backend supplies :class:`~heatsim.solver.stabilized.substeps.Substeps`; the class here decides and counts. The
formulas stand in heatsim/physics/README.md, "Stabilized steps".
"""

from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from typing import TypedDict

from heatsim.errors import NotFiniteError, RunError
from heatsim.physics.stage_times import Side
from heatsim.solver.stabilized.controller import Controller, SavedController, Tolerance
from heatsim.solver.stabilized.interpolation import change_of_rate, error_estimate, hermite
from heatsim.solver.stabilized.polynomials import VERSION
from heatsim.solver.stabilized.scheme import Stages, choose, longest_step
from heatsim.solver.stabilized.substeps import End, StepInterrupted, Substeps

# No body needs shorter steps, in parts of the Euler limit: a step that is still rejected fails for another reason.
_SHORTEST = 1e-6


@dataclass(frozen=True)
class Step:
    """An accepted step.

    Attributes:
        start, end: its times in s.
        h: its length in s.
        stages: number of its stages.
        rejected: tries before it that were rejected.
        error: its estimated error in K.
        tolerance: what was allowed, in K.
    """

    start: float
    end: float
    h: float
    stages: int
    rejected: int
    error: float
    tolerance: float


@dataclass
class Work:
    """Counts since the start of the run.

    Attributes:
        steps: accepted steps.
        stages: of all steps, rejected ones included.
        rejected: rejected steps.
    """

    steps: int = 0
    stages: int = 0
    rejected: int = 0


class SavedMethod(TypedDict):
    """What a checkpoint at the end of a step keeps besides field and ledger, to go on to the same bits."""

    version: int
    t: float
    controller: SavedController
    tolerance: dict[str, float]
    work: dict[str, int]


@dataclass
class StabilizedMethod:
    """Advances one field step by step.

    Attributes:
        substeps: the backend. The field at time ``t`` is its last end after a step, until :meth:`settle`; otherwise
            its first.
        tolerance: the error that a step may have.
        t: time in s at which the field is.
        bounds: extremes in K that the maximum principle allows: a step that leaves them by more than the tolerance is
            rejected.
        controller: lengths of steps.
        work: what was done so far.
        last: the step whose ends the backend keeps; None at the start and once it is settled.
    """

    substeps: Substeps
    tolerance: Tolerance
    t: float = 0.0
    bounds: tuple[float, float] = (-inf, inf)
    controller: Controller = field(default_factory=Controller)
    work: Work = field(default_factory=Work)
    last: Step | None = None
    _rate_known: bool = False

    def step(self, stop: float, jump: bool) -> Step:
        """Do one accepted step towards ``stop``.

        Afterwards both of its ends are kept: call :meth:`interpolate` for times between them.

        Args:
            stop: where steps must end, in s, after ``t``: the next jump, or the end of the run.
            jump: whether something jumps at ``stop``. The step that ends there sees the values before the jump, and
                the next one starts with those after it.

        Raises:
            StepInterrupted: a signal came; field, ledger and ``t`` are those before the step.
            NotFiniteError: no step, however short, gives finite temperatures.
            RunError: no step, however short, meets the tolerance.
        """
        # Nothing of this object changes before a step is accepted: an interrupted one leaves no trace.
        work, controller = replace(self.work), self._begin(stop)
        rejected = 0
        while True:
            h = controller.length(stop - self.t, longest_step(self.substeps.dt_limit))
            end = stop if h == stop - self.t else self.t + h
            stages = choose(h, self.substeps.dt_limit)
            work.stages += stages.count
            error, tolerance = self._try(stages, h, end)
            if error <= tolerance.kelvin:
                break
            self.substeps.reject()
            controller = controller.refused(h, error / tolerance.kelvin)
            rejected += 1
            self._check_length(h, error)
        work.steps += 1
        work.rejected += rejected
        jumped = jump and end == stop
        self.controller = Controller() if jumped else controller.accepted(h, error / tolerance.kelvin)
        # After a jump the rate at the start of the next step is another one.
        self._rate_known = not jumped
        self.last = Step(self.t, end, h, stages.count, rejected, error, tolerance.kelvin)
        self.t, self.tolerance, self.work = end, tolerance, work
        return self.last

    def settle(self) -> None:
        """Make the end of the last step the first end of the backend; nothing is interpolated from then on."""
        if self.last is not None:
            self.substeps.accept()
            self.last = None

    def interpolate(self, t: float) -> None:
        """Have the backend show the state at ``t`` s, within the last step."""
        assert self.last is not None
        theta = (t - self.last.start) / self.last.h if t < self.last.end else 1.0
        self.substeps.interpolate(hermite(min(max(theta, 0.0), 1.0), self.last.h))

    def save(self) -> SavedMethod:
        """For a checkpoint at ``t``, the end of a step."""
        return {
            "version": VERSION,
            "t": self.t,
            "controller": self.controller.to_dict(),
            "tolerance": self.tolerance.to_dict(),
            "work": asdict(self.work),
        }

    def resume(self, saved: SavedMethod) -> None:
        """Go on from a checkpoint; the first end of the backend is the field that was saved with it.

        Raises:
            ValueError: it was written with other polynomials.
        """
        if saved["version"] != VERSION:
            raise ValueError(f"stability polynomials of version {saved['version']!r}; this program has {VERSION}")
        self.t = float(saved["t"])
        self.controller = Controller.from_dict(saved["controller"])
        self.tolerance = self.tolerance.widened(**saved["tolerance"])
        self.work = Work(**saved["work"])
        self.last, self._rate_known = None, False

    def _begin(self, stop: float) -> Controller:
        """Make the end of the last step the start; know its rate and a length to try."""
        substeps = self.substeps
        self.settle()
        fresh = self.controller.h is None
        if not self._rate_known:
            # A restart within a smooth interval takes the limit that the run took, for the same bits.
            substeps.rate(End.FIRST, self.t, Side.AFTER if fresh else Side.BEFORE)
            self._rate_known = True
        if not fresh:
            return self.controller
        trial = min(substeps.dt_limit / 2, stop - self.t)
        substeps.trial(trial)
        substeps.rate(End.LAST, self.t + trial, Side.BEFORE)
        change = substeps.measure(change_of_rate(trial)).norm
        substeps.reject()
        return self.controller.started(trial, change / self.tolerance.kelvin, stop - self.t)

    def _try(self, stages: Stages, h: float, end: float) -> tuple[float, Tolerance]:
        """Do a step; its error in K, infinity if the field is not finite, and what is allowed for it."""
        try:
            self.substeps.advance(stages, self.t, h)
        except StepInterrupted:
            self.substeps.reject()
            raise
        self.substeps.rate(End.LAST, end, Side.BEFORE)
        norm, low, high = self.substeps.measure(error_estimate(h))
        if not all(isfinite(number) for number in (norm, low, high)):
            return inf, self.tolerance
        outside = max(self.bounds[0] - low, high - self.bounds[1])
        return max(norm, outside), self.tolerance.widened(low, high)

    def _check_length(self, h: float, error: float) -> None:
        """Give up if steps became shorter than any body needs."""
        limit = self.substeps.dt_limit
        if h > (_SHORTEST * limit if isfinite(limit) else 0.0) and self.t + h / 2 > self.t:
            return
        if not isfinite(error):
            raise NotFiniteError(f"the field is not finite after t = {self.t!r} s, however short the step")
        raise RunError(
            f"time.tolerance = {self.tolerance.kelvin!r} K cannot be met at t = {self.t!r} s: a step of {h:.3g} s is "
            f"off by {error:.3g} K; raise time.tolerance, or set solver.precision to float64"
        )
