"""The explicit stages of a step on a field: the order of the kernels' launches.

The stages write alternately T_{n+1} and the buffer that observers read. They always take these two buffers: the CUDA
graphs that were recorded for them can be launched again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.launch_shapes import Choice
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import Side, StageTimes
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.stage_arguments import IncrementRun, StageRun, StageValues, Work
from heatsim.solver.kernels.stage_kernels import StageKernels
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.stabilized.field_ends import FieldEnds
from heatsim.solver.stabilized.roundings import roundings_of_step
from heatsim.solver.stabilized.scheme import MOST_STAGES, Pair, Stages, all_stages, choose, longest_step
from heatsim.solver.stabilized.substeps import End, StepInterrupted

Array = NDArray[np.float64]

# Stages between two looks for a signal: cells for about a second on a CPU, but at least this number of stages.
_CELLS_AT_ONCE, _FEWEST_AT_ONCE = 2**31, 4
# Smoothing substeps before the rate is calculated in float32, from 32 stages on: the multiple of 8 nearest to
# 8 + stages/24. Eight are two sweeps of every kernel, or a multiple of two: they end in the buffer in which they begin.
_SMOOTHING, _SMOOTHED_FROM = 1 / 24, 32
# Rounding of float32 in the error estimate of a cell, in u·T: 230·(s − 4) without smoothing, s² with it. In the cube of
# scenarios/cube.toml with 32³ and 64³ cells, a power module and busbars it was at most 0.99 and 0.94 times that.
_NOISE, _NOISY_FROM, _SMOOTHED_NOISE = 230.0, 4, 1.0
# The numbers of these stages among the increments.
_PAIR, _RATE = 0, 1


@dataclass(frozen=True)
class _StepValues:
    """Conditions and sources of a step.

    Attributes:
        end: time in s of its end.
        values: of its substeps in their order, the first stage of the pair among them; then of the smoothing substeps.
        stages: number of those before the smoothing ones.
        smoothing: number of smoothing substeps.
    """

    end: float
    values: StageValues[Any]
    stages: int
    smoothing: int


class FieldSubsteps(FieldEnds):
    """The stages of the method "stabilized" on one field.

    Args:
        problem: boundary, sources and limit.
        field: holds T_n at first; afterwards what :meth:`interpolate` shows.
        ledger: holds the sums at T_n at first; afterwards those at what is shown.
        kernels: run the stages and add what passes the surfaces to ``entered``.
        entered: a ledger of zeros.
        cells: the type of each cell, one byte, on the field's device; empty if there is one type.

    Attributes:
        kernels: as above.
    """

    unit = "stage"
    factor = 1.0  # factor_of_estimate of the polynomials is 1.02 to 1.09

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        ledger: Ledger,
        kernels: StageKernels,
        entered: Ledger,
        cells: Any,
    ) -> None:
        super().__init__(problem, field, ledger, cells)
        self.kernels = kernels
        self._entered = entered
        self._smoothed = problem.precision == "float32"
        self._step: _StepValues | None = None
        self._prepared = False

    @property
    def longest(self) -> float:
        """The longest step in s that the polynomials allow in the run's precision."""
        return longest_step(self.dt_limit, MOST_STAGES[self._problem.precision])

    def noise(self, stages: int) -> float:
        """Rounding of the estimate in a cell, in u·T; none counts for the trial of a first step, of one stage."""
        if stages >= _SMOOTHED_FROM:
            return _SMOOTHED_NOISE * stages**2
        return _NOISE * max(stages - _NOISY_FROM, 0)

    def choose(self, h: float, tolerance: float) -> Stages:
        """The fewest stages with which a step of ``h`` s is stable."""
        return choose(h, self.dt_limit)

    def count(self, stages: Stages, h: float) -> float:
        """The weighted roundings of a step of ``h`` s; see :mod:`heatsim.solver.stabilized.roundings`."""
        return roundings_of_step(self._problem.whole, stages, h)

    def counts(self) -> dict[str, float]:
        """Nothing beside stages."""
        return {}

    def count_from(self, counts: Mapping[str, float]) -> None:
        """There is nothing to go on from."""

    @property
    def choice(self) -> Choice:
        """The kernel of the stages."""
        return self.kernels.choice

    def prepare(self) -> None:
        """Compile the kernels. That uses a buffer that later holds a rate, so a second call does nothing."""
        if not self._prepared:
            nodes = None if self._network is None else self._network.state.copy()
            self.kernels.prepare(self._first.T, self._last.F)
            # Autotuning writes to a buffer of the last end, and stages move nodes.
            self._restore()
            if self._network is not None:
                self._network.state[...] = nodes
            self._prepared = True

    @property
    def buffers(self) -> tuple[Any, Any]:
        """The field of the first end, and a buffer that is free before the first step."""
        return self._first.T, self._last.F

    def rate(self, end: End, t: float, side: Side, stages: int = 0) -> None:
        """Calculate F in K/s of one end, and the flows through surfaces in W.

        In float32 a few smoothing substeps come before, which leave the end as it is: rounding makes noise from cell to
        cell of some units in the last place u·T, F multiplies it by 2/dt_limit, and h·F would be off by up to
        0.65·s²·u·T after a step of s stages. The substeps of a short polynomial take the noise away. They move the
        field by at most 2 % of the step.
        """
        self.kernels.do(self.rating(end, t, side, stages))

    def rating(self, end: End, t: float, side: Side, stages: int = 0) -> Work[None]:
        """The work of :meth:`rate`."""
        at, step = self._end(end), self._step
        # To the bit: a run that is resumed here calculates the rate for this very time.
        if step is None or end is End.FIRST or t != step.end:
            step = self._moment(t, side, stages)
        T = at.T
        if self._network is not None:
            self._network.state[...] = at.nodes
        if step.smoothing:
            T = self._field.deviation
            T[...] = at.T
            some = slice(step.stages, step.stages + step.smoothing)
            self._field.deviation, at.F, _ = yield StageRun(T, at.F, step.values, some, enters=False)
            T = self._field.deviation
        power = yield IncrementRun(None, T, at.F, step.values, _RATE)
        at.flows = self._entered.take(power)
        if self.kernels.nodes is not None:
            at.node_rates = self.kernels.nodes.change

    def advance(self, stages: Stages, t: float, h: float) -> None:
        """Do all stages of a step of ``h`` s from the first end at time ``t``; the result is the last end.

        Raises:
            StepInterrupted: a signal came.
        """
        self.kernels.do(self.advancing(stages, t, h))

    def advancing(self, stages: Stages, t: float, h: float) -> Work[None]:
        """The work of :meth:`advance`."""
        step = self._step = self._plan(stages, t, h)
        after, last = stages.pair.after, len(stages.substeps) + 1
        if self._network is not None:
            self._network.state[...] = self._first.nodes
        heat = yield from self._advance(step, 0, after)
        heat += yield from self._advance_pair(step, after)
        heat += yield from self._advance(step, after + 1, last)
        self._field.changed()
        self._last.sums = HeatSums.combined([(1.0, self._first.sums), (1.0, self._entered.take(heat))])
        if self._network is not None:
            self._last.nodes = self._network.state.copy()

    def trying(self, stages: Stages, t: float, h: float, end: float) -> Work[None]:
        """The work of :meth:`advance`, and of :meth:`rate` at the time ``end`` (s) to which it leads."""
        yield from self.advancing(stages, t, h)
        yield from self.rating(End.LAST, end, Side.BEFORE, stages.count)

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
        sizes = _smoothing(stages, self.dt_limit) if self._smoothed else []
        smoothing = [StageTimes.beside(t, side, size, end) for size in sizes]
        increments = StageTimes.joined([pair, StageTimes.beside(t, side, 1.0, end)])
        values = self.kernels.evaluate(StageTimes.joined([in_order, *smoothing]), increments)
        return _StepValues(t, values, len(in_order), len(smoothing))

    def _advance(self, step: "_StepValues", first: int, last: int) -> Work[float]:
        """Do some substeps on the last end; return the heat of sources in the body in J."""
        heat, most = 0.0, max(_FEWEST_AT_ONCE, _CELLS_AT_ONCE // self._field.grid.cell_count)
        for begin in range(first, last, most):
            if self.stopped():
                raise StepInterrupted
            some = slice(begin, min(begin + most, last))
            self._last.T, self._field.deviation, given = yield StageRun(
                self._last.T, self._field.deviation, step.values, some
            )
            heat += given
        return heat

    def _advance_pair(self, step: "_StepValues", at: int) -> Work[float]:
        """Do the two stages of the pair on the last end; return the heat of sources in the body in J."""
        T, T_new = self._last.T, self._field.deviation
        nodes = self.kernels.nodes
        begun = np.zeros(0) if nodes is None else nodes.network.state.copy()
        # The rate of the last end is not known yet: its buffer is free for Z.
        Z, _, _ = yield StageRun(T, self._last.F, step.values, slice(at, at + 1), enters=False)
        heat: float = yield IncrementRun(T, Z, T_new, step.values, _PAIR)
        if nodes is not None:
            nodes.network.state[...] = begun + nodes.change
        self._last.T, self._field.deviation = T_new, T
        return heat

    def accept(self) -> None:
        """Make the last end the first one."""
        self._step = None
        super().accept()

    def reject(self) -> None:
        """Discard the last end and the heat that its stages entered."""
        self._step = None
        self._entered.take()
        super().reject()


def _smoothing(stages: int, dt_limit: float) -> list[float]:
    """Lengths in s of the smoothing substeps after a step of ``stages`` stages.

    They are the substeps of a short polynomial without its pair. They multiply a mode by R(z)/(1 + a·z + b·z²), which
    is 1 for slow modes and falls with 1/z² for the others.
    """
    if stages < _SMOOTHED_FROM:
        return []
    count = 8 * round(1 + _SMOOTHING * stages / 8)
    found = next(some for some in all_stages() if len(some.deltas) == count)
    return [substep.delta * found.longest(dt_limit) for substep in found.substeps]


def _stage_times(stages: Stages, t: float, h: float) -> StageTimes:
    """The times of the substeps of a step."""
    start, end, delta = (
        np.array([getattr(substep, name) for substep in stages.substeps]) for name in ("start", "end", "delta")
    )
    return _times_in_step(t, h, start, start, end - start, delta)


def _pair_times(pair: Pair, t: float, h: float) -> tuple[StageTimes, StageTimes]:
    """The times of the two stages of the pair."""
    one = (pair.start, pair.start, pair.middle - pair.start, pair.b / pair.a)
    two = (pair.middle, pair.start, pair.end - pair.start, pair.a)
    first, second = (_times_in_step(t, h, *(np.array([value]) for value in values)) for values in (one, two))
    return first, second


def _times_in_step(t: float, h: float, at: Array, start: Array, length: Array, size: Array) -> StageTimes:
    """The times of stages at fractions of a step of ``h`` s from ``t``."""
    steps = np.column_stack((np.full(len(at), t), np.full(len(at), h), at - 0.5))
    return StageTimes(t + at * h, t + start * h, length * h, size * h, steps)
