"""Bounds of the values and derivatives of an expression in boxes of its variables.

Interval arithmetic over the operations of the expression, for many boxes at a time. Each operation carries

    low, high     bounds of its values (Moore, *Interval Analysis*, 1966)
    rows          bounds of its derivatives: of the Taylor coefficients |f⁽ᵏ⁾|/k!·rᵏ in one variable, or of |∂f/∂v|·r in
                  each variable v; r is half the width of the box
    noise         the rounding error of a value that NumPy computes

The value at the middle and the derivatives bound the values once more (mean value theorem), so that bounds become sharp
with the square of the width. Where an operation may jump in a box, ``rows`` is infinite.

In pieces of one variable between its jumps (``chosen``), each operation that could jump has the outcome that it has at
the middle of the piece: the expression is smooth there, and a branch that is not taken does not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.points import Operations
from heatsim.scenario.values.smooth_functions import ULP, coefficients_of, range_of

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ORDERS = 6  # Taylor coefficients: a rule of Gauss with three points has an error of the sixth


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Bounds of an operation in n boxes; see the docstring of this module.

    Attributes:
        low, high: shape (n,), or (1,) for a constant.
        rows: shape (rows, n); fewer rows if the others are 0.
        noise: shape (n,).
        broken: whether it may be undefined or unbounded, shape (n,).
    """

    low: Array
    high: Array
    rows: Array
    noise: Array
    broken: Flags

    @property
    def most(self) -> Array:
        """The largest magnitude."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def least(self) -> Array:
        """The smallest magnitude."""
        return np.maximum(np.maximum(self.low, -self.high), 0.0)


class Boxes:
    """Encloses the operations of an expression in boxes.

    Args:
        operations: of the expression.
        low: of each variable, shape (n,).
        high: the same.
        chosen: one variable: the boxes are pieces without jumps, and ``rows`` are Taylor coefficients.
    """

    def __init__(
        self, operations: Operations, low: Mapping[str, Array], high: Mapping[str, Array], chosen: bool
    ) -> None:
        self._operations, self._low, self._high, self._chosen = operations, low, high, chosen
        self._orders = ORDERS if chosen else 1
        self._names = list(low)

    def of(self, place: int, values: Mapping[int, Array]) -> dict[int, Enclosure]:
        """The enclosures of an operation and of those on which it depends.

        Args:
            place: of the operation.
            values: of all of them, with those at the middles of the boxes in the first row.
        """
        found: dict[int, Enclosure] = {}
        for at in self._operations.needed(place):
            kind, operands, _, name = self._operations.all[at]
            if kind == "name":
                found[at] = self._variable(str(name))
            elif not operands:
                value = values[at][0]
                found[at] = Enclosure(value, value, np.zeros((0, 1)), np.zeros(1), ~np.isfinite(value))
            else:
                parts = [found[each] for each in operands]
                at_middle = [values[each][0] for each in operands]
                found[at] = self._tightened(self._enclosed(kind, parts, at_middle, values[at][0]), values[at][0])
        return found

    def _variable(self, name: str) -> Enclosure:
        low, high = self._low[name], self._high[name]
        rows, middle = np.zeros((1 if self._chosen else len(self._names), len(low))), 0.5 * low + 0.5 * high
        rows[0 if self._chosen else self._names.index(name)] = np.maximum(high - middle, middle - low)
        return Enclosure(low, high, rows, np.zeros(len(low)), np.zeros(len(low), dtype=bool))

    def _tightened(self, found: Enclosure, middle: Array) -> Enclosure:
        """Bounds by the mean value theorem too."""
        reach = found.noise + ULP * np.abs(middle)
        if len(found.rows):
            reach = reach + (1.0 + 8.0 * ULP) * (found.rows[0] if self._chosen else found.rows.sum(axis=0))
        low = np.fmin(np.fmax(found.low, middle - reach), found.high)
        return Enclosure(low, np.fmax(np.fmin(found.high, middle + reach), low), found.rows, found.noise, found.broken)

    def _enclosed(self, kind: str, parts: Sequence[Enclosure], middles: Sequence[Array], value: Array) -> Enclosure:
        a, b = parts[0], parts[min(1, len(parts) - 1)]
        match kind:
            case "negative":
                return _negative(a)
            case "add":
                return self._sum(a, b)
            case "times":
                return self._product(a, b)
            case "over":
                return self._quotient(a, b)
            case "power":
                return self._power(a, b)
            case "abs":
                return replace(a, low=a.least, high=a.most)
            case "below" | "upto" | "equal" | "floor":
                return self._outcome(kind, a, value)
            case "min":
                return self._smaller(a, b, middles[2])
            case "rest":
                return self._rest(a, b, parts[2])
            case "where":
                return self._where(a, b, parts[2])
            case "atan2":
                return self._angle(a, b, middles[0])
        return self._function(kind, a)

    def _rest(self, a: Enclosure, b: Enclosure, whole: Enclosure) -> Enclosure:
        found = self._sum(a, _negative(self._product(b, whole)))
        if self._chosen:
            return found
        known = whole.low == whole.high
        for one, other in ((end, of) for end in (a.low, a.high) for of in (b.low, b.high)):
            # Rounding can lift a/b to the whole number.
            known = known & (np.abs(np.mod(one, other) - (one - other * whole.low)) <= 0.5 * np.abs(other))
        low = np.where(known, found.low, np.minimum(b.low, 0.0))
        return replace(found, low=low, high=np.where(known, found.high, np.maximum(b.high, 0.0)))

    def _outcome(self, kind: str, a: Enclosure, value: Array) -> Enclosure:
        """The outcome of an operation that jumps."""
        if self._chosen:
            return Enclosure(value, value, np.zeros((0, 1)), np.zeros(1), a.broken)
        match kind:
            case "floor":
                low, high = np.floor(a.low), np.floor(a.high)
            case "below":
                low, high = a.high < 0.0, a.low < 0.0
            case "upto":
                low, high = a.high <= 0.0, a.low <= 0.0
            case _:
                low, high = (a.low == 0.0) & (a.high == 0.0), (a.low <= 0.0) & (a.high >= 0.0)
        if kind != "floor":  # what is undefined compares as false
            low, high = (low & ~a.broken).astype(np.float64), high.astype(np.float64)
        return Enclosure(low, high, np.where(low == high, 0.0, self._jumping(a)), np.zeros(1), a.broken)

    def _jumping(self, a: Enclosure) -> Array:
        """Infinite rows for the variables of an operation, 0 for the others."""
        return np.where(_padded(a.rows, np.zeros((len(self._names), 1)))[0] > 0.0, inf, 0.0)

    def _smaller(self, a: Enclosure, b: Enclosure, less: Array) -> Enclosure:
        if self._chosen:
            return _selected(less < 0.0, b, a)
        rows = _padded(a.rows, b.rows)
        # Where one is certainly the smaller one, only that one counts.
        return Enclosure(
            np.minimum(a.low, b.low),
            np.minimum(a.high, b.high),
            np.where(a.high < b.low, rows[0], np.where(b.high < a.low, rows[1], np.maximum(*rows))),
            np.maximum(a.noise, b.noise),
            a.broken | b.broken,
        )

    def _where(self, truth: Enclosure, yes: Enclosure, no: Enclosure) -> Enclosure:
        found = _selected(truth.high > 0.0, yes, no)
        if self._chosen:
            return found
        known, both = truth.low == truth.high, np.maximum(*_padded(yes.rows, no.rows))
        return Enclosure(
            np.where(known, found.low, np.minimum(yes.low, no.low)),
            np.where(known, found.high, np.maximum(yes.high, no.high)),
            np.where(known, *_padded(found.rows, _added(both, truth.rows))),
            np.where(known, found.noise, np.maximum(yes.noise, no.noise)),
            np.where(known, found.broken, yes.broken | no.broken) | truth.broken,
        )

    def _sum(self, a: Enclosure, b: Enclosure) -> Enclosure:
        low, high = a.low + b.low, a.high + b.high
        low, high = np.where(np.isnan(low), -inf, low), np.where(np.isnan(high), inf, high)
        rows = _added(a.rows, b.rows)
        noise = a.noise + b.noise + ULP * np.maximum(np.abs(low), np.abs(high))
        return Enclosure(low, high, rows, noise, a.broken | b.broken)

    def _product(self, a: Enclosure, b: Enclosure) -> Enclosure:
        most_a, most_b = a.most, b.most
        if a is b:
            low, high = a.least**2, most_a**2
        else:
            ends = [_times(one, other) for one in (a.low, a.high) for other in (b.low, b.high)]
            low, high = reduce(np.minimum, ends), reduce(np.maximum, ends)
        rows = _added(_times(most_b, a.rows), _times(most_a, b.rows))
        if self._chosen:
            rows = _with_inner_products(rows, a.rows, b.rows)
        noise = _times(most_a, b.noise) + _times(most_b, a.noise) + ULP * np.maximum(np.abs(low), np.abs(high))
        return Enclosure(low, high, rows, noise, a.broken | b.broken)

    def _quotient(self, a: Enclosure, b: Enclosure) -> Enclosure:
        ends = [one / other for one in (a.low, a.high) for other in (b.low, b.high)]
        zero = (b.low <= 0.0) & (b.high >= 0.0)
        low, high = np.where(zero, -inf, reduce(np.fmin, ends)), np.where(zero, inf, reduce(np.fmax, ends))
        above = zero & (b.low >= 0.0)
        low = np.where(above & (a.low >= 0.0), a.low / b.high, low)
        high = np.where(above & (a.high <= 0.0), a.high / b.high, high)
        least = b.least
        inverse = self._composed([least ** -(k + 1.0) for k in range(1, self._orders + 1)], b.rows)
        one = Enclosure(1.0 / b.high, 1.0 / least, inverse, b.noise / least**2, b.broken | zero)
        found = self._product(a, Enclosure(-1.0 / least, one.high, one.rows, one.noise, one.broken))
        return Enclosure(low, high, found.rows, found.noise, found.broken)

    def _power(self, a: Enclosure, b: Enclosure) -> Enclosure:
        if len(b.rows) or not np.all(b.low == b.high):
            found = self._function("exp", self._product(b, self._function("log", a)))
            low, high = found.low - found.noise, found.high + found.noise
            # 0⁰ is 1, and a negative base can have any power.
            low, high = np.where(a.low < 0.0, -inf, low), np.where(a.low < 0.0, inf, high)
            broken = found.broken & (a.low < 0.0) | (a.low <= 0.0) & (b.low <= 0.0)
            return replace(found, low=low, high=high, broken=a.broken | b.broken | broken)
        r = b.low
        whole = r == np.round(r)
        base_low = np.where(whole, a.low, np.maximum(a.low, 0.0))
        base_high = np.where(whole, a.high, np.maximum(a.high, 0.0))
        ends = [base_low**r, base_high**r]
        low, high = np.fmin(*ends), np.fmax(*ends)
        across = (base_low <= 0.0) & (base_high >= 0.0)
        low = np.where(across & (r > 0.0), np.where(np.mod(r, 2.0) == 1.0, low, 0.0), low)
        pole = across & (r < 0.0)
        least, most = a.least, np.where(whole, a.most, np.maximum(a.high, 0.0))
        low = np.where(pole, np.where((np.mod(r, 2.0) == 1.0) & (base_low < 0.0), -inf, np.fmin(low, high)), low)
        high = np.where(pole, inf, high)
        coefficients, factor = [], np.ones(1)
        for k in range(1, self._orders + 1):
            factor = factor * (r - k + 1.0) / k
            extreme = np.where(r >= k, most, least) ** (r - k)
            coefficients.append(np.where(factor == 0.0, 0.0, np.abs(factor) * extreme))
        rows = self._composed(coefficients, a.rows)
        noise = _times(coefficients[0], a.noise) + ULP * np.maximum(np.abs(low), np.abs(high))
        broken = a.broken | pole | (~whole & (a.low < 0.0))
        slack = np.where((r == 1.0) | (r == 2.0), 0.0, ULP)  # squares are rounded in order
        return Enclosure(low - slack * np.abs(low), high + slack * np.abs(high), rows, noise, broken)

    def _angle(self, y: Enclosure, x: Enclosure, middle: Array) -> Enclosure:
        """atan2(y, x)."""
        cut = (x.low < 0.0) & ((y.low < 0.0) | np.signbit(y.low)) & (y.high >= 0.0)
        ends = [np.arctan2(one, other) for one in (y.low, y.high) for other in (x.low, x.high)]
        if self._chosen:  # y has one sign
            side = np.where(middle < 0.0, -pi, pi)
            ends = [np.where(cut & (one * side < 0.0), 0.0, one) for one in ends] + [np.where(cut, side, ends[0])]
            low, high = reduce(np.minimum, ends), reduce(np.maximum, ends)
        else:
            low, high = np.where(cut, -pi, reduce(np.minimum, ends)), np.where(cut, pi, reduce(np.maximum, ends))
        origin = (y.least == 0.0) & (x.least == 0.0)
        steps = [self._function("atan", self._quotient(one, other)) for one, other in ((y, x), (x, y))]
        rows, noise = (
            np.where(x.least >= y.least, one, other)
            for one, other in ((_padded(steps[0].rows, steps[1].rows)), (steps[0].noise, steps[1].noise))
        )
        rows = np.where(origin | (cut & ~np.bool_(self._chosen)), inf, rows)
        return Enclosure(low - ULP * np.abs(low), high + ULP * np.abs(high), rows, noise, y.broken | x.broken)

    def _function(self, name: str, a: Enclosure) -> Enclosure:
        """A smooth function."""
        low, high, broken = range_of(name, a.low, a.high)
        low, high = low - ULP * np.abs(low), high + ULP * np.abs(high)
        if name in ("sin", "cos", "tanh"):
            low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
        coefficients = coefficients_of(name, a.low, a.high, self._orders)
        noise = _times(coefficients[0], a.noise) + ULP * np.maximum(np.abs(low), np.abs(high))
        return Enclosure(low, high, self._composed(coefficients, a.rows), noise, a.broken | broken)

    def _composed(self, coefficients: Sequence[Array], rows: Array) -> Array:
        """The rows of f(a) from |f⁽ᵏ⁾|/k! and the rows of a."""
        if not self._chosen or len(rows) == 0:
            return _times(coefficients[0], rows)
        if len(rows) == 1:
            return np.array([_times(each, rows[0] ** (k + 1)) for k, each in enumerate(coefficients)])
        power, found = rows, _times(coefficients[0], rows)
        for each in coefficients[1:]:
            power = _with_inner_products(np.zeros((0, power.shape[1])), power, rows)
            found = _added(found, _times(each, power))
        return found


def has_pole(operations: Operations, enclosures: Mapping[int, Enclosure], ends: Mapping[int, Array]) -> Flags:
    """Whether the last operation certainly grows without bound in a box.

    A continuous operation with values of both signs passes 0. What is divided by it grows, unless it may be 0 too.

    Args:
        operations: of the expression, in one variable.
        enclosures: of all of them.
        ends: their values at both ends of the boxes.
    """
    passes, grows = dict[int, Any](), dict[int, Any]()
    for at, found in enclosures.items():
        kind, operands, _, _ = operations.all[at]
        parts = [enclosures[each] for each in operands]
        a, b = (*operands, *operands, at, at)[:2]
        smooth = ~found.broken & np.isfinite(found.rows).all(axis=0)
        passes[at] = smooth & (ends[at][0] * ends[at][-1] < 0.0)
        grows[at] = np.False_
        match kind:
            case "negative" | "abs" | "sqrt":
                passes[at], grows[at] = passes[a], grows[a]
            case "add":
                grows[at] = (grows[a] & ~parts[1].broken) | (grows[b] & ~parts[0].broken)
            case "times":
                passes[at] = passes[at] | smooth & (passes[a] | passes[b])
                grows[at] = (grows[a] & (parts[1].least > 0.0)) | (grows[b] & (parts[0].least > 0.0))
            case "over":
                grows[at] = (passes[b] & (parts[0].least > 0.0)) | (grows[a] & ~parts[1].broken)
            case "power":
                passes[at] = passes[a] & (parts[1].low > 0.0)
                grows[at] = (passes[a] & (parts[1].high < 0.0)) | (grows[a] & (parts[1].low > 0.0))
            case "where":
                known, taken = parts[0].low == parts[0].high, parts[0].high > 0.0
                grows[at] = known & np.where(taken, grows[b], grows[operands[2]])
    return np.asarray(grows[operations.last])


def _negative(a: Enclosure) -> Enclosure:
    return replace(a, low=-a.high, high=-a.low)


def _times(a: Array, b: Array) -> Array:
    """Products of bounds, where 0·∞ is 0."""
    found = np.asarray(a * b)
    missing = np.isnan(found)
    return np.where(missing, 0.0, found) if missing.any() else found


def _boxes(a: Array, b: Array) -> int:
    """The number of boxes of two sets of rows, of which one may be alike for all boxes: one column."""
    return int(a.shape[1] if b.shape[1] == 1 else b.shape[1])


def _padded(a: Array, b: Array) -> tuple[Array, Array]:
    """Two sets of rows, of as many rows and boxes each."""
    found = np.zeros((2, max(len(a), len(b)), _boxes(a, b)))
    found[0, : len(a)], found[1, : len(b)] = a, b
    return found[0], found[1]


def _added(a: Array, b: Array) -> Array:
    if len(a) == 0 or len(b) == 0:
        longer, other = (a, b) if len(a) else (b, a)
        return np.broadcast_to(longer, (len(longer), _boxes(longer, other)))
    if len(a) == len(b):
        return a + b
    one, two = _padded(a, b)
    return one + two


def _with_inner_products(rows: Array, a: Array, b: Array) -> Array:
    """Rows plus the products of the rows of two series that have no constant term, up to the highest order."""
    if len(a) == 0 or len(b) == 0:
        return rows
    count = min(ORDERS, len(a) + len(b))
    found = np.zeros((max(count, len(rows)), max(rows.shape[1], a.shape[1], b.shape[1])))
    found[: len(rows)] = rows
    for i, one in enumerate(a):
        for j, other in enumerate(b[: count - i - 1]):
            found[i + j + 1] += _times(one, other)
    return found


def _selected(takes: Flags, yes: Enclosure, no: Enclosure) -> Enclosure:
    if takes.all():
        return yes
    if not takes.any():
        return no
    rows = np.where(takes, *_padded(yes.rows, no.rows))
    parts = [np.where(takes, a, b) for a, b in ((yes.low, no.low), (yes.high, no.high), (yes.noise, no.noise))]
    return Enclosure(parts[0], parts[1], rows, parts[2], np.where(takes, yes.broken, no.broken))
