"""The work that each method in time needs for a run: counted from the scenario, never measured.

**Steps.** After a jump the field changes ever more slowly: its third derivative in time falls as 1/t³, so a step whose
estimate C·h³ is what it may have, tol, has a length h = θ·t with θ = 3.3·(tol/range)^(1/3). Steps begin at about
0.37·dt_limit and grow by the factor 1 + θ, so in an interval of Δ s

    steps = ln(1 + θ·Δ/(0.37·dt_limit)) / θ

At the start, if nothing heats the body, the range is what the initial field is off (start.py) at √(dt_limit·Δ): weak
films move a body slowly. Where neighbouring cells differ by r, the fastest mode 2/dt_limit has this size, and steps
begin at ½·(tol/(0.115·r))^(1/3)·dt_limit: 0.05·dt_limit for a picture.

After a kink the third derivative falls as 1/t². If what drives the body changes by R kelvins in the interval, then
h = θ·t·(Δ/t)^(1/3) with θ = 3.3·(tol/R)^(1/3), and

    steps = 3/θ·(1 − (dt_limit/Δ)^(1/3))

Steps also follow what drives the body (drives.py). While a value swings by R over an interval,

- the cubic over h misses h⁴/384·R/2·(π/Δ)⁴, so there are at least π·(R/(768·allowed))^(1/4) steps;
- cells behind a surface that follow a temperature around it within a step have the estimate c·h²·d²T/dt². For one mode
  c is 0.05 to 2 in both methods, in a wall 0.1 to 0.3; 0.2 is taken. So there are 0.76·π·√(c·R/(2·tol)) steps, with the
  part of R that the film passes on;
- a beam that moves by its radius in τ leaves third derivatives of 8·1.38·range/τ³, those of its profile exp(−2x²/r²):
  2·(0.159·range/tol)^(1/3) steps.

**Stages of "stabilized".** With s stages a step may be β₁·s²·dt_limit/2 long, with β₁ = 0.654. Summed over all steps
this gives

    stages = 2·√(2/(β₁·θ)) · √(Δ/dt_limit),        after a kink 1.5 instead of 2

but at least 6 for each step. In float32, rounding makes errors that grow with s²: at the default tolerance steps have
at most about 90 stages, so a long interval needs at least 2·Δ/(β₁·90·dt_limit).

**Applications of "implicit".** It needs 0.6 to 1.4 times these steps. Each has two stages, and each stage takes about
14 applications of the operator on the finest grid, with the work on coarser grids counted in. On graded grids levels
have two to three times as many cells together, and a stage takes about 24 applications.

Twelve bundled scenarios (60 days of the year), at their tolerances and precisions, need 0.79 to 1.28 times the middle
of the stages that are expected, and 0.73 to 1.65 times that of the applications: each stage of "implicit" takes 8 to 17
of them. Three things are not counted. With float32 by choice busbar.toml takes 5 times its stages: steps of more than
some 160 stages fail, so one of four is tried in vain. Where nothing radiates they do not fail: stages probably leave
the temperatures between which radiation is nearly linear. With float64, which "auto" takes there, it is 0.9 times.
laser_track.toml takes 2.2 times its applications in its first 0.2 s, with 1.6 times the steps. With melting wax stages
were 17 times those of a body without; in two more scenarios applications were 42 times for tin (melts over 2 K) and 110
times for water (0.3 K).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, e, inf, pi, sqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.drives.drives import PART, Drives, changes, heating
from heatsim.physics.drives.jumps import Jumps, find_jumps
from heatsim.physics.estimates.euler_error import euler_error
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.kernel_costs import APPLICATION, EULER, STAGE, SweepCost, varies
from heatsim.physics.estimates.start import Start
from heatsim.physics.estimates.temperature_range import foreseen, span
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.matter.coefficients import Precision
from heatsim.physics.operator.stability import StabilityLimit
from heatsim.physics.sources.passing import passing_times
from heatsim.physics.sources.sources import Sources
from heatsim.physics.time.tolerance import DEFAULT_PART, Tolerance
from heatsim.scenario import Formula, Scenario

Array = NDArray[np.float64]

_SAFETY = 0.9  # of the steps of euler
_GROWTH = 3.3
_BETA = 0.654
_FEWEST = 6  # stages of a step
_ESTIMATE = 0.115  # of h³·d³T/dt³
_FOLLOWED, _MEAN_ROOT = 0.2, 0.763  # of h²·d²T/dt² where cells follow what is around them; mean of √sin
_SPOT = 2.0 * (_ESTIMATE * 1.38) ** (1.0 / 3.0)  # steps in which a beam passes its radius
_CUBIC = 768.0  # of the error of a cubic: h⁴/384 of the fourth derivative, which is R/2·(π/Δ)⁴
MOST_STAGES = {"float32": 418.0, "float64": 514.0}  # of a step, as in solver/stabilized/scheme.py
_MOST_ROUNDED = 90.0  # in float32, that rounding allows at the default tolerance
_APPLICATIONS = 0.95 * 2.0 * 14.0  # in each step
_GRADED = 1.7  # times as many on graded grids
# The fewest and the most in parts of the estimates; where latent heat is set free, fronts pass cell by cell.
_STAGES_RANGE = {"smooth": (0.75, 2.6), "melting": (5.0, 20.0)}
_STEPS_RANGE = {"smooth": (0.5, 2.4), "melting": (10.0, 40.0)}
_APPLICATIONS_RANGE = {"smooth": (0.4, 2.2), "melting": (15.0, 120.0)}
_GAIN = 3.0
_MOST_PLACES = 2**20  # of one beam
_RESOLUTION = 2**11  # of the times of changes, in parts of the end
_LARGEST_PART = 1e-2  # of the range: for larger tolerances the estimates do not hold


# In ns, as the weights of kernel_costs.py.
_STEP = 1e6  # of a method with a tolerance: error estimate, control, new tables
_ROW = 1e5  # between its steps: interpolation of the sums of the ledger
_NODES = 1e6  # of nodes in each explicit step or stage, which the host does; twice in each of "implicit"


class Choosable(Protocol):
    """What the choice asks of a problem; see :class:`heatsim.physics.problem.HeatProblem`, which has it."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""
        ...

    @property
    def grid(self) -> Grid:
        """Its cells."""
        ...

    @property
    def boundary(self) -> Boundary:
        """The conditions on its surfaces."""
        ...

    @property
    def materials(self) -> CellTypes:
        """Its cell types."""
        ...

    @property
    def sources(self) -> Sources:
        """The sources in it and on its faces."""
        ...

    @property
    def held(self) -> PaintedPlanes:
        """The planes of the arrays of ``parts``."""
        ...

    @property
    def parts(self) -> Parts | None:
        """Which cells belong to which region; None if nothing is painted."""
        ...

    @property
    def precision(self) -> Precision:
        """Of the field."""
        ...

    @property
    def limit(self) -> StabilityLimit:
        """The largest stable step of Euler."""
        ...

    @property
    def linear(self) -> bool:
        """Whether one constant material fills the box."""
        ...


class RunWork(NamedTuple):
    """The work of a run.

    Attributes:
        units: steps of "euler", stages of "stabilized", applications of the operator of "implicit"; 1 of "steady".
        steps: steps of a method with a tolerance, else 0.
        rows: number of times at which the run interpolates the field.
    """

    units: float
    steps: float = 0.0
    rows: float = 0.0


@dataclass(frozen=True)
class WorkEstimate:
    """The work of a run with each method.

    Attributes:
        euler: steps of the method "euler".
        stages: the expected least and largest number of stages of the method "stabilized".
        applications: the same for applications of the operator by the method "implicit".
        steps: approximate number of steps of these methods.
        jumps: the times at which a step of both methods must end.
        tolerance: the error that the run may have, as it is at the start, in K.
        euler_error: the error in K that "euler" is expected to have.
        costs: the cost of each method, in the unit of the weights.
        longest: the longest step of these methods in s.
        melts: whether any material takes up latent heat.
    """

    euler: int
    stages: tuple[int, int]
    applications: tuple[int, int]
    steps: float
    jumps: Jumps
    tolerance: float
    euler_error: float
    costs: Mapping[str, float]
    longest: float = 0.0
    melts: bool = False

    def of_run(self, method: str, rows: int) -> tuple[RunWork, RunWork]:
        """The least and the most work of a run with ``rows`` due times."""
        if method == "euler":
            return RunWork(self.euler), RunWork(self.euler)
        parts = _STEPS_RANGE["melting" if self.melts else "smooth"]
        units = self.stages if method == "stabilized" else self.applications
        least, most = (RunWork(of, part * self.steps, rows) for of, part in zip(units, parts, strict=True))
        return least, most

    @property
    def cheapest(self) -> str:
        """The method to take: "euler" unless its error is too large or another one costs less than a third of it."""
        best = min((method for method in self.costs if method != "euler"), key=self.costs.__getitem__)
        return "euler" if self.euler_fits and self.costs["euler"] < _GAIN * self.costs[best] else best

    @property
    def euler_fits(self) -> bool:
        """Whether the expected error of "euler" is within the tolerance."""
        return self.euler_error <= self.tolerance


def euler_steps(end: float, limit: float, safety: float) -> int:
    """Steps of ``safety``·``limit`` s to ``end`` (s)."""
    return 1 if limit == inf else ceil(end / (safety * limit))


class Intervals(NamedTuple):
    """How the intervals between edges begin, and what changes in them; one number for all of them, or one for each.

    Attributes:
        change: after a kink the change of what drives the body in parts of the range, else 1; what is not even at the
            start.
        kinks: whether it begins with a kink, not with a jump.
        least: the fewest steps.
        first: length of the first step in Euler limits.
    """

    change: Array | float = 1.0
    kinks: NDArray[np.bool_] | bool = False
    least: Array | float = 1.0
    first: Array | float = 1.0 / e


JUMPS = Intervals()


def steps_between(edges: Array, limit: float, fraction: float, intervals: Intervals = JUMPS) -> float:
    """The steps of a method with a tolerance to be expected; arguments as for :func:`stages_between`."""
    theta, lengths = _theta(fraction / intervals.change), np.diff(edges) / limit
    after_jump = np.log1p(theta * lengths / intervals.first) / theta
    after_kink = 3.0 / theta * (1.0 - np.maximum(lengths, 1.0) ** (-1.0 / 3.0))
    return float(np.maximum(np.where(intervals.kinks, after_kink, after_jump), intervals.least).sum())


def stages_between(edges: Array, limit: float, fraction: float, most: float, intervals: Intervals = JUMPS) -> float:
    """The stages of the method "stabilized" to be expected.

    Args:
        edges: the start, the times at which the body is driven another way, the end; in s, ascending.
        limit: of an Euler step in s.
        fraction: the estimate that a step may have in parts of the range of temperatures.
        most: stages of one step that rounding allows.
        intervals: of the intervals between edges.
    """
    lengths = np.diff(edges) / limit
    smooth = np.where(intervals.kinks, 1.5, 2.0) * np.sqrt(
        2.0 / (_BETA * _theta(fraction / intervals.change)) * lengths
    )
    expected = float(np.maximum(smooth, 2.0 / (_BETA * most) * lengths).sum())
    return max(expected, _FEWEST * steps_between(edges, limit, fraction, intervals))


def longest_between(edges: Array, fraction: float, intervals: Intervals = JUMPS) -> float:
    """The longest step in s to be expected; arguments as for :func:`stages_between`."""
    theta, lengths = _theta(fraction / intervals.change), np.diff(edges)
    return float((np.minimum(theta / (1.0 + theta), 1.0 / intervals.least) * lengths).max(initial=0.0))


def most_stages(longest: float, limit: float) -> float:
    """The stages of a step of ``longest`` s in float32."""
    return min(sqrt(2.0 * longest / (_BETA * limit)), MOST_STAGES["float32"]) if limit < inf else 0.0


def _theta(fraction: Array | float) -> Array:
    """The length of a step in parts of the time since the last jump; after a kink, that at the end of its interval."""
    return np.asarray(_GROWTH * np.minimum(fraction, _LARGEST_PART) ** (1.0 / 3.0))


def first_tolerance(problem: Choosable) -> Tolerance:
    """The tolerance of a run's first step.

    Raises:
        ScenarioError: the initial temperature cannot be read.
    """
    start = _start(problem)
    around, widest = span(start, problem.boundary), foreseen(start, problem.boundary, problem.materials)
    return Tolerance(problem.scenario.time.tolerance, around, start.lowest, start.highest, widest)


def _start(problem: Choosable) -> InitialField:
    return InitialField.from_scenario(problem.scenario, problem.parts, held=problem.held)


def count_work(problem: Choosable, tolerance: Tolerance) -> WorkEstimate:
    """Count the work of a run in which time passes. Collective.

    Raises:
        ScenarioError: too many jumps.
    """
    scenario, limit = problem.scenario, problem.limit.dt
    drives, start = Drives.of(problem), Start(problem, _start(problem))
    jumps = find_jumps(scenario, drives, tolerance)
    edges = _edges(problem.boundary, jumps)
    fraction = tolerance.fraction_of_step
    intervals = _intervals(drives, jumps, edges, tolerance, start, limit)
    if not heating(problem, edges[1]):
        intervals = _from(start, intervals, edges, limit, tolerance)
    steps = steps_between(edges, limit, fraction, intervals)
    melts = any(material is not None and material.latent_heat is not None for _, material in scenario.palette)
    kind = "melting" if melts else "smooth"
    most = MOST_STAGES[problem.precision]
    if problem.precision == "float32":
        most = min(most, _MOST_ROUNDED * sqrt(fraction / DEFAULT_PART))
    stages = _range(stages_between(edges, limit, fraction, most, intervals), _STAGES_RANGE[kind])
    work = _APPLICATIONS * (1.0 if problem.grid.uniform else _GRADED)
    applications = _range(work * steps, _APPLICATIONS_RANGE[kind])
    euler = euler_steps(scenario.time.end, limit, _SAFETY)
    rows = scenario.time.end / min(scenario.output.every, scenario.output.probe_every)
    # A row between steps is interpolated from four fields: about as much as a stage.
    shared = steps * _STEP + rows * (_ROW + _sweep(STAGE, problem))
    network = problem.boundary.network
    beside, systems = (0.0, 1.0) if network is None else (_NODES, 1.0 + len(network))
    return WorkEstimate(
        euler=euler,
        stages=stages,
        applications=applications,
        steps=steps,
        longest=longest_between(edges, fraction, intervals) / (_STEPS_RANGE[kind][0] if melts else 1.0),
        melts=melts,
        jumps=jumps,
        tolerance=tolerance.of_run,
        euler_error=euler_error(problem, start, tolerance, limit, _SAFETY),
        costs={
            "euler": euler * (_sweep(EULER, problem) + beside),
            "stabilized": _middle(stages) * (_sweep(STAGE, problem) + beside) + shared,
            "implicit": _middle(applications) * systems * _sweep(APPLICATION, problem) + 4.0 * steps * beside + shared,
        },
    )


def _sweep(cost: SweepCost, problem: Choosable) -> float:
    """The cost of a sweep over the grid of a problem."""
    solved = cost is APPLICATION and problem.materials.has_gaps  # equations across gaps are those of such materials
    cell = cost.varying if varies(problem.scenario) or solved else cost.plain if problem.linear else cost.other
    return cost.call + problem.grid.cell_count * cell


def _range(expected: float, parts: tuple[float, float]) -> tuple[int, int]:
    """The fewest and the most of something, from what is expected."""
    least, most = (ceil(part * expected) for part in parts)
    return least, most


def _middle(between: tuple[int, int]) -> float:
    return sqrt(between[0] * between[1])


def _edges(boundary: Boundary, jumps: Jumps) -> Array:
    """The times in s between which the body is driven in one way: the start, jumps, changes of expressions, the end."""
    end = boundary.scenario.time.end
    edges = np.unique(np.concatenate(([0.0, end], jumps.times)))
    times = np.concatenate((np.zeros(0), *_changes(boundary)))
    after = np.searchsorted(edges, times).clip(1, len(edges) - 1)
    # A change beside a jump is the jump itself.
    apart = np.minimum(times - edges[after - 1], edges[after] - times) > end / _RESOLUTION
    return np.unique(np.concatenate((edges, times[apart])))


def _intervals(
    drives: Drives, jumps: Jumps, edges: Array, tolerance: Tolerance, start: Start, limit: float
) -> Intervals:
    """How each interval begins, and what changes in it."""
    lengths, swings = np.diff(edges), np.zeros(len(edges) - 1)
    kinks, change = np.isin(edges[:-1], jumps.times[jumps.kinks]), np.zeros(len(edges) - 1)
    for drive in drives.drives:
        found = drive.change(edges)
        if not drive.relative:  # all of an unknown range
            found = found / tolerance.range if tolerance.range else np.where(found > 0.0, 1.0, 0.0)
        change = np.maximum(change, np.minimum(found, 1.0))
        if drive.of_temperature and isinstance(drive.functions[0], Formula):
            swings = np.maximum(swings, found * start.followed(drive.functions[0], lengths / pi))
    least = pi * (change / (_CUBIC * PART * tolerance.fraction)) ** 0.25
    followed = _MEAN_ROOT * pi * np.sqrt(0.5 * _FOLLOWED * swings / tolerance.fraction_of_step)
    least = np.maximum(least, np.minimum(followed, lengths / limit))
    for beam in drives.beams:  # its spot has moved by a radius in each interval, so far as it moves
        passed = np.minimum(beam.moves(edges) / beam.pace, 1.0)
        least = np.maximum(least, _SPOT * passed / tolerance.fraction_of_step ** (1.0 / 3.0))
    return Intervals(np.where(kinks, np.maximum(change, tolerance.fraction), 1.0), kinks, np.maximum(least, 1.0))


def _from(start: Start, intervals: Intervals, edges: Array, limit: float, tolerance: Tolerance) -> Intervals:
    """Intervals of which the first one begins with an initial field; nothing heats the body in it."""
    change, kinks, first = (
        np.array(np.broadcast_to(of, len(edges) - 1)) for of in (intervals.change, intervals.kinks, intervals.first)
    )
    if tolerance.range > 0.0 and 0.0 < limit < edges[1]:
        part = start.jump(sqrt(limit * edges[1])) / tolerance.range
        change[0] = min(max(part, change[0] if kinks[0] else 0.0, tolerance.fraction), 1.0)
        rough = min(start.step / tolerance.range, 1.0)
        if rough > 0.0:
            first[0] = min(first[0], 0.5 * (tolerance.fraction_of_step / (_ESTIMATE * rough)) ** (1.0 / 3.0))
    return intervals._replace(change=change, first=first)


def _changes(boundary: Boundary) -> Iterator[Array]:
    """Times in s between which expressions change by their range, and in which a beam moves by its radius."""
    scenario, end = boundary.scenario, boundary.scenario.time.end
    functions = [function for condition in boundary.conditions for function in time_functions(condition)]
    functions += [function for source in scenario.sources for function in source.functions_in_time()]
    yield changes(dict.fromkeys(functions), end)
    for source in scenario.sources:
        if source.beam is not None and len(passing := passing_times(source.beam)) > 1:
            assert source.beam.speed is not None
            stop = min(float(passing[-1]), end)
            count = max(ceil((stop - passing[0]) * source.beam.speed / source.beam.radius), 0)
            yield np.linspace(passing[0], stop, min(count, _MOST_PLACES) + 1)[1:]
