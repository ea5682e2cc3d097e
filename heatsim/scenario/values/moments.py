"""Expressions in time and place that are no sums of products: polynomials in time through their values at moments.

In an interval of t with half the width r, the polynomial through the n Chebyshev points of the interval
differs from a smooth f by at most

    2^(1−n) · max |f⁽ⁿ⁾|/n! · rⁿ

(Davis, *Interpolation and Approximation* (1975), 3.3). The bounds of enclosures.py give this for every place, so the
error is known and nothing is sampled. Intervals are halved until it is small enough.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.enclosures import ORDERS, Boxes, Enclosure
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.points import Operations

Array = NDArray[np.float64]

MOST_MOMENTS = 24
ERROR = 1e-6  # of the largest value
_AT_ONCE = 2**15  # places


class Moment(NamedTuple):
    """A time in s, and the factor in time with which the values at this time count."""

    time: float
    factor: Expression


def moments_of(expression: Expression, end: float, places: Mapping[str, Array]) -> list[Moment] | None:
    """The moments whose values, each times its factor, add up to an expression to a millionth of its largest value.

    Args:
        expression: in x, y, z and t.
        end: the last time in s; the first is 0.
        places: the coordinates x, y and z of points.

    Returns:
        None where they would be too many: the expression changes too fast, or may jump or bend.
    """
    names = [name for name in expression.names if name in expression.used]
    operations = Operations(expression.tree, names)
    points = {name: places[name] for name in names if name != "t"}
    allowed = ERROR * max(float(np.abs(expression.evaluate(**places, t=t)).max()) for t in (0.0, 0.5 * end, end))
    found, intervals = list[Moment](), [(0.0, end)]
    while intervals:
        start, stop = intervals.pop()
        fit = np.flatnonzero(_errors(operations, points, start, stop) <= allowed)
        if len(fit):
            found += _through(start, stop, int(fit[0]) + 1, end)
        else:
            middle = 0.5 * (start + stop)
            intervals += [(middle, stop), (start, middle)]
        if len(found) + len(intervals) > MOST_MOMENTS:
            return None
    return found


def _through(start: float, stop: float, count: int, end: float) -> list[Moment]:
    """The Chebyshev points of an interval and their polynomials of Lagrange, which are 0 outside of it."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    times = (0.5 * (start + stop) + 0.5 * (stop - start) * np.cos(angles)).tolist()
    found = []
    for own in times:
        parts = [f"((t - {other!r})*{1.0 / (own - other)!r})" for other in times if other != own]
        text = "*".join(parts) or "1"
        text = text if start == 0.0 else f"where(t < {start!r}, 0, {text})"
        text = text if stop == end else f"where(t < {stop!r}, {text}, 0)"
        found.append(Moment(own, Expression(text, ("t",))))
    return found


def _errors(operations: Operations, points: Mapping[str, Array], start: float, stop: float) -> Array:
    """Bounds of the errors of polynomials through 1, 2 … points; infinite where the expression may jump or bend."""
    worst, count = np.zeros(ORDERS), max(map(len, points.values()))
    for first in range(0, count, _AT_ONCE):
        some = {name: values[first : first + _AT_ONCE] for name, values in points.items()}
        length = len(next(iter(some.values())))
        low, high = ({**some, "t": np.full(length, t)} for t in (start, stop))
        middle = {**some, "t": 0.5 * low["t"] + 0.5 * high["t"]}
        place, in_order = operations.last, operations.names
        low, high, middle = ({name: of[name] for name in in_order} for of in (low, high, middle))
        with np.errstate(all="ignore"):
            values = operations.values(place, {name: row[None] for name, row in middle.items()}, chosen=False)
            smooth = _smooth(operations, Boxes(operations, low, high, chosen=False).of(place, values))
            found = Boxes(operations, low, high, chosen=True).of(place, values)[place]
        if not smooth or np.any(found.broken) or np.isnan(found.rows).any():
            return np.full(ORDERS, np.inf)
        for order, row in enumerate(found.rows):
            worst[order] = max(worst[order], float(row.max()))
    return np.asarray(worst * 0.5 ** np.arange(ORDERS))


def _smooth(operations: Operations, enclosures: Mapping[int, Enclosure]) -> bool:
    """Whether no operation can jump or bend in any of some boxes."""
    for at, found in enclosures.items():
        kind, operands, _, _ = operations.all[at]
        parts = [enclosures[each] for each in operands]
        match kind:
            case "abs":
                known = parts[0].least > 0.0
            case "below" | "upto" | "equal" | "floor":
                known = found.low == found.high
            case "min":
                known = (parts[0].high < parts[1].low) | (parts[1].high < parts[0].low)
            case "where":
                known = parts[0].low == parts[0].high
            case "atan2":
                known = (parts[1].low > 0.0) | (parts[0].least > 0.0)
            case _:
                continue
        varies = [part.rows.sum(axis=0) > 0.0 for part in parts if len(part.rows)]
        if np.any(np.logical_or.reduce(np.broadcast_arrays(*varies)) & ~known if varies else False):
            return False
    return True
