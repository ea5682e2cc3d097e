"""Between which values an expression lies in a box of its variables, by bisection of the box."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.enclosures import Boxes
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.points import Operations

Array = NDArray[np.float64]

# All bounds are sharp to this part of the range of the values, if bisection gets there.
_SHARP, _LEVELS, _LIVE = 2e-3, 40, 2**12


@dataclass(frozen=True)
class Bounds:
    """Between which values an expression lies in a box.

    Attributes:
        low, high: bounds of all its values; infinite if it may be unbounded.
        defined: whether it is certainly finite in the whole box.
        seen: the lowest and the highest value that was found in the box.
        places: where in the box these are, by the name of each variable.
    """

    low: float
    high: float
    defined: bool
    seen: tuple[float, float]
    places: tuple[Mapping[str, float], Mapping[str, float]]


def bounds(expression: Expression, **box: tuple[float, float]) -> Bounds:
    """Between which values an expression lies: never too narrow; sharp to a part of the range, where bisection allows.

    Args:
        expression: the expression.
        box: the lowest and the highest value of each variable.
    """
    names = [name for name in expression.names if name in expression.used] or list(expression.names[:1])
    low, high = (np.array([[float(box[name][end])] for name in names]) for end in (0, 1))
    whole = np.maximum(high - low, 1e-300)
    operations = Operations(expression.tree, names)
    place, found_low, found_high, defined = operations.last, inf, -inf, True
    least, most = inf, -inf
    lowest = highest = dict.fromkeys(names, nan)
    with np.errstate(all="ignore"):
        for level in range(_LEVELS):
            middle = 0.5 * low + 0.5 * high
            points = operations.values(place, dict(zip(names, middle[:, None], strict=True)), chosen=False)
            lows, highs = (dict(zip(names, side, strict=True)) for side in (low, high))
            found = Boxes(operations, lows, highs, chosen=False).of(place, points)[place]
            count = low.shape[1]
            values: Array = np.broadcast_to(points[place][0], (count,))
            bottom, top = (int(np.argmax(np.where(np.isfinite(values), sign * values, -inf))) for sign in (-1.0, 1.0))
            if -inf < values[bottom] < least:
                least, lowest = float(values[bottom]), dict(zip(names, middle[:, bottom].tolist(), strict=True))
            if inf > values[top] > most:
                most, highest = float(values[top]), dict(zip(names, middle[:, top].tolist(), strict=True))
            broken = np.broadcast_to(found.broken, (count,))
            below: Array = np.broadcast_to(np.where(np.isnan(found.low), -inf, found.low), (count,))
            above: Array = np.broadcast_to(np.where(np.isnan(found.high), inf, found.high), (count,))
            allowed = _SHARP * max(most - least, 0.0)
            live = (below < least - allowed) | (above > most + allowed) | broken
            excess = np.maximum(least - below, above - most)
            order = np.argsort(np.where(excess > allowed, excess, -inf), kind="stable")
            live = live[order] & (np.arange(count) >= count - _LIVE // 2)
            if level == _LEVELS - 1 or (not defined and found_high - found_low == inf):
                live[:] = False
            done = order[~live]
            if len(done):
                found_low, found_high = min(found_low, below[done].min()), max(found_high, above[done].max())
                defined &= not broken[done].any()
            rest = order[live]
            if not len(rest):
                break
            rows = np.zeros((len(names), count))
            rows[: len(found.rows)] = found.rows
            low, high = halved(low[:, rest], high[:, rest], rows[:, rest], whole)
    whole_defined = bool(defined and np.isfinite(found_low) and np.isfinite(found_high))
    return Bounds(found_low, found_high, whole_defined, (least, most), (lowest, highest))


def halved(low: Array, high: Array, rows: Array, whole: Array) -> tuple[Array, Array]:
    """Both halves of boxes, cut along the variable that changes the values most, or a wide one that may jump."""
    parts = (high - low) / whole
    finite = np.isfinite(rows)
    weights = np.where(finite.all(axis=0), rows, np.where(finite, 0.1 * parts * (rows > 0.0), parts))
    cut = np.arange(len(low))[:, None] == np.argmax(np.where(weights.max(axis=0) > 0.0, weights, parts), axis=0)
    middle = 0.5 * low + 0.5 * high
    return (
        np.concatenate((low, np.where(cut, middle, low)), axis=1),
        np.concatenate((np.where(cut, middle, high), high), axis=1),
    )
