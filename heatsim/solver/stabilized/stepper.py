"""Advances a run from one due time to the next, by a method that chooses its own steps.

due times    ──┼─────────────┼─────────────┼─────────────┼── rows and fields, interpolated
steps        ──┴───┴──────────────┴──────────────────────┴── end at jumps, kinks and the end of the run alone

What may be set during the run is taken to stay, so steps go beyond the moments at which it may change. If it changes at
one of them, the run goes on from what was shown then, and the rest of the step is dropped.
"""

import json
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from heatsim.counts import counted
from heatsim.errors import Mistake, ScenarioError
from heatsim.kernels.launch_shapes import Choice
from heatsim.physics.drives.drives import Drives
from heatsim.physics.drives.jumps import find_jumps
from heatsim.physics.estimates.temperature_range import TemperatureLimits
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.energy_bound import LargestHeat
from heatsim.physics.time.tolerance import Tolerance, least_tolerance
from heatsim.solver.field.restart_point import RestartPoint
from heatsim.solver.stabilized.method import AdaptiveMethod, Attempt, SavedMethod, Step, StepCounts
from heatsim.solver.stabilized.substeps import Restart, StepInterrupted, Substeps

_METHOD, _COUNTS, _ROUNDINGS, _HEAT = "method", "method_counts", "method_roundings", "method_heat"


class RunSubsteps(Substeps, Protocol):
    """A backend of a run: beside the steps themselves, what compiles, counts and goes on."""

    stopped: Callable[[], bool]

    @property
    def choice(self) -> Choice | None:
        """The kernel that does nearly all of the work; None if there is no choice."""

    @property
    def unit(self) -> str:
        """The name of a stage in progress lines."""

    def prepare(self) -> None:
        """Compile what is compiled."""

    def count(self, stages: Any, h: float) -> float:
        """Count a step of ``h`` s that was accepted; returns its roundings, weighted for the bound of the energy."""

    def leave(self, step: int) -> None:
        """Show sums of heat since the row after ``step`` due times from now on, if it is one."""

    def restart(self, *, last: bool) -> Restart:
        """The field, and arrays on the host, from which a run goes on at the last end or the first."""

    def nodes_at(self, *, last: bool) -> Mapping[str, str]:
        """The state of the nodes at the last end or the first, for a checkpoint."""

    def settle_nodes(self, time: float) -> None:
        """Find the nodes without a heat capacity for the field that is shown, at its time in s. Collective."""

    def counts(self) -> dict[str, float]:
        """What was counted since the start of the run, for checkpoints and the summary, beside steps and stages."""

    def count_from(self, counts: Mapping[str, float]) -> None:
        """Go on from these counts."""


class AdaptiveStepper:
    """A method on one field, as the time loop sees it: a "step" leads to the next due time.

    Attributes:
        step: the number of due times after t = 0 that were reached; the field is that of the last one.
        method: decides on the steps.
        substeps: the kind of steps.
        roundings: Σ r·H in J of all stages so far; see heatsim/physics/readings/energy_bound.py.
    """

    def __init__(
        self,
        problem: HeatProblem,
        substeps: RunSubsteps,
        limits: TemperatureLimits,
        reference: float,
        *,
        step: int = 0,
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        """Compile nothing yet.

        Args:
            problem: due times, conditions, sources.
            substeps: the kind of steps, on the run's field.
            limits: of the temperatures of the run.
            reference: the temperature in K that deviations are counted from.
            step: the number of due times that were reached before.
            saved: the values of the checkpoint from which the run goes on; None for a new run.

        Raises:
            ScenarioError: something jumps too often.
            ValueError: the checkpoint was written with other stages.
        """
        self.step = step
        self.roundings = 0.0
        self._problem = problem
        self.substeps = substeps
        self._reference, self._limits = reference, limits
        given, temperatures = problem.scenario.time.tolerance, (limits.lowest, limits.highest)
        tolerance = Tolerance(given, limits.span, *temperatures, limits.foreseen)
        drives = Drives.of(problem.whole)
        self._jumps = find_jumps(problem.scenario, drives, tolerance)
        self.method = AdaptiveMethod(substeps, tolerance, bounds=limits.bounds, drives=drives.watched(tolerance))
        self._largest_heat = LargestHeat(problem.whole, reference)
        self._heat = self._heat_between(limits.lowest, limits.highest)
        self._begun_anew = 0  # the number of due times reached when values changed last
        if saved is not None:
            content: SavedMethod = json.loads(saved[_METHOD])
            self.method.resume(content)
            self.roundings, self._heat = float(saved[_ROUNDINGS]), float(saved[_HEAT])
            substeps.count_from(json.loads(saved[_COUNTS]))
        self._before = self._state()

    @property
    def choice(self) -> Choice | None:
        """The kernel of the stages; None if there is no choice."""
        return self.substeps.choice

    @property
    def stopped(self) -> Callable[[], bool]:
        """Returns whether a signal came; then the present step is dropped."""
        return self.substeps.stopped

    @stopped.setter
    def stopped(self, stopped: Callable[[], bool]) -> None:
        self.substeps.stopped = stopped

    @property
    def reached(self) -> float:
        """The time in s to which steps have been done."""
        return self.method.t

    @property
    def work(self) -> StepCounts:
        """Steps and stages done so far, and steps rejected."""
        return self.method.work

    @property
    def counts(self) -> Mapping[str, float]:
        """What the kind of steps counts beside these."""
        return self.substeps.counts()

    @property
    def tolerance(self) -> float:
        """The error in K that the run may have."""
        return self.method.tolerance.of_run

    def describe(self) -> str:
        """Steps and stages so far, as text."""
        return f"{counted(self.work.steps, 'step')} of {counted(self.work.stages, self.substeps.unit)}"

    def prepare(self) -> None:
        """Compile the kernels."""
        self.substeps.prepare()

    def advance(self, steps: int) -> None:
        """Do one step of the method if the next due time is not reached yet; if it is then, show the field there.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the stages; rounding hides the tolerance.
            NotFiniteError, RunError: no step is good enough, however short.
        """
        self._take_changes()
        if not self.at_due:
            try:
                self.accept(self.method.complete(self.begin()))
            except StepInterrupted:
                self.substeps.count_from(self._before.counts)  # the step is done again
        if self.at_due:
            self.show()

    @property
    def at_due(self) -> bool:
        """Whether steps lead to the next due time, or beyond it."""
        return self.method.t >= float(self._problem.timeline.times[self.step + 1])

    def begin(self) -> Attempt:
        """The first attempt of the next step of the method.

        Raises:
            ScenarioError: as for :meth:`advance`.
        """
        self._check_tolerance()
        self._before = self._state()
        stop, kink = self._jumps.next(self.method.t) or (self._problem.scenario.time.end, True)
        return self.method.begin(stop, jump=not kink, kink=kink)

    def accept(self, step: Step) -> None:
        """Count a step of the method that was accepted."""
        stages = self.substeps.choose(step.h, step.tolerance)
        before, self._heat = self._heat, self._heat_between(step.low, step.high)
        self.roundings += self.substeps.count(stages, step.h) * max(before, self._heat)

    def _heat_between(self, low: float, high: float) -> float:
        """Σ C·max|T − T_ref| in J of a field with these extremes in K, and with what drives do unseen in a step."""
        drives = self.method.drives
        unseen = self.method.tolerance.of_run if drives.drives or drives.beams else 0.0
        return self._largest_heat(low - self._reference - unseen, high - self._reference + unseen)

    def show(self) -> None:
        """Show the field at the next due time, which is within the last step."""
        self.substeps.leave(self.step)
        time = float(self._problem.timeline.times[self.step + 1])
        self.method.interpolate(time)
        self.substeps.settle_nodes(time)
        self.step += 1

    def take_field(self, low: float, high: float) -> None:
        """Go on from the field that is shown, which was set at a due time; its extremes are given in K."""
        self.method.restart(float(self._problem.timeline.times[self.step]))
        self.method.tolerance = self.method.tolerance.widened(low, high)
        self._heat = self._heat_between(low, high)

    def _take_changes(self) -> None:
        """Go on from what is shown if a value that the run may set has another one from now on."""
        now = float(self._problem.timeline.times[self.step])
        if self.step > self._begun_anew and any(
            steered.changed_at == now for steered in self._problem.scenario.steered.values()
        ):
            self.method.restart(now)
            self._begun_anew = self.step

    def replay(self) -> None:
        """Show the field at the last due time, if the checkpoint of this run holds the start of the step around it."""
        now = float(self._problem.timeline.times[self.step])
        if self.method.t < now:
            self.prepare()
            self.accept(self.method.complete(self.begin()))
            self.method.interpolate(now)

    @property
    def warnings(self) -> list[str]:
        """That the tolerance of the scenario could not be kept, if it could not."""
        given = self._problem.scenario.time.tolerance
        if given is None or self.tolerance <= given:
            return []
        return [
            f"time.tolerance = {given!r} K was not kept to the end: {self._resolved(self._largest_deviation)}, and "
            f'this was allowed; set solver.precision = "float64" to keep it'
        ]

    def _check_tolerance(self) -> None:
        """Refuse a given tolerance that rounding hides at the first temperatures, or at those around the body.

        Steps would become ever shorter. Where heat in the body leads to temperatures at which rounding hides it, the
        run goes on with the least tolerance that rounding shows: see :attr:`warnings`. So does one without a tolerance.

        Raises:
            ScenarioError: says which tolerance is possible.
        """
        tolerance, largest = self.method.tolerance, self._largest_deviation
        least = least_tolerance(self._problem.precision, largest)
        if tolerance.kelvin >= least:
            return
        if self.method.work.steps > 0 or tolerance.given is None:
            self.method.tolerance = replace(tolerance, given=tolerance.run_with(least))
            return
        message = f"got {tolerance.of_run!r} K; {self._resolved(largest)}; allow a larger tolerance"
        if self._problem.precision == "float32":
            message += ', or set solver.precision = "float64"'
        raise ScenarioError(self._problem.scenario.path, [Mistake("time.tolerance", message)])

    @property
    def _largest_deviation(self) -> float:
        """How far temperatures lie from the reference, of the field so far and around the body, in K."""
        tolerance, limits = self.method.tolerance, self._limits
        low, high = min(tolerance.low, limits.coldest), max(tolerance.high, limits.hottest)
        return max(self._reference - low, high - self._reference)

    def _resolved(self, largest: float) -> str:
        least = self.method.tolerance.run_with(least_tolerance(self._problem.precision, largest))
        return (
            f"{self._problem.precision} resolves errors of {least:.3g} K or more where temperatures differ by "
            f"{largest:.6g} K from {self._reference:.6g} K"
        )

    def restart_point(self) -> RestartPoint:
        """The end of the last step; its start as long as due times in it are still to come."""
        self._take_changes()
        times = self._problem.timeline.times
        served = self.step == len(times) - 1 or self.method.t < float(times[self.step + 1])
        self.substeps.leave(self.step)
        last = served and self.method.last is not None
        field, sums, planes = self.substeps.restart(last=last)
        values = (self._state() if served else self._before).values() | dict(self.substeps.nodes_at(last=last))
        return RestartPoint(self.step, field, sums, values, planes)

    def values(self) -> dict[str, Any]:
        """What a checkpoint at the end of the last step keeps besides field and ledger."""
        return self._state().values()

    def _state(self) -> "_State":
        return _State(copy(self.method), self.substeps.counts(), self.roundings, self._heat)


class _State(NamedTuple):
    """What a checkpoint keeps besides field and ledger.

    Attributes:
        method: as it was; its attributes are replaced in a step, not changed.
        counts: of the substeps.
        roundings: as of the stepper.
        heat: the largest H at the end of the last step, in J.
    """

    method: AdaptiveMethod
    counts: dict[str, float]
    roundings: float
    heat: float

    def values(self) -> dict[str, Any]:
        """The values of the checkpoint."""
        method, counts = json.dumps(self.method.save()), json.dumps(self.counts)
        return {_METHOD: method, _COUNTS: counts, _ROUNDINGS: self.roundings, _HEAT: self.heat}
