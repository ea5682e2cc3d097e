"""Surfaces whose film coefficient or emissivity depends on their own temperature, as tables of their heat flux.

For such a condition the heat flux q into the body is a table in the temperature T_s of the surface, with straight lines
between its nodes. The table defines the condition for all kernels. The balance of heat at the surface,

    q(T_s) + beam = K·(T_s − T)

is solved exactly: bisection finds the segment with the solution, on which the balance is linear. There is one solution
as long as q rises more slowly with T_s than K, on every segment; operator/steep_laws.py refuses other laws. Nodes lie
around the ambient temperature, 2 % of their distance from it apart but at most 2 K up to 1,500 K: the heat flux of
natural convection has a relative error of 2e-5. Where a law bends within less, at temperatures that can occur, nodes
are added (law_nodes.py).

In the rows of conditions a law has these numbers, and two tables behind all conditions:

    film: number of nodes       flux, emission: where its heat fluxes and its nodes begin, counted from its first number
    ambient: T∞                 free: LAW
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.condition_terms import NOTHING
from heatsim.physics.conditions.law_nodes import EVERYWHERE, Followed, make_nodes, with_bends
from heatsim.physics.conditions.surface_balance import (
    AMBIENT,
    EMISSION,
    FILM,
    FLUX,
    FREE,
    LAW,
    NEWTON_STEPS,
    NUMBERS,
    STEFAN_BOLTZMANN,
    surface_rise,
)
from heatsim.physics.time.stage_times import StageTimes
from heatsim.scenario import TimeFunction
from heatsim.scenario.messages import show
from heatsim.scenario.values.quantities import COEFFICIENT, EMISSIVITY
from heatsim.scenario.values.surfacefunction import AMBIENT as AMBIENT_NAME
from heatsim.scenario.values.surfacefunction import SurfaceFormula, SurfaceFunction

Array = NDArray[np.float64]

# Ambient temperatures at which tables are looked at: for slopes that stability needs, and for others.
_MANY, _FEW, _AT_ONCE = 1024, 64, 256
# Of what a law may change by. Above it roundings in float32 count, and a small change of the cell moves the surface a
# hundred times as far.
STEEPEST = 0.99
_ROUNDING = 1e-13  # of a heat flux, relative


class _LawValues(NamedTuple):
    """Values of the functions of a law, each of shape (n, 1)."""

    film: Array
    emissivity: Array
    ambient: Array
    surroundings: Array


@dataclass(frozen=True, eq=False)
class SurfaceLaw:
    """A condition whose heat flux depends on the temperature of the surface.

    Attributes:
        number: of the condition.
        film, emissivity: numbers, functions of time or expressions in the temperature.
        ambient, surroundings: in K; without a film coefficient both are the surroundings.
        flux: beside both, in W/m²; it changes no slope.
    """

    number: int
    film: TimeFunction
    emissivity: TimeFunction
    ambient: TimeFunction
    surroundings: TimeFunction
    flux: TimeFunction = NOTHING

    @property
    def constant(self) -> bool:
        """Whether what depends on the temperature of the surface does not change in time."""
        return all(of.constant for of in (self.film, self.emissivity, self.ambient, self.surroundings))

    def fluxes(self, nodes: Array, times: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Heat fluxes in W/m² at the nodes at times in s, shape (times, nodes); and when they are physical.

        Where a value is not possible any more, it keeps the last possible one from the ambient temperature outwards.
        """
        return self._fluxes(nodes, _LawValues(*(of.at(times)[:, None] for of in self._functions)))

    @property
    def _functions(self) -> tuple[TimeFunction, ...]:
        return self.film, self.emissivity, self.ambient, self.surroundings

    def _fluxes(self, nodes: Array, given: "_LawValues") -> tuple[Array, NDArray[np.bool_]]:
        """:meth:`fluxes` from values; those of functions of the temperature do not count."""
        T = np.maximum(given.ambient + nodes, 0.0)
        middle = int(np.searchsorted(nodes, 0.0))
        film, possible = _values(self.film, given.film, T, middle, np.inf)
        emissivity, also_possible = _values(self.emissivity, given.emissivity, T, middle, 1.0)
        with np.errstate(invalid="ignore", over="ignore"):  # ∞·0: the caller reports it
            flux = film * (given.ambient - T) + emissivity * STEFAN_BOLTZMANN * (given.surroundings**4 - T**4)
        return flux, possible & also_possible & np.isfinite(flux).all(axis=1)

    def slopes(self, nodes: Array, some: "Iterator[_LawValues]") -> Iterator[tuple[Array, Array]]:
        """Temperatures in K and dq/dT_s in W/(m² K) with some values after others.

        Both have the shape (values, segments): the lower ends of segments, and the slopes, 0 where they are not finite
        or only rounding.
        """
        for given in some:
            fluxes, _ = self._fluxes(nodes, given)
            with np.errstate(invalid="ignore"):  # what is not finite is refused elsewhere
                changes = np.diff(fluxes, axis=1)
                known = np.isfinite(changes) & (abs(changes) > _ROUNDING * abs(fluxes[:, 1:]))
            yield given.ambient + nodes[:-1], np.where(known, changes, 0.0) / np.diff(nodes)

    def _between(self, end: float, count: int) -> "Iterator[_LawValues]":
        """Values that occur between 0 and ``end`` (s), or lie between such that do.

        q is linear in a film coefficient, an emissivity and T⁴ of surroundings that change in time, so their extremes
        are enough. The ambient temperature has ``count`` values in its range, whenever it passes them.
        """
        extremes = [of.extremes(end) if not isinstance(of, SurfaceFunction) else (0.0, 0.0) for of in self._functions]
        films, emissivities, (low, high), surroundings = extremes
        every = np.linspace(low, high, count if high > low else 1)[:, None]
        around = [None] if self.surroundings is self.ambient else sorted({*surroundings})
        for film, emissivity, other in product({*films}, {*emissivities}, around):
            for ambient in np.array_split(every, ceil(len(every) / _AT_ONCE)):
                others = ambient if other is None else np.full_like(ambient, other)
                yield _LawValues(np.full_like(ambient, film), np.full_like(ambient, emissivity), ambient, others)

    def largest_slope(self, nodes: Array, end: float, hottest: float) -> float:
        """The largest −dq/dT_s between 0 and ``end`` (s) in W/(m² K), on surfaces up to ``hottest`` K."""
        pairs = self.slopes(nodes, self._between(end, _MANY))
        return max(float(np.max(-slopes, where=starts < hottest, initial=0.0)) for starts, slopes in pairs)

    def sampled(self, nodes: Array, end: float, count: int) -> "Iterator[tuple[Array, Array]]":
        """Q in W/m² at the nodes with some values after others, and their ambient temperatures in K, shape (values, 1).

        The ambient temperature has ``count`` values where it changes.
        """
        for given in self._between(end, count):
            yield given.ambient, self._fluxes(nodes, given)[0]

    def steepest(self, nodes: Array, end: float, low: float, high: float) -> "Rise":
        """Where q rises fastest with T_s between 0 and ``end`` (s), on surfaces from ``low`` to ``high`` K."""
        found, lengths = Rise(0.0, low, high), np.diff(nodes)
        for starts, slopes in self.slopes(nodes, self._between(end, _FEW)):
            reached = np.where((starts < high) & (starts + lengths > low), slopes, 0.0)
            row, segment = np.unravel_index(np.argmax(reached), reached.shape)
            start = float(starts[row, segment])
            found = max(found, Rise(float(reached[row, segment]), start, start + float(lengths[segment])))
        return found

    def bends(self, end: float, low: float, high: float, others: Array) -> Array:
        """Distances in K from the ambient temperature between which q is smooth, on surfaces from ``low`` to ``high``.

        That is at the extremes of the ambient temperature between 0 and ``end`` (s); for expressions with Tamb at
        ``others``, those of several laws, so that each expression is looked at a few times.
        """
        found = [np.zeros(1)]
        for function in (self.film, self.emissivity):
            if isinstance(function, SurfaceFunction):
                own = np.unique(self.ambient.extremes(end)).tolist()
                if isinstance(function, SurfaceFormula) and AMBIENT_NAME in function.expression.used:
                    own = others.tolist()
                found += [function.temperatures(low, high, np.array([T])) - T for T in own]
        return np.concatenate(found)

    def ends(self, nodes: Array, end: float) -> list[tuple[str, float, float]]:
        """For each key the temperatures in K of the surface between which its values are known and possible.

        They are so at all times between 0 and ``end`` (s).
        """
        found = []
        for key, function, most in (("coefficient", self.film, np.inf), ("emissivity", self.emissivity, 1.0)):
            if not isinstance(function, SurfaceFunction):
                continue
            low, high = function.ends
            for given in self._between(end, _FEW) if isinstance(function, SurfaceFormula) else ():
                T = np.maximum(given.ambient + nodes, 0.0)
                values = function.of(T, np.broadcast_to(given.ambient, T.shape))
                wrong = ~((values >= 0.0) & (values <= most))
                high = float(np.min(T[:, :-1], where=wrong[:, 1:] & (nodes[1:] > 0.0), initial=high))
                low = float(np.max(T[:, 1:], where=wrong[:, :-1] & (nodes[:-1] < 0.0), initial=low))
            if low > 0.0 or high < np.inf:
                found.append((key, low, high))
        return found

    def fault(self, time: float) -> tuple[str, str] | None:
        """The key and the message of an expression whose value at T = Tamb is not allowed at a time in s; else None.

        The key begins with a dot, because it follows the key of the condition.
        """
        ambient = float(self.ambient.at(np.array([time]))[0])
        for key, function, quantity in (
            (".coefficient", self.film, COEFFICIENT),
            (".emissivity", self.emissivity, EMISSIVITY),
        ):
            if isinstance(function, SurfaceFormula):
                value = float(function.of(ambient, ambient))
                outside = quantity.range_fault(value)
                if outside is not None:
                    got = f"got {show(function.expression.text)}, which is {value:.6g} at T = Tamb = {ambient:.6g} K"
                    return key, f"{got}; {outside}"
        return None


def _values(
    function: TimeFunction, given: Array, T: Array, middle: int, most: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Values at temperatures T in K, and when that at the ambient temperature, T[:, middle], is possible.

    ``given`` are the values of a function of time.
    """
    if not isinstance(function, SurfaceFunction):
        values = np.broadcast_to(given, T.shape)
        return values, (values[:, 0] >= 0.0) & (values[:, 0] <= most)
    values = function.of(T, np.broadcast_to(T[:, middle : middle + 1], T.shape))
    possible = (values >= 0.0) & (values <= most)
    nodes = np.arange(T.shape[1])
    above = np.maximum.accumulate(np.where(possible, nodes, 0)[:, middle:], axis=1)
    below = np.minimum.accumulate(np.where(possible, nodes, T.shape[1] - 1)[:, middle::-1], axis=1)[:, ::-1]
    last_possible = np.concatenate((below[:, :-1], above), axis=1)
    return np.take_along_axis(values, last_possible, axis=1), possible[:, middle]


class Rise(NamedTuple):
    """A slope dq/dT_s in W/(m² K), and the temperatures in K of the surface at the ends of its segment."""

    slope: float
    low: float
    high: float


class LawTables:
    """The tables of all laws of a scenario.

    Attributes:
        laws: the conditions.
        nodes: distances of the nodes from the ambient temperature in K, ascending; those of all laws together.
    """

    def __init__(self, laws: Sequence[SurfaceLaw], end: float, follow: Followed) -> None:
        self.laws = tuple(laws)
        self.nodes = make_nodes(max((law.ambient.extremes(end)[1] for law in laws), default=0.0))
        if laws and follow != EVERYWHERE:
            self.nodes = with_bends(self.nodes, self.laws, end, follow)
        self._constant: dict[int, tuple[Array, NDArray[np.bool_]]] = {}

    def append_to(self, rows: Array, times: Array, means: StageTimes | None, physical: NDArray[np.bool_]) -> Array:
        """Rows of conditions with the tables at times in s behind them; see :func:`append_tables`.

        ``means`` as in :func:`condition_numbers.numbers_of`. ``physical``, shape (times, conditions), becomes False
        where a law is not.
        """
        fluxes = []
        for law in self.laws:
            flux, possible = self._of_constant(law) if law.constant else law.fluxes(self.nodes, times)
            if law.flux != NOTHING:
                beside = law.flux.at(times) if means is None else means.means(law.flux.mean)
                flux, possible = flux + beside[:, None], possible & np.isfinite(beside)
            physical[:, law.number] &= possible
            fluxes.append(flux)
        return append_tables(rows, [law.number for law in self.laws], self.nodes, fluxes)

    def _of_constant(self, law: SurfaceLaw) -> tuple[Array, NDArray[np.bool_]]:
        if law.number not in self._constant:
            self._constant[law.number] = law.fluxes(self.nodes, np.zeros(1))
        return self._constant[law.number]


def append_tables(rows: Array, numbers: Sequence[int], nodes: Array, fluxes: Sequence[Array]) -> Array:
    """Rows of conditions with the tables of laws behind them.

    Args:
        rows: shape (n, conditions, 6).
        numbers: the conditions that are laws.
        nodes: distances of the nodes from the ambient temperature in K, ascending.
        fluxes: for each law the heat fluxes at the nodes in W/m², shape (n or 1, nodes).
    """
    if not numbers:
        return rows
    found, (at_nodes, *places) = rows_with_tables(rows, [nodes[None], *fluxes])
    for number, place in zip(numbers, places, strict=True):
        row = found[:, number]
        row[:, FILM], row[:, FREE] = len(nodes), LAW
        row[:, FLUX], row[:, EMISSION] = place - NUMBERS * number, at_nodes - NUMBERS * number
    return found


def rows_with_tables(rows: Array, tables: Sequence[Array]) -> tuple[Array, list[int]]:
    """Rows of conditions with tables behind them, each from the start of a row on; and where these begin.

    Args:
        rows: shape (n, rows, 6).
        tables: each of shape (n or 1, its numbers).
    """
    first = np.cumsum([rows.shape[1], *(ceil(table.shape[1] / NUMBERS) for table in tables)])
    found = np.zeros((len(rows), int(first[-1]), NUMBERS))
    found[:, : rows.shape[1]] = rows
    flat, places = found.reshape(len(rows), -1), (NUMBERS * first[:-1]).tolist()
    for place, table in zip(places, tables, strict=True):
        flat[:, place : place + table.shape[1]] = table
    return found, places


class SurfaceConditions:
    """The conditions of some surfaces at one time; NumPy only.

    Args:
        rows: of all conditions and tables, shape (rows, 6).
        numbers: the condition of each surface, or that of all.
    """

    def __init__(self, rows: Any, numbers: Any) -> None:
        laws = np.flatnonzero(rows[:, FREE] == LAW)
        self._laws = [
            (np.equal(numbers, number), law_of(rows, number))
            for number in laws.tolist()
            if np.any(np.equal(numbers, number))
        ]
        if self._laws:
            rows = rows.copy()
            rows[laws] = np.eye(NUMBERS)[FREE]
        self._columns = np.moveaxis(rows[numbers], -1, 0)

    def rises(self, conductance: Any, reference: Any, T: Any, beam: Any = 0.0) -> Any:
        """T_s − T in K of the surfaces.

        Args:
            conductance: K of the half cells in W/(m² K).
            reference: the temperature in K from which T and the rows' temperatures count.
            T: deviations of the cells in K.
            beam: flux of a beam in W/m².
        """
        found = surface_rise(self._columns, conductance, reference, T, beam)
        for theirs, law in self._laws:
            rise, _ = rise_and_slope(law, conductance, T, beam)
            found = np.where(theirs, rise, found)
        return np.asarray(found)


class LawAtTime(NamedTuple):
    """The table of a law at one time, or the tables of the laws of several cells.

    Attributes:
        ambient: the ambient temperature as a deviation in K: one number, or one for each cell.
        nodes: differences from the ambient temperature in K; shape (nodes,).
        fluxes: heat fluxes at the nodes in W/m²; for several laws one table after the other.
        first: the place of the law's first heat flux in ``fluxes``: one number, or one for each cell.
    """

    ambient: Any
    nodes: Any
    fluxes: Any
    first: Any = 0


def law_of(rows: Any, number: int) -> LawAtTime:
    """The table of a law, from the rows at one time."""
    row, flat = rows[number], rows.reshape(-1)
    first, count = NUMBERS * number, int(row[FILM])
    nodes, fluxes = (flat[first + int(row[place]) :][:count] for place in (EMISSION, FLUX))
    return LawAtTime(row[AMBIENT], nodes, fluxes)


def laws_of(rows: Any, numbers: NDArray[np.int64], which: Any, xp: Any) -> LawAtTime:
    """The tables of several laws, from the rows at one time.

    Args:
        rows: shape (rows, 6), on the host.
        numbers: the conditions.
        which: for each cell the index of its condition in ``numbers``, on the device.
        xp: NumPy or CuPy, the library of the device.
    """
    first = NUMBERS * numbers + rows[numbers, FLUX].astype(np.int64)
    return LawAtTime(
        xp.asarray(rows[numbers, AMBIENT])[which],
        xp.asarray(law_of(rows, int(numbers[0])).nodes),  # the same for all laws
        xp.asarray(rows.reshape(-1)),
        xp.asarray(first)[which],
    )


def rise_and_slope(law: LawAtTime, conductance: Any, T: Any, beam: Any, xp: Any = np) -> tuple[Any, Any]:
    """T_s − T in K, and the decrease of the heat flux with T_s in W/(m² K), with the operations of the kernels.

    Args:
        law: the table of the law, or those of the cells.
        conductance: K of the half cells.
        T: deviations of the cells in K, an array of ``xp``.
        beam: flux of a beam in W/m².
        xp: NumPy or CuPy.
    """
    nodes, fluxes, distance = xp.asarray(law.nodes), xp.asarray(law.fluxes), T - law.ambient
    low, high, tried = 0, len(nodes) - 2, 0
    segment = xp.clip(xp.searchsorted(nodes, distance, side="right") - 1, low, high)
    while True:  # on one segment after the other: mostly few; bisection, as in kernels, takes longer with arrays
        entry = law.first + segment
        start, end, flux = nodes[segment], nodes[segment + 1], fluxes[entry]
        slope = (fluxes[entry + 1] - flux) / (end - start)
        rise = (flux + slope * (distance - start) + beam) / (conductance - slope)
        there = distance + rise
        steep = slope > conductance  # at temperatures that no surface has: there the signs are the opposite ones
        beyond, before = there > end, there < start
        up, down = xp.where(steep, before, beyond) & (segment < high), xp.where(steep, beyond, before) & (segment > low)
        if not bool((up | down).any()):
            return rise, -slope
        tried += 1
        low, high = xp.where(up, segment + 1, low), xp.where(down, segment - 1, high)
        if tried < NEWTON_STEPS:
            found = xp.clip(xp.searchsorted(nodes, there, side="right") - 1, low, high)
        else:
            found = (low + high) // 2
        segment = xp.where(up | down, found, segment)
