"""Values of an expression at points of pieces in which it is smooth.

In a piece of one variable between its jumps, each operation that could jump has the outcome that it has at the first
point of the piece. So the values are those of one smooth function, up to both ends of the piece.
"""

import ast
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.expressions import BINARY, BOOLEAN, COMPARISONS, FUNCTIONS, UNARY, value_of

Array = NDArray[np.float64]


def variables_in(tree: ast.AST, names: Sequence[str]) -> set[int]:
    """The parts of a tree that contain a variable, by their id()."""
    found: set[int] = set()

    def visit(node: ast.AST) -> bool:
        inside = [visit(child) for child in ast.iter_child_nodes(node)]
        if any(inside) or (isinstance(node, ast.Name) and node.id in names):
            found.add(id(node))
            return True
        return False

    visit(tree)
    return found


class PointValues:
    """Values of an expression and its parts at points of pieces.

    Args:
        variables: points, shape (points, pieces).
        chosen: whether operations that could jump have the outcome that they have at the first point of each piece.
    """

    def __init__(self, variables: Mapping[str, Array], chosen: bool) -> None:
        self._variables, self._chosen = variables, chosen
        self._known: dict[int, Array] = {}

    def of(self, node: ast.expr) -> Array:
        """The values of a part, shape (points or 1, pieces or 1)."""
        if id(node) not in self._known:
            found = self._decided(node) if self._chosen else None
            self._known[id(node)] = np.atleast_2d(self._plain(node) if found is None else found)
        return self._known[id(node)]

    def _plain(self, node: ast.expr) -> Array:
        match node:
            case ast.Name(id=name) if name in self._variables:
                return self._variables[name]
            case ast.BinOp(left=left, op=operator, right=right):
                return np.asarray(BINARY[type(operator)](self.of(left), self.of(right)))
            case ast.UnaryOp(op=sign, operand=operand):
                return np.asarray(UNARY[type(sign)](self.of(operand)))
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self.of(each) for each in (left, *others)]
                results = (COMPARISONS[type(op)](a, b) for op, (a, b) in zip(ops, pairwise(values), strict=True))
                return np.asarray(reduce(np.logical_and, results)).astype(np.float64)
            case ast.BoolOp(op=operator, values=operands):
                truths = (self.of(operand) != 0.0 for operand in operands)
                return np.asarray(reduce(BOOLEAN[type(operator)], truths)).astype(np.float64)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return np.asarray(FUNCTIONS[name][0](*map(self.of, arguments)))
            case _:
                return np.asarray(value_of(node, {}))

    def _decided(self, node: ast.expr) -> Array | None:
        """The values of an operation that could jump; None for others."""
        match node:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self._plain(node)[:1]
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                a, b = self.of(left), self.of(right)
                return np.asarray(a - b * whole_quotient(a[:1], b[:1]))
            case ast.Call(func=ast.Name(id="floor" | "ceil" | "sign"), args=_):
                return self._plain(node)[:1]
            case ast.Call(func=ast.Name(id="abs"), args=[argument]):
                a = self.of(argument)
                return np.where(a[:1] < 0.0, -a, a)
            case ast.Call(func=ast.Name(id="atan2"), args=[first, second]):
                side = np.copysign(1.0, self.of(first)[:1])
                return np.asarray(np.arctan2(side * np.maximum(side * self.of(first), 0.0), self.of(second)))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=arguments):
                sign = 1.0 if name == "min" else -1.0
                return reduce(lambda a, b: np.where(sign * (b - a)[:1] < 0.0, b, a), map(self.of, arguments))
            case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
                return np.where(self.of(condition)[:1] != 0.0, self.of(yes), self.of(no))
        return None


def whole_quotient(a: Array, b: Array) -> Array:
    """⌊a/b⌋ as in a % b."""
    return np.asarray(np.round((a - np.mod(a, b)) / b))
