"""The temperatures that can occur in a run; tables of materials cover this range.

Conduction creates no new extremes: without sources the temperature stays between the lowest and highest of the initial
field and the surroundings. Sources, beams and fluxes can raise it at most to the temperature of the most heated cell if
all heat stayed there (comparison principle: Protter & Weinberger, *Maximum Principles in Differential Equations*,
ch. 3). If heat flows away, this bound is far too wide. That does not matter for tables; an expression must be valid in
the whole range, or the user sets a temperature_range.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.cells.cell_heat import WIDEST, extreme_densities
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import NOTHING, time_functions
from heatsim.physics.conditions.gap_laws import GapLaw
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.sources.sources import Sources
from heatsim.physics.time.time_steps import INSTANT
from heatsim.physics.time.tolerance import DEFAULT_PART, LEAST_DEFAULT, least_default
from heatsim.scenario import Material, MaterialFunction, MaterialTable, Node, Scenario, Source, TimeFunction
from heatsim.scenario.tables.materials import largest
from heatsim.scenario.values.bounds import bounds as bounds_of
from heatsim.scenario.values.course import first_place
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.quantities import CONDUCTIVITY, CONTACT_CONDUCTANCE, LARGEST, SMALLEST, Quantity
from heatsim.scenario.values.surfacefunction import SurfaceFormula

Array = NDArray[np.float64]

# K. Beyond this, expressions need a temperature_range: tables would become coarse.
HOTTEST = 10_000.0
_PARTS, _MOST_PARTS = 64, 4096  # parts of the run, over each of which sources are averaged
_STANDS_OUT = 0.05  # part of the range of a law that its nodes and moments may miss
_LARGEST_RISE = 1e7  # K; a larger rise counts as unbounded
_OF_TOLERANCE = 0.1


@dataclass(frozen=True)
class Occurring:
    """The temperatures that can occur.

    Attributes:
        low, high: in K; 0 and infinity if there is no bound.
        heated, cooled: whether sources, beams or fluxes widen the range upwards or downwards.
    """

    low: float
    high: float
    heated: bool = False
    cooled: bool = False

    @classmethod
    def in_run(cls, scenario: Scenario, start: InitialField, conditions: Boundary, materials: CellTypes) -> "Occurring":
        """The range from the initial field, the conditions and the sources of a run.

        Args:
            scenario: the scenario.
            start: its initial field.
            conditions: the conditions on faces, patches and void surfaces.
            materials: the cell types, with heat capacities at the reference temperature.
        """
        temperatures = _temperatures(start, conditions)
        low, high = min(temperatures), max(temperatures)
        if scenario.steady:
            # Heat collects until it flows away: only the resistances of the body bound the temperature.
            heated, cooled = _gains_and_losses(scenario, conditions, materials)
            return cls(0.0 if cooled else low, max(high, HOTTEST) if heated else high, heated, cooled)
        gained, lost = _energies(scenario, conditions, materials)
        of_palette = [material for _, material in scenario.palette if material is not None]
        return cls(
            low=max(0.0, low - _change(of_palette, low, -1.0, lost)) if lost else low,
            high=high + _change(of_palette, high, 1.0, gained) if gained else high,
            heated=gained > 0.0,
            cooled=lost > 0.0,
        )

    def followed(self, material: Material) -> tuple[float, float]:
        """The range in K that the table of a material covers: beyond it, tables of the user are constant."""
        low, high = self.low, self.high
        if material.formulas and material.temperature_range is None:
            return low, high
        nodes = [*(material.temperature_range or ()), material.solidus, material.liquidus]
        for function in (material.conductivity, material.specific_heat):
            if isinstance(table := largest(function), MaterialTable):
                nodes += table.temperatures
        known = [node for node in nodes if node is not None]
        return min(max(min(known), low), high), min(max(max(known), low), high)


def of_surfaces(start: InitialField, conditions: Boundary, materials: CellTypes) -> tuple[float, float]:
    """The lowest and highest temperature in K that surfaces can have in a run.

    Arguments as of :meth:`Occurring.in_run`.
    """
    occurring = Occurring.in_run(conditions.scenario, start, conditions, materials)
    beyond = beyond_cells(conditions)
    return min(occurring.low, beyond[0]), max(occurring.high, beyond[1])


def beyond_cells(conditions: Boundary) -> tuple[float, float]:
    """What surfaces that depend on their temperature can reach although no cell and no surroundings do, in K.

    A beam, or a flux beside convection or radiation, heats or cools a surface more than its cell.
    """
    end, beams = conditions.scenario.time.end, any(source.beam is not None for source in conditions.scenario.sources)
    extremes = [law.flux.extremes(end) for law in conditions.laws]
    heated = beams or any(high > 0.0 for _, high in extremes)
    return (0.0 if any(low < 0.0 for low, _ in extremes) else inf), (inf if heated else -inf)


def check(scenario: Scenario, occurring: Occurring, laws: Sequence[GapLaw] = ()) -> None:
    """Check that expressions of materials, or else of the laws of contacts, are valid in the whole range.

    Raises:
        ScenarioError: an expression is not; the message says at which temperature, and what to do.
    """
    found = list(_faults_of_laws(scenario, occurring, laws) if laws else _faults_of_materials(scenario, occurring))
    if found:
        raise ScenarioError(scenario.path, found)


def _faults_of_materials(scenario: Scenario, occurring: Occurring) -> Iterator[Mistake]:
    for name, material in scenario.palette:
        if material is None:
            continue
        place = "material" if scenario.material is not None else f"materials.{name}"
        low, high = material.temperature_range or (occurring.low, occurring.high)
        for key, formula, quantity in material.formulas:
            nodes = formula.nodes(low, min(high, HOTTEST))
            message = _fault(occurring, formula.at, nodes, quantity, high, material.temperature_range is not None)
            if message is not None:
                yield Mistake(f"{place}.{key}", message)


def _faults_of_laws(scenario: Scenario, occurring: Occurring, laws: Sequence[GapLaw]) -> Iterator[Mistake]:
    for law in laws:
        contact, function = scenario.contacts[law.number], law.function
        if isinstance(function, SurfaceFormula):
            known, moments = contact.temperature_range is not None, law.moments if law.courses else law.moments[:1]
            key, quantity = ("conductance", CONTACT_CONDUCTANCE)
            if contact.gap is not None:
                key, quantity = ("gap.conductivity", CONDUCTIVITY)
            # Only moments at which a value may be out of range are looked at closely, and the first one.
            values = function.of(law.nodes, moments[:, None])
            fits = ((values > SMALLEST) & (values < LARGEST)).all(axis=-1)
            for time in np.append(moments[:1], moments[1:][~np.broadcast_to(fits, moments.shape)[1:]]).tolist():
                at = partial(function.of, other=time)
                message = _fault(occurring, at, law.nodes, quantity, law.high, known, time if law.courses else None)
                if message is not None:
                    break
            else:
                message = _unseen(law, function.expression, values)
            if message is not None:
                yield Mistake(f"contacts.{law.number}.{key}", message)


def _unseen(law: GapLaw, expression: Expression, values: Array) -> str | None:
    """What a law has between its nodes and moments, where it has ``values``; None if nothing stands out there."""
    if not {"T", "t"} <= expression.used:
        return None
    found = bounds_of(expression, T=(law.low, min(law.high, HOTTEST)), t=(0.0, law.end))
    apart = _STANDS_OUT * (found.seen[1] - found.seen[0])
    for seen, place, known, sign in zip(
        found.seen, found.places, (values.min(), values.max()), (-1.0, 1.0), strict=True
    ):
        if sign * (seen - known) > apart:
            return (
                f"is {seen!r} at {place['T']!r} K and t = {place['t']!r} s, a place that is too narrow in temperature "
                "and time to be followed; make it wider, or set a temperature_range without it"
            )
    return None


def _fault(
    occurring: Occurring,
    at: Callable[[Any], Array],
    nodes: Array,
    quantity: Quantity,
    high: float,
    known: bool,
    time: float | None = None,
) -> str | None:
    """What is wrong with an expression from the first of some nodes up to ``high`` (K); None if nothing is.

    ``at`` gives its values, at a ``time`` in s if they change; ``known``: whether it has a temperature_range.
    """
    why, advice = "which the initial field or the surroundings cause", "narrow the temperature_range"
    if known:
        why = "which lies in its temperature_range"
    elif occurring.heated or occurring.cooled:
        why = "which sources, beams and fluxes could cause if no heat flowed away"
    if not known:
        advice = (
            "set temperature_range = [lowest, highest] to the range in which the expression holds (it is constant "
            "beyond), or use a table { temperatures = […], values = […] }"
        )

    def wrong(T: float) -> bool:
        return quantity.range_fault(float(at(T))) is not None

    T = first_place(nodes, [quantity.range_fault(value) is not None for value in at(nodes).tolist()], wrong)
    if T is not None:
        number, when = float(at(T)), "" if time is None else f" and t = {time!r} s"
        return f"is {number!r} at {T!r} K{when}, {why}; {quantity.range_fault(number)}; {advice}"
    if high == inf:
        text = "must be valid at all high temperatures, because nothing limits what sources and fluxes cause"
        return f"{text}; {advice}"
    return f"must be valid up to {high:.6g} K, {why}; {advice}" if high > HOTTEST else None


def surrounding(conditions: Boundary, end: float) -> Iterator[float]:
    """The lowest and highest temperatures in K of held faces and surroundings."""
    for condition in conditions.conditions:
        for _, temperature in time_functions(condition).exchanges:
            yield from temperature.extremes(end)
    for node in _nodes(conditions):
        for temperature in node.known_temperatures:
            yield from temperature.extremes(end)


@dataclass(frozen=True)
class TemperatureLimits:
    """What is known of the temperatures of a run before it begins, in K.

    Attributes:
        lowest, highest: of the initial field.
        coldest, hottest: of initial temperatures and those around the body.
        bounds: the extremes that the maximum principle allows.
        foreseen: the widest range that sets the default tolerance, see :func:`foreseen`.
    """

    lowest: float
    highest: float
    coldest: float
    hottest: float
    bounds: tuple[float, float]
    foreseen: float

    @classmethod
    def of_run(cls, start: InitialField, conditions: Boundary, materials: CellTypes) -> "TemperatureLimits":
        """The limits of a run; arguments as of :meth:`Occurring.in_run`."""
        temperatures = _temperatures(start, conditions)
        extremes, widest = (min(temperatures), max(temperatures)), foreseen(start, conditions, materials)
        return cls(start.lowest, start.highest, *extremes, bounds(start, conditions), widest)

    @property
    def span(self) -> float:
        """The range in K of initial temperatures and those around the body."""
        return self.hottest - self.coldest


def span(start: InitialField, conditions: Boundary) -> float:
    """The range in K that the initial temperatures and those around the body span during a run."""
    temperatures = _temperatures(start, conditions)
    return max(temperatures) - min(temperatures)


def foreseen(start: InitialField, conditions: Boundary, materials: CellTypes) -> float:
    """The widest range in K that a run can have; infinite where it does not set the default tolerance.

    Arguments as of :meth:`Occurring.in_run`.
    """
    if conditions.scenario.time.tolerance is not None or DEFAULT_PART * span(start, conditions) >= LEAST_DEFAULT:
        return inf
    occurring = Occurring.in_run(conditions.scenario, start, conditions, materials)
    return occurring.high - occurring.low


def resolution(start: InitialField, conditions: Boundary, materials: CellTypes) -> float:
    """By how many K tables may displace temperatures: a tenth of the least tolerance that a run can have.

    Arguments as of :meth:`Occurring.in_run`.
    """
    given = conditions.scenario.time.tolerance
    of_default = DEFAULT_PART * span(start, conditions), least_default(foreseen(start, conditions, materials))
    return _OF_TOLERANCE * (max(of_default) if given is None else given)


def hottest(start: InitialField, conditions: Boundary) -> float:
    """The highest temperature in K of the initial field, of held surfaces and of surroundings during the run."""
    return max(_temperatures(start, conditions))


def bounds(start: InitialField, conditions: Boundary) -> tuple[float, float]:
    """The extremes in K that the maximum principle allows for a run.

    Heat that is set free in the body, or comes through its surfaces whatever their temperature, leaves no upper bound.
    Where it is taken away, nothing but 0 K is a lower bound.
    """
    temperatures, end = _temperatures(start, conditions), conditions.scenario.time.end
    given = [amount * extreme for amount, function in _given(conditions) for extreme in function.extremes(end)]
    heated, cooled = any(heat > 0.0 for heat in given), any(heat < 0.0 for heat in given)
    return 0.0 if cooled else min(temperatures), inf if heated else max(temperatures)


def gives_heat(conditions: Boundary) -> bool:
    """Whether a source, a beam or a flux gives or takes heat."""
    end = conditions.scenario.time.end
    return any(amount * extreme != 0.0 for amount, function in _given(conditions) for extreme in function.extremes(end))


def _nodes(conditions: Boundary) -> Sequence[Node]:
    return () if conditions.network is None else conditions.network.nodes


def _temperatures(start: InitialField, conditions: Boundary) -> list[float]:
    resets = conditions.scenario.resets
    of_fields = () if resets is None else (resets.low, resets.high)
    return [start.lowest, start.highest, *of_fields, *surrounding(conditions, conditions.scenario.time.end)]


def _given(conditions: Boundary) -> Iterator[tuple[float, TimeFunction]]:
    """What fluxes, sources and beams bring, each as an amount and its factor in time."""
    for condition in conditions.conditions:
        yield 1.0, time_functions(condition).flux
    yield from ((1.0, node.power) for node in _nodes(conditions))
    for source in conditions.scenario.sources:
        for amount in _signs(source):
            yield amount, source.factor


def _signs(source: Source) -> tuple[float, ...]:
    """Numbers with the signs that the power of a source can have."""
    if source.beam is not None or source.power is not None:
        return (source.nominal or 0.0 if source.beam is None else source.beam.power,)
    if isinstance(source.power_density, float):
        return (source.power_density,)
    if isinstance(source.power_density, MaterialFunction):
        values = source.power_density.at(source.power_density.nodes(*(source.temperature_range or WIDEST)))
        return float(values.min()), float(values.max())
    return -1.0, 1.0


def _gains_and_losses(scenario: Scenario, conditions: Boundary, materials: CellTypes) -> tuple[bool, bool]:
    """Whether any source, beam or flux adds heat at t = 0, and whether any removes heat."""
    sources, start = Sources(scenario, materials), np.zeros(1)
    given = [float(time_functions(condition).flux.at(start)[0]) for condition in conditions.conditions]
    given += sources.powers(start, INSTANT)[0].tolist()
    given += extreme_densities(materials.heated, sources.amounts(start, INSTANT)[0, :-1])
    given += [float(rows.weights[0].sum()) for rows in sources.beam_rows(start, INSTANT)]
    given += [float(node.power.at(start)[0]) for node in _nodes(conditions)]
    return any(heat > 0.0 for heat in given), any(heat < 0.0 for heat in given)


def _energies(scenario: Scenario, conditions: Boundary, materials: CellTypes) -> tuple[float, float]:
    """The largest heat in J/m³ that sources, beams and fluxes can add to a cell, and remove from it."""
    end, sources = scenario.time.end, Sources(scenario, materials)
    gained = lost = 0.0
    for each in _with_set_factors(scenario) if sources.even or materials.heated.amounts else ():
        more, less = _energies_of_sources(each, materials)
        gained, lost = max(gained, more), max(lost, less)
    inwards, outwards = np.zeros((3, 2)), np.zeros((3, 2))
    for number, condition in enumerate(conditions.conditions):
        flux = time_functions(condition).flux
        if flux == NOTHING:
            continue
        low, high = flux.extremes(end)
        faces = [face for face in range(6) if number in conditions.on_face(face)]
        void = conditions.is_towards_void(number)
        for face in range(6) if void else faces:
            at = divmod(face, 2)
            largest = (materials.weighted_surfaces.most[face] if void else 1.0) * _most_gain(materials, face, void)
            inwards[at] = max(inwards[at], largest * high)
            outwards[at] = max(outwards[at], -largest * low)
    spacing = np.array(scenario.grid.mean_spacing)
    gained += float((inwards.sum(axis=1) / spacing).sum()) * end
    lost += float((outwards.sum(axis=1) / spacing).sum()) * end
    for node in _nodes(conditions):  # any small part of the body may get all of it
        low, high = node.power.extremes(end)
        gained, lost = gained + (inf if high > 0.0 else 0.0), lost + (inf if low < 0.0 else 0.0)
    for track in sources.beams:
        beam = track.beam
        peak = 2.0 * beam.power * beam.absorptivity / (pi * beam.radius**2) * track.source.factor.extremes(end)[1]
        face = FACES.index(beam.face)
        peak *= _most_gain(materials, face, materials.void is not None)
        shines = float(np.diff(np.minimum(track.spans(end), end)).sum())
        gained += max(peak, 0.0) / float(spacing[face // 2]) * shines
    return gained, lost


def _energies_of_sources(scenario: Scenario, materials: CellTypes) -> tuple[float, float]:
    """The largest heat in J/m³ that sources in the body can add to a cell, and remove from it."""
    sources, times = Sources(scenario, materials), _moments(scenario, [of.function for of in materials.heated.amounts])
    times, lengths = times[:-1], np.diff(times)
    heat = sources.heat(times, 1.0, lengths) * materials.heat_capacity
    most, least = (lengths * each for each in (heat.max(axis=1), heat.min(axis=1)))
    if materials.heated.amounts:
        extremes = [extreme_densities(materials.heated, row[:-1]) for row in sources.amounts(times, 1.0, lengths)]
        low, high = np.array(extremes).T * lengths
        most, least = np.maximum(most, 0.0) + high, np.minimum(least, 0.0) + low
    return _largest_rise(most), _largest_rise(-least)


def _with_set_factors(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with a constant in the place of each factor of a source that is set during the run.

    Once with those that give most heat, and once with those that take most. Where the sign of a density is not known,
    both ends of the range count.
    """
    end = scenario.time.end
    if all(source.factor.foreseen for source in scenario.sources):
        yield scenario
        return
    for most, other in product((False, True), repeat=2):

        def settled(source: Source, most: bool = most, other: bool = other) -> Source:
            if source.factor.foreseen:
                return source
            signs = _signs(source)
            upper = (most if signs[0] > 0.0 else not most) if len(signs) == 1 else other
            return source.with_factor(source.factor.extremes(end)[upper])

        yield scenario.model_copy(update={"sources": tuple(map(settled, scenario.sources))})


def _most_gain(materials: CellTypes, face: int, everywhere: bool) -> float:
    """The largest factor of area over volume of cells at a face of the box, or everywhere; see `Axis.gain_factors`."""
    factors = materials.grid.axes[face // 2].gain_factors[:, face % 2]
    return float(factors.max() if everywhere else factors[-(face % 2)])


def _moments(scenario: Scenario, densities: list[TimeFunction]) -> Array:
    """Times in s between which the heat of all sources rises or falls; at least 64 intervals, at most 4,096."""
    end = scenario.time.end
    functions = [*densities, *(source.factor for source in scenario.sources)]
    nodes = [function.nodes(end) for function in functions if not function.constant]
    times = np.unique(np.concatenate((np.linspace(0.0, end, _PARTS + 1), scenario.switching_times, *nodes)))
    return times[np.unique(np.linspace(0, len(times) - 1, _MOST_PARTS + 1).astype(np.intp))]


def _largest_rise(changes: Array) -> float:
    """The largest sum of successive changes, at least 0."""
    sums = np.concatenate(([0.0], np.cumsum(changes)))
    return float((sums - np.minimum.accumulate(sums)).max())


def _change(materials: list[Material], start: float, direction: float, energy: float) -> float:
    """The temperature change in K by an energy in J/m³ at the smallest heat capacity; infinite without a bound.

    Where an expression is not positive, the change counts as unbounded.
    """
    steps = np.concatenate(([0.0], np.geomspace(1e-3, _LARGEST_RISE, 4001)))
    T = np.maximum(start + direction * steps, 0.0)
    capacity = np.full(len(T), inf)
    for material in materials:
        values = material.values(material.specific_heat, T)
        capacity = np.minimum(capacity, material.density * np.where(values > 0.0, values, 0.0))
    capacity[np.argmin(capacity > 0.0) if not (capacity > 0.0).all() else len(T) :] = 0.0
    taken = np.concatenate(([0.0], np.cumsum(0.5 * (capacity[1:] + capacity[:-1]) * np.diff(steps))))
    if energy >= taken[-1]:
        return inf
    return float(steps[min(int(np.searchsorted(taken, energy)), len(steps) - 1)])
