"""Times at which an expression in t jumps or has a kink, so that it can be averaged piece by piece.

Comparisons, %, floor, ceil and sign jump; abs, min and max have kinks. Each operation has an argument g(t). Between the
jumps of its inner operations g is smooth; the operation jumps where g passes 0 or a whole number:

    a < b    g = a − b, at 0          a % b    g = a/b, at whole numbers          floor(a)    g = a, at whole numbers

Inner operations come first. On each piece between the jumps found so far, g is nearly always a straight line, and two
values give its crossings. Otherwise the piece is sampled, and each crossing is found by bisection.
"""

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from math import pi

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.expressions import Expression, value_of

Array = NDArray[np.float64]
Crossing = tuple[ast.expr, bool]

MOST_JUMPS = 2**20
_SAMPLES = 2**20  # in total, for all pieces on which an argument is curved
_FEW_SAMPLES = 2**16  # the same for zeros of divisors
_FEWEST = 16  # per piece
_RESOLVED = 6  # average number of samples between two crossings that is enough to find all
_BISECTIONS = 50
# Samples as fractions of a piece: irrational, so that no oscillation has the same phase at all of them.
_GOLDEN = 0.6180339887498949
_PROBES = np.sort(np.mod(np.arange(1, 9) * _GOLDEN, 1.0))
_CHECKS, _MISSED = 2**14, 5e-4
_STRAIGHT = 1e-9
_NEAR = 1e-14  # fraction of the end: jumps closer than this count as one


@lru_cache(maxsize=64)
def switching_times(expression: Expression, end: float) -> Array | None:
    """The times in s between 0 and ``end`` at which an expression in t may jump or have a kink, in ascending order.

    Returns:
        The times; None if there are too many to distinguish.
    """
    edges = np.array([0.0, end])
    with np.errstate(all="ignore"):
        for argument, whole_numbers in _crossings(expression.tree):
            found = _passes(argument, whole_numbers, edges)
            if found is None:
                return None
            edges = np.unique(np.concatenate((edges, found)))
            edges = edges[np.concatenate((np.diff(edges) > _NEAR * end, [True]))]
            if len(edges) > MOST_JUMPS:
                return None
    return edges[1:-1]


def zeros(argument: ast.expr, edges: Array) -> Array | None:
    """The times at which a part of an expression in t passes 0, between ``edges``; None if there are too many."""
    with np.errstate(all="ignore"):
        return _passes(argument, False, edges, _FEW_SAMPLES)


def _crossings(node: ast.expr) -> Iterator[Crossing]:
    """The arguments g whose crossings of 0 or of whole numbers make an operation jump; inner operations first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _crossings(child)
    if not any(isinstance(part, ast.Name) and part.id == "t" for part in ast.walk(node)):
        return
    match node:
        case ast.Compare(left=left, comparators=others):
            for one, other in pairwise((left, *others)):
                yield ast.BinOp(one, ast.Sub(), other), False
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            yield ast.BinOp(left, ast.Div(), right), True
        case ast.Call(func=ast.Name(id="floor" | "ceil"), args=[argument]):
            yield argument, True
        case ast.Call(func=ast.Name(id="sign" | "abs"), args=[argument]):
            yield argument, False
        case ast.Call(func=ast.Name(id="atan2"), args=[first, _]):
            yield first, False
        case ast.Call(func=ast.Name(id="tan"), args=[argument]):
            # The poles lie at odd multiples of π/2.
            yield ast.BinOp(ast.BinOp(argument, ast.Div(), ast.Constant(pi)), ast.Sub(), ast.Constant(0.5)), True
        case ast.Call(func=ast.Name(id="min" | "max") as function, args=[first, *others]):
            so_far = first
            for number, other in enumerate(others, start=2):
                yield ast.BinOp(so_far, ast.Sub(), other), False
                so_far = ast.Call(function, [first, *others[: number - 1]], [])
        case _:
            pass


def _passes(argument: ast.expr, whole_numbers: bool, edges: Array, samples: int = _SAMPLES) -> Array | None:
    """Times at which an argument passes 0 or a whole number, within the pieces between ``edges``; None if too many."""

    def g(t: Array) -> Array:
        return np.broadcast_to(value_of(argument, {"t": t}), t.shape).astype(np.float64)

    left, right = edges[:-1], edges[1:]
    places = left[:, None] + (right - left)[:, None] * _PROBES
    values = g(places)
    slope = (values[:, -1] - values[:, 0]) / (places[:, -1] - places[:, 0])
    line = values[:, :1] + slope[:, None] * (places - places[:, :1])
    straight = (np.abs(values - line) <= _STRAIGHT * np.abs(values).max(axis=1, keepdims=True)).all(axis=1)

    middle, height = places[straight, 4], values[straight, 4]
    low, high = (height + slope[straight] * (side[straight] - middle) for side in (left, right))
    pieces, levels = _levels(low, high, whole_numbers)
    if pieces is None:
        return None
    found = [middle[pieces] + (levels - height[pieces]) / slope[straight][pieces]]

    curved = np.flatnonzero(~straight & np.isfinite(values).all(axis=1))
    if len(curved):
        if len(curved) * _FEWEST > samples:
            return None
        parts = np.linspace(1e-9, 1.0 - 1e-9, max(_FEWEST, samples // len(curved)) + 1)
        times = left[curved, None] + (right - left)[curved, None] * parts
        sampled = g(times)
        starts, stops = times[:, :-1].ravel(), times[:, 1:].ravel()
        pieces, levels = _levels(sampled[:, :-1].ravel(), sampled[:, 1:].ravel(), whole_numbers)
        if pieces is None or len(pieces) * _RESOLVED > len(starts):
            return None
        found.append(_bisect(g, starts[pieces], stops[pieces], levels))
        if not _all_found(g, whole_numbers, np.sort(np.concatenate((edges, *found))), left[curved], right[curved]):
            return None
    times = np.concatenate(found)
    near = _NEAR * edges[-1]
    return np.asarray(times[np.isfinite(times) & (times > edges[0] + near) & (times < edges[-1] - near)])


def _all_found(g: Callable[[Array], Array], whole_numbers: bool, edges: Array, left: Array, right: Array) -> bool:
    """Whether an argument stays on one side of its levels between ``edges``, tested at new points.

    This detects oscillations that are faster than the samples.
    """
    spread = np.mod(np.arange(1, _CHECKS + 1) * _GOLDEN, 1.0)
    along = spread * len(left)
    piece = np.minimum(along.astype(np.intp), len(left) - 1)
    times = left[piece] + (right - left)[piece] * (along - piece)
    after = np.clip(np.searchsorted(edges, times, "right"), 1, len(edges) - 1)
    # Not in the middle: an oscillation has its peak there, which may touch a level.
    others = edges[after - 1] + (1.0 - _GOLDEN) * (edges[after] - edges[after - 1])

    def side(t: Array) -> Array:
        return np.floor(g(t)) if whole_numbers else np.sign(g(t))

    return bool(np.mean(side(times) != side(others)) <= _MISSED)


def _levels(low: Array, high: Array, whole_numbers: bool) -> tuple[NDArray[np.intp] | None, Array]:
    """The levels between two values of each piece, with the number of the piece; None if there are too many."""
    low, high = np.minimum(low, high), np.maximum(low, high)
    finite = np.isfinite(low) & np.isfinite(high) & (low < high)
    if not whole_numbers:
        pieces = np.flatnonzero(finite & (low <= 0.0) & (high >= 0.0))
        return pieces, np.zeros(len(pieces))
    first = np.where(finite, np.ceil(low), 1.0)
    counts = np.where(finite, np.floor(high) - first + 1.0, 0.0)
    if counts.sum() > MOST_JUMPS:
        return None, np.zeros(0)
    counts = np.maximum(counts, 0.0).astype(np.int64)
    pieces = np.repeat(np.arange(len(low)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return pieces, first[pieces] + (np.arange(len(pieces)) - before)


def _bisect(g: Callable[[Array], Array], start: Array, stop: Array, levels: Array) -> Array:
    """The times between ``start`` and ``stop`` at which ``g`` passes its level."""
    below = g(start) < levels
    for _ in range(_BISECTIONS):
        middle = 0.5 * (start + stop)
        same = (g(middle) < levels) == below
        start, stop = np.where(same, middle, start), np.where(same, stop, middle)
    return 0.5 * (start + stop)
