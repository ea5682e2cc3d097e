"""Steps of lengths that follow a tolerance, between jumps of what drives the body.

A backend supplies :class:`~heatsim.solver.stabilized.substeps.Substeps`, and with it the kind of step: explicit stages
of the method "stabilized", or systems of equations of the method "implicit". The class here decides and counts. The
formulas stand in heatsim/physics/README.md, "Stabilized steps" and "Implicit steps".
"""

from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from typing import TypedDict

from heatsim.errors import NotFiniteError, RunError
from heatsim.physics.drives.drives import NOTHING, Drives
from heatsim.physics.time.stage_times import Side
from heatsim.physics.time.tolerance import Tolerance
from heatsim.solver.stabilized.controller import Controller, SavedController
from heatsim.solver.stabilized.interpolation import HIDDEN, change_of_rate, error_estimate, hermite
from heatsim.solver.stabilized.substeps import End, Measure, StepInterrupted, StepStages, Substeps

# No step has to be shorter, in parts of the Euler limit and of the step that its drives allow: one that is still
# rejected fails for another reason.
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
        low, high: extremes of the field at its end in K.
    """

    start: float
    end: float
    h: float
    stages: int
    rejected: int
    error: float
    tolerance: float
    low: float
    high: float


@dataclass(frozen=True)
class Attempt:
    """A step to be tried.

    Attributes:
        stop, jump, kink: as for :meth:`AdaptiveMethod.step`.
        h: its length in s.
        end: the time in s that it leads to.
        controller: lengths of steps, rejected ones included.
        rejected: tries that were rejected before.
        stages: number of their stages.
    """

    stop: float
    jump: bool
    h: float
    end: float
    controller: Controller
    rejected: int = 0
    stages: int = 0
    kink: bool = False


@dataclass(frozen=True)
class StepCounts:
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

    t: float
    controller: SavedController
    tolerance: dict[str, float]
    stages: int
    work: dict[str, int]


@dataclass
class AdaptiveMethod:
    """Advances one field step by step.

    Attributes:
        substeps: the backend. The field at time ``t`` is its last end after a step, until :meth:`settle`; otherwise
            its first.
        tolerance: the error that the run may have, and the estimate that a step may have.
        t: time in s at which the field is.
        bounds: extremes in K that the maximum principle allows: a step that leaves them by more than the tolerance is
            rejected.
        drives: what drives the body: no step is longer than it allows. Face values count at the times of stages only,
            and two stages span two thirds of a step: a pulse of the surroundings in between is not seen.
        controller: lengths of steps.
        work: what was done so far.
        stages: number of stages of the last step.
        last: the step whose ends the backend keeps; None at the start and once it is settled.
    """

    substeps: Substeps
    tolerance: Tolerance
    t: float = 0.0
    bounds: tuple[float, float] = (-inf, inf)
    drives: Drives = NOTHING
    controller: Controller = field(default_factory=Controller)
    work: StepCounts = field(default_factory=StepCounts)
    stages: int = 0
    last: Step | None = None
    _rate_known: bool = False

    def step(self, stop: float, jump: bool, kink: bool = False) -> Step:
        """Do one accepted step towards ``stop``.

        Afterwards both of its ends are kept: call :meth:`interpolate` for times between them.

        Args:
            stop: where steps must end, in s, after ``t``: the next jump or kink, or the end of the run.
            jump: whether something jumps at ``stop``. The step that ends there sees the values before the jump, and
                the next one starts with those after it.
            kink: whether only slopes change at ``stop``: the rate is then the same on both sides of it.

        Raises:
            StepInterrupted: a signal came; field, ledger and ``t`` are those before the step.
            NotFiniteError: no step, however short, gives finite temperatures.
            RunError: no step, however short, meets the tolerance.
        """
        return self.complete(self.begin(stop, jump, kink))

    def complete(self, attempt: Attempt) -> Step:
        """Try a step until it is accepted; errors are those of :meth:`step`."""
        substeps = self.substeps
        result: Step | Attempt = attempt
        while isinstance(result, Attempt):
            stages = substeps.choose(result.h, self.tolerance.kelvin)
            try:
                substeps.advance(stages, self.t, result.h)
            except StepInterrupted:
                substeps.reject()
                raise
            substeps.rate(End.LAST, result.end, Side.BEFORE, stages.count)
            result = self.judge(
                result, stages, substeps.measure(error_estimate(result.h, substeps.factor), stages.count)
            )
        return result

    def begin(self, stop: float, jump: bool, kink: bool = False) -> Attempt:
        """The first attempt of a step; the end of the last step becomes the start.

        An attempt is a value: until :meth:`judge` accepts one, :meth:`save` gives the state before the step. Ensembles
        use both methods to try the steps of all members together.
        """
        substeps = self.substeps
        self.settle()
        moment = self.wanted_rate()
        if moment is not None:
            substeps.rate(End.FIRST, *moment)
            self.rate_found()
        if self.controller.h is not None:
            return self._attempt(Attempt(stop, jump, 0.0, stop, self.controller, kink=kink))
        trial = min(substeps.dt_limit / 2, stop - self.t)
        substeps.trial(trial)
        substeps.rate(End.LAST, self.t + trial, Side.BEFORE)
        change = substeps.measure(change_of_rate(trial), stages=1).size
        substeps.reject()
        controller = self.controller.started(trial, change / self.tolerance.kelvin, stop - self.t)
        return self._attempt(Attempt(stop, jump, 0.0, stop, controller, kink=kink))

    def wanted_rate(self) -> tuple[float, Side, int] | None:
        """Time, side and stages of the rate that the first end lacks once it is settled; None if it has its rate."""
        if self._rate_known:
            return None
        # A restart within a smooth interval takes the limit that the run took, for the same bits.
        return (self.t, Side.AFTER, 0) if self.controller.h is None else (self.t, Side.BEFORE, self.stages)

    def rate_found(self) -> None:
        """Record that the backend has calculated the rate of :meth:`wanted_rate`."""
        self._rate_known = True

    def judge(self, attempt: Attempt, stages: StepStages, measure: Measure) -> Step | Attempt:
        """The step if it is accepted, otherwise the next attempt; the backend has rejected this one then.

        Args:
            attempt: from :meth:`begin`, or from here.
            stages: with which it was tried.
            measure: with the weights of the error estimate.

        Raises:
            NotFiniteError, RunError: as for :meth:`step`.
        """
        error, tolerance, outside = inf, self.tolerance, 0.0
        if all(isfinite(number) for number in measure):
            outside = max(self.bounds[0] - measure.low, measure.high - self.bounds[1])
            size = measure.size + HIDDEN * self.substeps.factor * self.drives.bent(self.t, attempt.h)
            error, tolerance = max(size, outside), self.tolerance.widened(measure.low, measure.high)
        part, tried = error / tolerance.kelvin, attempt.stages + stages.count
        if error > tolerance.kelvin:
            self.substeps.reject()
            self._check_length(attempt.h, error, outside)
            controller = attempt.controller.refused(attempt.h, part)
            rejected = attempt.rejected + 1
            return self._attempt(replace(attempt, controller=controller, rejected=rejected, stages=tried))
        if attempt.end <= self.t:  # too short to be added: near 0 K, say, each step is a tenth of the one before
            self._check_length(attempt.h, error, outside)
        self.controller = attempt.controller.accepted(attempt.h, part)
        if attempt.end == attempt.stop and attempt.jump:
            self.controller = self.controller.jumped()
        elif attempt.end == attempt.stop and attempt.kink:
            self.controller = self.controller.kinked()
        # After a jump the rate at the start of the next step is another one; a trial calculates it once more.
        self._rate_known = self.controller.h is not None
        before = self.work
        self.work = StepCounts(before.steps + 1, before.stages + tried, before.rejected + attempt.rejected)
        self.stages = stages.count
        counts, extremes = (stages.count, attempt.rejected), (measure.low, measure.high)
        self.last = Step(self.t, attempt.end, attempt.h, *counts, error, tolerance.kelvin, *extremes)
        self.t, self.tolerance = attempt.end, tolerance
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

    def restart(self, t: float) -> None:
        """Go on from what is shown at ``t`` s, within or at the end of the last step, as after a jump."""
        self.settle()
        self.substeps.take_shown()
        self.t, self.controller, self._rate_known = t, self.controller.jumped(), False

    def save(self) -> SavedMethod:
        """For a checkpoint at ``t``, the end of a step."""
        return {
            "t": self.t,
            "controller": self.controller.to_dict(),
            "tolerance": self.tolerance.to_dict(),
            "stages": self.stages,
            "work": asdict(self.work),
        }

    def resume(self, saved: SavedMethod) -> None:
        """Go on from a checkpoint; the first end of the backend is the field that was saved with it."""
        self.t = float(saved["t"])
        self.controller = Controller.from_dict(saved["controller"])
        self.tolerance = self.tolerance.widened(**saved["tolerance"])
        self.work, self.stages = StepCounts(**saved["work"]), int(saved["stages"])
        self.last, self._rate_known = None, False

    def _attempt(self, attempt: Attempt) -> Attempt:
        """An attempt with the length that its controller proposes."""
        left = attempt.stop - self.t
        h = attempt.controller.length(left, self.substeps.longest)
        h = self.drives.longest(self.t, h, self.tolerance)
        return replace(attempt, h=h, end=attempt.stop if h == left else self.t + h)

    def _check_length(self, h: float, error: float, outside: float) -> None:
        """Give up if steps became shorter than any body needs; a step left the bounds by ``outside`` K."""
        limit = self.substeps.dt_limit
        if isfinite(limit):
            limit = self.drives.longest(self.t, limit, self.tolerance)
        if h > (_SHORTEST * limit if isfinite(limit) else 0.0) and self.t + h / 2 > self.t:
            return
        if not isfinite(error):
            raise NotFiniteError(
                f"NaN or infinity in the field after t = {self.t!r} s, however short the step; look for values that "
                "are far too large, or with float32 set solver.precision to float64"
            )
        if outside >= error and self.bounds[0] == 0.0:
            raise RunError(
                f"a temperature falls below 0 K after t = {self.t!r} s, however short the step: sources or fluxes take "
                "out more heat than there is; check the signs and units of their powers"
            )
        raise RunError(
            f"time.tolerance = {self.tolerance.of_run!r} K cannot be met at t = {self.t!r} s: a step of {h:.3g} s is "
            f"off by {error:.3g} K; raise time.tolerance, or with float32 set solver.precision to float64"
        )
