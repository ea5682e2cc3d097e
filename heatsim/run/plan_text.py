"""The plan of a run as text for a terminal."""

from collections.abc import Mapping
from math import isfinite

from heatsim.physics.cell_types import CellTypes
from heatsim.physics.division import Division
from heatsim.physics.problem import HeatProblem
from heatsim.physics.survey import Survey, survey
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.plan_methods import describe_methods, duration
from heatsim.scenario import VOID, Region, Scenario
from heatsim.solver.steady_state import METHOD

_LENGTHS_SHOWN = 4
_MANY_STEPS = 10_000
_LAID = 1.0 - 1e-6  # of a layer's area: less means that some of it lies over void


def describe(plan: Plan, seconds: Mapping[str, float] | None = None) -> str:
    """The plan as lines of text.

    Args:
        plan: of the run.
        seconds: what :func:`heatsim.run.step_times.measure_steps` found; None to leave times out.
    """
    problem = plan.problem
    cells = " × ".join(str(n) for n in problem.grid.cells)
    spacing = " × ".join(f"{d:.4g}" for d in problem.grid.spacing)
    lines = [problem.scenario.title, f"grid         {cells} cells of {spacing} m"]
    lines += _steady(plan) if problem.scenario.steady else _transient(plan, seconds or {})
    note = rounding_note(problem)
    return "\n".join(lines + ([f"float32      {note}"] if note else []))


def _transient(plan: Plan, seconds: Mapping[str, float]) -> list[str]:
    """Steps or stages, materials and needs of a run in time."""
    problem, limit = plan.problem, plan.problem.limit
    kernel = "auto, tuned at the run" if plan.tuned else plan.kernel.name
    if problem.scenario.time.method == "implicit":
        kernel = METHOD
    return [
        f"device       {plan.device.name}; kernel {kernel}; {problem.precision}",
        f"limit        {_limit(limit.dt)}" + (f", set by {_setter(problem)}" if isfinite(limit.dt) else ""),
        *describe_methods(plan, seconds),
        *_materials(problem),
        f"memory       {size(plan.device_bytes)} on the device, {size(plan.copy_bytes)} more for a copy to write from, "
        f"{size(plan.host_bytes)} on the host",
        f"disk         {size(plan.disk_bytes)}: {plan.fields:,} fields, checkpoints, {plan.rows:,} rows",
        *(["times        of stepping, from steps and stages timed now"] if seconds else []),
    ]


def _steady(plan: Plan) -> list[str]:
    """Tolerance, materials and needs of a steady state."""
    problem, tolerance = plan.problem, plan.problem.scenario.time.tolerance
    unit = problem.scenario.output.temperature_unit
    to = "0.01 % of the temperature range, at least 1 mK" if tolerance is None else unit.difference_text(tolerance)
    return [
        f"device       {plan.device.name}; {problem.precision}",
        f"method       steady state, to {to}",
        *_materials(problem),
        f"memory       {size(plan.device_bytes)} on the device, {size(plan.host_bytes)} on the host",
        f"disk         {size(plan.disk_bytes)}: {plan.fields:,} field, {plan.rows:,} row",
        f"time         {duration(plan.estimate_seconds())} of solving, if data move as fast as in a copy",
    ]


def _setter(problem: HeatProblem) -> str:
    """The cell that sets the stability limit, with its material and region."""
    x, y, z = problem.limit.cell
    owner = 0 if problem.parts is None else int(problem.parts.owner[z, y, x])
    region = f', region "{problem.scenario.regions[owner - 1].name}"' if owner else ""
    return problem.stability.setter + region


def _limit(dt: float) -> str:
    """A stability limit in s as text."""
    return f"dt ≤ {dt:.6g} s" if isfinite(dt) else "any dt is stable: no heat is conducted"


def _materials(problem: HeatProblem) -> list[str]:
    """Each material with its own stability limit and c0…c6; patches, void, regions, surfaces, contacts and layers."""
    scenario, materials = problem.scenario, problem.materials
    lines = []
    found = survey(scenario, materials.palette, problem.reference)
    for material in found:
        lines += _material(problem, material)
        # For a single constant material these are the coefficients of the steps above.
        if (len(found) > 1 and materials.cells_of(material.name)) or material.enthalpy is not None:
            lines += _coefficients_of_steps(problem, material)
    for patch in scenario.patches:
        on_grid = patch.area_on_grid(scenario.grid)
        lines.append(f"patch        {patch.name}: {patch.area:.6g} m² on {patch.face}, {on_grid:.6g} m² on the grid")
    if scenario.uses_void:
        lines.append(f"void         {materials.cells_of('void'):,} cells")
    if problem.parts is not None:
        for region, cells in zip(scenario.regions, problem.parts.region_cells, strict=True):
            lines.append(f"region       {region.name}: {cells:,} cells of {', '.join(region.materials)}{_axes(region)}")
    return lines + _surfaces(problem) + _layers(scenario, materials)


def _axes(region: Region) -> str:
    """Along which axes of the domain those of a region's material lie, if it turns them."""
    return "" if region.axes is None else f"; its x, y, z lie along {', '.join(region.axes)}"


def _material(problem: HeatProblem, material: Survey) -> list[str]:
    """A material's properties and stability limit."""
    kx, ky, kz = material.conductivity
    k = f"{kx:.6g}" if kx == ky == kz else f"[{kx:.6g}, {ky:.6g}, {kz:.6g}]"
    unit = problem.scenario.output.temperature_unit
    at, enthalpy = "" if material.at is None else f" at {unit.text(material.at)}", material.enthalpy
    lines = [
        f"material     {material.name}: {problem.materials.cells_of(material.name):,} cells; k = {k} W/(m K), "
        f"ρ = {material.density:.6g} kg/m³, cp = {material.specific_heat:.6g} J/(kg K){at}"
        + ("" if problem.scenario.steady else f"; alone {_limit(material.limit)}")
    ]
    if enthalpy is not None:
        low, high = enthalpy.followed
        least, most = enthalpy.conductivity_range
        least_cp, most_cp = enthalpy.specific_heat_range
        lines.append(
            f"             followed from {unit.of(low):.6g} to {unit.text(high)}: "
            f"k = {least:.6g} … {most:.6g} W/(m K), cp = {least_cp:.6g} … {most_cp:.6g} J/(kg K)"
        )
    return lines


def _coefficients_of_steps(problem: HeatProblem, material: Survey) -> list[str]:
    """A material's c0…c6 for each step length."""
    lines = []
    lengths = [] if problem.timeline.adaptive else list(problem.timeline.step_lengths)
    for dt in lengths[:_LENGTHS_SHOWN]:
        start, coefficients = f"             dt = {dt:.6g} s: ", _coefficients(material, dt)
        # Ranges are too long for one line.
        between = "; " if material.enthalpy is None else "\n" + " " * len(start)
        lines.append(start + between.join(coefficients))
    return lines


def _coefficients(material: Survey, dt: float) -> list[str]:
    """c0…c6 as text, equal ones together; with their range if the material varies with temperature."""
    alike: dict[str, list[int]] = {}
    pairs = zip(material.least_coefficients(dt), material.coefficients(dt), strict=True)
    for number, pair in enumerate(pairs):
        alike.setdefault(" … ".join(dict.fromkeys(f"{c:.6g}" for c in sorted(pair))), []).append(number)
    return [f"{' = '.join(f'c{number}' for number in numbers)} = {values}" for values, numbers in alike.items()]


def _surfaces(problem: HeatProblem) -> list[str]:
    """The smooth areas of void surfaces that exchange heat, and of contacts."""
    materials, division = problem.materials, Division.of(problem.scenario)
    of_contacts = dict.fromkeys(range(len(problem.scenario.contacts)), 0.0)
    lines = []
    for pair, area in materials.surface_areas.items():
        void = [place for place in pair if division.kinds[place][0] == VOID]
        if void:
            (place,) = pair - set(void)
            material, region = division.kinds[place]
            name = f'{material}, region "{region}",' if region else material
            lines.append(f"surface      {name} towards void: {area:.6g} m²")
        elif pair in division.contacts:
            of_contacts[division.contacts[pair]] += area
    for number, contact in enumerate(problem.scenario.contacts):
        between = " and ".join(contact.between)
        lines.append(f"contact      {between}: {of_contacts[number]:.6g} m², {contact.resistance:.6g} m² K/W")
    return lines


def _layers(scenario: Scenario, materials: CellTypes) -> list[str]:
    """Each layer with its area; what lies over void is left out."""
    lines = []
    for number, layer in enumerate(scenario.layers):
        (u_low, v_low), (u_high, v_high) = layer.plane.corners(scenario.grid)
        whole, laid = (u_high - u_low) * (v_high - v_low), materials.layering.areas[number]
        over_void = f" of {whole:.6g} m², the rest lies over void" if laid < whole * _LAID else ""
        lines.append(
            f"layer        {layer.name}: {layer.thickness:.6g} m of {layer.material} at {layer.plane.axis} = "
            f"{layer.plane.at:.6g} m; {laid:.6g} m²{over_void}"
        )
    return lines


def rounding_note(problem: HeatProblem) -> str:
    """A note on float32 rounding for this run; empty if rounding hardly matters.

    In long runs on fine grids the change in a step falls below half a unit in the last place of the deviation. Rounding
    to nearest loses it. Measured errors: 3e-3 to 7e-3 K per 100 K for slabs of 256 and 1,024 cells after 100,000 steps;
    up to 2.5e-2 K with steps far below the limit (64 cells, 200,000 steps of 1/10,000 of it). With stochastic rounding
    they are below 1e-4 K and at 4e-4 K: noise remains, and conduction has little time in short steps to level it.
    """
    if problem.timeline.adaptive:
        return ""
    if problem.precision != "float32" or problem.rounding == "stochastic" or problem.timeline.last_step < _MANY_STEPS:
        return ""
    return (
        f"{problem.timeline.last_step:,} steps: rounding to nearest may add up to 1e-2 K per 100 K of range; "
        'solver.rounding = "stochastic" keeps the error near 1e-4 K, precision = "float64" far below that'
    )
