"""Advances a run by the method "stabilized" from one due time to the next.

due times    ──┼─────────────┼─────────────┼─────────────┼── rows and fields, interpolated
steps        ──┴───┴──────────────┴──────────────────────┴── end at jumps, kinks and the end of the run alone
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from heatsim.errors import Mistake, ScenarioError
from heatsim.kernels.autotune import Choice
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.physics.energy_bound import UNIT_ROUNDOFF
from heatsim.physics.jumps import find_jumps
from heatsim.physics.pace import Pace
from heatsim.physics.problem import HeatProblem
from heatsim.physics.temperature_range import TemperatureLimits
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field
from heatsim.solver.restart_point import RestartPoint
from heatsim.solver.stabilized.controller import Tolerance
from heatsim.solver.stabilized.field_substeps import FieldSubsteps
from heatsim.solver.stabilized.method import SavedMethod, StabilizedMethod, Work
from heatsim.solver.stabilized.roundings import roundings_of_step
from heatsim.solver.stabilized.scheme import MOST_STAGES, choose, longest_step
from heatsim.solver.stabilized.substeps import StepInterrupted
from heatsim.solver.stage_kernels import CpuStageKernels, CudaStageKernels

_METHOD, _ROUNDINGS = "method", "method_roundings"
# The least tolerance in units of the rounding of a temperature.
_ROUNDING_UNITS = 16.0


class StabilizedStepper:
    """The method on one field, as the time loop sees it: a "step" leads to the next due time.

    Attributes:
        step: the number of due times after t = 0 that were reached; the field is that of the last one.
        stopped: says whether a signal came; then the step under way is dropped.
        roundings: the roundings of all stages so far, weighted; see :mod:`heatsim.solver.stabilized.roundings`.
    """

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        ledger: Ledger,
        spec: KernelSpec,
        limits: TemperatureLimits,
        *,
        step: int = 0,
        arrays: CompositeArrays,
        tuned: bool = False,
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        """Compile nothing yet.

        Args:
            problem: due times, conditions, sources.
            field: what is advanced, and what observers read.
            ledger: the heat through surfaces that belongs to the field.
            spec: the kernel.
            limits: of the temperatures of the run.
            step: the number of due times that were reached before.
            arrays: the body's arrays on the field's device.
            tuned: on a GPU, take the fastest kernel and launch shape, whatever ``spec`` says.
            saved: the values of the checkpoint from which the run goes on; None for a new run.

        Raises:
            ScenarioError: something jumps too often.
            ValueError: the checkpoint was written with other polynomials.
        """
        self.step = step
        self.stopped: Callable[[], bool] = lambda: False
        self.roundings = 0.0
        self._problem = problem
        self._reference = field.reference
        entered = Ledger(field.device, problem, ledger.recorded)
        kernels = (CudaStageKernels if spec.backend == "cuda" else CpuStageKernels)(
            problem, field, entered, spec, arrays, tuned
        )
        cells = arrays.body.cells
        self._substeps = FieldSubsteps(problem, field, ledger, kernels, entered, cells, lambda: self.stopped())
        tolerance = Tolerance(problem.scenario.time.tolerance, limits.span, limits.lowest, limits.highest)
        self._jumps = find_jumps(problem.boundary, tolerance.kelvin, limits.span)
        self._pace = Pace.of_conditions(problem.boundary, tolerance.kelvin)
        self._method = StabilizedMethod(self._substeps, tolerance, bounds=limits.bounds)
        if saved is not None:
            content: SavedMethod = json.loads(saved[_METHOD])
            self._method.resume(content)
            self.roundings = float(saved[_ROUNDINGS])
        self._before = self.values()

    @property
    def choice(self) -> Choice:
        """The kernel of the stages."""
        return self._substeps.choice

    @property
    def reached(self) -> float:
        """The time in s to which steps have been done."""
        return self._method.t

    @property
    def work(self) -> Work:
        """Steps and stages done so far, and steps rejected."""
        return self._method.work

    @property
    def tolerance(self) -> float:
        """The error in K that the next step may have."""
        return self._method.tolerance.kelvin

    def describe(self) -> str:
        """Steps and stages so far, as text."""
        return f"{self.work.steps:,} steps of {self.work.stages:,} stages"

    def prepare(self) -> None:
        """Compile the kernels."""
        self._substeps.prepare()

    def advance(self, steps: int) -> None:
        """Do one step of the method if the next due time is not reached yet; if it is then, show the field there.

        Raises:
            ScenarioError: a condition or source cannot be used at one of the stages; rounding hides the tolerance.
            NotFiniteError, RunError: no step is good enough, however short.
        """
        due = float(self._problem.timeline.times[self.step + 1])
        if self._method.t < due:
            self._check_tolerance()
            self._before = self.values()
            stop, kink = self._jumps.next(self._method.t) or (self._problem.scenario.time.end, True)
            longest = longest_step(self._substeps.dt_limit, MOST_STAGES[self._problem.precision])
            self._method.longest = min(self._pace.longest(self._method.t), longest)
            with suppress(StepInterrupted):
                step = self._method.step(stop, jump=not kink, kink=kink)
                stages = choose(step.h, self._substeps.dt_limit)
                self.roundings += roundings_of_step(self._problem, stages, step.h)
        if self._method.t >= due:
            self._method.interpolate(due)
            self.step += 1

    def _check_tolerance(self) -> None:
        """Refuse a tolerance that rounding hides: steps would become ever shorter.

        Raises:
            ScenarioError: says which tolerance is possible.
        """
        tolerance, reference = self._method.tolerance, self._reference
        largest = max(abs(tolerance.low - reference), abs(tolerance.high - reference))
        least = _ROUNDING_UNITS * UNIT_ROUNDOFF[self._problem.precision] * largest
        if tolerance.kelvin < least:
            message = (
                f"got {tolerance.kelvin!r} K; {self._problem.precision} resolves errors of {least:.2g} K or more where "
                f"temperatures differ by {largest:.6g} K from {reference:.6g} K; allow a larger tolerance"
            )
            if self._problem.precision == "float32":
                message += ', or set solver.precision = "float64"'
            raise ScenarioError(self._problem.scenario.path, [Mistake("time.tolerance", message)])

    def restart_point(self) -> RestartPoint:
        """The end of the last step; its start as long as due times in it are still to come."""
        times = self._problem.timeline.times
        served = self.step == len(times) - 1 or self._method.t < float(times[self.step + 1])
        field, sums = self._substeps.restart(last=served and self._method.last is not None)
        return RestartPoint(self.step, field, sums, self.values() if served else self._before)

    def values(self) -> dict[str, Any]:
        """What a checkpoint at the end of the last step keeps besides field and ledger."""
        return {_METHOD: json.dumps(self._method.save()), _ROUNDINGS: self.roundings}
