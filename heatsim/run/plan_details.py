"""The lines of a plan about the numerics: stability limits, steps, and c0…c6."""

from collections.abc import Iterator
from math import isfinite

from heatsim.counts import counted
from heatsim.physics.matter.material_coefficients import MaterialCoefficients, material_coefficients
from heatsim.physics.problem import HeatProblem
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
            yield f"material     {material.name}: alone {_limit(material.limit)}"
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
        for number, coefficient in enumerate(problem.coefficients[dt].c):
            yield f"             c{number} = {coefficient!r}"
    if len(lengths) > _LENGTHS_SHOWN:
        yield f"             and {len(lengths) - _LENGTHS_SHOWN} more step lengths"


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
