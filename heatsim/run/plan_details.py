"""The lines of a plan about the numerics: stability limits, steps, and c0…c6."""

from collections.abc import Iterator, Sequence
from math import isfinite

from heatsim.counts import counted
from heatsim.grid import Grid
from heatsim.physics.matter.material_coefficients import MaterialCoefficients, material_coefficients
from heatsim.physics.problem import HeatProblem
from heatsim.run.in_words import sizes
from heatsim.run.plan import Plan

_LENGTHS_SHOWN = 4


def describe_details(plan: Plan) -> Iterator[str]:
    """The stability limit and its cause, the steps with their coefficients, and both for each material."""
    problem, limit = plan.problem, plan.problem.limit
    yield f"limit        {_limit(limit.dt)}" + (f", set by {_setter(problem)}" if isfinite(limit.dt) else "")
    if not problem.timeline.adaptive:
        yield from _equal_steps(problem)
    found = material_coefficients(problem.scenario, problem.materials.palette, problem.reference)
    for material in found:
        if len(found) > 1:
            where = "" if problem.grid.uniform else " in cells of the mean widths"
            yield f"material     {material.name}: alone {_limit(material.limit)}{where}"
        # For a single constant material these are the coefficients of the steps above.
        if (len(found) > 1 and problem.materials.cells_of(material.name)) or material.enthalpy is not None:
            yield from _coefficients_of_steps(problem, material)


def _setter(problem: HeatProblem) -> str:
    """The cell that sets the stability limit, with its material and region."""
    x, y, z = problem.limit.cell
    owner = 0 if problem.parts is None else problem.parts.owner_at(x, y, z)
    region = f', region "{problem.scenario.regions[owner - 1].name}"' if owner else ""
    return problem.stability.setter + region


def _limit(dt: float) -> str:
    """A stability limit in s as text."""
    return f"dt ≤ {dt:.6g} s" if isfinite(dt) else "any dt is stable: no heat is conducted"


def _equal_steps(problem: HeatProblem) -> Iterator[str]:
    """The steps of Euler's method with their coefficients."""
    timeline = problem.timeline
    yield (
        f"steps        {timeline.last_step:,} to t = {float(timeline.times[-1]):.6g} s, "
        f"{counted(len(timeline.dts), 'interval')}"
    )
    lengths = timeline.step_lengths
    for dt, steps in list(lengths.items())[:_LENGTHS_SHOWN]:
        yield f"dt           {dt!r} s, {counted(steps, 'step')}"
        coefficients = problem.coefficients[dt].c
        if not problem.grid.uniform:
            mean = sizes(problem.grid.with_lengths(problem.grid.mean_spacing))
            yield f"             of a cell of the mean widths, {mean}; of all cells inside:"
        ranges = _ranges(coefficients, problem.grid)
        for number, (coefficient, (least, most)) in enumerate(zip(coefficients, ranges, strict=True)):
            of_all = "" if f"{least:.6g}" == f"{most:.6g}" else f" ({least:.6g} to {most:.6g})"
            yield f"             c{number} = {coefficient!r}{of_all}"
    if len(lengths) > _LENGTHS_SHOWN:
        yield f"             and {len(lengths) - _LENGTHS_SHOWN} more step lengths"


def _ranges(coefficients: Sequence[float], grid: Grid) -> list[tuple[float, float]]:
    """The smallest and the largest c0…c6 of cells with neighbours on all sides, from those of a cell of mean widths."""
    found, least, most = [], 1.0, 1.0
    for number, axis in enumerate(grid.axes):
        inside = slice(1, -1) if len(axis) > 2 else slice(None)
        values = axis.link_factors[inside] * coefficients[1 + 2 * number : 3 + 2 * number]
        found += [(float(side.min()), float(side.max())) for side in values.T]
        least, most = least - float(values.sum(axis=1).max()), most - float(values.sum(axis=1).min())
    return [(least, most), *found]


def _coefficients_of_steps(problem: HeatProblem, material: MaterialCoefficients) -> Iterator[str]:
    """A material's c0…c6 for each step length."""
    lengths = [] if problem.timeline.adaptive else list(problem.timeline.step_lengths)
    for dt in lengths[:_LENGTHS_SHOWN]:
        start, coefficients = f"             dt = {dt:.6g} s: ", _coefficients(material, dt)
        # Ranges are too long for one line.
        between = "; " if material.enthalpy is None else "\n" + " " * len(start)
        yield start + between.join(coefficients)


def _coefficients(material: MaterialCoefficients, dt: float) -> list[str]:
    """c0…c6 as text, with equal ones combined; as ranges if the material varies with temperature."""
    alike: dict[str, list[int]] = {}
    pairs = zip(material.least_coefficients(dt), material.coefficients(dt), strict=True)
    for number, pair in enumerate(pairs):
        alike.setdefault(" … ".join(dict.fromkeys(f"{c:.6g}" for c in sorted(pair))), []).append(number)
    return [f"{' = '.join(f'c{number}' for number in numbers)} = {values}" for values, numbers in alike.items()]
