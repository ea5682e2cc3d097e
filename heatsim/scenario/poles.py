"""Poles of an expression in t: times near which it grows without bound, because it divides by 0.

Samples miss poles between them. So the zeros of divisors, and of everything within them, are found in the same way as
jumps (:mod:`heatsim.scenario.switching`). Beside each of them the expression is evaluated at three distances.
"""

import ast
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.expressions import Expression
from heatsim.scenario.switching import switching_times, zeros

Array = NDArray[np.float64]

# Distances from a zero, in parts of the end of the run. At a pole the change from one to the next grows, that of
# 1/sqrt(abs(t)) by 10; elsewhere it falls. Changes below a part of the value are rounding.
_DISTANCES, _GROWTH, _ROUNDING = (1e-6, 1e-8, 1e-10), 5.0, 1e-12


def pole_in(expression: Expression, end: float) -> str | None:
    """What to say to the user about a pole of an expression in t between 0 and ``end`` (s); None if there is none."""
    pole = find_pole(expression, end)
    return None if pole is None else f"which grows without bound near t = {pole:.9g} s"


def find_pole(expression: Expression, end: float) -> float | None:
    """The first time in s between 0 and ``end`` near which an expression in t grows without bound; None if none is."""
    causes = {ast.unparse(cause): cause for cause in _causes(expression.tree)}
    if not causes or not end > 0.0:
        return None
    jumps = switching_times(expression, end)
    jumps = np.zeros(0) if jumps is None else jumps
    edges = np.concatenate(([0.0], jumps, [end]))
    found = [zeros(cause, edges) for cause in causes.values()]
    times = np.unique(np.concatenate((jumps, *(each for each in found if each is not None))))
    grows = np.zeros(len(times), dtype=bool)
    for side in (-1.0, 1.0):
        far, near, nearer = (expression.evaluate(t=times + side * part * end) for part in _DISTANCES)
        with np.errstate(all="ignore"):
            change, before = np.abs(nearer - near), np.abs(near - far)
            grows |= (change > _GROWTH * before) & (change > _ROUNDING * np.abs(near))
    poles = times[grows]
    return float(poles[0]) if len(poles) else None


def _causes(tree: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression whose zeros may be poles: divisors and all within them, as in 1/(t - 3)^2; tan."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Div(), right=divisor):
                yield from (part for part in ast.walk(divisor) if isinstance(part, ast.expr) and _has_t(part))
            case ast.BinOp(left=base, op=ast.Pow()) if _has_t(base):
                yield base
            case ast.Call(func=ast.Name(id="tan"), args=[argument]) if _has_t(argument):
                yield argument


def _has_t(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "t" for part in ast.walk(node))
