"""Means of an expression in x, y and z over boxes, for many boxes at a time.

Each box takes Gauss's rule with 4 points along each axis on which the expression depends. That with 3 points tells its
error, and bounds of the expression (:mod:`heatsim.scenario.values.enclosures`) tell what lies between the points. A box
where either is too large is halved, and so on. So a peak that is narrower than the distance of points is found, and a
jump across an axis is followed to rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.bounds import halved
from heatsim.scenario.values.enclosures import Boxes
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.points import Operations

Array = NDArray[np.float64]

POINTS = 4  # along each axis
ALIKE = 3.0  # the error of an integral over that of errors with random signs: a jump at a slope may cross boxes alike
TOLERABLE = 1e-3  # error of an integral over a surface or a body, in parts of that of the magnitude
_FEWER = 3
_ALLOWED = 1e-7  # error of a part of a box relative to the largest mean of |f| over a box
_LEVELS, _AT_ONCE = 64, 2**14
_MARGIN = 1e-9  # of the width of a part


def changes_much(expression: Expression, low: Array, high: Array, allowed: float, jump: float) -> NDArray[np.bool_]:
    """Whether the values within each box may differ by more than ``allowed``, or may jump and differ by ``jump``.

    Other arguments as for :func:`means_over`.
    """
    finder = _PartsOfBoxes(expression, low, high)
    found = np.zeros(low.shape[1], dtype=bool)
    for at in range(0, len(found), _AT_ONCE):
        piece = slice(at, at + _AT_ONCE)
        below, above, rows = finder.bounds(low[:, piece], high[:, piece])
        found[piece] = ~(above - below <= np.where(np.isinf(rows).any(axis=0), jump, allowed))
    return found


@dataclass(frozen=True, eq=False)
class SpaceMeans:
    """Means over boxes.

    Attributes:
        means: shape (boxes,).
        lowest, highest: the value at the points of each box that is the lowest and the highest, shape (boxes,).
        low, high: x, y and z of these points, shape (3, boxes).
        magnitudes: the means of |f|.
        missed: the error that is left; of most boxes 0.
    """

    means: Array
    magnitudes: Array
    lowest: Array
    highest: Array
    low: Array
    high: Array
    missed: Array

    def of(self, boxes: NDArray[np.intp]) -> "SpaceMeans":
        """Those of some boxes."""
        numbers = (self.means, self.magnitudes, self.lowest, self.highest)
        means, magnitudes, lowest, highest = (each[boxes] for each in numbers)
        return SpaceMeans(
            means, magnitudes, lowest, highest, self.low[:, boxes], self.high[:, boxes], self.missed[boxes]
        )

    def error(self, own: NDArray[np.intp]) -> tuple[float, float]:
        """The error that is left in the sum of the means of some boxes, squared, and the sum of means of |f|."""
        return float((self.missed[own] ** 2).sum()), float(self.magnitudes[own].sum())


@cache
def _rule(count: int, axes: int) -> tuple[Array, Array]:
    """Points of [−1, 1] along some axes, shape (axes, points), and their weights."""
    places, weights = np.polynomial.legendre.leggauss(count)
    grid = np.stack(np.meshgrid(*[places] * axes, indexing="ij")).reshape(axes, -1) if axes else np.zeros((0, 1))
    products = np.ones(1)
    for _ in range(axes):
        products = np.multiply.outer(products, 0.5 * weights).reshape(-1)
    return grid, products


def points_of(low: Array, high: Array, used: str, count: int = POINTS) -> Array:
    """Points of Gauss's rule in boxes: x, y and z, shape (3, boxes, points); ``used``: axes along which they differ."""
    axes = ["xyz".index(name) for name in used]
    middle, half = 0.5 * low + 0.5 * high, 0.5 * (high - low)
    grid, _ = _rule(count, len(axes))
    found = np.repeat(middle[:, :, None], grid.shape[1], axis=2)
    for place, axis in zip(grid, axes, strict=True):
        found[axis] += half[axis][:, None] * place
    return found


def weights_of(used: str) -> Array:
    """The weights of the points of :func:`points_of`."""
    return _rule(POINTS, len(used))[1]


def gauss_means(expression: Expression, low: Array, high: Array, used: str, count: int) -> Array:
    """Means over boxes from Gauss's rule with ``count`` points along each axis in ``used``; others as below."""
    found, weights = np.zeros(low.shape[1]), _rule(count, len(used))[1]
    with np.errstate(invalid="ignore", over="ignore"):
        for at in range(0, len(found), _AT_ONCE):
            piece = slice(at, at + _AT_ONCE)
            x, y, z = points_of(low[:, piece], high[:, piece], used, count)
            found[piece] = (np.broadcast_to(expression.evaluate(x=x, y=y, z=z), x.shape) * weights).sum(axis=1)
    return found


def means_over(
    expression: Expression, low: Array, high: Array, most: int, highest_of: Callable[[float], float] = float
) -> SpaceMeans:
    """The means of an expression over boxes. Collective.

    Args:
        expression: in x, y and z.
        low: the lowest x, y and z of each box, shape (3, boxes).
        high: the highest; a box may be flat.
        most: how many parts of a box to halve.
        highest_of: returns the highest number of all ranks. Which other boxes a rank has changes no bit of a mean.
    """
    axes = ["xyz".index(name) for name in expression.used & set("xyz")]
    if len(axes) == 1:  # boxes that differ along other axes have the same mean
        _, first, which = np.unique(low[axes[0]] + 1j * high[axes[0]], return_index=True, return_inverse=True)
        if len(first) < len(which):
            return means_over(expression, low[:, first], high[:, first], most, highest_of).of(which.reshape(-1))
    finder = _PartsOfBoxes(expression, low, high)
    scale = highest_of(finder.first())
    for _ in range(_LEVELS):
        if not highest_of(float(finder.divide(scale, most))):
            break
        scale = max(scale, highest_of(finder.scale()))
    finder.divide(scale, 0)
    return finder.found()


class _PartsOfBoxes:
    """The parts of boxes whose mean is not known yet.

    Attributes:
        box: the number of the box of each part.
    """

    def __init__(self, expression: Expression, low: Array, high: Array) -> None:
        self._expression, self._low, self._high = expression, low, high
        self._used = "".join(name for name in "xyz" if name in expression.used)
        self._axes = ["xyz".index(name) for name in self._used]
        self._operations = Operations(expression.tree, tuple(self._used))
        boxes = low.shape[1]
        self._sums, self._magnitudes, self._missed = np.zeros(boxes), np.zeros(boxes), np.zeros(boxes)
        self._counts = np.zeros(boxes, dtype=np.int64)
        self._ends = [np.full(boxes, np.inf), np.full(boxes, -np.inf)]
        self._at = [np.zeros((3, boxes)), np.zeros((3, boxes))]
        self._volume = np.ones(boxes)
        for axis in self._axes:
            width = high[axis] - low[axis]
            self._volume = self._volume * np.where(width > 0.0, width, 1.0)
        self.box, self._part, self._of_parts = np.zeros(0, np.intp), np.zeros((2, 3, 0)), np.zeros((3, 0))

    def first(self) -> float:
        """Look at all boxes; returns the largest mean of |f| over a box as far as it is known."""
        boxes = self._low.shape[1]
        self._look(np.arange(boxes), np.stack([self._low, self._high]))
        return self.scale()

    def scale(self) -> float:
        """The largest mean of |f| over a box as far as it is known."""
        found = self._magnitudes + np.bincount(self.box, self._of_parts[1], len(self._sums))
        return float(found.max(initial=0.0))

    def divide(self, scale: float, most: int) -> int:
        """Accept parts that are known well enough, and halve the others; returns the number of those.

        Args:
            scale: the largest mean of |f| over a box.
            most: how many parts of a box to halve.
        """
        rough = self._of_parts[2] > _ALLOWED * scale
        live = rough & (self._counts[self.box] < most) & np.isfinite(scale)
        boxes = len(self._sums)
        for sums, values in ((self._sums, self._of_parts[0]), (self._magnitudes, self._of_parts[1])):
            sums += np.bincount(self.box[~live], values[~live], boxes)
        # Errors of parts have either sign.
        left = rough & ~live
        self._missed += np.bincount(self.box[left], self._of_parts[2][left] ** 2, boxes)
        box, (low, high) = self.box[live], self._part[:, :, live]
        self._counts += np.bincount(box, minlength=boxes)
        rows = self._rows[:, live]
        self.box, self._part = np.zeros(0, np.intp), np.zeros((2, 3, 0))
        self._of_parts = np.zeros((3, 0))
        if len(box):
            whole = np.maximum(self._high[self._axes][:, box] - self._low[self._axes][:, box], 1e-300)
            halves = halved(low[self._axes], high[self._axes], rows, whole)
            parts = np.stack([np.tile(low, 2), np.tile(high, 2)])
            parts[0, self._axes], parts[1, self._axes] = halves
            # Parts of a box stand together in an order that other boxes do not change.
            twice = np.tile(box, 2)
            order = np.argsort(twice, kind="stable")
            self._look(twice[order], parts[:, :, order])
        return len(box)

    def found(self) -> SpaceMeans:
        """The means."""
        (lowest, highest), (low, high) = self._ends, self._at
        return SpaceMeans(self._sums, self._magnitudes, lowest, highest, low, high, np.sqrt(self._missed))

    def _look(self, box: NDArray[np.intp], part: Array) -> None:
        """Evaluate the expression in parts of boxes."""
        pieces = [slice(at, at + _AT_ONCE) for at in range(0, max(len(box), 1), _AT_ONCE)]
        found = [self._evaluated(box[piece], part[:, :, piece]) for piece in pieces]
        self.box, self._part = box, part
        self._of_parts = np.concatenate([of_parts for of_parts, _ in found], axis=1)
        self._rows = np.concatenate([rows for _, rows in found], axis=1)

    def _evaluated(self, box: NDArray[np.intp], part: Array) -> tuple[Array, Array]:
        """The share of each part in the mean of its box, that of |f|, and its error; and the rows of its bounds."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self._judged(box, part)

    def _judged(self, box: NDArray[np.intp], part: Array) -> tuple[Array, Array]:
        """The same; values may overflow."""
        (low, high), shares = part, np.ones(len(box))
        for axis in self._axes:
            width = high[axis] - low[axis]
            shares = shares * np.where(width > 0.0, width, 1.0)
        shares = shares / self._volume[box]
        means, least, most, magnitude = [], np.full(len(box), np.inf), np.full(len(box), -np.inf), np.zeros(len(box))
        for count in (POINTS, _FEWER):
            points, weights = points_of(low, high, self._used, count), _rule(count, len(self._axes))[1]
            x, y, z = points
            values = np.broadcast_to(self._expression.evaluate(x=x, y=y, z=z), x.shape)
            means.append((values * weights).sum(axis=1))
            least, most = np.fmin(least, values.min(axis=1)), np.fmax(most, values.max(axis=1))
            if count == POINTS:
                magnitude = (np.abs(values) * weights).sum(axis=1)
                self._note_ends(box, points, values)
        below, above, rows = self.bounds(low, high)
        spread = most - least
        hidden = np.maximum(least - below, above - most)
        error = np.abs(means[0] - means[1])
        range_of = np.where(np.isfinite(above - below), above - below, np.maximum(np.abs(most), np.abs(least)) + spread)
        # What bounds allow between the points may be as large as what the points see, if that is smooth.
        error = np.where(hidden <= spread, error, range_of)
        error = np.where(np.isfinite(error), error, np.inf)
        return np.stack([means[0] * shares, magnitude * shares, error * shares]), rows

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Bounds of the values in parts, and how much each axis changes them.

        Each part is without a margin, in which values count for nothing: a jump on its edge may lie within by rounding.
        """
        margin = _MARGIN * (high - low)
        low, high = low + margin, high - margin
        count, names = low.shape[1], self._used
        place, operations = self._operations.last, self._operations
        rows = np.zeros((len(names), count))
        lows = {name: low[axis] for name, axis in zip(names, self._axes, strict=True)}
        highs = {name: high[axis] for name, axis in zip(names, self._axes, strict=True)}
        middles = {name: (0.5 * lows[name] + 0.5 * highs[name])[None] for name in names}
        with np.errstate(all="ignore"):
            values = operations.values(place, middles, chosen=False)
            found = Boxes(operations, lows, highs, chosen=False).of(place, values)[place]
        below, above = (np.broadcast_to(each, (count,)) for each in (found.low, found.high))
        rows[: len(found.rows)] = found.rows
        unknown = np.isnan(below) | np.isnan(above) | found.broken
        return np.asarray(np.where(unknown, -np.inf, below)), np.asarray(np.where(unknown, np.inf, above)), rows

    def _note_ends(self, box: NDArray[np.intp], points: Array, values: Array) -> None:
        """Store the lowest and the highest value of each box, and their points."""
        for number, sign in enumerate((1.0, -1.0)):
            place = np.argmin(sign * values, axis=1)
            ends = values[np.arange(len(box)), place]
            first = np.arange(len(box))
            if not (np.diff(box) > 0).all():
                order = np.lexsort((sign * ends, box))
                first = order[np.flatnonzero(np.diff(box[order], prepend=-1))]
            better = first[sign * ends[first] < sign * self._ends[number][box[first]]]
            self._ends[number][box[better]] = ends[better]
            self._at[number][:, box[better]] = points[:, better, place[better]]
