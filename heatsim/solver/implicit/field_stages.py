"""The implicit stages of a step on a field: what is solved, with what guess, and the heat that passes meanwhile.

The rate at the end of a step is K₂, as the solution of the last stage gives it: F(T₂) would multiply the solver's
errors by h·λ. In steps shorter than the limit of an Euler step, it multiplies them by less than K₂ does, 1/γ: there,
and after a jump, the rate is calculated from the field. So a checkpoint keeps the rate. The mean of K₂ is shifted, so
that rates and flows of an end hold the balance of energy: then it holds in all rows between two ends, whatever the
lengths of the steps before and after.
"""

from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np

from heatsim.errors import Interrupted, NotConvergedError, NotFiniteError
from heatsim.parallel.slab import Share
from heatsim.physics.operator.cell_exchange import CellExchange
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import Side, StageTimes
from heatsim.solver.field.field import Field
from heatsim.solver.implicit.node_step import NodeStep
from heatsim.solver.implicit.scheme import CUBIC, GAMMA, Solutions, first_stage, stage_times
from heatsim.solver.implicit.stage_equations import StageEquations, VaryingStageEquations
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.stabilized.field_ends import FieldEnd, FieldEnds
from heatsim.solver.stabilized.interpolation import factor_of_estimate
from heatsim.solver.stabilized.substeps import End, Restart, StepInterrupted
from heatsim.solver.steady.newton import NewtonSolver
from heatsim.solver.steady.steady_state import coarse_cells, make_balance, make_sweeps
from heatsim.storage.checkpoint import Checkpoint

# A stage that needs more cycles is abandoned: the equations of a shorter step are easier.
_MOST_CYCLES = 100
# Roundings of a step, in parts of u·H: its end is stored in the field's precision, and so is the rate.
_ROUNDINGS = 2.0
# Rounding of the error estimate in a cell, in u·T: T_n and T_{n+1} count 1.9 times, and h·K₂ has 1/γ of theirs.
_NOISE = 16.0
# A right-hand side in float32 makes an error of this part of the change that is solved for. If that is more than a part
# of the tolerance, because the first guess was far off, the stage is solved once more.
_ROUNDED, _LEFT = 1e-6, 0.1
# Longer steps, in stability limits of Euler's method, meet the same equations as a steady state.
_AS_STEADY = 1e9
# Arrays in float64 of an iteration; more where materials change with temperature.
_DOUBLES, _VARYING = 9, 20
_RATE, _FLOW, _POWER = "rate", "flow_", "flow_sources"


def device_bytes(problem: HeatProblem) -> int:
    """Bytes beside both ends of a step: conductances and right-hand sides, vectors, temporary arrays, coarse levels."""
    item, single, double, grid = np.dtype(problem.precision).itemsize, 4, 8, problem.grid
    finest = 8 * item + 5 * single + (_DOUBLES + _VARYING * problem.materials.by_halves) * double
    return finest * grid.cell_count + (5 * item + 3 * single) * coarse_cells(problem)


class FieldStages(FieldEnds):
    """The stages of the method "implicit" on one field.

    Args:
        problem: materials, boundary, sources.
        field: holds T_n at first; afterwards what :meth:`interpolate` shows.
        ledger: holds the sums at T_n at first; afterwards those at what is shown.
        cells: the type of each cell of the field's buffers, one byte, on their device; empty if there is one type.
        saved: the checkpoint from which the run goes on; None for a new run.
    """

    unit, longest, choice = "stage", inf, None
    factor = factor_of_estimate(CUBIC)

    def __init__(
        self, problem: HeatProblem, field: Field, ledger: Ledger, cells: Any, saved: Checkpoint | None = None
    ) -> None:
        super().__init__(problem, field, ledger, cells[field.slab.own] if cells.size else cells)
        sweeps = make_sweeps(field)
        self._balance = make_balance(problem, field, cells, changing=True, ledger=ledger.sums.layout)
        make = VaryingStageEquations if problem.materials.by_halves else StageEquations
        self._equations = make(self._balance, problem.precision, sweeps)
        self._newton = NewtonSolver(self._equations, sweeps, most=_MOST_CYCLES)
        self._find_share()
        self._counts = {"cycles": 0.0, "newton_steps": 0.0, "applications": 0.0, "imbalance": 0.0}
        self._tried = 0.0
        self._flows_at_end: HeatSums | None = None
        self._node_rates_at_end = self._first.node_rates
        if saved is not None and _RATE in saved.arrays:
            self._take_back(self._first, saved)

    def _find_share(self) -> None:
        """Find out how well the solver sees its errors: in the longest step, at the reference temperature, at t = 0.

        So it is the same where a run goes on. The heat is another one in each cell, and follows from its number.
        """
        xp, slab, end = self._field.device.xp, self._field.slab, self._problem.scenario.time.end
        nx, ny, _ = self._problem.grid.cells
        contents = xp.zeros(self._first.T.shape)
        rows = self._rows(StageTimes.beside(0.0, Side.AFTER, 1.0, end))
        longest = min(end, _AS_STEADY * self.dt_limit)
        self._equations.begin(rows, 1.0 / (GAMMA * longest), contents, contents)
        number = slab.first * nx * ny + xp.arange(contents.size, dtype="float64").reshape(contents.shape)
        with suppress(NotConvergedError, NotFiniteError, np.linalg.LinAlgError):  # steps meet what is wrong, and say so
            self._newton.find_share(number * 0.6180339887498949 % 1.0)
        if self._network is not None:  # they were found for these cells
            self._network.state[...] = self._first.nodes

    def noise(self, stages: int) -> float:
        """Rounding of the estimate in a cell, in u·T."""
        return _NOISE

    def choose(self, h: float, tolerance: float) -> Solutions:
        """Two stages, which share the tolerance."""
        return Solutions(tolerance)

    def prepare(self) -> None:
        """Nothing is compiled ahead."""

    def count(self, stages: Solutions, h: float) -> float:
        """Count the imbalance of a step that was accepted; returns its roundings."""
        self._counts["imbalance"] += self._tried
        return _ROUNDINGS

    def counts(self) -> dict[str, float]:
        """Cycles, Newton steps, equivalent applications of the operator; the imbalance that the solver left in J."""
        return dict(self._counts)

    def count_from(self, counts: Mapping[str, float]) -> None:
        """Go on from these counts."""
        self._counts = dict(counts)

    def rate(self, end: End, t: float, side: Side, stages: int = 0) -> None:
        """Calculate F in K/s of one end, and the flows through surfaces in W.

        At the end of a long step F is K₂. Where a run goes on within a smooth interval it is that of the checkpoint.
        """
        at = self._end(end)
        if end is End.LAST and self._flows_at_end is not None:
            at.flows, at.node_rates = self._flows_at_end, self._node_rates_at_end
        elif end is End.LAST or side is Side.AFTER:
            moment = StageTimes.beside(t, side, 1.0, self._problem.scenario.time.end)
            rows = self._rows(moment)
            if self._network is not None:
                self._network.state[...] = at.nodes
                self._nodes.begin(at.T, rows, self._network.given(moment).at(0))
                at.node_rates = self._nodes.rate
            at.F[...] = self._equations.rate(rows, at.T.astype(np.float64))
            at.flows = self._flows(self._equations.exchange()[0])

    def advance(self, stages: Solutions, t: float, h: float) -> None:
        """Solve both stages of a step of ``h`` s from the first end at time ``t``; the result is the last end.

        A stage without a solution leaves NaN.

        Raises:
            StepInterrupted: a signal came.
        """
        try:
            self._advance(stages, t, h)
        except (NotConvergedError, NotFiniteError):
            self._last.T[...], self._last.F[...], self._flows_at_end = np.nan, np.nan, None
        except Interrupted:
            raise StepInterrupted from None

    def _advance(self, stages: Solutions, t: float, h: float) -> None:
        times = stage_times(t, h, self._problem.scenario.time.end)
        rows = self._rows(times)
        equations, first, last, sigma = self._equations, self._first, self._last, 1.0 / (GAMMA * h)
        nodes = None if self._network is None else NodeStep(self._network, times, first.nodes)
        begun = first.T.astype(np.float64)
        equations.begin_step()
        first_rows = first_stage(rows, len(self._problem.boundary.conditions))
        equations.begin(first_rows, sigma, begun, begun + (GAMMA * h) * first.F, None if nodes is None else nodes.first)
        K, flows_of_one, left_of_one = self._solve(stages, sigma, begun)
        if nodes is not None:
            nodes.end_first(equations, h)
        begun += ((1.0 - GAMMA) * h) * K
        # The first guess of K₂ lies on the straight line through F_n and K₁.
        K += (K - first.F) * ((1.0 - GAMMA) / GAMMA)
        equations.begin(rows[1:2], sigma, begun, begun + (GAMMA * h) * K, None if nodes is None else nodes.second)
        K, flows, left = self._solve(stages, sigma, begun)
        if nodes is not None:
            last.nodes, self._node_rates_at_end = nodes.end_second(equations, h)
        # In steps of 1e14 Euler limits and more, a power of rounding times h would be an error of kelvins.
        unseen = left if equations.warming(left) * h <= _LEFT * stages.tolerance else 0.0
        last.T[...], last.F[...] = equations.contents(), equations.balanced(K, unseen)
        last.sums = HeatSums.combined([(1.0, first.sums), ((1.0 - GAMMA) * h, flows_of_one), (GAMMA * h, flows)])
        self._tried = h * ((1.0 - GAMMA) * abs(left_of_one) + GAMMA * abs(left))
        self._flows_at_end = flows if h >= self.dt_limit else None
        self._field.changed()

    def _solve(self, stages: Solutions, sigma: float, begun: Any) -> tuple[Any, HeatSums, float]:
        """Solve a stage; returns K in K/s, the flows in W, and by how much they differ from C·K in W."""
        equations, counts = self._equations, self._counts
        exact = False
        while not exact:
            self._newton.stopped = self.stopped
            found = self._newton.solve(stages.tolerance)
            counts["cycles"] += found.cycles
            counts["newton_steps"] += found.newton_steps
            counts["applications"] += found.applications
            exact = not _ROUNDED * equations.largest_change > found.correction + _LEFT * stages.tolerance
        equations.settle_nodes()
        _, _, slopes, left = self._look(sigma, begun)
        equations.shift(-left, slopes)
        equations.settle_nodes()
        K, heats, _, left = self._look(sigma, begun)
        return K, self._flows(heats), left

    def _look(self, sigma: float, begun: Any) -> tuple[Any, list[Any], list[Any], float]:
        """K in K/s, heats in W and slopes in W/K of surfaces, and Σ C·K − Σ exchange − Σ sources in W."""
        equations = self._equations
        K = (equations.contents() - begun) * sigma
        heats, slopes = equations.exchange()
        return K, heats, slopes, equations.stored(K) - equations.through(heats) - self._balance.source_power

    def accept(self) -> None:
        """Make the last end the first one."""
        self._flows_at_end = None
        super().accept()

    def reject(self) -> None:
        """Forget the last end."""
        self._flows_at_end = None
        super().reject()

    def restart(self, *, last: bool) -> Restart:
        """A field, this rank's shares of sums and flows, and the rate; at the last end or the first. Collective."""
        field, sums, _ = super().restart(last=last)
        at = self._end(End.LAST if last else End.FIRST)
        flows = {_FLOW + name: share for name, share in self._ledger.shares(at.flows).items()}
        power = Share.of_first(np.array([at.flows.sources]), field.team.first)
        rate = field.device.to_host(at.F[field.slab.own])
        return field, {**sums, **flows, _POWER: power}, {_RATE: rate}

    def _take_back(self, at: FieldEnd, saved: Checkpoint) -> None:
        slab = self._field.slab
        at.F[slab.own] = self._field.device.xp.asarray(saved.part(_RATE, slab.first, slab.last))
        power = float(saved.part(_POWER, 0, 1)[0])
        if self._network is not None:
            at.node_rates = self._network.saved_rates(saved.values)
        at.flows = self._ledger.part(lambda name, first, last: saved.part(_FLOW + name, first, last), power)

    def _rows(self, times: StageTimes) -> StepInputs:
        return self._problem.stage_rows(times, 1.0, self._field.reference)

    def _flows(self, heats: list[Any]) -> HeatSums:
        """What passes each surface, as the ledger counts it, in K/s of each cell, and the power of sources in W."""
        xp, balance = self._field.device.xp, self._balance
        found = HeatSums.zeros(xp, self._first.sums.layout, balance.source_power)
        capacity = xp.asarray(self._equations.capacity)
        for surface, heat in zip(balance.surfaces, heats, strict=True) if found.layout.size else ():
            per_kelvin = 1.0 / (capacity.reshape(-1)[surface.cells] if capacity.ndim else capacity)
            if isinstance(surface, CellExchange):
                found.cells[...] = heat * per_kelvin
                continue
            beam = surface.brought
            surface.add_at(surface.ledger, (heat - beam) * per_kelvin, found.values)
            if found.layout.has_beams:
                surface.add_at(surface.ledger + found.layout.to_beams, beam * per_kelvin, found.values)
        return found
