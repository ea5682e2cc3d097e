"""What drives a body in time, and how far a step of a method with a tolerance may go before it misses something of it.

Both ends of a step know values and slopes, and between them rows follow cubics. So a step may be as long as the cubic
through both ends follows what drives the body:

    temperatures, emissivities         the function f(t) itself
    film coefficients and contacts     f/(1 + R·f): in series with the resistance R of the half cells beside them
    sources, given fluxes, beams       the heat ∫ f dt that they give, because steps average them

The heat counts as the rise in K of the cell that it warms most, kept in that cell. So a pulse that warms no cell by the
tolerance costs nothing, a pulse that matters is followed, and what is smooth costs nothing either: the cubic misses it
by a term of fourth order, h⁴/384·d⁴f/dt⁴. The functions are looked at where they change (``TimeFunction.nodes``), so
nothing is too narrow to be seen.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_heat import extreme_densities
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import NOTHING as NO_FLUX
from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.drives.half_cells import half_cells, half_cells_of_gap, ratios
from heatsim.physics.drives.moving_beams import MovingBeam, beam_rate, moving_beams
from heatsim.physics.operator.boundary_faces import at_box
from heatsim.physics.sources.sources import Sources
from heatsim.physics.time.stage_times import MOMENT
from heatsim.physics.time.tolerance import Tolerance
from heatsim.scenario import Flux, Formula, Source, Table, Temperature, TimeFunction, radiates
from heatsim.scenario.values.averages import mean_of_product
from heatsim.scenario.values.course import refined
from heatsim.scenario.values.quantities import SMALLEST
from heatsim.scenario.values.timefunction import NEAR_JUMP

Array = NDArray[np.float64]

# Of the tolerance, that the cubic may miss of what drives the body.
PART = 0.5
# A step looks at its driving functions where they change, and at this number of even parts of it.
_PARTS = 8
# Slopes at an end are found from three values, this part of the step apart.
_APART = 1e-3
# A step is shortened to between these parts, from the order 4 of the cubic; where a function does something within a
# small part of the step, a bisection finds how far the step can go before it.
_LEAST, _MOST, _SUDDEN, _BISECTIONS = 0.1, 0.8, 16.0, 4
# Shortest step in parts of the end: of the distance at which both sides of a jump are looked at.
_SHORTEST = 10.0 * NEAR_JUMP
_BETWEEN = 4  # parts of the time between two nodes, in which a value rises or falls


class Driven(Protocol):
    """A problem of the whole grid, such as :class:`heatsim.physics.problem.HeatProblem`."""

    @property
    def boundary(self) -> Boundary:
        """The conditions on its surfaces."""
        ...

    @property
    def sources(self) -> Sources:
        """The sources in it and on its faces."""
        ...


@dataclass(frozen=True)
class Drive:
    """One thing that drives the body.

    Attributes:
        keys: where the scenario has the functions.
        functions: their product is the driving function f(t).
        kelvin: K for one unit of f, or K/s where steps average f; 1/(largest f) where ``relative``.
        averaged: whether steps average f: then ∫ f dt counts.
        relative: whether f is a film coefficient or an emissivity, of which a part counts and no K.
        during: the start and end in s between which it acts.
        end: of the run in s.
        of_types: ``kelvin`` of each cell type; None if it is the same for all.
        ratios: of films and contacts, R·(largest f) for different R of the half cells beside them; shape (n,).
    """

    keys: tuple[str, ...]
    functions: tuple[TimeFunction, ...]
    kelvin: float
    averaged: bool
    during: tuple[float, float]
    end: float
    relative: bool = False
    of_types: Array | None = field(default=None, compare=False)
    ratios: Array = field(default_factory=lambda: np.zeros(1), compare=False)

    @property
    def of_temperature(self) -> bool:
        """Whether f is a temperature."""
        return not self.averaged and not self.relative

    @cached_property
    def span(self) -> float:
        """The range of f between 0 and the end, or more."""
        largest = [max(map(abs, function.extremes(self.end))) for function in self.functions]
        if len(largest) > 1:
            return 2.0 * float(np.prod(largest))
        low, high = self.functions[0].extremes(self.end)
        return high - low

    def change(self, edges: Array) -> Array:
        """By how many K, or which part where ``relative``, it changes between neighbouring times in s.

        A change of heat counts with the whole time between them.
        """
        near = NEAR_JUMP * self.end
        changes = np.abs(self._felt(edges[1:] - near) - self._felt(edges[:-1] + near)).max(axis=0)
        return np.asarray(changes * (np.diff(edges) if self.averaged else 1.0))

    def straight(self, low: float, high: float, tolerance: Tolerance) -> float:
        """By how much a straight line may differ from a function of it that lies between ``low`` and ``high``."""
        if self.of_temperature:
            return PART * tolerance.of_run / self.kelvin
        # Behind half cells a film counts most where it is weakest.
        weakest, strongest = (
            (1.0 + self.ratios.max() * self.kelvin * np.array([low, high])) if self.relative else (1, 1)
        )
        return float(PART * tolerance.fraction * (high - low) * weakest / strongest)

    def negligible(self, times: Array, allowed: float) -> NDArray[np.bool_]:
        """Which of its jumps and kinks at ``times`` (s, ascending) are so close to the next that they cannot matter.

        Whatever f does between two of them gives less than ``allowed`` K. Only heat that steps average is negligible.
        """
        if not self.averaged:
            return np.zeros(len(times), dtype=bool)
        gaps = np.diff(np.concatenate(([0.0], times, [self.end])))
        return np.minimum(gaps[:-1], gaps[1:]) * self.span * self.kelvin <= allowed

    def lags(self, times: Array) -> Array:
        """By how many K its heat at jumps and kinks (s, ascending), a mean over the moment before, can mislead a step.

        The step is as long as the time since the jump or kink before.
        """
        if not self.averaged:
            return np.zeros(len(times))
        changes = self._product(times - NEAR_JUMP * self.end) - self._product(times - MOMENT * self.end)
        return self.kelvin * np.abs(changes) * np.diff(times, prepend=0.0)

    @property
    def _corners_alone(self) -> bool:
        """Whether it is a table or set in the run: between its corners a cubic, or of ∫ f dt a parabola, is exact."""
        return len(self.functions) == 1 and all(isinstance(of, Table) or not of.foreseen for of in self.functions)

    def watched(self, allowed: float) -> bool:
        """Whether steps can miss anything of it."""
        # Of a film that changes evenly a cubic misses (f/(1 + R·f))⁗/384.
        if not self._corners_alone or (self.ratios**3 * (1.0 + self.ratios) / 16.0).max() > allowed:
            return True
        times = self.functions[0].jumps(self.end)
        return times is not None and bool(self.negligible(times, allowed).any())

    def longest(self, time: float, h: float, allowed: float) -> float:
        """The longest step from ``time`` (s), not above ``h`` s, that misses at most ``allowed`` K of it."""
        too_long, shortest = h, _SHORTEST * self.end
        missed = self._missed(time, h) / allowed
        if missed <= 1.0:
            return h
        sudden = False
        while missed > 1.0 and h > shortest:
            too_long, sudden = h, missed > _SUDDEN
            h = max(h * min(_MOST, max(_LEAST, _MOST * missed**-0.25)), shortest)
            missed = self._missed(time, h) / allowed
        for _ in range(_BISECTIONS if sudden else 0):
            middle = 0.5 * (h + too_long)
            if self._missed(time, middle) <= allowed:
                h = middle
            else:
                too_long = middle
        return h

    def bent(self, time: float, h: float) -> Array:
        """By how many K the heat of a step differs from h times the mean of its values at both ends, in cell types."""
        if not self.averaged:
            return np.zeros(1)
        heat = self._heats(np.array([time, time + h]))
        apart = NEAR_JUMP * self.end
        ends = self._product(np.array([time + apart, time + h - apart]))
        of_types = self.kelvin if self.of_types is None else self.of_types
        return np.asarray(of_types * np.abs(heat - h * ends.mean()))

    def _missed(self, time: float, h: float) -> float:
        """By how many K the cubic through both ends of a step misses the course of the function."""
        start, stop = max(time, self.during[0]), min(time + h, self.during[1])
        if start >= stop:
            return 0.0
        times = self._places(time, h)
        theta = (times - time) / h
        if self.averaged:
            course = self.kelvin * np.concatenate(([0.0], np.cumsum(self._heats(times))))[np.newaxis]
            apart = NEAR_JUMP * self.end
            slopes = self._felt(np.array([time + apart, time + h - apart]))
        else:
            course = self._felt(times)
            apart = _APART * h
            near = self._felt(time + np.array([0.0, apart, 2.0 * apart, h, h - apart, h - 2.0 * apart]))
            slopes = near.reshape(-1, 2, 3) @ [-3.0, 4.0, -1.0] * [1.0, -1.0] / (2.0 * apart)
        rest = 1.0 - theta
        weight = theta * theta * (3.0 - 2.0 * theta)
        cubic = course[:, :1] * (1.0 - weight) + course[:, -1:] * weight
        cubic += h * theta * rest * (rest * slopes[:, :1] - theta * slopes[:, 1:])
        return float(np.abs(course - cubic).max())

    def _places(self, time: float, h: float) -> Array:
        """Times in s at which a step is looked at: even parts, and where the functions change."""
        found = [time + h / _PARTS * np.arange(_PARTS + 1)]
        for function in self.functions:
            nodes = function.nodes(self.end)
            found.append(nodes[slice(*np.searchsorted(nodes, [time, time + h]))])
        return np.unique(np.clip(np.concatenate(found), time, time + h))

    def _heats(self, times: Array) -> Array:
        """∫ f dt between neighbouring times."""
        starts, stops = (np.clip(some, *self.during) for some in (times[:-1], times[1:]))
        lengths = stops - starts
        heats, some = np.zeros(len(lengths)), lengths > 0.0
        heats[some] = mean_of_product(self.functions, starts[some], lengths[some]) * lengths[some]
        return heats

    def _felt(self, times: Array) -> Array:
        """What cells behind it feel of f at times in s: in K, in K/s or as a part; shape (ratios, times)."""
        parts = self.kelvin * self._product(times)
        ratios = self.ratios[:, np.newaxis]
        return np.asarray((1.0 + ratios) * parts / (1.0 + ratios * parts))

    def _product(self, times: Array) -> Array:
        """The values of f at times in s."""
        inside = (times >= self.during[0]) & (times <= self.during[1])
        return np.asarray(np.prod([function.at(times) for function in self.functions], axis=0) * inside)


@dataclass(frozen=True)
class Drives:
    """All that drives a body.

    Attributes:
        drives: those that change in time.
        beams: those that move.
    """

    drives: tuple[Drive, ...]
    beams: tuple[MovingBeam, ...]

    @classmethod
    def of(cls, problem: Driven) -> "Drives":
        """Those of the conditions and sources of a problem."""
        warming = _warming(problem.boundary, problem.sources.materials)
        found = [
            *_of_conditions(problem.boundary, problem.sources.materials, warming),
            *_of_nodes(problem.boundary),
            *_of_sources(problem.sources),
        ]
        return cls(tuple(drive for drive in found if drive.functions), tuple(moving_beams(problem.sources)))

    def watched(self, tolerance: Tolerance) -> "Drives":
        """Those of which steps can miss anything, those with the same functions as one.

        ``tolerance`` is that of the first step.
        """
        watched = (drive for drive in self.drives if drive.watched(_allowed(drive, tolerance)))
        return replace(self, drives=tuple(_merged(watched)))

    def bent(self, time: float, h: float) -> float:
        """By how many K at most the heat of a step of ``h`` s from ``time`` (s) bends, as rates at both ends see it."""
        return float(np.max(sum(drive.bent(time, h) for drive in self.drives), initial=0.0))

    def longest(self, time: float, h: float, tolerance: Tolerance) -> float:
        """The longest step in s from ``time`` (s), not above ``h`` s."""
        allowed = PART * tolerance.of_run
        for drive in self.drives:
            h = drive.longest(time, h, _allowed(drive, tolerance))
        for beam in self.beams:
            h = beam.longest(time, h, allowed)
        return h


NOTHING = Drives((), ())


def _allowed(drive: Drive, tolerance: Tolerance) -> float:
    """What a step may miss of a drive: in K, or as a part where it is relative."""
    return PART * (tolerance.fraction if drive.relative else tolerance.of_run)


def changes(functions: Iterable[TimeFunction], end: float) -> Array:
    """The times in s at which functions have changed by a whole number of their ranges since 0, ascending.

    An oscillation passes one in each half period.
    """
    found = [np.zeros(0)]
    for function in functions:
        if isinstance(function, Formula) and not function.constant:
            nodes = refined(function.nodes(end), _BETWEEN)
            values = function.at(nodes)
            span = float(np.ptp(values))
            grown = np.concatenate(([0.0], np.cumsum(np.abs(np.diff(values))))) / (span if span > 0.0 else 1.0)
            growing = np.concatenate(([True], np.diff(grown) > 0.0))
            found.append(np.interp(np.arange(1.0, np.floor(grown[-1]) + 1.0), grown[growing], nodes[growing]))
    return np.unique(np.concatenate(found))


def _merged(drives: Iterable[Drive]) -> Iterator[Drive]:
    """One drive for all with the same functions: steps follow the largest, and their heats add up in cells."""
    alike = dict[tuple[tuple[TimeFunction, ...], tuple[float, float], bool, bool], list[Drive]]()
    for drive in drives:
        alike.setdefault((drive.functions, drive.during, drive.averaged, drive.relative), []).append(drive)
    for some in alike.values():
        largest = max(drive.kelvin for drive in some)
        of_types = np.asarray(sum(drive.kelvin if drive.of_types is None else drive.of_types for drive in some))
        together = np.unique(np.concatenate([drive.ratios for drive in some]))
        yield replace(some[0], kelvin=largest, of_types=of_types, ratios=together) if len(some) > 1 else some[0]


def _warming(boundary: Boundary, materials: CellTypes) -> Array:
    """By how many K/s a flux of 1 W/m² warms cells of each type, or more; shape (conditions, types)."""
    grid, capacity = materials.grid, _capacities(materials)
    found = np.zeros((len(boundary.conditions), len(capacity)))
    fluxes = [time_functions(condition).flux for condition in boundary.conditions]
    if any(flux != NO_FLUX for flux in fluxes):
        for side in range(6):
            faces, of_side = at_box(boundary, materials.grid, side), np.zeros_like(found)
            np.maximum.at(of_side, (faces.conditions, faces.types(materials)), faces.fractions)
            found += of_side / grid.mean_spacing[side // 2] * faces.gain_factors
        found /= capacity
        void = [boundary.is_towards_void(number) for number in range(len(found))]
        # Surfaces towards a room may share the flux of those towards all void: their row stands for both.
        pairs = enumerate(zip(boundary.owners, boundary.rooms, strict=True))
        twice = [room != boundary.rooms[owner] and fluxes[n] is fluxes[owner] for n, (owner, room) in pairs]
        found[void] = 1.0 / (capacity.min() * min(axis.spacing / float(axis.gain_factors.max()) for axis in grid.axes))
        found[twice] = 0.0
    return found


def _capacities(materials: CellTypes) -> Array:
    """Heat capacities of the cell types in J/(m³ K); infinite for void."""
    return np.where(materials.heat_capacity > 0.0, materials.heat_capacity, inf)


def _of_conditions(boundary: Boundary, materials: CellTypes, warming: Array) -> Iterator[Drive]:
    end, seen = boundary.scenario.time.end, set[int]()
    fluxes = [time_functions(condition).flux for condition in boundary.conditions]
    films, halves = [time_functions(of).film for of in boundary.conditions], half_cells(boundary, materials)
    for key, condition, flux in zip(boundary.keys, boundary.conditions, fluxes, strict=True):
        functions = time_functions(condition)
        for name, function in (("coefficient", functions.film), ("emissivity", functions.emissivity)):
            if not function.constant and id(function) not in seen:
                behind = [R for of, pair in zip(films, halves, strict=True) if of is function for R in pair]
                yield from _in_series(f"{key}.{name}", function, 1.0, behind, end)
        # Surroundings are the ambient if the scenario has none; without radiation they do nothing.
        names = ("value" if isinstance(condition, Temperature) else "ambient", "surroundings")
        for name, function in zip(names, (functions.ambient, functions.surroundings), strict=True):
            if not function.constant and id(function) not in seen and (name != "surroundings" or radiates(condition)):
                yield Drive((f"{key}.{name}",), (function,), 1.0, False, (0.0, end), end)
        if id(flux) not in seen:
            name = "value" if isinstance(condition, Flux) else "flux"
            of_types = warming[[of is flux for of in fluxes]].sum(axis=0)
            yield replace(_drive(key, [(name, flux)], float(of_types.max()), (0.0, end), end), of_types=of_types)
        # Faces share the condition `default`.
        seen |= {id(function) for function in functions}
    for row, law in enumerate(boundary.gaps, boundary.first_gap):
        behind = half_cells_of_gap(materials, row)
        for course in law.courses:
            yield from _in_series(f"contacts.{law.number}.conductance", course, law.width, behind, end)


def _in_series(key: str, function: TimeFunction, width: float, behind: list[float], end: float) -> Iterator[Drive]:
    """A film, an emissivity or a contact beside half cells; nothing if it is always 0."""
    if (largest := max(map(abs, function.extremes(end)))) > SMALLEST:
        felt = ratios(largest / width, behind)
        yield Drive((key,), (function,), 1.0 / largest, False, (0.0, end), end, relative=True, ratios=felt)


def _of_nodes(boundary: Boundary) -> Iterator[Drive]:
    """Given temperatures, and powers; a node without a heat capacity passes its power on, to the cells at once."""
    end = boundary.scenario.time.end
    for place, channel in enumerate(boundary.scenario.channels):
        if channel.before is None and not channel.inlet.constant:
            yield Drive((f"channels.{place}.inlet",), (channel.inlet,), 1.0, False, (0.0, end), end)
    for place, node in enumerate(boundary.scenario.nodes):
        for name, function in node.functions_in_time:
            if function is not node.power and not function.constant:
                yield Drive((f"nodes.{place}.{name}",), (function,), 1.0, False, (0.0, end), end)
        if not node.power.constant:
            key = f"nodes.{place}.power"
            if node.heat_capacity > 0.0:
                yield _drive(f"nodes.{place}", [("power", node.power)], 1.0 / node.heat_capacity, (0.0, end), end)
            else:
                largest = max(map(abs, node.power.extremes(end)))
                yield Drive((key,), (node.power,), 1.0 / largest, False, (0.0, end), end, relative=True)


def _of_sources(sources: Sources) -> Iterator[Drive]:
    materials, heated, end = sources.materials, sources.heated, sources.scenario.time.end
    factors = [
        np.abs(heated.per_kelvin()[heated.numbers == number]).max(initial=0.0) for number in range(len(heated.amounts))
    ]
    for place, source in enumerate(sources.scenario.sources):
        during, key = source.during or (0.0, end), f"sources.{place}"
        if source.even:
            rates = sources.density_of(sources.even.index(source)) / _capacities(materials)
            found = _drive(key, [("scale", source.factor)], float(np.abs(rates).max()), during, end)
            yield replace(found, of_types=np.abs(rates))
        elif source.beam is not None:
            during = max(during[0], source.beam.start), during[1]
            yield _drive(key, [("scale", source.factor)], beam_rate(sources, source.beam), during, end)
        for factor, amount in zip(factors, heated.amounts, strict=True):
            if amount.source == place:
                largest = 1.0 if amount.table < 0 else float(np.abs(heated.tables[amount.table].values).max())
                named = [("power_density", amount.function), ("scale", source.factor)]
                yield _drive(key, named, float(factor) * largest, during, end)


def heating(problem: Driven, until: float) -> float:
    """How far the heats of cells lie apart until a time in s, in K/s, or more; cells that nothing heats have 0."""
    sources = problem.sources
    scenario, materials, heated = sources.scenario, sources.materials, sources.heated
    capacity = _capacities(materials)

    def scale(source: Source) -> tuple[float, float]:
        off = source.during is not None and source.during[0] >= until
        return (0.0, 0.0) if off else _extremes(source.factor, scenario.time.end, until)

    low, high = np.zeros(len(capacity)), np.zeros(len(capacity))
    for number, source in enumerate(sources.even):
        rates = np.multiply.outer(scale(source), sources.density_of(number) / capacity)
        low, high = low + np.minimum(rates.min(axis=0), 0.0), high + np.maximum(rates.max(axis=0), 0.0)
    apart = float(high.max() - low.min())
    if len(heated) and heated.amounts:
        pairs = [(each.function, scenario.sources[each.source]) for each in heated.amounts]
        ends = [np.multiply.outer(_extremes(of, scenario.time.end, until), scale(source)) for of, source in pairs]
        extremes = [extreme_densities(heated, np.array([sign(of) for of in ends])) for sign in (np.min, np.max)]
        apart += float(np.ptp(extremes) / heated.heat_capacity.min())
    fluxes = [_extremes(time_functions(of).flux, scenario.time.end, until) for of in problem.boundary.conditions]
    warming = _warming(problem.boundary, materials).max(axis=1)
    apart += float(np.ptp([0.0, *np.ravel(np.array(fluxes) * warming[:, None])]))
    return apart + sum(beam_rate(sources, each.beam) * max(map(abs, scale(each.source))) for each in sources.beams)


def _extremes(function: TimeFunction, end: float, until: float) -> tuple[float, float]:
    """The lowest and highest value up to a time in s; ``end``: of the run in s."""
    if until >= end or function.constant or not function.foreseen:
        return function.extremes(end)
    nodes = function.nodes(end)
    values = function.at(np.append(nodes[nodes < until], until))
    return float(values.min()), float(values.max())


def _drive(
    key: str, named: list[tuple[str, TimeFunction]], kelvin: float, during: tuple[float, float], end: float
) -> Drive:
    """The drive of heat; constant factors count in ``kelvin``."""
    kelvin *= float(np.prod([float(of.at(np.zeros(1))[0]) for _, of in named if of.constant]))
    varying = [(name, function) for name, function in named if not function.constant]
    keys, functions = tuple(f"{key}.{name}" for name, _ in varying), tuple(function for _, function in varying)
    return Drive(keys, functions, abs(kelvin), True, during, end)
