"""The course of an expression in one variable: where it jumps, and the panels in which it is smooth.

Each operation that can jump or has a kink (:mod:`heatsim.scenario.values.points`) has an argument g. It does so where g
passes 0, or for floor a whole number. Between the jumps of its inner operations g is smooth. Inner operations come
first, and a branch of ``where`` is looked at only where it is taken. Pieces between the jumps found so far are bisected
until the bounds of g (:mod:`heatsim.scenario.values.enclosures`) contain no level, or show that g rises or falls; then
each level is passed once, and a secant method finds it.

Between all jumps the expression is smooth. These pieces are bisected into panels until the sixth Taylor coefficient
shows that Gauss–Legendre quadrature with three points is exact, and that a panel hides nothing. Nothing is sampled
where bounds can tell. Places that are left at the resolution of the variable may be poles: bounds of a small interval
around them tell.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.bounds import bounds
from heatsim.scenario.values.enclosures import Boxes, has_pole
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.points import Operation, Operations

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
# The operand whose passing of 0, or of whole numbers for floor, makes an operation jump or have a kink.
_JUMPS = {"below": 0, "upto": 0, "equal": 0, "floor": 0, "abs": 0, "atan2": 0, "min": 2}

MOST_PANELS = 2**20
# The error of all integrals together, as a part of ∫|f|; that of values in a panel, as a part of their range.
_INTEGRAL, _VALUES = 1e-7, 1e-6
# Gauss–Legendre with three points: the outer points of a panel, from its middle in halves of its width, the weights,
# and the error as a part of width·(sixth row).
_OUTER, _WEIGHTS, _ERROR = 0.6**0.5, (4.0 / 9.0, 5.0 / 18.0, 5.0 / 18.0), 64.0 / 2800.0
_FEW, _PARTS = 64, 4  # fewer panels are cut into more parts: calls take longer than numbers
_TOUCHES = 1e-7  # part of the range within which rounding may decide on which side of a level an argument is
_NOTHING = 1e-12  # part of the values: smaller changes do not count
_LARGEST = 1e300
# Where too much happens: multiples of the golden ratio, modulo 1, resonate with no periodic function.
_SAMPLES, _GOLDEN = 4096, 0.6180339887498949
_LOOKS = 16  # intervals of a panel in which an extreme may lie


@dataclass(frozen=True, eq=False)
class Course:
    """What an expression in one variable does between two ends.

    Attributes:
        edges: of panels in which it is smooth, ascending from one end to the other.
        jumps: inner edges at which an operation of the expression jumps or has a kink; None if there are too many.
        nodes: places between which it rises or falls, with both sides of each jump: the ends among them.
        poles: places near which it certainly grows without bound.
        low, high: bounds of its values, where they are finite.
        resolved: whether the panels are fine enough everywhere.
    """

    edges: Array
    jumps: Array | None
    nodes: Array
    poles: Array
    low: float
    high: float
    resolved: bool


@lru_cache(maxsize=256)
def course_of(expression: Expression, low: float, high: float) -> Course:
    """The course of an expression in one variable from ``low`` to ``high``."""
    with np.errstate(all="ignore"):
        return _CourseFinder(expression, low, high).found()


@dataclass(frozen=True, eq=False)
class _Panels:
    """What part of an expression does in panels: see :class:`heatsim.scenario.values.enclosures.Enclosure`.

    Attributes:
        values: at the middle, the start, the stop and the two outer points of Gauss, shape (5, n).
    """

    start: Array
    stop: Array
    low: Array
    high: Array
    second: Array
    sixth: Array
    varies: Flags
    broken: Flags
    noise: Array
    values: Array

    @property
    def width(self) -> Array:
        return self.stop - self.start

    @property
    def monotonic(self) -> Flags:
        """Whether it certainly rises or falls in a whole panel: its slope differs from the secant by less than half."""
        return np.asarray(np.abs(self.values[2] - self.values[1]) > 8.0 * self.second + self.noise)


class _CourseFinder:
    """Finds the course of an expression in its variable from ``low`` to ``high``."""

    def __init__(self, expression: Expression, low: float, high: float) -> None:
        self._expression, self._low, self._high = expression, low, high
        (self._name,) = expression.names
        self._operations = Operations(expression.tree, expression.names)
        # Inner edges, and half the width of what may lie on either side of them.
        self._inner, self._beside = np.zeros(0), np.zeros(0)
        self._singular: list[Array] = []

    def found(self) -> Course:
        """The course."""
        # Inner operations come first.
        if not all(map(self._cut_at, self._operations.all)):
            return self._unresolved()
        jumps = self._inner
        edges, extremes, low, high, complete = self._panels()
        before, after = jumps - self._beside, jumps + self._beside
        smooth = edges[~np.isin(edges, jumps)]
        nodes = np.concatenate((smooth, extremes, before, after))
        # Nothing else lies where it may be either side of a jump.
        place = np.searchsorted(jumps, nodes)
        for at in (np.maximum(place - 1, 0), np.minimum(place, len(jumps) - 1)) if len(jumps) else ():
            nodes = np.where(np.abs(nodes - jumps[at]) < 0.5 * self._beside[at], self._low, nodes)
        nodes = np.unique(np.clip(nodes, self._low, self._high))
        nodes = np.union1d(nodes, self._alone(_VALUES * max(high - low, 0.0)))
        values = self._at(nodes)
        finite = np.isfinite(values)
        low = min(low, np.min(values, where=finite, initial=inf))
        high = max(high, np.max(values, where=finite, initial=-inf))
        return Course(edges, jumps, nodes, self._poles(), float(low), float(high), complete)

    def _at(self, places: Array) -> Array:
        return self._expression.evaluate(**{self._name: places})

    def _values(self, place: int, places: Array) -> Array:
        """The values of an operation at points of pieces, the first of which chooses the outcomes of what jumps."""
        found = self._operations.values(place, {self._name: places}, chosen=True)[place]
        return np.broadcast_to(found, (len(found), places.shape[1]))

    def _alone(self, allowed: float) -> Array:
        """Jumps at which the value is beyond those on both sides, and places beside ends with another value."""
        before, at, after = map(self._at, (self._inner - self._beside, self._inner, self._inner + self._beside))
        alone = (at > np.fmax(before, after) + allowed) | (at < np.fmin(before, after) - allowed)
        ends = np.array([self._low, self._high])
        beside = ends + 4.0 * self._smallest(ends, ends) * [1.0, -1.0]
        return np.concatenate((self._inner[alone], beside[np.abs(self._at(ends) - self._at(beside)) > allowed]))

    def _poles(self) -> Array:
        places = np.unique(np.concatenate([np.zeros(0), *self._singular]))
        if not len(places):
            return places
        reach = 16.0 * self._smallest(places, places)
        low, high = np.maximum(places - reach, self._low), np.minimum(places + reach, self._high)
        last, points = self._operations.last, {self._name: np.array([0.5 * low + 0.5 * high, low, high])}
        values = self._operations.values(last, points, chosen=False)
        found = Boxes(self._operations, {self._name: low}, {self._name: high}, False).of(last, values)
        ends = {at: each[-2:] for at, each in values.items()}
        return places[np.broadcast_to(has_pole(self._operations, found, ends), places.shape)]

    def _unresolved(self) -> Course:
        """Of an expression with too many jumps."""
        found = bounds(self._expression, **{self._name: (self._low, self._high)})
        nodes = self._low + (self._high - self._low) * np.sort(np.mod(np.arange(_SAMPLES) * _GOLDEN, 1.0))
        nodes = np.append(nodes, self._high)
        return Course(nodes, None, nodes, np.zeros(0), found.low, found.high, False)

    def _evaluated(self, place: int, start: Array, stop: Array) -> _Panels:
        middle, half = 0.5 * start + 0.5 * stop, 0.5 * (stop - start)
        places = np.array([middle, start, stop, middle - _OUTER * half, middle + _OUTER * half])
        points = self._operations.values(place, {self._name: places}, chosen=True)
        found = Boxes(self._operations, {self._name: start}, {self._name: stop}, True).of(place, points)[place]
        count, rows = len(start), found.rows
        second, sixth = (rows[k] if len(rows) > k else np.zeros(1) for k in (1, 5))
        low, high, second, sixth, noise = (
            np.broadcast_to(each, (count,)) for each in (found.low, found.high, second, sixth, found.noise)
        )
        low, high = np.where(np.isnan(low), -inf, low), np.where(np.isnan(high), inf, high)
        second, sixth = np.where(np.isnan(second), inf, second), np.where(np.isnan(sixth), inf, sixth)
        # Rounding that is not small is no bound: something is undefined here.
        noise = np.where(noise <= _VALUES * np.fmin(np.maximum(np.abs(low), np.abs(high)), _LARGEST), noise, 0.0)
        varies = np.broadcast_to((rows > 0.0).any(axis=0) | np.isnan(rows).any(axis=0), (count,))
        values = np.broadcast_to(points[place], (5, count))
        broken = np.broadcast_to(found.broken, (count,))
        return _Panels(start, stop, low, high, second, sixth, varies, broken, noise, values)

    def _pieces(self) -> tuple[Array, Array]:
        edges = np.concatenate(([self._low], self._inner, [self._high]))
        return edges[:-1], edges[1:]

    def _smallest(self, start: Array, stop: Array) -> Array:
        """The resolution of the variable."""
        return np.maximum(4.0 * np.spacing(np.maximum(np.abs(start), np.abs(stop))), 2e-16 * (self._high - self._low))

    # Jumps.

    def _cut_at(self, operation: Operation) -> bool:
        """Add the places at which an operation jumps or has a kink; False if they cannot all be told."""
        if operation.kind not in _JUMPS:
            return True
        argument, whole = operation.operands[_JUMPS[operation.kind]], operation.kind == "floor"
        start, stop = self._pieces()
        for condition, wanted in operation.guards:
            truth = self._values(condition, (0.5 * start + 0.5 * stop)[None])[0] != 0.0
            start, stop = start[truth == wanted], stop[truth == wanted]
        places, beside = [np.zeros(0)], [np.zeros(0)]
        total = 0
        while len(start):
            total += len(start)
            found = self._evaluated(argument, start, stop)
            low, high = found.low - found.noise, found.high + found.noise
            first, last = (np.ceil(low), np.floor(high)) if whole else (np.zeros(len(start)), np.zeros(len(start)))
            undefined = ~np.isfinite(found.values).any(axis=0)
            # What becomes undefined may decide an operation too.
            open_ = found.varies & ~undefined & (found.broken | ((first <= last) & (low <= last) & (high >= first)))
            passes = open_ & found.monotonic
            pieces, levels = _levels(found, passes, whole)
            if pieces is None or total > MOST_PANELS:
                return False
            at, unsure = self._passed(argument, found, pieces, levels)
            places.append(at)
            beside.append(unsure)
            open_ &= ~passes
            tiny = found.width <= self._smallest(start, stop)
            rounded = (found.high - found.low <= 8.0 * found.noise) | tiny
            touched = open_ & rounded & (found.width <= _TOUCHES * (self._high - self._low))
            places.append((0.5 * start + 0.5 * stop)[touched])
            beside.append(0.5 * found.width[touched])
            open_ &= ~rounded & ~undefined
            if _hopeless(np.sqrt(8.0 * found.second / (found.high - found.low)), open_):
                return False
            start, stop = _divided(start, stop, open_, 2.0)
        inner, half = np.concatenate((self._inner, *places)), np.concatenate((self._beside, *beside))
        self._inner, self._beside = self._merged(inner, half)
        return len(self._inner) <= MOST_PANELS

    def _passed(self, argument: int, found: _Panels, pieces: NDArray[np.intp], levels: Array) -> tuple[Array, Array]:
        """Where an argument that rises or falls passes levels, and how far that is uncertain."""
        if not len(pieces):
            return np.zeros(0), np.zeros(0)
        middle = 0.5 * found.start[pieces] + 0.5 * found.stop[pieces]
        a, b = found.start[pieces], found.stop[pieces]
        at_a, at_b = found.values[1][pieces] - levels, found.values[2][pieces] - levels
        slope = np.abs(at_b - at_a) / (b - a)
        beside = 4.0 * np.spacing(np.maximum(np.abs(a), np.abs(b))) + 4.0 * found.noise[pieces] / slope
        place = np.clip(a - at_a * (b - a) / (at_b - at_a), a, b)
        some = np.arange(len(place))
        for _ in range(64):
            value = self._values(argument, np.array([middle[some], place[some]]))[-1] - levels[some]
            left = (value < 0.0) == (at_a[some] < 0.0)
            # Of the Illinois method: an end that stays counts half.
            same = np.where(left, 0.5, 1.0), np.where(left, 1.0, 0.5)
            a[some], b[some] = np.where(left, place[some], a[some]), np.where(left, b[some], place[some])
            at_b[some], at_a[some] = (
                np.where(left, at_b[some] * same[0], value),
                np.where(left, value, at_a[some] * same[1]),
            )
            step = a[some] - at_a[some] * (b[some] - a[some]) / (at_b[some] - at_a[some])
            step = np.where(np.isfinite(step), np.clip(step, a[some], b[some]), 0.5 * a[some] + 0.5 * b[some])
            moved = np.abs(step - place[some]) > 0.25 * beside[some]
            place[some] = np.where(value == 0.0, place[some], step)
            some = some[moved & (value != 0.0)]
            if not len(some):
                break
        return place, beside

    def _merged(self, inner: Array, beside: Array) -> tuple[Array, Array]:
        """Edges in order, each once, within the ends."""
        inside = (inner - beside > self._low) & (inner + beside < self._high)
        order = np.argsort(inner[inside], kind="stable")
        inner, beside = inner[inside][order], beside[inside][order]
        if not len(inner):
            return inner, beside
        ends = np.maximum.accumulate(inner + beside)
        first = np.flatnonzero(np.concatenate(([True], inner[1:] - beside[1:] > ends[:-1])))
        low, high = np.minimum.reduceat(inner - beside, first), np.maximum.reduceat(inner + beside, first)
        single = np.diff(np.append(first, len(inner))) == 1
        return np.where(single, inner[first], 0.5 * low + 0.5 * high), np.maximum(0.5 * (high - low), beside[first])

    # Panels.

    def _panels(self) -> tuple[Array, Array, float, float, bool]:
        """Edges of panels, extremes within them, bounds of all values, and whether all panels are fine enough."""
        start, stop = self._pieces()
        edges, extremes = [start, stop], [np.zeros(0)]
        least, most, bound_low, bound_high = inf, -inf, inf, -inf
        whole = spent = 0.0
        total, complete = 0, True
        while len(start):
            total += len(start)
            found = self._evaluated(self._operations.last, start, stop)
            values = found.values
            finite = np.isfinite(values)
            least = min(least, float(np.min(values, where=finite, initial=inf)))
            most = max(most, float(np.max(values, where=finite, initial=-inf)))
            size = sum(weight * np.abs(each) for weight, each in zip(_WEIGHTS, values[[0, 3, 4]], strict=True))
            size = np.where(np.isfinite(size), size, 0.0) * found.width
            spread = found.high - found.low
            rounded = spread <= 8.0 * found.noise
            sixth = np.where(found.sixth <= 8.0 * found.noise, 0.0, found.sixth)
            errors = np.where(rounded, 0.0, found.width * np.fmin(_ERROR * sixth, spread))
            allowed = max(_VALUES * (most - least), _NOTHING * max(abs(most), abs(least))) if least <= most else 0.0
            seen = rounded | (sixth <= allowed) | (spread <= allowed)
            tiny = found.width <= self._smallest(start, stop)
            undefined = ~finite.any(axis=0)
            errors = np.where(seen & ~tiny & finite.all(axis=0), errors, inf)
            order = np.argsort(errors, kind="stable")
            budget = 0.5 * (_INTEGRAL * (whole + float(size.sum())) - spent)
            fits = np.zeros(len(start), dtype=bool)
            fits[order] = np.cumsum(errors[order]) <= budget
            fits |= errors == 0.0
            spent += float(errors[fits].sum())
            self._singular.append((0.5 * start + 0.5 * stop)[tiny & ~fits & ~seen])
            done = fits | tiny | undefined
            whole += float(size[done].sum())
            extremes.append(self._extremes(found, fits & ~found.monotonic & found.varies & (spread > allowed)))
            parts, rest = (sixth / max(allowed, 1e-300)) ** (1.0 / 6.0), ~done
            start, stop = _divided(start, stop, rest, 2.0 if done.all() else float(np.median(parts[rest])))
            edges.append(start)
            if total + len(start) > MOST_PANELS or _hopeless(parts, rest):
                complete = False
                bound_low, bound_high = (
                    float(np.min(found.low[rest], where=np.isfinite(found.low[rest]), initial=inf)),
                    float(np.max(found.high[rest], where=np.isfinite(found.high[rest]), initial=-inf)),
                )
                break
        inner = np.concatenate(extremes)
        return np.unique(np.concatenate(edges)), inner, min(bound_low, least), max(bound_high, most), complete

    def _extremes(self, found: _Panels, some: Flags) -> Array:
        """The places of extremes within some panels, in which the expression is nearly a polynomial of degree 5."""
        start, width = found.start[some], found.width[some]
        if not len(start):
            return np.zeros(0)
        middle, step = start + 0.5 * width, width / _LOOKS
        places = start + step * np.arange(-1.0, _LOOKS + 2.0)[:, None]
        values = self._values(self._operations.last, np.concatenate((middle[None], places)))[1:]
        rises = np.diff(values, axis=0)
        clear = np.abs(rises) > 4.0 * found.noise[some]
        look, panel = np.nonzero((rises[:-1] * rises[1:] < 0.0) & (clear[:-1] | clear[1:]))
        place, step = places[look + 1, panel], step[panel]
        for _ in range(2):
            points = np.array([middle[panel], place - step, place, place + step])
            before, at, after = self._values(self._operations.last, points)[1:]
            offset = 0.5 * (before - after) / (before - 2.0 * at + after)
            place, step = place + step * np.clip(np.where(np.isfinite(offset), offset, 0.0), -1.0, 1.0), step / 32.0
        return place[(place > found.start[some][panel]) & (place < found.stop[some][panel])]


def _hopeless(parts: Array, rest: Flags) -> bool:
    """Whether far more panels are needed than are allowed: nearly all of many have to be cut into many parts."""
    count = int(rest.sum())
    if count < 2**12 or count < 0.9 * len(rest):
        return False
    return float(np.sum(parts, where=rest & np.isfinite(parts))) > 4.0 * MOST_PANELS


def _levels(found: _Panels, some: Flags, whole: bool) -> tuple[NDArray[np.intp] | None, Array]:
    """The levels between both ends of some panels, with the numbers of the panels; None if there are too many."""
    low, high = np.minimum(*found.values[1:3]), np.maximum(*found.values[1:3])
    some = some & np.isfinite(low) & np.isfinite(high)
    if not whole:
        pieces = np.flatnonzero(some & (low <= 0.0) & (high >= 0.0))
        return pieces, np.zeros(len(pieces))
    first = np.where(some, np.ceil(low), 1.0)
    counts = np.maximum(np.where(some, np.floor(high) - first + 1.0, 0.0), 0.0)
    if counts.sum() > MOST_PANELS:
        return None, np.zeros(0)
    counts = counts.astype(np.int64)
    pieces = np.repeat(np.arange(len(low)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return pieces, first[pieces] + (np.arange(len(pieces)) - before)


def _divided(start: Array, stop: Array, some: Flags, needed: float) -> tuple[Array, Array]:
    """Some panels, each in halves; few of them, or those that need more parts, in more."""
    start, stop = start[some], stop[some]
    parts = 2 if len(start) >= _FEW and needed <= 2.0 else _PARTS
    cuts = start + (stop - start) * (np.arange(1, parts) / parts)[:, None]
    return np.concatenate((start[None], cuts)).ravel(), np.concatenate((cuts, stop[None])).ravel()


def refined(nodes: Array, parts: int) -> Array:
    """Nodes with evenly spread places between them, so that each interval has ``parts`` parts."""
    return np.unique(np.append(nodes[:-1] + np.diff(nodes) * (np.arange(parts) / parts)[:, None], nodes[-1]))


def first_place(nodes: Array, faulty: Sequence[bool], is_faulty: Callable[[float], bool]) -> float | None:
    """The first place at which a value is faulty, by bisection before the first node at which it is; None if none."""
    if True not in faulty:
        return None
    first = faulty.index(True)
    after = float(nodes[first])
    before = float(nodes[first - 1]) if first > 0 else after
    while before < (middle := 0.5 * (before + after)) < after:
        before, after = (before, middle) if is_faulty(middle) else (middle, after)
    return after
