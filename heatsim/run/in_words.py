"""Describe the conditions, sources and sizes of a scenario in words, for plans and pictures of the geometry."""

from collections.abc import Callable, Container, Sequence
from math import dist
from typing import assert_never

from heatsim.amounts import LENGTHS, TIMES, choose_unit, format_time
from heatsim.counts import plain
from heatsim.grid import Grid
from heatsim.scenario import (
    Beam,
    Box,
    Channel,
    Constant,
    Contact,
    Convection,
    Cylinder,
    Face,
    Flux,
    Formula,
    Insulated,
    MaterialFormula,
    Node,
    NodeTemperature,
    Periodic,
    Radiation,
    Shape,
    Source,
    SpaceFormula,
    Sphere,
    Stl,
    SurfaceFormula,
    SurfaceTable,
    Table,
    Temperature,
    TimeFunction,
)
from heatsim.scenario.messages import show
from heatsim.scenario.tables.surfaces import RegionSurface
from heatsim.scenario.values.steered import Steered
from heatsim.temperature_units import TemperatureUnit

_LONGEST_FORMULA = 40  # characters
_ROUNDINGS = 1e-12  # relative: smaller ends of a range are 0, as of max(0, cos(t))

Number = Callable[[float], str]


def condition_in_words(condition: Face, unit: TemperatureUnit, end: float) -> str:
    """The type and the values of a condition.

    Args:
        condition: the condition of a face, a patch or a surface.
        unit: the unit for temperatures.
        end: the end of the run in s.
    """

    def temperature(value: TimeFunction) -> str:
        return in_time(value, lambda kelvins: plain(unit.of(kelvins), 6), unit.symbol, end)

    def beside(flux: TimeFunction) -> str:
        return "" if flux == Constant(0.0) else f", and flux {in_time(flux, _plain, 'W/m²', end)}"

    match condition:
        case Temperature(value=value):
            return f"temperature {temperature(value)}"
        case Flux(value=value, power=power):
            if value is not None:
                return f"flux {in_time(value, _plain, 'W/m²', end)}"
            return "flux" if power is None else f"flux {in_time(power, _plain, 'W', end)} in all"
        case Convection(coefficient=coefficient, ambient=ambient, emissivity=emissivity, surroundings=surroundings):
            words = f"convection {in_time(coefficient, _plain, 'W/(m² K)', end)} to {temperature(ambient)}"
            if emissivity != Constant(0.0):
                words += f", emissivity {in_time(emissivity, _plain, '', end)}"
                words += "" if surroundings == ambient else f", surroundings {temperature(surroundings)}"
            return words + beside(condition.flux)
        case Radiation(emissivity=emissivity, ambient=ambient):
            words = f"radiation to {temperature(ambient)}, emissivity {in_time(emissivity, _plain, '', end)}"
            return words + beside(condition.flux)
        case Insulated():
            return "insulated"
        case Periodic():
            return "periodic"
        case _:
            assert_never(condition)


def in_time(function: TimeFunction, number: Number, unit: str, end: float) -> str:
    """A value that may vary: a number, the range of a table or formula until ``end`` (s), or a formula in space."""
    match function:
        case Constant(value=value):
            return f"{number(value)} {unit}".rstrip()
        case SpaceFormula(expression=expression) | SurfaceFormula(expression=expression):
            return _short(expression.text)
        case NodeTemperature(node=node):
            return f'node "{node}"'
        case SurfaceTable(table=table):
            ends = map(number, (min(table.values), max(table.values)))
            return f"{'…'.join(ends)} {unit} (a table in T)"
        case Formula(expression=expression) if not function.constant:
            return f"{_range(function, number, unit, end)} ({_short(expression.text)})"
        case Table(origin=origin) if not function.constant:
            source = "a table" if origin is None else origin.file.path.name
            return f"{_range(function, number, unit, end)} ({source})"
        case Steered():
            return f"{_range(function, number, unit, end)} (set during the run)"
        case _:
            return _range(function, number, unit, end)


def _range(function: TimeFunction, number: Number, unit: str, end: float) -> str:
    low, high = function.extremes(end)
    smallest = _ROUNDINGS * max(abs(low), abs(high))
    shown = (value if abs(value) > smallest else 0.0 for value in (low, high))
    ends = dict.fromkeys(map(number, shown))
    return f"{'…'.join(ends)} {unit}".rstrip()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_FORMULA else f"{text[: _LONGEST_FORMULA - 1]}…"


def _plain(value: float) -> str:
    return plain(value, 6)


def surface_in_words(surface: RegionSurface, rooms: Container[str]) -> str:
    """A surface towards void in words, for the scenario's ``rooms``."""
    part, room = surface.part(rooms), surface.room(rooms)
    if room is None:
        return f'region "{part}" towards void'
    return f'{"all" if part is None else show(part)} towards room "{room}"'


def node_in_words(node: Node, unit: TemperatureUnit, end: float) -> str:
    """The heat capacity of a node, its power, its links and flows."""

    def at(value: TimeFunction | None, other: str | None) -> str:
        if value is None:
            return f'node "{other}"'
        return in_time(value, lambda kelvins: plain(unit.of(kelvins), 6), unit.symbol, end)

    start = "" if node.initial_temperature is None else f" at {unit.text(node.initial_temperature)}"
    words = [f"{plain(node.heat_capacity, 6)} J/K{start}" if node.heat_capacity else "without heat capacity"]
    words += [] if node.power == Constant(0.0) else [in_time(node.power, _plain, "W", end)]
    words += [f"{plain(link.conductance, 6)} W/K to {at(link.ambient, link.node)}" for link in node.links]
    words += [f"fluid with {plain(of.capacity_rate, 6)} W/K from {at(of.inlet, of.node)}" for of in node.flows]
    return ", ".join(words)


def channel_in_words(channel: Channel, unit: TemperatureUnit, end: float) -> str:
    """The way of a fluid through a channel, what it carries, and its film coefficient."""
    inlet = f'after channel "{channel.before}"'
    if channel.before is None:
        inlet = f"at {in_time(channel.inlet, lambda kelvins: plain(unit.of(kelvins), 6), unit.symbol, end)}"
    return (
        f"from {channel.from_} {inlet}, {plain(channel.mass_flow, 6)} kg/s ({plain(channel.capacity_rate, 6)} W/K), "
        f'{in_time(channel.coefficient, _plain, "W/(m² K)", end)}, through "{channel.region}"'
    )


def source_in_words(source: Source, end: float) -> str:
    """The power of a source, its place, and when it is on."""
    if source.beam is not None:
        words = _beam(source.beam)
    else:
        power = f"{plain(source.power, 6)} W" if source.power is not None else density_in_words(source.power_density)
        power = in_time(source.factor, _plain, "W", end) if source.power_is_set else power
        if source.distribution is not None:
            power += f" spread as {_short(source.distribution.expression.text)}"
        place = f'in region "{source.region}"' if source.region is not None else _place(source.given_shape)
        words = f"{power} {place}"
    if source.during is not None:
        words += f", from {moment(source.during[0])} to {moment(source.during[1])}"
    if source.scale != Constant(1.0):
        words += f", times {in_time(source.scale, _plain, '', end)}"
    return words


def contact_in_words(contact: Contact, end: float) -> str:
    """What resists heat at a contact, or lets it through."""
    law, gap = contact.law, contact.gap
    if law is None:
        return f"{contact.resistance:.6g} m² K/W"
    if gap is None:
        return f"conductance {in_time(law, _plain, 'W/(m² K)', end)}"
    words = f"gap of {length(gap.width)}, conductivity {in_time(law, _plain, 'W/(m K)', end)}"
    return words if gap.emissivities is None else f"{words}, emissivities {' and '.join(map(_plain, gap.emissivities))}"


def density_in_words(density: object) -> str:
    """A power density: a number, a formula, or a table."""
    if isinstance(density, float):
        return f"{plain(density, 6)} W/m³"
    if isinstance(density, SpaceFormula | MaterialFormula):
        return f"{_short(density.expression.text)} W/m³"
    return "a table of the cell's temperature"


def _beam(beam: Beam) -> str:
    words = f"beam of {plain(beam.power, 6)} W on {beam.face}, {plain(100.0 * beam.absorptivity, 4)} % absorbed, "
    words += f"radius {length(beam.radius)}"
    if beam.absorption_depth is not None:
        words += f", absorption depth {length(beam.absorption_depth)}"
    if len(beam.path) == 1 or beam.speed is None:
        return f"{words}, at {point(beam.path[0])} from {moment(beam.start)}"
    whole = sum(dist(one, other) for one, other in zip(beam.path, beam.path[1:], strict=False))
    last = beam.start + whole / beam.speed
    return f"{words}, {length(whole)} at {length(beam.speed)}/s from {moment(beam.start)} to {moment(last)}"


def _place(shape: Shape | None) -> str:
    match shape:
        case None:
            return "everywhere"
        case Box(min=low, max=high):
            return f"in a box from {point(low)} to {point(high)}"
        case Sphere(centre=centre, radius=radius):
            return f"in a sphere around {point(centre)} with radius {length(radius)}"
        case Cylinder(from_=start, to=end, radius=radius):
            return f"in a cylinder from {point(start)} to {point(end)} with radius {length(radius)}"
        case Stl(file=file):
            return f"in {file.path.name}"
        case _:
            assert_never(shape)


def moment(time: float) -> str:
    """A time in s in the unit that suits it."""
    return format_time(time, choose_unit(TIMES, time))


def length(metres: float) -> str:
    """A length in the unit that suits it, such as ``"35 µm"``."""
    unit = choose_unit(LENGTHS, metres)
    return f"{plain(metres / unit.size, 4)} {unit.symbol}"


def area(square_metres: float) -> str:
    """An area in m², cm² or mm²."""
    for symbol, size in (("m²", 1.0), ("cm²", 1e-4)):
        if square_metres >= 0.1 * size:
            return f"{plain(square_metres / size, 4)} {symbol}"
    return f"{plain(1e6 * square_metres, 4)} mm²"


def point(coordinates: Sequence[float]) -> str:
    """A point in mm."""
    return f"({', '.join(f'{plain(1e3 * coordinate, 4)}' for coordinate in coordinates)}) mm"


def sizes(lengths: Sequence[float]) -> str:
    """Lengths along the axes in one unit, such as ``"10 × 10 × 0.25 mm"``."""
    return spans([(each, each) for each in lengths])


def grid_in_words(grid: Grid) -> str:
    """The cells and their widths, such as ``"8 × 4 × 4 cells of 0.1 to 2.5 × 10 × 10 mm; 10 × 40 × 40 mm in all"``."""
    cells = " × ".join(map(str, grid.with_lengths(grid.cells)))
    widths = spans([(float(axis.widths.min()), float(axis.widths.max())) for axis in grid.with_lengths(grid.axes)])
    whole = sizes(grid.with_lengths(grid.size))
    if not grid.radial:
        return f"{cells} cells of {widths}; {whole} in all"
    hollow = f", from the radius {length(grid.origin[0])} on" if grid.origin[0] else ""
    return f"{cells} rings of {widths} around the axis; {whole} in all, along the radius and the axis{hollow}"


def spans(lengths: Sequence[tuple[float, float]]) -> str:
    """The smallest and the largest of lengths along each axis, in one unit."""
    unit = choose_unit(LENGTHS, max(largest for _, largest in lengths))
    texts = (dict.fromkeys(plain(each / unit.size, 4) for each in pair) for pair in lengths)
    return f"{' × '.join(' to '.join(pair) for pair in texts)} {unit.symbol}"
