"""The floating-point type of `precision = "auto"`: float32, unless its rounding may matter beside the error of the run.

Both are estimated from the scenario. With the unit roundoff u = 2⁻²⁴ and the largest deviation D from the reference
temperature, rounding is expected to make errors of

    euler         u·D·(40 + w·N)                                     N steps; w: see below
    stabilized    u·D·(40 + 0.06·s² + S/500)                         S stages, at most s in a step; in one material
                                                                     min(16·(s − 5), 560) if that is more than 0.06·s²
    implicit      u·D·(10 + n/50)                                    n steps
    steady        10·u·D

**Euler.** A rounding changes a temperature by at most u·D, by about half of that in the mean. In a body that changes
much in a step, roundings differ from step to step and from cell to cell, and cancel: w = 1/40. They do not cancel

    w = 1/2      where sources or fluxes give constant heat: each step raises a cell by the same number of units in the
                 last place, with the same rounding. Bodies that keep the heat had 0.2 to 1.3·N·u·D/2
    w = 1/12     where less than half a unit in the last place is left of a step, and is lost: at the end of a run of
                 several time constants. It is lost by each of the r = 1 + 2·(axes of several cells) sums of a step of
                 one material, w = r/12, from seven of the slowest time constants on. That is, by Rayleigh's
                 quotient, at least that of a lump, and that between held faces. In several materials it always counts
    + f/4        in one material: the heat of a face is added by itself, and changes slowly. f is the number of these
                 faces divided by that of cells

In 82 random bodies of one material, of 1 to 64 cells along an axis and 1,000 to 36,000 steps, errors were up to
1.2·N·u·D/2 with r = 7, 0.5 with r = 3; below eight time constants of a lump at most 0.1 but for those of f/4. Bundled
scenarios with `euler` and 120 to 8,500 steps had 0.001 to 0.07, cubes with up to 72,000 steps 0.001 to 0.06.

**Stabilized.** The stages of a step leave noise from cell to cell, and rates multiply it by 2/dt_limit. Rows between
the ends of a step contain up to 0.15·h·F, so their noise grows with h/dt_limit, that is with s². In walls, modules, and
cubes with films, radiation, laws, reactions and tables it was 0.05 to 0.15·s²·u·D in the worst cell, against the same
steps in float64, and 40·u·D at ends of steps. The longest step is expected at the end of the longest interval without a
jump (method_work.py), and was 0.5 to 0.75 of that. Noise does not add up: 98,660 stages of 60 days of weather left
125·u·D. In one material c0 of a stage is far below 0, so products round more than sums. Of 146 random bodies with
films, held faces, fluxes, ramps, heat and radiation, auto took float32 for 96; rounding was above a tenth of the
tolerance in 6 of these, at most 0.23 of it.

**Implicit and steady.** Equations are solved in float64, up to the rounding of the field: errors were 1 to 6·u·D.

By how much heat warms a body is not known. It counts as 100 K, or as the range of which a given tolerance is the
default part. Latent heat counts in kelvins, as in contents. (Measured on a CPU, 2026-11-29.)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, isfinite, pi, sqrt
from typing import NamedTuple

from heatsim.counts import plain
from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.estimates.method_work import (
    Choosable,
    WorkEstimate,
    count_work,
    first_tolerance,
    most_stages,
)
from heatsim.physics.estimates.temperature_range import gives_heat, surrounding
from heatsim.physics.matter.coefficients import Precision
from heatsim.physics.time.tolerance import DEFAULT_PART, LEAST_DEFAULT, STEADY_PART, Tolerance, least_tolerance
from heatsim.scenario import Material, Scenario, Temperature

UNIT = 2.0**-24  # half a unit in the last place of float32, as a part of a number
PART = 0.1  # of the error of a run, that rounding may be
_AT_ENDS, _OF_ROWS, _OF_STAGES = 40.0, 0.06, 0.002
_OF_SUMS, _NOISY_FROM, _MOST_OF_SUMS = 16.0, 5.0, 560.0
_OF_STEPS, _OF_CONSTANT, _OF_LOST, _OF_FACES = 1.0 / 40.0, 1.0 / 2.0, 1.0 / 12.0, 1.0 / 4.0
_LONG = 7.0  # of the slowest time constants, from which a step may change nothing
_SOLVED, _OF_SOLVED_STEPS = 10.0, 0.02
_RISE = 100.0  # K by heat, where nothing is known


@dataclass(frozen=True)
class PrecisionChoice:
    """The floating-point type that "auto" takes.

    Attributes:
        precision: "float32" or "float64".
        rounding: the error in K that rounding of float32 is expected to make.
        error: the error in K that the run has anyway, in time or of the solver of a steady state.
    """

    precision: Precision
    rounding: float
    error: float

    @property
    def reason(self) -> str:
        """Why, as the end of a sentence."""
        rounding, error = plain(self.rounding, 2), plain(self.error, 2)
        if self.precision == "float32":
            return f"because its rounding, about {rounding} K, is small beside the error of the run, {error} K"
        return f"because float32 may be off by {rounding} K by rounding; the error of the run is {error} K"


def choose_precision(
    problem: Choosable, method: str, work: WorkEstimate | None = None, first: Tolerance | None = None
) -> PrecisionChoice:
    """The floating-point type for a run with a method. Collective.

    It depends on the scenario alone: neither on the device, nor on the kernel, nor on the number of processes.

    Args:
        problem: with float32.
        method: "euler", "stabilized", "implicit" or "steady".
        work: of all methods, where it has been counted; it is counted if needed.
        first: the tolerance of the first step, where it is known.

    Raises:
        ScenarioError: the initial temperature cannot be read, or something jumps too often for the method.
    """
    scenario, known = problem.scenario, first or first_tolerance(problem)
    if not isfinite(known.span):  # a value is not finite at some time: the run says which
        return PrecisionChoice("float64", inf, inf)
    rise = _rise(problem, known)
    error = known.widened(known.low, known.high + rise).of_run
    if method == "steady":
        rounding, error = _SOLVED, _steady_error(scenario, max(known.span, rise))
    elif method == "euler":
        rounding = _AT_ENDS + _of_step(problem, rise > 0.0) * _euler_steps(problem)
    else:
        rounding = _of_long_steps(problem, method, work or _count(problem, known))
    kelvin = UNIT * max(_deviation(problem, known), rise) * rounding
    fixed = scenario.time.method in ("euler", "steady")
    resolved = fixed or known.kelvin >= least_tolerance("float32", known.span)
    return PrecisionChoice("float32" if resolved and kelvin <= PART * error else "float64", kelvin, error)


def _deviation(problem: Choosable, tolerance: Tolerance) -> float:
    """How far temperatures come from the reference in K: initial ones and those around the body, with latent heat.

    In one material of one initial temperature a corner comes nearer to what is around it by the part 1 − Π (1 − f),
    with f along each axis at most 2/√π·h·√(α·t)/k, as in a half space, and h·t/(C·L) for each face, as in a lump.
    """
    reference, end = 0.5 * (tolerance.low + tolerance.high), problem.scenario.time.end
    around = [*surrounding(problem.boundary, end), tolerance.low, tolerance.high]
    changed = 1.0
    if problem.linear and tolerance.low == tolerance.high and not problem.scenario.steady:
        kept = 1.0
        for axis, side in enumerate(_sides(problem)):
            half, rate = float(problem.materials.half[axis, 0]), problem.materials.diffusion_rates[axis]
            of_surface = max(side.films, default=0.0) * 4.0 * half * sqrt(rate * end / pi)
            kept *= 1.0 - min(of_surface + side.of_lump * end, 1.0)
        changed = 1.0 - kept
    farthest = changed * max(abs(T - reference) for T in around)
    return farthest + max((_latent(material) for _, material in problem.scenario.palette), default=0.0)


def _latent(material: Material | None) -> float:
    """The latent heat of a material in K: what it adds to the deviation of a content."""
    if material is None or material.latent_heat is None or material.solidus is None:
        return 0.0
    return material.latent_heat / material.specific_heat_at(material.solidus)


def _rise(problem: Choosable, tolerance: Tolerance) -> float:
    """By how many K heat is taken to warm the body; 0 without sources, beams and fluxes."""
    if not gives_heat(problem.boundary):
        return 0.0
    part = STEADY_PART if problem.scenario.steady else DEFAULT_PART
    return min(max(_RISE, (tolerance.given or 0.0) / part), tolerance.foreseen)


def _steady_error(scenario: Scenario, width: float) -> float:
    """The tolerance of a steady state in K whose temperatures have a range of ``width`` K."""
    given = scenario.time.tolerance
    return max(LEAST_DEFAULT, STEADY_PART * width) if given is None else given


def _of_step(problem: Choosable, heated: bool) -> float:
    """w: the error of a step of "euler" that does not cancel, in parts of u·D."""
    if not problem.linear:
        return _OF_CONSTANT if heated else _OF_LOST
    grid, slowest, faces = problem.grid, 0.0, 0.0
    for axis, (n, side) in enumerate(zip(grid.cells, _sides(problem), strict=True)):
        between = problem.materials.diffusion_rates[axis] * (0.5 * pi * len(side.films) / n) ** 2
        slowest += min(side.of_lump, between)
        faces += len(side.films) / n
    sums = 1 + 2 * sum(n > 1 for n in grid.cells)
    changing = (
        _OF_CONSTANT if heated else sums * _OF_LOST if slowest * problem.scenario.time.end >= _LONG else _OF_STEPS
    )
    return changing + _OF_FACES * faces


class _Sides(NamedTuple):
    """Both faces across an axis of a body of one material.

    Attributes:
        films: the largest film coefficient of each that passes heat in W/(m² K), infinite where a temperature is held.
        of_lump: the rate in 1/s at which a lump would lose its heat through them.
    """

    films: tuple[float, ...]
    of_lump: float


def _sides(problem: Choosable) -> Iterator[_Sides]:
    """The faces across x, y and z of a body of one material."""
    boundary, capacity, end = problem.boundary, float(problem.materials.heat_capacity[0]), problem.scenario.time.end
    for axis, length in enumerate(problem.grid.size):
        conditions = [boundary.conditions[face] for face in (2 * axis, 2 * axis + 1) if boundary.exchanging(face)]
        films = [
            inf if isinstance(each, Temperature) else time_functions(each).film.extremes(end)[1] for each in conditions
        ]
        yield _Sides(tuple(films), sum(films) / (capacity * length))


def _euler_steps(problem: Choosable) -> float:
    """The number of steps of "euler"."""
    time, output = problem.scenario.time, problem.scenario.output
    dt = time.safety * problem.limit.dt if isinstance(time.dt, str) else time.dt
    return time.end / min(dt, output.every, output.probe_every)


def _of_long_steps(problem: Choosable, method: str, work: WorkEstimate) -> float:
    """The error of rounding in rows of "stabilized" and "implicit", in parts of u·D."""
    if method == "implicit":
        return _SOLVED + _OF_SOLVED_STEPS * work.steps
    stages, most = sqrt(work.stages[0] * work.stages[1]), most_stages(work.longest, problem.limit.dt)
    of_sums = min(max(_OF_SUMS * (most - _NOISY_FROM), 0.0), _MOST_OF_SUMS) if problem.linear else 0.0
    return _AT_ENDS + max(_OF_ROWS * most**2, of_sums) + _OF_STAGES * stages


def _count(problem: Choosable, tolerance: Tolerance) -> WorkEstimate:
    """The work of a problem whose method was not chosen by its work; with the least tolerance that float32 resolves."""
    least = least_tolerance("float32", tolerance.span)
    known = tolerance if tolerance.kelvin >= least else replace(tolerance, given=tolerance.run_with(least))
    return count_work(problem, known)
