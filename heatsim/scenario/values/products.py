"""Expressions in time and place as sums of products f(t)·g(x, y, z), found in their trees."""

import ast
from functools import reduce
from itertools import product

from heatsim.scenario.values.points import variables_in

# A factor in time and one in place.
Term = tuple[ast.expr, ast.expr]

_ONE = ast.Constant(1.0)
_MOST_TERMS = 64  # on the way; equal factors are joined at the end


def products_of(tree: ast.expr, most: int) -> list[Term] | None:
    """The products whose sum an expression in x, y, z and t is; None if none are found, or more than ``most``."""
    try:
        terms = _Splitter(tree).terms(tree)
    except _NotSeparableError:
        return None
    joined: dict[str, Term] = {}
    for in_time, in_place in terms:
        key = ast.unparse(in_time)
        joined[key] = (in_time, ast.BinOp(joined[key][1], ast.Add(), in_place) if key in joined else in_place)
    return list(joined.values()) if len(joined) <= most else None


class _NotSeparableError(Exception):
    """No sum of products is found."""


class _Splitter:
    """Finds the terms of the parts of a tree."""

    def __init__(self, tree: ast.expr) -> None:
        self._with_t, self._with_place = variables_in(tree, ("t",)), variables_in(tree, ("x", "y", "z"))

    def terms(self, node: ast.expr) -> list[Term]:
        """The terms of a part."""
        found = self._terms(node)
        if len(found) > _MOST_TERMS:
            raise _NotSeparableError
        return found

    def _terms(self, node: ast.expr) -> list[Term]:
        if id(node) not in self._with_t:
            return [(_ONE, node)]
        if id(node) not in self._with_place:
            return [(node, _ONE)]
        match node:
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.terms(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _negated(self.terms(operand))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.terms(left) + self.terms(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.terms(left) + _negated(self.terms(right))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return [_multiplied(*pair) for pair in product(self.terms(left), self.terms(right))]
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                in_time, in_place = self._single(right)
                inverse = (ast.BinOp(_ONE, ast.Div(), in_time), ast.BinOp(_ONE, ast.Div(), in_place))
                return [_multiplied(term, inverse) for term in self.terms(left)]
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if 0 < power <= 4:
                found = terms = self.terms(left)
                for _ in range(power - 1):
                    found = [_multiplied(*pair) for pair in product(found, terms)]
                return found
            case ast.Call(func=ast.Name(id="where") as function, args=[condition, yes, no]):
                place = 1 if id(condition) not in self._with_t else 0
                if place == 0 and id(condition) in self._with_place:
                    raise _NotSeparableError
                # A branch counts only where it is taken.
                zero = ast.Constant(0.0)
                return [
                    _replaced(term, place, ast.Call(function, [condition, *branches(term[place])], []))
                    for branch, branches in ((yes, lambda factor: (factor, zero)), (no, lambda factor: (zero, factor)))
                    for term in self.terms(branch)
                ]
            case ast.Call(func=ast.Name(id="exp") as function, args=[argument]):
                # exp(a + b) = exp(a)·exp(b)
                parts = [self._pure(term) for term in self.terms(argument)]
                factors = [_replaced(part, at, ast.Call(function, [part[at]], [])) for part, at in parts]
                return [reduce(_multiplied, factors)]
        raise _NotSeparableError

    def _single(self, node: ast.expr) -> Term:
        terms = self.terms(node)
        if len(terms) > 1:
            raise _NotSeparableError
        return terms[0]

    def _pure(self, term: Term) -> tuple[Term, int]:
        """A term that depends on time or on place alone, and which of its factors does."""
        for place, other in ((0, 1), (1, 0)):
            if term[other] is _ONE:
                return term, place
        raise _NotSeparableError


def _negated(terms: list[Term]) -> list[Term]:
    return [
        (ast.UnaryOp(ast.USub(), in_time), _ONE) if in_place is _ONE else (in_time, ast.UnaryOp(ast.USub(), in_place))
        for in_time, in_place in terms
    ]


def _multiplied(one: Term, other: Term) -> Term:
    def both(a: ast.expr, b: ast.expr) -> ast.expr:
        return b if a is _ONE else a if b is _ONE else ast.BinOp(a, ast.Mult(), b)

    return both(one[0], other[0]), both(one[1], other[1])


def _replaced(term: Term, place: int, factor: ast.expr) -> Term:
    return (factor, term[1]) if place == 0 else (term[0], factor)
