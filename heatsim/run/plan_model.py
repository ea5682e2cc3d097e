"""The lines of a plan about the model: materials, regions, surfaces, conditions, sources, probes."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, groupby
from math import isinf

import numpy as np

from heatsim.counts import counted, plain
from heatsim.grid import AXES, FACES
from heatsim.physics.geometry.division import Division
from heatsim.physics.geometry.painted_sizes import MOST_OFF, PaintedSize, file_hints, painted_sizes
from heatsim.physics.geometry.stl import Surface
from heatsim.physics.matter.material_coefficients import MaterialCoefficients, material_coefficients
from heatsim.physics.operator.boundary_faces import areas
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.without_effect import contact_areas, notes_without_effect
from heatsim.physics.sources.spots import Track
from heatsim.physics.time.time_steps import INSTANT
from heatsim.run.in_words import (
    area,
    channel_in_words,
    condition_in_words,
    contact_in_words,
    length,
    node_in_words,
    point,
    sizes,
    source_in_words,
    surface_in_words,
)
from heatsim.scenario import TOWARDS_VOID, VOID, Probe, Region, Scenario
from heatsim.scenario.documents.copies import base_of
from heatsim.scenario.messages import show
from heatsim.scenario.tables.couplings import Coupling

_MOST_CELLS_TO_PAINT = 1 << 26  # for the lines about the model only
_ABSORBED = 0.99  # of the power of a beam; if the body absorbs less, the plan says so
_COPY = re.compile(r"(?<=\w)\[(\d+)\]")  # the number of a copy in a name
_LAID = 1.0 - 1e-6  # fraction of a layer's area; if less is on cells, some of the layer lies over void


def describe_model(problem: HeatProblem) -> list[str]:
    """One line for each thing that the scenario describes."""
    scenario = problem.scenario
    lines = [
        *_cells(scenario),
        *_initial(scenario),
        *_materials(problem),
        *_regions(problem),
        *_contacts(problem),
        *_layers(problem),
        *_conditions(problem),
        *_nodes(problem),
        *(f"hint         {note}" for note in file_hints(scenario)),
        *(f"hint         {note}" for note in notes_without_effect(problem)),
        *_sources(problem),
        *(f"probe        {probe.name}: {_probe(probe, scenario)}" for probe in scenario.probes),
        *(f"coupling     {coupling.name}: {_coupling(coupling)}" for coupling in scenario.couplings),
    ]
    return list(_together(lines))


def _together(lines: Sequence[str]) -> Iterator[str]:
    """The lines with one for all copies of a part that read the same except for the numbers of the copies."""
    for text, alike in groupby(lines, partial(_COPY.sub, "[…]")):
        several = list(alike)
        first, last = (_COPY.search(several[end]) for end in (0, -1))
        if len(several) == 1 or first is None or last is None:
            yield from several
        else:
            yield text.replace("[…]", f"[{first[1]}…{last[1]}]", 1)


def describe_for_report(problem: HeatProblem) -> list[str]:
    """As :func:`describe_model`. A rank that has painted some planes paints all; very large grids have no lines."""
    if problem.held.slab is None:
        return describe_model(problem)
    few = problem.grid.cell_count <= _MOST_CELLS_TO_PAINT
    return describe_model(HeatProblem.from_scenario(problem.scenario)) if few else []


def _cells(scenario: Scenario) -> Iterator[str]:
    """Which parts set the finest cells along each axis, if heatsim found the cells."""
    found = scenario.automatic
    if found is not None:
        each = zip(AXES, found.cells, found.finest, found.borders, strict=True)
        texts = (
            f"along {axis} {count}, the finest of {length(float(np.diff(borders).min()))} for {owner}"
            for axis, count, owner, borders in each
            if count > 1
        )
        yield f"cells        found by heatsim: {'; '.join(texts) or 'one, because nothing changes in space'}"
    if scenario.domain.accuracy is not None:
        unit = scenario.output.temperature_unit
        yield (
            f"accuracy     ±{unit.difference_text(scenario.domain.accuracy)} in space: a run tries these cells first "
            f"and makes them smaller where it matters, up to {scenario.domain.most:,}; numbers here are of the first"
        )


def _initial(scenario: Scenario) -> Iterator[str]:
    """The initial temperature, if it is one number."""
    if not scenario.steady and isinstance(scenario.initial.temperature, float):
        yield f"initial      {scenario.output.temperature_unit.text(scenario.initial.temperature)}"


def _materials(problem: HeatProblem) -> Iterator[str]:
    """Each material with its properties and cells; void."""
    for material in material_coefficients(problem.scenario, problem.materials.palette, problem.reference):
        yield from _material(problem, material)
    if problem.scenario.uses_void:
        yield f"void         {counted(problem.materials.cells_of('void'), 'cell')}"


def _material(problem: HeatProblem, material: MaterialCoefficients) -> Iterator[str]:
    kx, ky, kz = material.conductivity
    k = f"{kx:.6g}" if kx == ky == kz else f"[{kx:.6g}, {ky:.6g}, {kz:.6g}]"
    unit = problem.scenario.output.temperature_unit
    at = "" if material.at is None else f" at {unit.text(material.at)}"
    cells = problem.materials.cells_of(material.name)
    of_layers = any(layer.material == material.name for layer in problem.scenario.layers)
    where = counted(cells, "cell") if cells or not of_layers else "of layers, without cells"
    yield (
        f"material     {material.name}: {where}; k = {k} W/(m K), "
        f"ρ = {material.density:.6g} kg/m³, cp = {material.specific_heat:.6g} J/(kg K){at}"
    )
    if material.enthalpy is not None:
        low, high = material.enthalpy.followed
        least, most = material.enthalpy.conductivity_range
        least_cp, most_cp = material.enthalpy.specific_heat_range
        yield (
            f"             followed from {plain(unit.of(low), 6)} to {unit.text(high)}: "
            f"k = {least:.6g} … {most:.6g} W/(m K), cp = {least_cp:.6g} … {most_cp:.6g} J/(kg K)"
        )


def _regions(problem: HeatProblem) -> Iterator[str]:
    """Each region with its cells, its drawn size and its painted size; a hint if the two sizes differ much."""
    if problem.parts is None:
        return
    found = {size.region: size for size in painted_sizes(problem.scenario)}
    for region, cells in zip(problem.scenario.regions, problem.parts.region_cells, strict=True):
        line = f"region       {region.name}: {counted(cells, 'cell')} of {', '.join(region.materials)}{_axes(region)}"
        line += _shells(region)
        size = found.get(region.name)
        if size is None:
            yield line
            continue
        drawn, painted = (sizes(problem.grid.with_lengths(of)) for of in (size.drawn, size.painted))
        counts = " × ".join(map(str, problem.grid.with_lengths(size.cells)))
        both = f"painted as drawn, {drawn}" if painted == drawn else f"drawn {drawn}, painted {painted}"
        yield f"{line}; {both}: {counts} cells"
    yield from _hints(list(found.values()))


def _axes(region: Region) -> str:
    """The domain axes along which the axes of a region's material lie; empty if the region does not turn them."""
    return "" if region.axes is None else f"; its x, y, z lie along {', '.join(region.axes)}"


def _shells(region: Region) -> str:
    """What the shells of a region's STL file are; empty for one simple shell."""
    if region.stl is None:
        return ""
    summary = Surface.from_stl(region.stl).summary
    return f"; {region.stl.file.path.name}: {summary}" if summary else ""


def _hints(found: Sequence[PaintedSize]) -> Iterator[str]:
    """Hints about regions whose painted size differs much from the drawn one, or that are one cell thick."""
    for size in found:
        off = size.part_off(size.worst)
        if abs(off) > MOST_OFF:
            kind = "thick" if off > 0.0 else "thin"
            yield (
                f"hint         {size.region}: {100.0 * abs(off):.0f} % too {kind} along {AXES[size.worst]}; choose "
                "domain.cells so that its borders lie between cells"
            )
    for axis in range(3):
        thin = list(dict.fromkeys(base_of(size.region) for size in found if axis in size.thin_axes))
        if thin:
            yield (
                f"hint         1 cell along {AXES[axis]}: {', '.join(thin)}; use 2 or more to see differences across"
            )


def _contacts(problem: HeatProblem) -> Iterator[str]:
    """Each contact with its smooth area; the smooth areas towards void."""
    materials, division = problem.materials, Division.of(problem.scenario)
    for pair, touching in materials.surface_areas.items():
        void = [place for place in pair if division.kinds[place][0] == VOID]
        if void:
            (place,) = pair - set(void)
            material, region = division.kinds[place]
            name = f'{material}, region "{region}",' if region else material
            yield f"surface      {name} towards void: {area(touching)}"
    largest = {law.number: law.largest for law in problem.boundary.gaps}
    for number, touching in enumerate(contact_areas(problem)):
        contact = problem.scenario.contacts[number]
        words = contact_in_words(contact, problem.scenario.time.end)
        most = f"; at most {largest[number]:.4g} W/(m² K)" if np.isfinite(largest.get(number, np.inf)) else ""
        yield f"contact      {' and '.join(contact.between)}: {area(touching)}, {words}{most}"
    if problem.scenario.contacts and problem.scenario.output.energy and not problem.scenario.output.region_heat:
        yield "hint         output.region_heat = true adds the flow through each contact and the heat of each region"


def _layers(problem: HeatProblem) -> Iterator[str]:
    """Each layer with its area, without the part over void."""
    scenario = problem.scenario
    for number, layer in enumerate(scenario.layers):
        whole, laid = layer.plane.area(scenario.grid), problem.materials.layering.areas[number]
        over_void = f" of {area(whole)}, the rest lies over void" if laid < whole * _LAID else ""
        yield (
            f"layer        {layer.name}: {length(layer.thickness)} of {layer.material} at {layer.plane.axis} = "
            f"{1e3 * layer.plane.at:.6g} mm; {area(laid)}{over_void}"
        )


def _conditions(problem: HeatProblem) -> Iterator[str]:
    """The conditions of all faces, with equal ones in one line; then of patches and of surfaces towards void."""
    scenario = problem.scenario
    unit, end = scenario.output.temperature_unit, scenario.time.end
    alike: dict[str, list[str]] = {}
    for face in FACES:
        alike.setdefault(condition_in_words(scenario.boundaries.face(face), unit, end), []).append(face)
    for words, faces in alike.items():
        yield f"face         {', '.join(faces)}: {words}"
    for patch in scenario.patches:
        given, on_grid = patch.area(scenario.grid), patch.area_on_grid(scenario.grid)
        yield (
            f"patch        {patch.name}: {condition_in_words(patch.condition, unit, end)}; {area(given)} on "
            f"{patch.face}, {area(on_grid)} on the grid"
        )
    of_conditions = areas(problem.boundary, problem.materials) if any(problem.boundary.rooms) else None
    for surface in scenario.surfaces:
        where, words = surface_in_words(surface, scenario.rooms), condition_in_words(surface.condition, unit, end)
        if of_conditions is not None:
            words += f"; {area(float(of_conditions[[*problem.boundary.named[surface.name]]].sum()))}"
        yield f"surface      {where}: {words}"
    if scenario.uses_void:
        others = "other surfaces" if scenario.surfaces or scenario.channels else "all"
        yield f"surface      {others} towards void: {condition_in_words(scenario.boundaries.void, unit, end)}"


def _nodes(problem: HeatProblem) -> Iterator[str]:
    """The nodes, and the channels with the area of their walls."""
    scenario = problem.scenario
    unit, end = scenario.output.temperature_unit, scenario.time.end
    for node in scenario.nodes:
        yield f"node         {node.name}: {node_in_words(node, unit, end)}"
    of_conditions = areas(problem.boundary, problem.materials) if scenario.channels else np.zeros(0)
    for channel in scenario.channels:
        wall = float(of_conditions[[*problem.boundary.named[channel.region]]].sum())
        yield f"channel      {channel.name}: {channel_in_words(channel, unit, end)}; {area(wall)} of walls"


def _sources(problem: HeatProblem) -> Iterator[str]:
    scenario, sources, numbers = problem.scenario, problem.sources, count()
    for source in scenario.sources:
        words = source_in_words(source, scenario.time.end)
        if source.beam is not None:
            number = next(numbers)
            time = np.array([_half_way(sources.tracks[number])])
            rows = sources.rows_of(number, time, INSTANT)
            brought = None if rows is None else sources.absorbed_by(rows)
            whole = source.beam.power * source.beam.absorptivity * float(np.asarray(source.scale.at(time))[0])
            if brought is not None and abs(brought) < _ABSORBED * abs(whole):
                words += f"; half-way the body absorbs {brought:.4g} of {whole:.4g} W, the rest misses it or leaves it"
        yield f"source       {source.name}: {words}"


def _half_way(track: Track) -> float:
    """The time in s in the middle of those at which a beam is on; its start if it has no end."""
    start, stop = track.on
    return start if isinf(stop) else 0.5 * (start + stop)


def _probe(probe: Probe, scenario: Scenario) -> str:
    if probe.line is not None:
        start, end = probe.points[0], probe.points[-1]
        return f"{counted(len(probe.points), 'point')} from {point(start)} to {point(end)}"
    unit, limit = scenario.output.temperature_unit, probe.threshold
    above = "" if limit is None else f" {unit.text(limit) if isinstance(limit, float) else 'the dew point'}"
    if probe.point is not None:
        return f"{probe.statistic}{above} at {point(probe.point)}" if above else f"at {point(probe.point)}"
    of = "the whole body" if probe.region is None else f'region "{probe.region}"'
    if probe.surface is not None:
        where = "towards void" if probe.surface == TOWARDS_VOID else f"at {probe.surface}"
        where = f'towards room "{probe.surface}"' if probe.surface in scenario.rooms else where
        of = f"the surface {where}" + ("" if probe.region is None else f", {of}")
    towards = "" if probe.outside is None else f" against {show(probe.outside)}"
    return f"{probe.statistic}{above} of {of}{towards}"


def _coupling(coupling: Coupling) -> str:
    columns = (f"{name.removeprefix(coupling.name + ' ')} in {unit}" for name, unit in coupling.columns.items())
    return f"{', '.join(columns)} between {' and '.join(', '.join(map(show, names)) for names in coupling.between)}"
