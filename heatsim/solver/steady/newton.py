"""Newton outside, conjugate gradients preconditioned by multigrid inside: for steady states and implicit steps.

    Newton step    linearise the exchange of the surfaces and the conductivities at T
      CG step      p ← z + β·p,  x ← x + α·p,  r ← r − α·A·p,  z ← MG(r)          float32, sums in float64
    until          max |MG(b − A·x)| < 0.1·tolerance                              b − A·x in float64

z = MG(r) approximates the error of x. So it decides when to stop, and is added at the end. If cycles hardly reduce an
error, z shows only the share θ of it, an eigenvalue of MG·A. Conjugate gradients yield the smallest θ, and z must also
be below θ·tolerance. The residual b − A·x is calculated in float64. Conjugate gradients update it in float32, so it
drifts; it is calculated again whenever it has fallen to DRIFT of the last one in float64. A linear problem needs one
Newton step.

Heat that grows with the temperature may make A indefinite. Conjugate gradients then meet a direction with p·A·p ≤ 0,
and the Newton step turns the sign of these slopes: it moves away from a state that is unstable, as time does. At the
end :meth:`NewtonSolver.is_stable` looks for such a direction.

Where heat falls steeply with the temperature, as that of a thermostat, Newton steps may go to and fro for ever. Then
pseudo-transient continuation follows the body in time, by implicit steps that become ever longer:

    step           (pace·C + A + slopes)·δ = gain(T)          T + δ counts if |gain(T + δ) − pace·C·δ| < |gain(T)|/2

Sources: Saad, *Iterative Methods for Sparse Linear Systems* (2003), §6.7.3 (eigenvalues), §9.2 (preconditioned
conjugate gradients); van der Vorst & Ye, *SIAM J. Sci. Comput.* 22 (2000) 835 (replacing the residual); Dembo,
Eisenstat & Steihaug, *SIAM J. Numer. Anal.* 19 (1982) 400 (inexact Newton); Kelley & Keyes, *SIAM J. Numer. Anal.* 35
(1998) 508 (pseudo-transient continuation).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsim.counts import counted
from heatsim.errors import Interrupted, NotConvergedError, NotFiniteError
from heatsim.kernels.multigrid.sweeps import LevelSweeps
from heatsim.physics.time.tolerance import STEADY_PART
from heatsim.solver.steady.conjugate_gradients import ConjugateGradients
from heatsim.solver.steady.steady_equations import Equations, LinearSystem

# The largest allowed correction at the end, as a fraction of the tolerance.
MARGIN = 0.1
# The default tolerance in K is at least the first; where rounding stops the search before, it may grow to the second.
FINEST, COARSEST = 1e-7, 1e-3
# √(r·MG(r)) over that of the last residual in float64, below which float32 may have drifted.
DRIFT = 1e-4
# Roundings of steps in float32, as a part of the largest correction at the last residual in float64.
ROUNDING = 1e-6
# The range is found again whenever corrections have fallen to this fraction.
LOOK = 0.01
# If a problem is not linear, each Newton step solves to this fraction of its first correction.
INEXACT = 0.01
# Steps in search of an unstable direction, and the fall of √(r·z) after which there is none.
STABLE_STEPS, STABLE = 100, 1e-5
# Lower bound of the estimated share θ.
SMALLEST_SHARE = 0.005
# Steps that look for the smallest share θ, and the fall of √(r·z) after which there is none smaller. With z added, x
# still has (1 − θ)/θ of z as its error: at most LEFT of the tolerance. Else the error estimates of steps see it.
SHARE_STEPS, SHARE_FALL, LEFT = 20, 1e-3, 0.02
MOST_CYCLES, MOST_NEWTON_STEPS = 1_000, 200
# Steps in time: the most of them, the change in K that the first one aims at, the largest part of the imbalance that a
# step may miss, factors of the pace after one that misses more and at most after one that does not, and the part of the
# imbalance below which a step is long enough to leave time out.
MOST_TIME_STEPS, FIRST_CHANGE, MISSED, SLOWER, FASTER, LONG = 400, 1.0, 0.5, 4.0, 0.1, 0.1
_RUNAWAY = (
    "Sources whose heat grows with the temperature, or surfaces that give off less heat when they are hotter, heat the "
    "body faster than it can lose the heat (thermal runaway). Look for a colder state that is stable: begin below it "
    "with initial.temperature. If there is none, cool the body more, or follow its temperature in time with "
    'time.method = "stabilized"'
)


@dataclass
class Convergence:
    """How a solution came about.

    Attributes:
        newton_steps: linearisations.
        cycles: V-cycles, one for each step of conjugate gradients and one more for each start.
        applications: work in equivalent applications of the operator on the finest level.
        tolerance: the error allowed in K.
        correction: the largest correction that was left, in K; it is a part of the solution.
    """

    newton_steps: int = 0
    cycles: int = 0
    applications: float = 0.0
    tolerance: float = 0.0
    correction: float = np.inf


def solve(
    equations: Equations,
    sweeps: LevelSweeps,
    tolerance: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Convergence:
    """Find the temperatures that satisfy the equations, and that small changes return to.

    Args:
        equations: hold the first guess, and the solution in the end.
        sweeps: work on arrays of the equations' device.
        tolerance: the largest error in K; 0.01 % of the range of the temperatures found if None, at least 0.1 µK and
            the rounding of the field, or what rounding leaves of corrections if that is less than 1 mK.
        stopped: returns whether to stop early.

    Raises:
        NotConvergedError: it was not found in ``MOST_CYCLES``, or is unstable.
        NotFiniteError: numbers overflow or are NaN.
        Interrupted: ``stopped`` returned true.
    """
    solver = NewtonSolver(equations, sweeps, stopped)
    start = None if equations.linear else equations.temperature.copy()
    try:
        try:
            found = solver.solve(tolerance, equations.patience)
        except (NotConvergedError, NotFiniteError):
            unstable, in_time = solver.met_unstable, None if start is None else solver.follow(start)
            if in_time is None:
                solver.met_unstable = unstable
                raise
            found = in_time
    except (NotConvergedError, NotFiniteError) as error:
        if solver.met_unstable:
            raise NotConvergedError(f"no {equations.sought} was found. {_RUNAWAY}") from error
        raise
    if solver.met_unstable and equations.hotter_than_sources():
        raise NotConvergedError(
            f"no {equations.sought} was found at temperatures for which all sources are known. {_RUNAWAY}"
        )
    if not solver.is_stable():
        raise NotConvergedError(f"the {equations.sought} that was found is unstable. {_RUNAWAY}")
    return found


class NewtonSolver:
    """The iterations and their vectors. It can solve the same equations again after they have changed.

    Args:
        equations: hold the first guess, and the solution in the end.
        sweeps: work on arrays of the equations' device.
        stopped: returns whether to stop early.
        most: the most cycles of one solution.

    Attributes:
        stopped: as above; it may be replaced between two solutions.
        met_unstable: whether any Newton step started where the body heats up faster than it loses heat.
    """

    met_unstable = False

    def __init__(
        self,
        equations: Equations,
        sweeps: LevelSweeps,
        stopped: Callable[[], bool] = lambda: False,
        most: int | None = None,
    ) -> None:
        self._equations, self._sweeps, self.stopped = equations, sweeps, stopped
        self._most = MOST_CYCLES if most is None else most
        self._gradients: ConjugateGradients | None = None
        # The largest correction in K at the start of the last Newton step.
        self._first = np.inf
        # α and β of the steps since the last residual in float64.
        self._steps: list[tuple[float, float]] = []
        self._may_be_indefinite = self._indefinite = self._in_time = False
        self._least_share = 1.0

    def find_share(self, heat: Any) -> None:
        """Estimate the smallest share of an error that z shows, for all later solutions: those of few steps miss it.

        Shares are small for parts that conduct well and exchange little heat with the rest, such as thick layers.

        Args:
            heat: a right-hand side that heats such parts, with the shape of the system's.
        """
        system, self._progress, self._steps = self._equations.linearise(), Convergence(), []
        gradients = self._gradients_of(system)
        system.b[...] = heat
        gradients.begin(system.b)
        start = self._look(gradients, stepped=False)
        gradients.set_first_direction()
        for _ in range(SHARE_STEPS):
            self._step()
            if self._look(gradients, stepped=True) <= SHARE_FALL**2 * start or self._indefinite:
                break
        share = max(smallest_eigenvalue(self._steps), SMALLEST_SHARE)
        self._least_share = LEFT * share / max(1.0 - share, LEFT)

    def solve(self, tolerance: float | None = None, patience: int = MOST_NEWTON_STEPS) -> Convergence:
        """Find the solution; arguments and errors are those of :func:`solve`.

        Args:
            tolerance: as for :func:`solve`.
            patience: the most steps in succession that do not halve the smallest of their corrections.
        """
        progress = self._progress = Convergence(tolerance=COARSEST if tolerance is None else tolerance)
        self._given, self._looked_at, self._share = tolerance, np.inf, self._least_share
        smallest, since = np.inf, 0
        while progress.newton_steps < MOST_NEWTON_STEPS and since < patience:
            progress.newton_steps += 1
            if self.newton_step() or self._rounds(smallest):
                return progress
            smallest, since = (self._first, 0) if self._first < 0.5 * smallest else (smallest, since + 1)
        raise NotConvergedError(
            f"no {self._equations.sought} was found in {progress.newton_steps} Newton steps; the last one began with "
            f"corrections of {self._first:.3g} K. There is none if sources take out more heat than surfaces "
            "can supply. It is hard to find where a conductivity jumps within a few kelvins next to another material: "
            "make the jump smoother. Otherwise begin closer to it with initial.temperature, or allow a larger "
            "time.tolerance"
        )

    def follow(self, start: Any) -> Convergence | None:
        """Find the solution by steps in time that become ever longer; None if they do not lead there.

        An implicit step of the length 1/pace is solved in one Newton step. What this misses of the equations of the
        step decides whether it counts, and how much longer the next one is.

        Args:
            start: the temperatures to begin with; the array is overwritten.
        """
        equations, progress, before = self._equations, self._progress, start
        equations.temperature[...] = start
        self._most, self._in_time, self.met_unstable = progress.cycles + MOST_CYCLES, True, False
        equations.begin_in_time()
        try:
            system = equations.linearise()
            size = equations.imbalance(system)
            equations.pace = pace = equations.fastest(system) / FIRST_CHANGE
            for _ in range(MOST_TIME_STEPS):
                progress.newton_steps += 1
                before[...] = equations.temperature
                missed, left, found = self._time_step(before)
                if found and equations.pace == 0.0:
                    return progress
                if found:
                    equations.pace = 0.0  # what is left is small, unless the step was too short to show it
                elif missed <= MISSED * size:
                    if equations.pace > 0.0:
                        pace *= max(FASTER, missed / (MISSED * size))
                        equations.pace = pace if left > LONG * size else 0.0
                    size = left
                else:
                    equations.temperature[...] = before
                    pace *= SLOWER if equations.pace > 0.0 else 1.0
                    equations.pace = pace
                if equations.hotter_than_sources():
                    break
        except (NotConvergedError, NotFiniteError):
            pass
        finally:
            equations.pace, self._in_time = 0.0, False
        return None

    def _time_step(self, before: Any) -> tuple[float, float, bool]:
        """Do a step in time; what it misses of its equations, the imbalance after it, and whether nothing was left."""
        equations = self._equations
        try:
            found = self.newton_step()
        except NotConvergedError:
            if equations.pace > 0.0:
                raise
            return np.inf, np.inf, False
        if self._indefinite:
            return np.inf, np.inf, False
        system = equations.linearise()
        return equations.imbalance(system, before), equations.imbalance(system), found

    def is_stable(self) -> bool:
        """Whether small changes of the solution decay, that is whether A is positive there; after :meth:`solve`.

        Conjugate gradients for a right-hand side that is positive in all cells look for a direction with p·A·p ≤ 0. The
        state that grows fastest is positive in all cells too, so they find it.
        """
        gradients = self._gradients
        if gradients is None or not self._may_be_indefinite:
            return True
        system = self._equations.linearise()
        if not self._equations.rises:
            return True
        self._equations.take_rises_in()
        gradients.cycle.refresh()
        system.b[...] = 1.0
        gradients.begin(system.b)
        start = self._look(gradients, stepped=False)
        gradients.set_first_direction()
        for _ in range(STABLE_STEPS):
            self._step()
            rz = self._look(gradients, stepped=True)
            if self._indefinite:
                return False
            if rz <= STABLE**2 * start:
                break
        return True

    def newton_step(self) -> bool:
        """Linearise, and solve that; whether the solution is found."""
        system = self._equations.linearise()
        try:
            gradients = self._gradients_of(system)
        except np.linalg.LinAlgError:
            self.met_unstable = False  # the reason is another one
            if system.exact:
                raise NotConvergedError(
                    f"no {self._equations.sought} was found: a part of the body exchanges no heat with its "
                    "surroundings; check film coefficients, emissivities and their units"
                ) from None
            raise NotConvergedError(
                f"no {self._equations.sought} was found: the search reached temperatures at which the heat of no "
                "source depends on the temperature, in a part of the body that exchanges heat with nothing else. "
                "Sources and given fluxes do not balance there within the ranges of the sources; begin closer to the "
                "balance with initial.temperature"
            ) from None
        found = self._solve(system, gradients)
        if self._indefinite and self._in_time:
            return False
        if self._indefinite:
            self.met_unstable = True
            self._equations.turn_rises()
            found = self._solve(system, gradients)
        self._equations.update(system)
        return found

    def _gradients_of(self, system: LinearSystem) -> ConjugateGradients:
        """Conjugate gradients for a system.

        Raises:
            numpy.linalg.LinAlgError: its coarsest level is singular.
        """
        if self._gradients is None:
            self._gradients = ConjugateGradients(self._equations.xp, self._sweeps, system)
            step = self._gradients.step
            self._step = step if system.nodes is not None else self._sweeps.repeated(step)
            self._begin_coarse(self._gradients)
            self._may_be_indefinite = system.preconditioner is not None
        elif system.changed:
            self._gradients.cycle.refresh()
            self._begin_coarse(self._gradients)
        return self._gradients

    def _begin_coarse(self, gradients: ConjugateGradients) -> None:
        self._progress.applications += gradients.begin_coarse() * (1.0 + gradients.cycle.applications)

    def _solve(self, system: LinearSystem, gradients: ConjugateGradients) -> bool:
        """Conjugate gradients; whether ``system.x`` is the solution."""
        progress, steps, self._looked_at, largest = self._progress, 0, np.inf, np.inf
        while True:
            gradients.begin(system.b)
            start = rz = self._look(gradients, stepped=False)
            before, largest, self._steps = largest, progress.correction, []
            self._first = largest if steps == 0 else self._first
            gradients.set_first_direction()
            self._indefinite = False
            while not (found := self._is_found(system)):
                linearise = not system.exact and progress.correction < INEXACT * self._first
                if linearise or rz <= DRIFT**2 * start:
                    break
                self._step()
                rz = self._look(gradients, stepped=True)
                if self._indefinite:
                    return False
                steps += 1
            self._find_share()
            gradients.end()
            if system.exact and self._rounds(before, largest):
                return True
            if found and (not self._steps or ROUNDING * largest < MARGIN * progress.tolerance):
                return system.exact or steps == 0
            if not system.exact:
                return False

    def _is_found(self, system: LinearSystem) -> bool:
        """Whether the correction is small enough; it must be smaller if it may show only a small share of the error."""
        progress = self._progress
        if self._given is None and progress.correction < LOOK * self._looked_at:
            lowest, highest = self._sweeps.extremes(system.operator, system.temperature)
            # Early this is too small rather than too large: the first guess has no range.
            rounding = float(np.finfo(system.b.dtype).eps) * max(abs(lowest), abs(highest))  # of the field
            progress.tolerance = max(FINEST, rounding, STEADY_PART * (highest - lowest))
            self._looked_at = progress.correction
        if progress.correction >= MARGIN * progress.tolerance:
            return False
        self._find_share()
        return progress.correction < self._share * progress.tolerance

    def _rounds(self, before: float, correction: float | None = None) -> bool:
        """Whether corrections fall no more, and are small enough for the largest default tolerance.

        Args:
            before: the largest correction in K that followed from the residual in float64 before.
            correction: that of the last one; of the last Newton step if None.
        """
        last, part = self._first if correction is None else correction, min(MARGIN, self._share)
        if self._given is not None or last < 0.5 * before or last >= part * COARSEST:
            return False
        self._progress.tolerance = max(self._progress.tolerance, last / part)
        return True

    def _find_share(self) -> None:
        """Estimate the smallest share of an error that z shows from the steps since the last residual in float64."""
        self._share = min(self._share, max(smallest_eigenvalue(self._steps), SMALLEST_SHARE))

    def _look(self, gradients: ConjugateGradients, *, stepped: bool) -> float:
        """Wait for a cycle and for the application of A before it; returns r·z.

        Args:
            gradients: the iteration whose scalars are read.
            stepped: whether it has done a step; then α and β are kept.

        Raises:
            NotConvergedError, NotFiniteError, Interrupted: as for :func:`solve`.
        """
        progress, scalars = self._progress, self._sweeps.read(gradients.scalars)
        progress.applications += 1.0 + gradients.cycle.applications
        progress.cycles += 1
        rz, progress.correction = scalars.rz, scalars.largest
        self._indefinite = stepped and self._may_be_indefinite and scalars.energy <= 0.0
        if self._indefinite:
            return rz
        if stepped and scalars.energy > 0.0 and scalars.rz_before > 0.0:
            self._steps.append((scalars.rz_before / scalars.energy, rz / scalars.rz_before))
        if not np.isfinite(rz):
            raise NotFiniteError(f"numbers overflow in the search for the {self._equations.sought}; nothing was saved")
        if self.stopped():
            raise Interrupted(f"interrupted in the search for the {self._equations.sought}")
        if progress.cycles > self._most and (
            progress.cycles > 2 * self._most or not self._rounds(0.0, progress.correction)
        ):
            raise NotConvergedError(
                f"no {self._equations.sought} was found in {counted(self._most, 'cycle')}; the last correction was "
                f"{progress.correction:.3g} K; allow a larger time.tolerance"
            )
        return rz


def smallest_eigenvalue(steps: Sequence[tuple[float, float]]) -> float:
    """The smallest eigenvalue of MG·A that conjugate gradients have seen, from α and β of their steps; 1 if none."""
    if not steps:
        return 1.0
    alpha, beta = np.array(steps).T
    diagonal = 1.0 / alpha
    diagonal[1:] += beta[:-1] / alpha[:-1]
    beside = np.sqrt(beta[:-1]) / alpha[:-1]
    return float(np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))[0])
