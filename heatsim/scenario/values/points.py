"""Expressions as lists of simple operations, and their values at points of pieces in which they are smooth.

Each formula becomes few kinds of operations, each after its operands. What can jump or has a kink is one of these:

    below, upto, equal    whether a value is < 0, ≤ 0, = 0: a < b is below(a − b), ``not a`` is equal(a)
    floor                 ceil(a) is −floor(−a); a % b is a − b·floor(a/b), "rest"
    abs, min              max(a, b) is −min(−a, −b)
    where, atan2

In a piece of one variable between its jumps, each of them has the outcome that it has at the first point of the piece.
So the values are those of one smooth function, up to both ends of the piece.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.expressions import FUNCTIONS, value_of

Array = NDArray[np.float64]
Guards = tuple[tuple[int, bool], ...]

_PLAIN: dict[str, Callable[..., Any]] = {
    **{name: function for name, (function, _, _) in FUNCTIONS.items()},
    "add": np.add,
    "negative": np.negative,
    "times": np.multiply,
    "over": np.divide,
    "power": np.power,
    "below": lambda a: np.less(a, 0.0) * 1.0,
    "upto": lambda a: np.less_equal(a, 0.0) * 1.0,
    "equal": lambda a: np.equal(a, 0.0) * 1.0,
    "min": lambda a, b, _: np.minimum(a, b),
    "rest": lambda a, b, _: np.mod(a, b),
}


def _angle_on_one_side(y: Array, x: Array) -> Any:
    side = np.copysign(1.0, y[:1])
    return np.arctan2(side * np.maximum(side * y, 0.0), x)


_CHOSEN: dict[str, Callable[..., Any]] = _PLAIN | {
    **{kind: lambda a, apply=_PLAIN[kind]: apply(a[:1]) for kind in ("below", "upto", "equal", "floor")},
    "abs": lambda a: np.where(a[:1] < 0.0, -a, a),
    "min": lambda a, b, b_less_a: np.where(b_less_a[:1] < 0.0, b, a),
    "rest": lambda a, b, whole: a - b * whole,
    "atan2": _angle_on_one_side,
}


class Operation(NamedTuple):
    """An operation.

    Attributes:
        kind: its name; "name" for a variable, "number" for a constant.
        operands: the places of its operands in the list; of min also that of b − a, of rest also that of ⌊a/b⌋.
        guards: conditions and the outcome with which it counts: the branches of ``where`` in which it stands.
        value: the name of a variable, or a number.
    """

    kind: str
    operands: tuple[int, ...]
    guards: Guards
    value: str | float = 0.0


class Operations:
    """The operations of a tree, the tree itself the last of them.

    Attributes:
        names: the variables.
        all: the operations.
        varying: whether each of them contains a variable.
    """

    def __init__(self, tree: ast.expr, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.all: list[Operation] = []
        self.varying: list[bool] = []
        self._known: dict[Operation, int] = {}
        self._read_at_last = self._read(tree, ())
        self.needed = cache(self._needed)

    @property
    def last(self) -> int:
        """The place of the whole."""
        return self._read_at_last

    def _needed(self, place: int) -> list[int]:
        """The operations on which one depends, itself included, in order."""
        found, rest = set[int](), [place]
        while rest:
            if (at := rest.pop()) not in found:
                found.add(at)
                rest += self.all[at].operands
        return sorted(found)

    def _add(self, guards: Guards, kind: str, *operands: int, value: str | float = 0.0) -> int:
        """The place of an operation, which may be there already."""
        if operands and not any(self.varying[place] for place in operands):
            with np.errstate(all="ignore"):
                folded = float(_PLAIN[kind](*(np.float64(self.all[place].value) for place in operands)))
            kind, operands, value = "number", (), folded
        if kind == "negative" and self.all[operands[0]].kind == "negative":
            return self.all[operands[0]].operands[0]
        for outer in range(len(guards) + 1):
            known = self._known.get(Operation(kind, operands, guards[:outer], repr(value)))
            if known is not None:
                return known
        self._known[Operation(kind, operands, guards, repr(value))] = len(self.all)
        self.all.append(Operation(kind, operands, guards, value))
        self.varying.append(kind == "name" or bool(operands))
        return len(self.all) - 1

    def _read(self, node: ast.expr, guards: Guards) -> int:
        def add(kind: str, *operands: int) -> int:
            return self._add(guards, kind, *operands)

        def read(part: ast.expr) -> int:
            return self._read(part, guards)

        def difference(a: int, b: int) -> int:
            return add("add", a, add("negative", b))

        match node:
            case ast.Name(id=name) if name in self.names:
                return self._add(guards, "name", value=name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return read(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return add("negative", read(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return add("equal", read(operand))
            case ast.BinOp(left=left, op=operator, right=right):
                a, b = read(left), read(right)
                match operator:
                    case ast.Sub():
                        return difference(a, b)
                    case ast.Mod():
                        return add("rest", a, b, add("floor", add("over", a, b)))
                kinds: dict[type[ast.operator], str] = {
                    ast.Add: "add",
                    ast.Mult: "times",
                    ast.Div: "over",
                    ast.Pow: "power",
                }
                return add(kinds[type(operator)], a, b)
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [read(each) for each in (left, *others)]
                truths = []
                for op, (a, b) in zip(ops, pairwise(sides), strict=True):
                    off = difference(b, a) if isinstance(op, ast.Gt | ast.GtE) else difference(a, b)
                    kind = "below" if isinstance(op, ast.Lt | ast.Gt) else "upto"
                    truth = add("equal" if isinstance(op, ast.Eq | ast.NotEq) else kind, off)
                    truths.append(add("equal", truth) if isinstance(op, ast.NotEq) else truth)
                return reduce(partial(add, "times"), truths)
            case ast.BoolOp(op=operator, values=operands):
                # a and b: not a + not b is 0; a or b: not a times not b is 0.
                kind = "add" if isinstance(operator, ast.And) else "times"
                return add("equal", reduce(partial(add, kind), [add("equal", read(each)) for each in operands]))
            case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
                turned = add("equal", read(condition))
                if not self.varying[turned]:
                    return read(no if self.all[turned].value else yes)
                branches = (
                    self._read(branch, (*guards, (turned, taken))) for branch, taken in ((no, True), (yes, False))
                )
                return add("where", turned, *branches)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._called(name, [read(argument) for argument in arguments], add)
        return self._add(guards, "number", value=float(value_of(node, {})))

    def _called(self, name: str, found: list[int], add: Callable[..., int]) -> int:
        a = found[0]
        match name:
            case "ceil":
                return add("negative", add("floor", add("negative", a)))
            case "sign":
                return add("add", add("below", add("negative", a)), add("negative", add("below", a)))
            case "tan":
                return add("over", add("sin", a), add("cos", a))
            case "max":
                return add("negative", self._called("min", [add("negative", each) for each in found], add))
            case "min":
                return reduce(lambda a, b: add("min", a, b, add("add", b, add("negative", a))), found)
        return add(name, *found)

    @property
    def jump_together(self) -> bool:
        """Whether any operation may jump where all variables together reach a value: at places that move."""
        smooth = list[frozenset[str]]()  # the variables with which each operation changes without a jump
        for kind, operands, _, value in self.all:
            on = frozenset([str(value)] if kind == "name" else ()).union(*(smooth[each] for each in operands))
            jumps = kind in ("below", "upto", "equal", "floor")
            if jumps and on == {*self.names}:
                return True
            smooth.append(frozenset() if jumps else on)
        return False

    def values(self, place: int, variables: Mapping[str, Array], chosen: bool) -> dict[int, Array]:
        """The values of an operation and of those on which it depends, at points of pieces.

        Args:
            place: of the operation.
            variables: points, shape (points, pieces).
            chosen: whether operations that could jump have the outcome that they have at the first point of each piece.

        Returns:
            Arrays of shape (points or 1, pieces or 1).
        """
        functions, found = _CHOSEN if chosen else _PLAIN, dict[int, Array]()
        for at in self.needed(place):
            kind, operands, _, value = self.all[at]
            if operands:
                found[at] = np.asarray(functions[kind](*(found[each] for each in operands)))
            else:
                found[at] = variables[str(value)] if kind == "name" else np.full((1, 1), value, dtype=np.float64)
        return found
