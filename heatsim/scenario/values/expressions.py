"""Formulas in a scenario: parsed with a whitelist and evaluated with NumPy, never executed as code."""

import ast
import copy
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.scenario.messages import did_you_mean, show

MAX_LENGTH = 1000
MAX_DEPTH = 100
MAX_NODES = 1000
FORBIDDEN = re.compile(r"[^A-Za-z0-9_.+\-*/^%(),<>=! ]")

# What stands behind a number where an expression cannot be read any more.
_UNIT = re.compile(r"[A-Za-z]+\b(?!\()")

CONSTANTS = {"pi": np.float64(np.pi), "e": np.float64(np.e)}


def _truth(value: Any) -> Any:
    """1.0 or 0.0 for a comparison, because NumPy does not subtract booleans."""
    return np.asarray(value).astype(np.float64)


# Name: function, fewest arguments, most arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "sin": (np.sin, 1, 1),
    "cos": (np.cos, 1, 1),
    "tan": (np.tan, 1, 1),
    "asin": (np.arcsin, 1, 1),
    "acos": (np.arccos, 1, 1),
    "atan": (np.arctan, 1, 1),
    "atan2": (np.arctan2, 2, 2),
    "sinh": (np.sinh, 1, 1),
    "cosh": (np.cosh, 1, 1),
    "tanh": (np.tanh, 1, 1),
    "exp": (np.exp, 1, 1),
    "log": (np.log, 1, 1),
    "log10": (np.log10, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
    "abs": (np.abs, 1, 1),
    "floor": (np.floor, 1, 1),
    "ceil": (np.ceil, 1, 1),
    "sign": (np.sign, 1, 1),
    "min": (lambda *values: reduce(np.minimum, values), 2, 20),
    "max": (lambda *values: reduce(np.maximum, values), 2, 20),
    "where": (lambda condition, yes, no: np.where(np.not_equal(condition, 0.0), yes, no), 3, 3),
}
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: lambda value: value,
    ast.USub: np.negative,
    ast.Not: lambda value: _truth(np.equal(value, 0.0)),
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
BOOLEAN: dict[type[ast.boolop], Callable[[Any, Any], Any]] = {ast.And: np.logical_and, ast.Or: np.logical_or}

ALLOWED = (
    "numbers, + - * / % ^ (or **), comparisons, and, or, not, pi, e, and the functions "
    + ", ".join(FUNCTIONS)
    + " are allowed"
)


@dataclass(frozen=True)
class Expression:
    """A formula such as "300 + 80*exp(-x^2)" in the variables ``names``.

    Expressions with equal texts and variables are equal. ``used`` has the variables in the text.

    Raises:
        ValueError: the text is too long, nested too deeply or outside the whitelist; the message is for the user.
    """

    text: str
    names: tuple[str, ...]
    used: frozenset[str] = field(init=False, repr=False, compare=False)
    tree: ast.expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tree = _parse(self.text)
        _check(tree, self.names)
        mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        object.__setattr__(self, "used", frozenset(mentioned & set(self.names)))
        object.__setattr__(self, "tree", tree)

    @classmethod
    def of_tree(cls, tree: ast.expr, names: tuple[str, ...]) -> "Expression":
        """The formula of a tree that was made from one; it may be longer than the whitelist allows."""
        mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        found = object.__new__(cls)
        for name, value in (
            ("text", ast.unparse(tree)),
            ("names", names),
            ("used", frozenset(mentioned & set(names))),
            ("tree", tree),
        ):
            object.__setattr__(found, name, value)
        return found

    def with_values(self, **values: float) -> "Expression":
        """The same formula with numbers in place of some of its variables."""
        names = tuple(name for name in self.names if name not in values)
        return self.of_tree(_Substitution(values).visit(copy.deepcopy(self.tree)), names)

    def times(self, name: str) -> "Expression":
        """The product with one of its variables."""
        return self.of_tree(ast.BinOp(ast.Name(name, ast.Load()), ast.Mult(), self.tree), self.names)

    def evaluate(self, **arrays: ArrayLike) -> NDArray[np.float64]:
        """The values at points, with one array of coordinates for each variable.

        The result has the common shape of the arrays, for a constant expression too. Values can be infinite or NaN,
        without a warning; the caller checks them.
        """
        if set(arrays) != set(self.names):
            raise TypeError(f"variables {sorted(arrays)} given, {sorted(self.names)} needed")
        variables = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
        result = np.empty(np.broadcast_shapes(*(array.shape for array in variables.values())))
        with np.errstate(all="ignore"):
            result[...] = value_of(self.tree, variables)
        return result


class _Substitution(ast.NodeTransformer):
    """Replaces variables by numbers."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A number for a variable; a negative one as the negation of a positive one, as in a formula."""
        if node.id not in self._values:
            return node
        value = float(self._values[node.id])
        number = ast.Constant(abs(value))
        return ast.UnaryOp(ast.USub(), number) if value < 0.0 else number


def _parse(text: str) -> ast.expr:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression of {len(text)} characters is too long; at most {MAX_LENGTH} are allowed")
    plain = re.sub(r"\s", " ", text).strip()
    if not plain:
        raise ValueError("an empty expression")
    strange = FORBIDDEN.search(plain)
    if strange:
        raise ValueError(f"{show(strange[0])} is not allowed in an expression; {ALLOWED}")
    source = plain.replace("^", "**")
    try:
        with warnings.catch_warnings():
            # Python warns about spellings such as "1or 2"; here they are read like any other text.
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        rest = source[max((error.offset or 1) - 1, 0) :]
        unit = "; numbers in an expression have no unit: they are in SI units" if _UNIT.match(rest) else ""
        raise ValueError(f"cannot be read as an expression at {show(rest) if rest else 'its end'}{unit}") from None
    except (RecursionError, MemoryError):
        raise ValueError("an expression nested too deeply") from None
    except ValueError:
        raise ValueError("cannot be read as an expression") from None


def _check(tree: ast.expr, names: tuple[str, ...]) -> None:
    """Refuse everything outside the whitelist; an explicit stack handles any depth."""
    count = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            raise ValueError(f"too involved; at most {MAX_DEPTH} levels and {MAX_NODES} terms are allowed")
        stack.extend((child, depth + 1) for child in _operands(node, names))


def _operands(node: ast.AST, names: tuple[str, ...]) -> list[ast.expr]:
    """The operands of an allowed node."""
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            return []
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise ValueError(f"{name} is a function; write {name}(…)")
            known = (*names, *CONSTANTS)
            if name not in known:
                raise ValueError(
                    f'"{name}" is not known; known are {", ".join(known)}{did_you_mean(name, [*known, *FUNCTIONS])}'
                )
            return []
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in BINARY:
            return [left, right]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in UNARY:
            return [operand]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARISONS for op in ops):
            return [left, *others]
        case ast.BoolOp(values=values):
            return values
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                known = tuple(FUNCTIONS)
                raise ValueError(f"{show(name)} is not a known function; {ALLOWED}{did_you_mean(name, known)}")
            _, fewest, most = FUNCTIONS[name]
            if not fewest <= len(arguments) <= most:
                wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
                raise ValueError(f"{name} takes {wanted} arguments, not {len(arguments)}")
            return arguments
        case _:
            pass
    part = ast.unparse(node) if isinstance(node, ast.Constant) else type(node).__name__
    raise ValueError(f"{part} is not allowed in an expression; {ALLOWED}")


def value_of(node: ast.expr, variables: Mapping[str, NDArray[np.float64]]) -> Any:
    """The value of an expression's tree, or of a part of it: an array, or a number if no variable is used."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return _constant(number)
        case ast.Name(id=name):
            return variables[name] if name in variables else CONSTANTS[name]
        case ast.BinOp(left=left, op=operator, right=right):
            return BINARY[type(operator)](value_of(left, variables), value_of(right, variables))
        case ast.UnaryOp(op=sign, operand=operand):
            return UNARY[type(sign)](value_of(operand, variables))
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [value_of(operand, variables) for operand in (left, *others)]
            results = [COMPARISONS[type(op)](values[i], values[i + 1]) for i, op in enumerate(ops)]
            return _truth(reduce(np.logical_and, results))
        case ast.BoolOp(op=operator, values=operands):
            return _truth(
                reduce(BOOLEAN[type(operator)], [_truth_of(value_of(operand, variables)) for operand in operands])
            )
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name][0](*(value_of(argument, variables) for argument in arguments))
    raise AssertionError(f"{type(node).__name__} passed the whitelist")


def _truth_of(value: Any) -> Any:
    return np.not_equal(value, 0.0)


def _constant(number: int | float) -> np.float64:
    """A float: nested powers of Python's integers would never end, those of floats are infinite."""
    try:
        return np.float64(number)
    except OverflowError:
        return np.float64(np.inf)
