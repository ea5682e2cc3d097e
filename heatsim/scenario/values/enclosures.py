"""Bounds of the values and derivatives of an expression in boxes of its variables.

Interval arithmetic over the tree of the expression, for many boxes at a time. Each part of an expression carries

    low, high     bounds of its values (Moore, *Interval Analysis*, 1966)
    rows          bounds of its derivatives: of the Taylor coefficients |f⁽ᵏ⁾|/k!·rᵏ in one variable, or of |∂f/∂v|·r in
                  each variable v; r is half the width of the box
    noise         the rounding error of a value that NumPy computes

The value at the middle and the derivatives bound the values once more (mean value theorem), so that bounds become sharp
with the square of the width. Where an operation may jump in a box, ``rows`` is infinite.

In pieces of one variable between its jumps (``chosen``), each operation that could jump has the outcome that it has at
the middle of the piece: the expression is smooth there, and a branch that is not taken does not count.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import inf, pi

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.expressions import FUNCTIONS, value_of
from heatsim.scenario.values.points import PointValues, variables_in, whole_quotient
from heatsim.scenario.values.smooth_functions import ULP, coefficients_of, passes, range_of

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ORDERS = 6  # Taylor coefficients: a rule of Gauss with three points has an error of the sixth


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Bounds of a part of an expression in n boxes; see the docstring of this module.

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

    @property
    def fixed(self) -> bool:
        """Whether it is constant in each box."""
        return len(self.rows) == 0 and bool(np.all(self.low == self.high))


class Boxes:
    """Encloses the parts of an expression in boxes.

    Args:
        tree: of the expression.
        low: of each variable, shape (n,).
        high: the same.
        chosen: one variable: the boxes are pieces without jumps, and ``rows`` are Taylor coefficients.
        points: values at the middles; with ``chosen`` in the first row.
    """

    def __init__(
        self, tree: ast.expr, low: Mapping[str, Array], high: Mapping[str, Array], chosen: bool, points: PointValues
    ) -> None:
        self._low, self._high, self._chosen, self._points = low, high, chosen, points
        self._orders = ORDERS if chosen else 1
        self._names = list(low)
        self._varying = variables_in(tree, self._names)
        self._known: dict[int, Enclosure] = {}

    def of(self, node: ast.expr) -> Enclosure:
        """The enclosure of a part."""
        if id(node) not in self._known:
            if isinstance(node, ast.Name) and id(node) in self._varying:
                self._known[id(node)] = self._enclosed(node)
            elif id(node) in self._varying:
                self._known[id(node)] = self._tightened(self._enclosed(node), self._points.of(node)[0])
            else:
                self._known[id(node)] = _constant(np.atleast_1d(np.float64(value_of(node, {}))))
        return self._known[id(node)]

    def _tightened(self, found: Enclosure, middle: Array) -> Enclosure:
        """Bounds by the mean value theorem too."""
        reach = found.noise + ULP * np.abs(middle)
        if len(found.rows):
            reach = reach + (1.0 + 8.0 * ULP) * (found.rows[0] if self._chosen else found.rows.sum(axis=0))
        low = np.fmin(np.fmax(found.low, middle - reach), found.high)
        return Enclosure(low, np.fmax(np.fmin(found.high, middle + reach), low), found.rows, found.noise, found.broken)

    def _enclosed(self, node: ast.expr) -> Enclosure:
        match node:
            case ast.Name(id=name):
                low, high = self._low[name], self._high[name]
                rows = np.zeros((1 if self._chosen else len(self._names), len(low)))
                rows[0 if self._chosen else self._names.index(name)] = np.maximum(
                    high - (0.5 * low + 0.5 * high), (0.5 * low + 0.5 * high) - low
                )
                return Enclosure(low, high, rows, np.zeros(len(low)), np.zeros(len(low), dtype=bool))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                a = self.of(operand)
                return Enclosure(-a.high, -a.low, a.rows, a.noise, a.broken)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.of(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                low, high = _truth(self.of(operand))
                return self._outcome(node, 1.0 - high, 1.0 - low, [operand])
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [self.of(each) for each in (left, *others)]
                truths = [_compared(op, a, b) for op, (a, b) in zip(ops, pairwise(sides), strict=True)]
                low, high = (reduce(np.minimum, [truth[end] for truth in truths]) for end in (0, 1))
                return self._outcome(node, low, high, [left, *others])
            case ast.BoolOp(op=operator, values=operands):
                least = np.minimum if isinstance(operator, ast.And) else np.maximum
                low, high = (reduce(least, [_truth(self.of(each))[end] for each in operands]) for end in (0, 1))
                return self._outcome(node, low, high, operands)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
                a, b = self.of(left), self.of(right)
                if isinstance(operator, ast.Sub):
                    b = Enclosure(-b.high, -b.low, b.rows, b.noise, b.broken)
                return self._sum(a, b)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._product(self.of(left), self.of(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._quotient(self.of(left), self.of(right))
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return self._rest(node, left, right)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(node, self.of(left), self.of(right))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._called(node, name, arguments)
        raise AssertionError(f"{type(node).__name__} passed the whitelist")

    def _outcome(self, node: ast.expr, low: Array, high: Array, parts: Sequence[ast.expr]) -> Enclosure:
        """The outcome of an operation that could jump: it is known where ``low`` equals ``high``."""
        broken = reduce(np.logical_or, [self.of(part).broken for part in parts])
        if self._chosen:
            value = self._points.of(node)[0]
            return Enclosure(value, value, np.zeros((0, 1)), np.zeros(1), broken)
        rows = self._jumping([self.of(part) for part in parts])
        return Enclosure(low, high, np.where(low == high, 0.0, rows), np.zeros(1), broken)

    def _jumping(self, parts: Sequence[Enclosure]) -> Array:
        """Infinite rows for the variables of some parts, 0 for the others."""
        none = np.zeros((len(self._names), 1))
        return np.where(reduce(np.maximum, [_padded(part.rows, none)[0] for part in parts]) > 0.0, inf, 0.0)

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
        if b.fixed:
            rows = a.rows / np.abs(b.low)
            noise = a.noise / np.abs(b.low) + ULP * np.maximum(np.abs(low), np.abs(high))
            return Enclosure(low, high, rows, noise, a.broken | zero)
        least = b.least
        inverse = self._composed([least ** -(k + 1.0) for k in range(1, self._orders + 1)], b.rows)
        one = Enclosure(1.0 / b.high, 1.0 / least, inverse, b.noise / least**2, b.broken | zero)
        found = self._product(a, Enclosure(-1.0 / least, one.high, one.rows, one.noise, one.broken))
        return Enclosure(low, high, found.rows, found.noise, found.broken)

    def _rest(self, node: ast.expr, left: ast.expr, right: ast.expr) -> Enclosure:
        """A % b = a − b·⌊a/b⌋."""
        a, b = self.of(left), self.of(right)
        if self._chosen:
            of_a, of_b = self._points.of(left)[0], self._points.of(right)[0]
            first = last = whole_quotient(of_a, of_b)
        else:
            ends = [whole_quotient(one, other) for one in (a.low, a.high) for other in (b.low, b.high)]
            first, last = reduce(np.minimum, ends), reduce(np.maximum, ends)
        same = np.isfinite(first) & (first == last)
        whole = np.where(same, first, 0.0)
        parts = [_times(whole, b.low), _times(whole, b.high)]
        low, high = a.low - np.maximum(*parts), a.high - np.minimum(*parts)
        rows = _added(a.rows, np.abs(whole) * b.rows)
        noise = a.noise + np.abs(whole) * b.noise + ULP * a.most
        low = np.where(same, np.maximum(low, np.minimum(b.low, 0.0)), np.minimum(b.low, 0.0))
        high = np.where(same, np.minimum(high, np.maximum(b.high, 0.0)), np.maximum(b.high, 0.0))
        zero = (b.low <= 0.0) & (b.high >= 0.0)
        if not self._chosen:
            rows = np.where(same & ~zero, rows, self._jumping([a, b]))
        return Enclosure(low, np.maximum(high, low), rows, noise, a.broken | b.broken | zero)

    def _power(self, node: ast.expr, a: Enclosure, b: Enclosure) -> Enclosure:
        if a.fixed and b.fixed:
            value = self._points.of(node)[0]
            return Enclosure(value, value, np.zeros((0, 1)), np.zeros(1), ~np.isfinite(value))
        if not b.fixed:
            base = Enclosure(np.maximum(a.low, 0.0), np.maximum(a.high, 0.0), a.rows, a.noise, a.broken)
            ends = [one**other for one in (base.low, base.high) for other in (b.low, b.high)]
            low, high = reduce(np.fmin, ends), reduce(np.fmax, ends)
            exponent = self._product(b, self._function("log", base))
            found = self._function("exp", exponent)
            # 0 to a power near 0 can be anything from 0 to 1.
            low = np.where((base.low <= 0.0) & (b.high >= 0.0), 0.0, low) * (1.0 - ULP)
            high = np.where((base.low <= 0.0) & (b.low <= 0.0), inf, high) * (1.0 + ULP)
            broken = found.broken & (a.low < 0.0) | (a.low <= 0.0) & (b.low <= 0.0)
            low, high = np.where(a.low < 0.0, -inf, low), np.where(a.low < 0.0, inf, high)
            return Enclosure(low, high, found.rows, found.noise, a.broken | b.broken | broken)
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
        slack = ULP * np.maximum(np.abs(low), np.abs(high))
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

    def _called(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> Enclosure:
        found = [self.of(argument) for argument in arguments]
        a = found[0]
        match name:
            case "floor" | "ceil" | "sign":
                apply = FUNCTIONS[name][0]
                return self._outcome(node, apply(a.low), apply(a.high), arguments)
            case "abs":
                return Enclosure(a.least, a.most, a.rows, a.noise, a.broken)
            case "min" | "max":
                return self._smallest(arguments, 1.0 if name == "min" else -1.0)
            case "where":
                return self._where(arguments[0], *found)
            case "atan2":
                return self._angle(found[0], found[1], self._points.of(arguments[0])[0])
            case "tan":
                sine, cosine = self._function("sin", a), self._function("cos", a)
                ratio = self._quotient(sine, cosine)
                pole = passes(a.low, a.high, pi / 2.0, pi)
                low, high = (np.where(pole, end, np.tan(at)) for end, at in ((-inf, a.low), (inf, a.high)))
                low, high = low - ULP * np.abs(low), high + ULP * np.abs(high)
                return Enclosure(low, high, ratio.rows, ratio.noise, a.broken | pole)
        return self._function(name, a)

    def _smallest(self, arguments: list[ast.expr], sign: float) -> Enclosure:
        """The smallest of several (sign 1), or the largest (−1)."""

        def smaller(a: Enclosure, b: Enclosure) -> Enclosure:
            least = np.minimum if sign > 0.0 else np.maximum
            rows = _padded(a.rows, b.rows)
            # Where one is certainly the smaller one, only that one counts.
            first, second = (a.high < b.low, b.high < a.low) if sign > 0.0 else (a.low > b.high, b.low > a.high)
            return Enclosure(
                least(a.low, b.low),
                least(a.high, b.high),
                np.where(first, rows[0], np.where(second, rows[1], np.maximum(*rows))),
                np.maximum(a.noise, b.noise),
                a.broken | b.broken,
            )

        if not self._chosen:
            return reduce(smaller, map(self.of, arguments))
        so_far, value = self.of(arguments[0]), self._points.of(arguments[0])[0]
        for argument in arguments[1:]:
            other = self._points.of(argument)[0]
            takes = sign * (other - value) < 0.0
            so_far, value = _selected(takes, self.of(argument), so_far), np.where(takes, other, value)
        return so_far

    def _where(self, condition: ast.expr, truth: Enclosure, yes: Enclosure, no: Enclosure) -> Enclosure:
        if self._chosen:
            return _selected(self._points.of(condition)[0] != 0.0, yes, no)
        low, high = _truth(truth)
        known, found = low == high, _selected(high > 0.0, yes, no)
        rows, _ = _padded(found.rows, np.zeros((len(self._names), len(known))))
        both = np.maximum(*_padded(yes.rows, no.rows)) if len(yes.rows) + len(no.rows) else np.zeros((1, 1))
        return Enclosure(
            np.where(known, found.low, np.minimum(yes.low, no.low)),
            np.where(known, found.high, np.maximum(yes.high, no.high)),
            np.where(known, rows, _added(both, truth.rows)),
            np.where(known, found.noise, np.maximum(yes.noise, no.noise)),
            np.where(known, found.broken, yes.broken | no.broken) | truth.broken,
        )

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


def _constant(value: Array) -> Enclosure:
    return Enclosure(value, value, np.zeros((0, 1)), np.zeros(1), ~np.isfinite(value))


def _times(a: Array, b: Array) -> Array:
    """Products of bounds, where 0·∞ is 0."""
    found = np.asarray(a * b)
    missing = np.isnan(found)
    return np.where(missing, 0.0, found) if missing.any() else found


def _padded(a: Array, b: Array) -> tuple[Array, Array]:
    """Two sets of rows, of as many rows and boxes each."""
    shape = (max(len(a), len(b)), max(a.shape[1], b.shape[1]))
    found = np.zeros((2, *shape))
    found[0, : len(a)], found[1, : len(b)] = a, b
    return found[0], found[1]


def _added(a: Array, b: Array) -> Array:
    if len(a) == 0 or len(b) == 0:
        longer, other = (a, b) if len(a) else (b, a)
        return np.broadcast_to(longer, (len(longer), max(longer.shape[1], other.shape[1])))
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


def _truth(a: Enclosure) -> tuple[Array, Array]:
    """Whether a value is not 0: 1 and 1, 0 and 0, or 0 and 1 if it is not known."""
    return (a.least > 0.0).astype(np.float64), (a.most > 0.0).astype(np.float64)


def _compared(op: ast.cmpop, a: Enclosure, b: Enclosure) -> tuple[Array, Array]:
    """The truth of a comparison, as in :func:`_truth`."""
    if isinstance(op, ast.Gt | ast.GtE):
        a, b = b, a
    match op:
        case ast.Lt() | ast.Gt():
            certain, possible = a.high < b.low, a.low < b.high
        case ast.LtE() | ast.GtE():
            certain, possible = a.high <= b.low, a.low <= b.high
        case ast.Eq():
            certain = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
            possible = (a.low <= b.high) & (b.low <= a.high)
        case _:
            possible = ~((a.low == a.high) & (b.low == b.high) & (a.low == b.low))
            certain = (a.low > b.high) | (b.low > a.high)
    # A value that is undefined compares as false, except with !=.
    if isinstance(op, ast.NotEq):
        possible = possible | a.broken | b.broken
    else:
        certain = certain & ~(a.broken | b.broken)
    return certain.astype(np.float64), possible.astype(np.float64)
