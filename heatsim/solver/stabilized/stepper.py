"""Advances a run by the method "stabilized" from one due time to the next.

    due times    ──┼─────────────┼─────────────┼────────────── rows and fields, interpolated
    steps        ──┴───┴──────────────┴─────────────────────┴─ end at jumps and at the end of the run alone
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from heatsim.kernels.autotune import Choice
from heatsim.physics.problem import HeatProblem
from heatsim.solver.restart_point import RestartPoint
from heatsim.solver.stabilized.field_substeps import FieldSubsteps
from heatsim.solver.stabilized.method import SavedMethod, StabilizedMethod, Work

_SAVED = "method"


class StabilizedStepper:
    """The method on one field, as the time loop sees it: a "step" leads to the next due time.

    Attributes:
        step: the number of due times after t = 0 that were reached; the field is that of the last one.
    """

    def __init__(self, problem: HeatProblem, substeps: FieldSubsteps, method: StabilizedMethod, step: int = 0) -> None:
        """Compile nothing yet.

        Args:
            problem: due times, and the jumps of what drives the body.
            substeps: does the stages on the field.
            method: chooses the steps; uses ``substeps``.
            step: the number of due times that were reached before.
        """
        self.step = step
        self._problem = problem
        self._substeps = substeps
        self._method = method
        self._stops: Sequence[float] = (*problem.jumps, problem.scenario.time.end)
        self._before = method.save()

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
            ScenarioError: a condition or source cannot be used at one of the stages.
            NotFiniteError, RunError: no step is good enough, however short.
        """
        due = float(self._problem.timeline.times[self.step + 1])
        if self._method.t < due:
            self._before = self._method.save()
            stop = self._stops[bisect_right(self._stops, self._method.t)]
            self._method.step(stop, jump=stop in self._problem.jumps)
        if self._method.t >= due:
            self._method.interpolate(due)
            self.step += 1

    def restart_point(self) -> RestartPoint:
        """The end of the last step; its start as long as there are due times in it that were not reached."""
        times = self._problem.timeline.times
        ended = self.step == len(times) - 1 or self._method.t < float(times[self.step + 1])
        field, sums = self._substeps.end(last=ended and self._method.last is not None)
        saved = self._method.save() if ended else self._before
        return RestartPoint(self.step, field, sums, {_SAVED: json.dumps(saved)})

    def resume(self, values: dict[str, Any]) -> None:
        """Go on from the values of a checkpoint.

        Raises:
            ValueError: it was written with other polynomials.
        """
        saved: SavedMethod = json.loads(values[_SAVED])
        self._method.resume(saved)
        self._before = self._method.save()
