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
from heatsim.solver.stage_kernels import StageKernels

# Stages that are queued before a signal is looked for.
_STAGES_AT_ONCE = 32


@dataclass
class _End:
    """One end of a step: field and rate, sums of the ledger and the flows with which they grow."""

    T: Any
    F: Any
    sums: HeatSums
    flows: HeatSums


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

    def rate(self, end: End, t: float, side: Side) -> None:
        """Calculate F in K/s of one end, and the flows through surfaces in W."""
        at, run_end = self._end(end), self._problem.scenario.time.end
        stage = StageTimes.beside(t, side, 1.0, run_end)
        heat = self._kernels.add_increments(None, at.T, at.F, stage)
        at.flows = HeatSums(self._entered.take().surfaces, heat)

    def trial(self, h: float) -> None:
        """Set the last end to T_n + h·F_n."""
        self._kernels.combine(self._fields(), Weights(1.0, h, 0.0, 0.0), self._last.T)

    def advance(self, stages: Stages, t: float, h: float) -> None:
        """Do all stages of a step of ``h`` s from the first end at time ``t``; the result is the last end.

        Raises:
            StepInterrupted: a signal came.
        """
        times = _stage_times(stages, t, h).after(t, self._problem.scenario.time.end)
        after = stages.pair.after
        heat = self._advance(times[:after])
        heat += self._advance_pair(stages.pair, t, h)
        heat += self._advance(times[after:])
        self._field.changed()
        entered = HeatSums(self._entered.take().surfaces, heat)
        self._last.sums = HeatSums.combined([(1.0, self._first.sums), (1.0, entered)])

    def _advance(self, times: StageTimes) -> float:
        """Do substeps on the last end; return the heat of sources in the body in J."""
        heat = 0.0
        for begin in range(0, len(times), _STAGES_AT_ONCE):
            if self._stopped():
                raise StepInterrupted
            some = times[begin : begin + _STAGES_AT_ONCE]
            self._last.T, self._field.deviation, given = self._kernels.advance(
                self._last.T, self._field.deviation, some
            )
            heat += given
        return heat

    def _advance_pair(self, pair: Pair, t: float, h: float) -> float:
        """Do the two stages of the pair on the last end; return the heat of sources in the body in J."""
        one, two = _pair_times(pair, t, h)
        Z, T, _ = self._kernels.advance(self._last.T, self._field.deviation, one, enters=False)
        # The rate of the last end is not known yet: its buffer is free for the result.
        heat = self._kernels.add_increments(T, Z, self._last.F, two)
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
        self._first.T[...] = self._last.T
        self._first.F, self._last.F = self._last.F, self._first.F
        self._first.sums, self._first.flows = self._last.sums, self._last.flows

    def reject(self) -> None:
        """Forget the last end; what stages entered is dropped."""
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
