"""Expressions in time and place as sums of products f(t)·g(x, y, z), found in their trees."""

import ast
from functools import reduce
from itertools import product

from heatsim.scenario.values.expressions import value_of

# A factor in time and one in place.
Term = tuple[ast.expr, ast.expr]

_ONE = ast.Constant(1.0)
MOST_TERMS = 8
_MOST_ON_THE_WAY = 64  # equal factors are joined at the end


def products_of(tree: ast.expr) -> list[Term] | None:
    """The products whose sum an expression in x, y, z and t is; None if none are found, or too many.

    Where the expression is undefined, as a root of a negative number is, the products may be defined.
    """
    try:
        terms = _terms(tree)
    except _NotSeparableError:
        return None
    joined: dict[str, Term] = {}
    for in_time, in_place in terms:
        key = ast.unparse(in_time)
        joined[key] = (in_time, ast.BinOp(joined[key][1], ast.Add(), in_place) if key in joined else in_place)
    return list(joined.values()) if len(joined) <= MOST_TERMS else None


class _NotSeparableError(Exception):
    """No sum of products is found."""


def _terms(node: ast.expr) -> list[Term]:
    """The terms of a part of a tree."""
    found = _found_terms(node)
    if len(found) > _MOST_ON_THE_WAY:
        raise _NotSeparableError
    return found


def _found_terms(node: ast.expr) -> list[Term]:
    if not _has(node, "t"):
        return [(_ONE, node)]
    # Constant factors go to the place, so that equal factors in time are joined.
    signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    if not _has(node, "xyz") and not signed and not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return [(node, _ONE)]
    match node:
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _terms(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negated(_terms(operand))
        case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
            return _terms(_called("where", node, _ONE, ast.Constant(0.0)))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _terms(left) + _terms(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _terms(left) + _negated(_terms(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [_multiplied(*pair) for pair in product(_terms(left), _terms(right))]
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            in_time, in_place = _single(right)
            inverse = (ast.BinOp(_ONE, ast.Div(), in_time), ast.BinOp(_ONE, ast.Div(), in_place))
            return [_multiplied(term, inverse) for term in _terms(left)]
        case ast.BinOp(left=left, op=ast.Pow() as power, right=right) if not _has(right, "xyzt"):
            exponent = float(value_of(right, {}))
            if exponent in (2.0, 3.0, 4.0):
                terms = _terms(left)
                return [reduce(_multiplied, some) for some in product(terms, repeat=int(exponent))]
            # A root of a product is that of the magnitudes of its factors.
            in_time, in_place = _single(left if exponent.is_integer() else _called("abs", left))
            return [(ast.BinOp(in_time, power, right), ast.BinOp(in_place, power, right))]
        case ast.Call(func=ast.Name(id="abs" as name), args=[argument]):
            in_time, in_place = _single(argument)
            return [(_called(name, in_time), _called(name, in_place))]
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
            return _terms(ast.BinOp(argument, ast.Pow(), ast.Constant(0.5)))
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[ast.Constant(value=0) as zero, argument]):
            # max(0, f·g) = max(0, f)·max(0, g) + min(0, f)·min(0, g)
            in_time, in_place = _single(argument)
            pairs = (("max", "max"), ("min", "min")) if name == "max" else (("max", "min"), ("min", "max"))
            return [(_called(one, zero, in_time), _called(other, zero, in_place)) for one, other in pairs]
        case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
            return _branches(condition, yes, no)
        case ast.Call(func=ast.Name(id="exp"), args=[argument]):
            return [_both("exp", "exp", *_sums(argument))]
        case ast.Call(func=ast.Name(id="sin"), args=[argument]):
            sums = _sums(argument)
            return [_both("sin", "cos", *sums), _both("cos", "sin", *sums)]
        case ast.Call(func=ast.Name(id="cos"), args=[argument]):
            sums = _sums(argument)
            return [_both("cos", "cos", *sums), *_negated([_both("sin", "sin", *sums)])]
    raise _NotSeparableError


def _branches(condition: ast.expr, yes: ast.expr, no: ast.expr) -> list[Term]:
    """The terms of where(condition, yes, no). A branch counts only where it is taken."""
    if _has(condition, "t") and _has(condition, "xyz"):
        match condition:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _branches(operand, no, yes)
            case ast.BoolOp(op=operator, values=[first, *others]):
                rest = others[0] if len(others) == 1 else ast.BoolOp(operator, others)
                inner = _called("where", rest, yes, no)
                return _branches(first, *((inner, no) if isinstance(operator, ast.And) else (yes, inner)))
        raise _NotSeparableError
    place, zero, found = int(_has(condition, "xyz")), ast.Constant(0.0), list[Term]()
    for branch in (yes, no):
        for term in _terms(branch):
            both = (term[place], zero) if branch is yes else (zero, term[place])
            factor = _called("where", condition, *both)
            found.append((factor, term[1]) if place == 0 else (term[0], factor))
    return found


def _has(node: ast.expr, names: str) -> bool:
    """Whether a part of a tree contains any of some variables."""
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))


def _single(node: ast.expr) -> Term:
    terms = _terms(node)
    if len(terms) > 1:
        raise _NotSeparableError
    return terms[0]


def _sums(node: ast.expr) -> tuple[ast.expr, ast.expr]:
    """The part in time alone and that in place alone of which a node is the sum."""
    sums: list[ast.expr] = [ast.Constant(0.0), ast.Constant(0.0)]
    for in_time, in_place in _terms(node):
        if _has(in_time, "t") and _has(in_place, "xyz"):
            raise _NotSeparableError
        place = int(_has(in_place, "xyz"))
        sums[place] = ast.BinOp(sums[place], ast.Add(), ast.BinOp(in_time, ast.Mult(), in_place))
    return sums[0], sums[1]


def _called(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), list(arguments), [])


def _both(one: str, other: str, in_time: ast.expr, in_place: ast.expr) -> Term:
    return _called(one, in_time), _called(other, in_place)


def _negated(terms: list[Term]) -> list[Term]:
    return [(in_time, ast.UnaryOp(ast.USub(), in_place)) for in_time, in_place in terms]


def _multiplied(one: Term, other: Term) -> Term:
    def both(a: ast.expr, b: ast.expr) -> ast.expr:
        return b if a is _ONE else a if b is _ONE else ast.BinOp(a, ast.Mult(), b)

    return both(one[0], other[0]), both(one[1], other[1])
