"""The plan of a run as text for a terminal."""

from collections.abc import Iterable
from math import isfinite

from heatsim.physics.cell_types import Medium
from heatsim.physics.problem import HeatProblem
from heatsim.physics.survey import Survey, survey
from heatsim.run.capacity import size
from heatsim.run.method_choice import WorkEstimate, count_work
from heatsim.run.plan import Plan
from heatsim.scenario import ADAPTIVE, Contact
from heatsim.solver.steady_state import METHOD

_LENGTHS_SHOWN = 4
_MANY_STEPS = 10_000


def describe(plan: Plan) -> str:
    """The plan as text."""
    if plan.problem.scenario.steady:
        return _describe_steady(plan)
    if plan.problem.scenario.time.method in ADAPTIVE:
        return _describe_adaptive(plan)
    problem, timeline = plan.problem, plan.problem.timeline
    end = float(timeline.times[-1])
    lines = [
        *_heading(plan),
        f"steps        {timeline.last_step:,} to t = {end:.6g} s, {len(timeline.dts):,} intervals",
    ]
    for dt, steps in list(timeline.step_lengths.items())[:_LENGTHS_SHOWN]:
        lines.append(f"dt           {dt!r} s, {steps:,} steps")
        lines += [f"             c{i} = {c!r}" for i, c in enumerate(problem.coefficients[dt].c)]
    if len(timeline.step_lengths) > _LENGTHS_SHOWN:
        lines.append(f"             and {len(timeline.step_lengths) - _LENGTHS_SHOWN} more step lengths")
    if problem.scenario.composite:
        lines += _materials(problem)
    lines += [
        f"memory       {size(plan.device_bytes)} on the device, {size(plan.copy_bytes)} more to write a copy from "
        f"meanwhile, {size(plan.host_bytes)} on the host",
        f"disk         {size(plan.disk_bytes)}: {plan.fields:,} fields, checkpoints, {plan.rows:,} rows",
        f"time         {plan.estimate_seconds():.3g} s of stepping if the kernel ran at the speed of a copy here",
    ]
    note = rounding_note(problem)
    return "\n".join(lines + ([f"float32      {note}"] if note else []))


def _heading(plan: Plan) -> list[str]:
    """Title, grid, device and stability limit."""
    problem, grid, limit = plan.problem, plan.problem.grid, plan.problem.limit
    x, y, z = limit.cell
    cells, spacing = " × ".join(str(n) for n in grid.cells), " × ".join(f"{d:.4g}" for d in grid.spacing)
    kernel = "auto, tuned at the run" if plan.tuned else plan.kernel.name
    if problem.scenario.time.method == "implicit":
        kernel = METHOD
    return [
        problem.scenario.title,
        f"grid         {cells} cells of {spacing} m",
        f"device       {plan.device.name}; kernel {kernel}; {problem.precision}",
        f"limit        {_limit(limit.dt)}" + (f", set by cell [{x}, {y}, {z}]" if isfinite(limit.dt) else ""),
    ]


def _describe_adaptive(plan: Plan) -> str:
    problem, work = plan.problem, count_work(plan.problem)
    method, stages, seconds = problem.scenario.time.method, [], []
    if method == "stabilized":
        stages = [
            f"stages       about {_rounded(work.stages[0])} to {_rounded(work.stages[1])} to t = "
            f"{problem.scenario.time.end:.6g} s; Euler's method would take about {_rounded(work.euler)} steps"
        ]
        first, last = (f"{count * plan.seconds_of_sweep():.2g}" for count in work.stages)
        seconds = [f"time         {first} to {last} s of stages if the kernel ran at the speed of a copy here"]
    lines = [
        *_heading(plan),
        f"method       {method} steps, each with an error of {_tolerance(problem, work)}",
        *stages,
        f"jumps        {len(work.jumps.times):,}, {int(work.jumps.kinks.sum()):,} of them kinks; steps end there",
    ]
    if problem.scenario.composite:
        lines += _materials(problem)
    return "\n".join(
        [
            *lines,
            f"memory       {size(plan.device_bytes)} on the device, {size(plan.copy_bytes)} more to write a copy from "
            f"meanwhile, {size(plan.host_bytes)} on the host",
            f"disk         {size(plan.disk_bytes)}: {plan.fields:,} fields, checkpoints, {plan.rows:,} rows",
            *seconds,
        ]
    )


def _tolerance(problem: HeatProblem, work: WorkEstimate) -> str:
    if problem.scenario.time.tolerance is not None:
        return f"at most {work.tolerance:.6g} K"
    return f"at most 0.02 % of the range of temperatures, {work.tolerance:.4g} K at the start"


def _rounded(count: int) -> str:
    """A number that is an estimate: two digits, with thousands separated."""
    return f"{int(float(f'{count:.2g}')):,}"


def _describe_steady(plan: Plan) -> str:
    problem = plan.problem
    grid, tolerance = problem.grid, problem.scenario.time.tolerance
    cells, spacing = " × ".join(str(n) for n in grid.cells), " × ".join(f"{d:.4g}" for d in grid.spacing)
    to = "0.01 % of the range of the temperatures, at least 1 mK" if tolerance is None else f"{tolerance:.6g} K"
    lines = [
        problem.scenario.title,
        f"grid         {cells} cells of {spacing} m",
        f"device       {plan.device.name}; {problem.precision}",
        f"method       steady state, to {to}",
    ]
    if problem.scenario.composite:
        lines += _materials(problem)
    return "\n".join(
        [
            *lines,
            f"memory       {size(plan.device_bytes)} on the device, {size(plan.host_bytes)} on the host",
            f"disk         {size(plan.disk_bytes)}: {plan.fields:,} field, {plan.rows:,} row",
            f"time         about {plan.estimate_seconds():.2g} s of solving",
        ]
    )


def _limit(dt: float) -> str:
    """A stability limit in s as text."""
    return f"dt ≤ {dt:.6g} s" if isfinite(dt) else "any dt is stable: no heat is conducted"


def _materials(problem: HeatProblem) -> list[str]:
    """Every material with the time step it allows and its coefficients, and the cells of every region."""
    scenario, materials = problem.scenario, problem.materials
    lines = []
    for material in survey(scenario, materials.palette, problem.reference):
        cells = materials.cells_of(material.name)
        kx, ky, kz = material.conductivity
        k = f"{kx:.6g}" if kx == ky == kz else f"[{kx:.6g}, {ky:.6g}, {kz:.6g}]"
        at, enthalpy = "" if material.at is None else f" at {material.at:.6g} K", material.enthalpy
        lines += [
            f"material     {material.name}: {cells:,} cells; k = {k} W/(m K), ρ = {material.density:.6g} kg/m³, "
            f"cp = {material.specific_heat:.6g} J/(kg K){at}"
            + ("" if scenario.steady else f"; alone {_limit(material.limit)}"),
        ]
        if enthalpy is not None:
            (low, high), (least, most), (least_cp, most_cp) = (
                enthalpy.followed,
                enthalpy.conductivity_range,
                enthalpy.specific_heat_range,
            )
            lines.append(
                f"             followed from {low:.6g} to {high:.6g} K: k = {least:.6g} … {most:.6g} W/(m K), "
                f"cp = {least_cp:.6g} … {most_cp:.6g} J/(kg K)"
            )
        lengths = list(problem.timeline.step_lengths) if scenario.time.method == "euler" else []
        for dt in lengths[:_LENGTHS_SHOWN]:
            start, coefficients = f"             dt = {dt:.6g} s: ", _coefficients(material, dt)
            # Ranges are too long to stand side by side.
            beside = "; " if enthalpy is None else "\n" + " " * len(start)
            lines.append(start + beside.join(coefficients))
    for patch in scenario.patches:
        on_grid = patch.area_on_grid(scenario.grid)
        lines.append(f"patch        {patch.name}: {patch.area:.6g} m² on {patch.face}, {on_grid:.6g} m² on the grid")
    if scenario.uses_void:
        lines.append(f"void         {materials.cells_of('void'):,} cells")
    if problem.parts is not None:
        for region, cells in zip(scenario.regions, problem.parts.region_cells, strict=True):
            lines.append(f"region       {region.name}: {cells:,} cells of {', '.join(region.materials)}")
    return lines + _surfaces(materials, scenario.contacts)


def _surfaces(medium: Medium, contacts: Iterable[Contact]) -> list[str]:
    """The smooth areas of surfaces towards void that exchange heat, and of contacts."""
    areas = {
        frozenset(medium.palette[place].name for place in pair): area for pair, area in medium.surface_areas.items()
    }
    lines = []
    for pair, area in areas.items():
        if "void" in pair:
            (name,) = pair - {"void"}
            lines.append(f"surface      {name} towards void: {area:.6g} m²")
    for contact in contacts:
        area = areas.get(frozenset(contact.between), 0.0)
        lines.append(f"contact      {' and '.join(contact.between)}: {area:.6g} m², {contact.resistance:.6g} m² K/W")
    return lines


def _coefficients(material: Survey, dt: float) -> list[str]:
    """c0…c6, what is equal together, and the range of each of a material that changes."""
    alike: dict[str, list[int]] = {}
    pairs = zip(material.least_coefficients(dt), material.coefficients(dt), strict=True)
    for number, pair in enumerate(pairs):
        alike.setdefault(" … ".join(dict.fromkeys(f"{c:.6g}" for c in sorted(pair))), []).append(number)
    return [f"{' = '.join(f'c{number}' for number in numbers)} = {values}" for values, numbers in alike.items()]


def rounding_note(problem: HeatProblem) -> str:
    """What to know of float32's rounding for this run; empty if it hardly matters.

    In long runs on fine grids the change in a step falls below half a unit in the last place of the deviation, and
    rounding to nearest loses it. That sets in when a cell needs many steps to change by a rounding unit of the range:
    for slabs of 256 and 1,024 cells the error was measured at 3e-3 … 7e-3 K per 100 K after 100,000 steps, and at up to
    2.5e-2 K with steps far below the limit (64 cells, 200,000 steps of 1/10,000 of it). With stochastic rounding the
    same cases are off by less than 1e-4 K and by 4e-4 K: what is left is noise, which short steps leave conduction no
    time to level out.
    """
    if problem.precision != "float32" or problem.rounding == "stochastic" or problem.timeline.last_step < _MANY_STEPS:
        return ""
    if problem.scenario.time.method != "euler":
        return ""
    return (
        f"{problem.timeline.last_step:,} steps: rounding to nearest may add up to some 1e-2 K per 100 K of range; "
        'solver.rounding = "stochastic" keeps it near 1e-4 K, precision = "float64" far below that'
    )
