"""The stages of a step on a field: buffers, sums of the ledger, and the order of the kernels' launches.

Five buffers of the size of the field: T_n and F_n, T_{n+1} and F_{n+1}, and the one that observers read. The last is
also what the stages write alternately with T_{n+1}, so it shows the field only after :meth:`FieldSubsteps.interpolate`.
Stages always take these two buffers: the CUDA graphs that were recorded for them can be launched again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from heatsim.kernels.autotune import Choice
from heatsim.physics.problem import HeatProblem
from heatsim.physics.stage_times import Side, StageTimes
from heatsim.solver.energy_ledger import HeatSums, Ledger
from heatsim.solver.field import Field
from heatsim.solver.field_statistics import FieldStatistics
from heatsim.solver.stabilized.interpolation import Weights
from heatsim.solver.stabilized.scheme import Pair, Stages
from heatsim.solver.stabilized.substeps import End, Measure, StepInterrupted
from heatsim.solver.stage_kernels import StageKernels, StageValues

# Stages that are queued before a signal is looked for: enough for a second of work on a CPU, and so many at least.
_CELLS_AT_ONCE, _FEWEST_AT_ONCE = 2**31, 4
# Smoothing substeps before the rate is calculated in float32: 8 for 64 stages, from 32 stages on. Eight are two sweeps
# of every kernel, or a multiple of two, so that they end in the buffer in which they begin.
_SMOOTHING, _SMOOTHED_FROM = 8 / 64, 32
# The places of stages among those that are added to another field.
_PAIR, _RATE = 0, 1


@dataclass
class _End:
    """One end of a step: field and rate, sums of the ledger and the flows with which they grow."""

    T: Any
    F: Any
    sums: HeatSums
    flows: HeatSums


@dataclass(frozen=True)
class _StepValues:
    """Conditions and sources of a step.

    Attributes:
        end: of the step in s.
        values: of its substeps in their order, the first stage of the pair among them; then of the smoothing substeps.
        stages: number of those before the smoothing ones.
        smoothing: number of smoothing substeps.
    """

    end: float
    values: StageValues
    stages: int
    smoothing: int


class FieldSubsteps:
    """What :class:`~heatsim.solver.stabilized.method.StabilizedMethod` asks of a backend, on one field.

    Args:
        problem: boundary, sources and limit.
        field: holds T_n at first; afterwards what :meth:`interpolate` shows.
        ledger: holds the sums at T_n at first; afterwards those at what is shown.
        kernels: run the stages and add what passes the surfaces to ``entered``.
        entered: a ledger of zeros.
        cells: a byte a cell on the field's device, its kind; empty where there is one kind.
        stopped: says whether a signal came.
    """

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        ledger: Ledger,
        kernels: StageKernels,
        entered: Ledger,
        cells: Any,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        xp, shown = field.device.xp, ledger.shown()
        self._problem = problem
        self._field = field
        self._ledger = ledger
        self._kernels = kernels
        self._entered = entered
        self._stopped = stopped
        self._smoothed = problem.precision == "float32"
        self._step: _StepValues | None = None
        self._cells = cells
        self._prepared = False
        # Zeros: a combination reads all buffers, those with weight 0 too.
        self._first = _End(field.deviation.copy(), xp.zeros_like(field.deviation), shown, shown)
        self._last = _End(field.spare, xp.zeros_like(field.deviation), shown, shown)
        self._restore()

    @property
    def dt_limit(self) -> float:
        """The limit of an Euler step in s."""
        return self._problem.limit.dt

    @property
    def choice(self) -> Choice:
        """The kernel of the stages."""
        return self._kernels.choice

    def prepare(self) -> None:
        """Compile the kernels. That uses a buffer that later holds a rate, so a second call does nothing."""
        if not self._prepared:
            self._kernels.prepare(self._first.T, self._last.F)
            self._prepared = True

    def rate(self, end: End, t: float, side: Side, stages: int = 0) -> None:
        """Calculate F in K/s of one end, and the flows through surfaces in W.

        In float32 a few smoothing substeps come before, which leave the end as it is: rounding makes noise from cell to
        cell of some units in the last place u·T, F multiplies it by 2/dt_limit, and h·F would be off by up to
        0.65·s²·u·T after a step of s stages. Substeps of half the limit take the noise away, s/8 of them. They move the
        field by s/16·dt_limit, a fifth of 1/s of the step.
        """
        at, step = self._end(end), self._step
        # To the bit: a run that is resumed here calculates the rate for this very time.
        if step is None or end is End.FIRST or t != step.end:
            step = self._moment(t, side, stages)
        T = at.T
        if step.smoothing:
            T = self._field.deviation
            T[...] = at.T
            some = slice(step.stages, step.stages + step.smoothing)
            self._field.deviation, at.F, _ = self._kernels.advance(T, at.F, step.values, some, enters=False)
            T = self._field.deviation
        power = self._kernels.add_increments(None, T, at.F, step.values, _RATE)
        at.flows = HeatSums(self._entered.take().surfaces, power)

    def trial(self, h: float) -> None:
        """Set the last end to T_n + h·F_n."""
        self._kernels.combine(self._fields(), Weights(1.0, h, 0.0, 0.0), self._last.T)

    def advance(self, stages: Stages, t: float, h: float) -> None:
        """Do all stages of a step of ``h`` s from the first end at time ``t``; the result is the last end.

        Raises:
            StepInterrupted: a signal came.
        """
        step = self._step = self._plan(stages, t, h)
        after, last = stages.pair.after, len(stages.substeps) + 1
        heat = self._advance(step, 0, after)
        heat += self._advance_pair(step, after)
        heat += self._advance(step, after + 1, last)
        self._field.changed()
        entered = HeatSums(self._entered.take().surfaces, heat)
        self._last.sums = HeatSums.combined([(1.0, self._first.sums), (1.0, entered)])

    def _plan(self, stages: Stages, t: float, h: float) -> "_StepValues":
        """Evaluate conditions and sources of all stages of a step, and of the rate at its end."""
        after = stages.pair.after
        substeps, (one, two) = _stage_times(stages, t, h), _pair_times(stages.pair, t, h)
        in_order = StageTimes.joined([substeps[:after], one, substeps[after:]])
        in_order = in_order.after(t, self._problem.scenario.time.end)
        return self._with_rate(in_order, two, t + h, Side.BEFORE, stages.count)

    def _moment(self, t: float, side: Side, stages: int) -> "_StepValues":
        """Evaluate conditions and sources for the rate at a time alone."""
        moment = StageTimes.beside(t, side, 1.0, self._problem.scenario.time.end)
        return self._with_rate(moment[:0], moment, t, side, stages)

    def _with_rate(self, in_order: StageTimes, pair: StageTimes, t: float, side: Side, stages: int) -> "_StepValues":
        """Evaluate stages, the second one of the pair, and what the rate at ``t`` takes."""
        end = self._problem.scenario.time.end
        count = 8 * max(1, round(_SMOOTHING * stages / 8)) if self._smoothed and stages >= _SMOOTHED_FROM else 0
        smoothing = [StageTimes.beside(t, side, self.dt_limit / 2, end)] * count
        increments = StageTimes.joined([pair, StageTimes.beside(t, side, 1.0, end)])
        values = self._kernels.evaluate(StageTimes.joined([in_order, *smoothing]), increments)
        return _StepValues(t, values, len(in_order), count)

    def _advance(self, step: "_StepValues", first: int, last: int) -> float:
        """Do some substeps on the last end; return the heat of sources in the body in J."""
        heat, most = 0.0, max(_FEWEST_AT_ONCE, _CELLS_AT_ONCE // self._field.grid.cell_count)
        for begin in range(first, last, most):
            if self._stopped():
                raise StepInterrupted
            self._last.T, self._field.deviation, given = self._kernels.advance(
                self._last.T, self._field.deviation, step.values, slice(begin, min(begin + most, last))
            )
            heat += given
        return heat

    def _advance_pair(self, step: "_StepValues", at: int) -> float:
        """Do the two stages of the pair on the last end; return the heat of sources in the body in J."""
        Z, T, _ = self._kernels.advance(
            self._last.T, self._field.deviation, step.values, slice(at, at + 1), enters=False
        )
        # The rate of the last end is not known yet: its buffer is free for the result.
        heat = self._kernels.add_increments(T, Z, self._last.F, step.values, _PAIR)
        T[...] = self._last.F
        self._last.T, self._field.deviation = T, Z
        return heat

    def measure(self, weights: Weights) -> Measure:
        """The norm of a combination of both ends, and the extremes of T_{n+1}."""
        found = self._kernels.measure(self._fields(), weights)
        if not found.finite:
            return Measure(nan, nan, nan)
        if self._problem.materials.varies:  # the field holds enthalpies
            extremes = FieldStatistics(self._problem, self._field.of(self._last.T), self._cells).extremes()
            return Measure(found.norm, extremes.lowest, extremes.highest)
        reference = self._field.reference
        return Measure(found.norm, found.lowest + reference, found.highest + reference)

    def accept(self) -> None:
        """Make the last end the first one."""
        self._step = None
        self._first.T[...] = self._last.T
        self._first.F, self._last.F = self._last.F, self._first.F
        self._first.sums, self._first.flows = self._last.sums, self._last.flows

    def reject(self) -> None:
        """Forget the last end; what stages entered is dropped."""
        self._step = None
        self._entered.take()
        self._restore()

    def interpolate(self, weights: Weights) -> None:
        """Show field and heats in between, or those at an end to the bit."""
        self._kernels.combine(self._fields(), weights, self._field.deviation)
        self._field.changed()
        ends = (self._first.sums, self._first.flows, self._last.sums, self._last.flows)
        self._ledger.show(HeatSums.combined(zip(weights, ends, strict=True)))

    def restart(self, *, last: bool) -> tuple[Field, Mapping[str, Any]]:
        """A field and the ledger's sums on the host, at the last end or the first."""
        at = self._end(End.LAST if last else End.FIRST)
        return self._field.of(at.T), self._ledger.saved(at.sums)

    def _restore(self) -> None:
        """Begin the last end from the first again."""
        self._last.T[...] = self._first.T

    def _end(self, end: End) -> _End:
        return self._first if end is End.FIRST else self._last

    def _fields(self) -> tuple[Any, Any, Any, Any]:
        return self._first.T, self._first.F, self._last.T, self._last.F


def _stage_times(stages: Stages, t: float, h: float) -> StageTimes:
    """The times of the substeps of a step."""
    start, end, delta = (
        np.array([getattr(substep, name) for substep in stages.substeps]) for name in ("start", "end", "delta")
    )
    return StageTimes(t + start * h, t + start * h, (end - start) * h, delta * h)


def _pair_times(pair: Pair, t: float, h: float) -> tuple[StageTimes, StageTimes]:
    """The times of the two stages of the pair."""
    one = (pair.start, pair.start, pair.middle - pair.start, pair.b / pair.a)
    two = (pair.middle, pair.start, pair.end - pair.start, pair.a)
    times = []
    for at, start, length, size in (one, two):
        times.append(StageTimes(*(np.array([value]) for value in (t + at * h, t + start * h, length * h, size * h))))
    return times[0], times[1]
