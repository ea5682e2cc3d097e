"""The two ends of a step on a field: their buffers, the sums of the ledger, and what lies between them.

Five buffers of the size of the field: T_n and F_n, T_{n+1} and F_{n+1}, and the one that observers read, which shows
the field only after :meth:`FieldEnds.interpolate`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.step_error import StepEnds, StepError, combine, combined, step_errors
from heatsim.physics.nodes.network import COLUMNS, TEMPERATURE
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.field import Field
from heatsim.solver.field.field_statistics import FieldStatistics
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.nodes.node_stages import NodeStages
from heatsim.solver.stabilized.interpolation import Weights
from heatsim.solver.stabilized.substeps import End, Measure, Restart

Array = NDArray[np.float64]

# The most of the estimate in a cell that counts as rounding. What rounding can cause is known within a factor of ten or
# more: it hid all of an error that added up to 3.2 times the tolerance of a run, and to 1.9 times it with this part.
_MOST_ROUNDING = 0.75


@dataclass
class FieldEnd:
    """One end of a step: field and rate, sums of the ledger and the flows with which they grow.

    Attributes:
        T, F: in K and K/s.
        sums, flows: of the ledger.
        nodes, node_rates: the state of the nodes and its rates, shape (nodes, 5).
    """

    T: Any
    F: Any
    sums: HeatSums
    flows: HeatSums
    nodes: Array
    node_rates: Array


class FieldEnds:
    """Both ends of a step on one field, for all methods that choose their own steps.

    Args:
        problem: materials and limit.
        field: holds T_n at first; afterwards what :meth:`interpolate` shows.
        ledger: holds the sums at T_n at first; afterwards those at what is shown.
        cells: the type of each own cell, one byte, on the field's device; empty if there is one type.

    Attributes:
        stopped: returns whether a signal came.
    """

    def __init__(self, problem: HeatProblem, field: Field, ledger: Ledger, cells: Any) -> None:
        self.stopped: Callable[[], bool] = lambda: False
        xp, shown = field.device.xp, ledger.shown()
        self._problem = problem
        self._field = field
        self._ledger = ledger
        self._cells = cells
        # Zeros: a combination reads all buffers, those with weight 0 too.
        self._network = problem.boundary.network
        begun = np.zeros((0, COLUMNS)) if self._network is None else self._network.state.copy()
        still = np.zeros_like(begun)
        self._first = FieldEnd(field.deviation.copy(), xp.zeros_like(field.deviation), shown, shown, begun, still)
        self._last = FieldEnd(field.spare, xp.zeros_like(field.deviation), shown, shown, begun, still)
        self._at_end = field.of(self._last.T)
        self._statistics_at_end = FieldStatistics(problem, self._at_end, cells)
        self._restore()

    @property
    def dt_limit(self) -> float:
        """The limit of an Euler step in s."""
        return self._problem.limit.dt

    def trial(self, h: float) -> None:
        """Set the last end to T_n + h·F_n."""
        combine(self._field.device, self._last.T, Weights(1.0, h, 0.0, 0.0), self._fields())
        self._last.nodes = self._first.nodes + h * self._first.node_rates

    def measure(self, weights: Weights, stages: int) -> Measure:
        """The size of a combination of both ends after ``stages`` stages, and the extremes of T_{n+1}."""
        return self.measure_all([self], [weights], [stages])[0]

    @staticmethod
    def measure_all(fields: "Sequence[FieldEnds]", weights: Sequence[Weights], stages: Sequence[int]) -> list[Measure]:
        """Measures of several fields on one device, each with its weights; there is one wait for a GPU."""
        if not fields:
            return []
        ends = [field._ends(its_weights) for field, its_weights in zip(fields, weights, strict=True)]
        found = step_errors(fields[0]._field.device, ends)
        errors = [combined(field._field.team.gathered(error)) for field, error in zip(fields, found, strict=True)]
        measures = [field._measure(error, count) for field, error, count in zip(fields, errors, stages, strict=True)]
        return [
            measure._replace(size=float(np.maximum(measure.size, field._of_nodes(its_weights))))
            for field, measure, its_weights in zip(fields, measures, weights, strict=True)
        ]

    def _of_nodes(self, weights: Weights) -> float:
        """The size in K of a combination of the temperatures of nodes with a heat capacity."""
        if self._network is None:
            return 0.0
        combination = self._combined_nodes(weights)[~self._network.massless, TEMPERATURE]
        return float(np.abs(combination).max(initial=0.0))

    def _combined_nodes(self, weights: Weights) -> Array:
        first, last = self._first, self._last
        ends = first.nodes, first.node_rates, last.nodes, last.node_rates
        return np.asarray(sum(weight * end for weight, end in zip(weights, ends, strict=True)))

    def _ends(self, weights: Weights) -> StepEnds:
        void = self._problem.materials.void
        own = self._field.slab.own
        first_T, first_F, last_T, last_F = (buffer[own] for buffer in self._fields())
        return StepEnds((first_T, first_F, last_T, last_F), weights, self._cells, -1 if void is None else void)

    def _measure(self, found: StepError, stages: int) -> Measure:
        if not found.finite:
            return Measure(nan, nan, nan)
        unit = float(np.finfo(self._problem.precision).eps) / 2.0 * max(-found.lowest, found.highest)
        rounding = min(self.noise(stages) * unit, _MOST_ROUNDING * found.cell)
        size = max(found.mean, found.cell - rounding)
        if self._problem.materials.varies:  # the field holds enthalpies
            self._at_end.deviation = self._last.T  # stages may have exchanged buffers
            self._at_end.changed()
            extremes = self._statistics_at_end.extremes()
            return Measure(size, extremes.lowest, extremes.highest)
        reference = self._field.reference
        return Measure(size, found.lowest + reference, found.highest + reference)

    def noise(self, stages: int) -> float:
        """What rounding can cause in the error estimate of a cell after ``stages`` stages, in u of the deviations."""
        raise NotImplementedError

    def accept(self) -> None:
        """Make the last end the first one."""
        self._first.T[...] = self._last.T
        self._first.F, self._last.F = self._last.F, self._first.F
        self._first.sums, self._first.flows = self._last.sums, self._last.flows
        self._first.nodes, self._first.node_rates = self._last.nodes, self._last.node_rates

    def take_shown(self) -> None:
        """Make what observers read the first end: field, sums and nodes."""
        self._first.T[...] = self._field.deviation
        self._first.sums = self._ledger.since_start()
        if self._network is not None:
            self._first.nodes = self._network.state.copy()
        self._restore()

    def reject(self) -> None:
        """Forget the last end."""
        self._restore()

    def interpolate(self, weights: Weights) -> None:
        """Show field and heats in between, or those at an end to the bit."""
        combine(self._field.device, self._field.deviation, weights, self._fields())
        self._field.changed()
        ends = (self._first.sums, self._first.flows, self._last.sums, self._last.flows)
        self._ledger.show(HeatSums.combined(zip(weights, ends, strict=True)))
        if self._network is not None:
            self._network.state[...] = self._combined_nodes(weights)

    def settle_nodes(self, time: float) -> None:
        """Find the nodes without a heat capacity for the field that is shown, at its time in s. Collective."""
        if self._network is not None:
            self._nodes.show(self._field.deviation, time)

    @cached_property
    def _nodes(self) -> NodeStages:
        """The nodes beside the field; only where there are any."""
        return NodeStages(self._problem, self._field)

    def leave(self, step: int) -> None:
        """Show sums of heat since the row after ``step`` due times from now on, if it is one."""
        self._ledger.leave(step)

    def restart(self, *, last: bool) -> Restart:
        """A field and this rank's share of the ledger's sums; at the last end or the first. Collective."""
        at = self._end(End.LAST if last else End.FIRST)
        return self._field.of(at.T), self._ledger.saved(at.sums), {}

    def nodes_at(self, *, last: bool) -> Mapping[str, str]:
        """The state of the nodes and its rates at an end, for a checkpoint."""
        at = self._end(End.LAST if last else End.FIRST)
        return {} if self._network is None else self._network.saved(at.nodes, at.node_rates)

    def _restore(self) -> None:
        """Begin the last end from the first again."""
        self._last.T[...] = self._first.T
        self._last.nodes, self._last.node_rates = self._first.nodes, self._first.node_rates

    def _end(self, end: End) -> FieldEnd:
        return self._first if end is End.FIRST else self._last

    def _fields(self) -> tuple[Any, Any, Any, Any]:
        return self._first.T, self._first.F, self._last.T, self._last.F
