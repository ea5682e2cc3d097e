"""Numbers that may vary in time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.messages import show
from heatsim.scenario.values import units
from heatsim.scenario.values.averages import Integral, mean_of_samples, mean_of_table
from heatsim.scenario.values.course import course_of, first_place
from heatsim.scenario.values.csv_table import CsvOrigin, read_csv_table
from heatsim.scenario.values.dates import counted_from, seconds_between
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.function_of_time import Constant as Constant
from heatsim.scenario.values.function_of_time import Length
from heatsim.scenario.values.function_of_time import TimeFunction as TimeFunction
from heatsim.scenario.values.function_tables import Numbers, read_table
from heatsim.scenario.values.polyline import nodes, vertices, vertices_of_periods
from heatsim.scenario.values.products import products_of
from heatsim.scenario.values.quantities import Quantity

NEAR_JUMP = 1e-12  # fraction of the end: at this distance from a jump, the value is the one before or after it


@dataclass(frozen=True)
class Formula(TimeFunction):
    """An expression in t.

    Attributes:
        expression: the expression.
        end: the end of the run in s, up to which jumps are found; the scenario sets it; None outside of scenarios.
    """

    expression: Expression
    end: float | None = field(default=None, compare=False)

    @property
    def constant(self) -> bool:
        """Whether the expression does not contain t."""
        return not self.expression.used

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the expression."""
        return self.expression.evaluate(t=times)

    def jumps(self, end: float, error: float = 0.0) -> NDArray[np.float64] | None:
        """Where an operation of the expression jumps or has a kink."""
        return np.zeros(0) if self.constant else course_of(self.expression, 0.0, end).jumps

    def resolved(self, end: float) -> bool:
        """Whether its course is resolved."""
        return self.constant or course_of(self.expression, 0.0, end).resolved

    def nodes(self, end: float) -> NDArray[np.float64]:
        """The nodes of its course."""
        return np.array([0.0, end]) if self.constant else course_of(self.expression, 0.0, end).nodes

    def mean(self, times: NDArray[np.float64], dt: Length) -> NDArray[np.float64]:
        """Means by Gauss–Legendre quadrature in the panels of its course."""
        if self.constant:
            return self.at(times)
        integral = None if self.end is None else _integral(self.expression, self.end)
        return mean_of_samples(self.at, times, dt, self.end) if integral is None else integral.mean(times, dt)

    def last_change(self, end: float) -> float:
        """The time from which the value is that at ``end``, found by bisection after the last node that has another."""
        nodes = self.nodes(end)
        values = self.at(nodes)
        others = np.flatnonzero(values != values[-1])
        last = nodes[others[-1] :][:2] if len(others) else nodes[:1]
        found = first_place(last, [False, True][-len(last) :], lambda time: self._value(time) == values[-1])
        return 0.0 if found is None else found

    def extremes(self, end: float) -> tuple[float, float]:
        """Bounds of the values: attained, unless it changes too often to be resolved."""
        if self.constant:
            return super().extremes(end)
        course = course_of(self.expression, 0.0, end)
        return course.low, course.high

    def fault(self, quantity: Quantity, end: float) -> str | None:
        """What to say about the first value up to ``end`` (s) that is out of range, or about a pole; None if none is.

        It begins with "which", and follows the expression as the user wrote it.
        """
        if not self.constant and len(poles := course_of(self.expression, 0.0, end).poles):
            return f"which grows without bound near t = {float(poles[0]):.9g} s; {quantity.expected}"
        nodes = self.nodes(end)
        values = self.at(nodes)
        if quantity.range_fault(float(values.min())) is None and quantity.range_fault(float(values.max())) is None:
            return None
        faulty = [quantity.range_fault(number) is not None for number in values.tolist()]
        time = first_place(nodes, faulty, lambda time: quantity.range_fault(self._value(time)) is not None)
        if time is None:
            return None
        when, number = "always" if self.constant else f"at t = {time!r} s", self._value(time)
        return f"which is {number!r} {when}; {quantity.range_fault(number)}"

    def _value(self, time: float) -> float:
        return float(self.at(np.array([time]))[0])


@lru_cache(maxsize=256)
def _integral(expression: Expression, end: float) -> Integral | None:
    """The integral of an expression from 0 to ``end`` (s); None if it changes too often to be resolved."""
    course = course_of(expression, 0.0, end)
    return Integral(lambda times: expression.evaluate(t=times), course.edges) if course.resolved else None


@dataclass(frozen=True)
class SpaceFormula(TimeFunction):
    """An expression in x, y, z and t: a function of time at each point, and no function of time in itself."""

    expression: Expression
    end: float | None = field(default=None, compare=False)

    @property
    def constant(self) -> bool:
        """Whether the expression does not contain t."""
        return "t" not in self.expression.used

    def last_change(self, end: float) -> float:
        """The last change of its factors in time; ``end`` if it has none."""
        products = self.products()
        return end if products is None else max(factor.last_change(end) for factor, _ in products)

    def products(self) -> list[tuple[Constant | Formula, Expression]] | None:
        """Factors in time and in place whose products add up to it; None if it is no such sum."""
        found = products_of(self.expression.tree)
        return (
            None
            if found is None
            else [
                (_in_time(Expression.of_tree(in_time, ("t",)), self.end), Expression.of_tree(in_place, ("x", "y", "z")))
                for in_time, in_place in found
            ]
        )

    def at_point(self, x: float, y: float, z: float) -> Constant | Formula:
        """The function of time at a point in m."""
        return _in_time(self.expression.with_values(x=x, y=y, z=z), self.end)


def _in_time(expression: Expression, end: float | None) -> Constant | Formula:
    return Formula(expression, end) if expression.used else Constant(float(expression.evaluate(t=0.0)))


@dataclass(frozen=True)
class Table(TimeFunction):
    """Values at given times: linear in between; constant beyond the ends, or repeated.

    A time may occur twice: there the value jumps from the first of its two values to the second, which holds at the
    time itself.

    Attributes:
        times: ascending times in s.
        values: one value for each time.
        repeat: whether the table starts again at its last time, which is the period; the first time is then 0.
        origin: the columns of a CSV file that the table was read from; None if the scenario has the numbers.
    """

    times: Sequence[float]
    values: Sequence[float]
    repeat: bool = False
    origin: CsvOrigin | None = field(default=None, compare=False)
    _nodes: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _heights: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _constant: bool = field(init=False, repr=False, compare=False)
    _known: dict[float, NDArray[np.float64]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, array in (("times", "_nodes"), ("values", "_heights")):
            given = getattr(self, name)
            numbers = given if isinstance(given, Numbers) else Numbers(given)
            object.__setattr__(self, name, numbers)
            object.__setattr__(self, array, numbers.array)
        object.__setattr__(self, "_constant", bool((self._heights == self._heights[0]).all()))

    def count_from(self, start: datetime) -> None:
        """Count the dates of a CSV file from the start of the run, instead of from the first one; numbers stay.

        Raises:
            ValueError: the dates end before the start, or only one of them has a time zone.
        """
        if self.origin is None or self.origin.first is None:
            return
        first = self.origin.first
        since = seconds_between(first, start)
        try:
            times, values = counted_from(self._nodes, self._heights, self.repeat, since)
        except ValueError:
            end = first + timedelta(seconds=self.times[-1])
            raise ValueError(
                f"its dates reach from {first.isoformat()} to {end.isoformat()}, and the run starts at "
                f"{start.isoformat()}: change time.start, or write repeat = true"
            ) from None
        for name, value in (("times", times), ("values", values), ("origin", replace(self.origin, first=start))):
            object.__setattr__(self, name, value)
        self._known.clear()
        self.__post_init__()

    @property
    def constant(self) -> bool:
        """Whether all values are equal."""
        return self._constant

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values interpolated in the table."""
        local = np.mod(times, self.times[-1]) if self.repeat else times
        return np.asarray(np.interp(local, self._nodes, self._heights), dtype=np.float64)

    def jumps(self, end: float, error: float = 0.0) -> NDArray[np.float64] | None:
        """The times of the table, without those that straight lines between the others replace."""
        if self.constant:
            return np.zeros(0)
        return (vertices_of_periods if self.repeat else vertices)(self._nodes, self._heights, end, error)

    def mean(self, times: NDArray[np.float64], dt: Length) -> NDArray[np.float64]:
        """Exact means, for any number of the table's times within a step."""
        return mean_of_table(self._nodes, self._heights, self.repeat, times, dt)

    def nodes(self, end: float) -> NDArray[np.float64]:
        """The times of the table within the run, with both sides of each jump; at most 2²⁰ of a repeated table."""
        if end not in self._known:
            self._known[end] = nodes(self._nodes, self._heights, self.repeat, end)
        return self._known[end]

    def last_change(self, end: float) -> float:
        """The end of the last interval before ``end`` in which the value changes."""
        starts, stops = self._nodes[:-1], self._nodes[1:]
        changes = self._heights[:-1] != self._heights[1:]
        if self.repeat:
            # The last two periods, and the jumps at their starts.
            period = self.times[-1]
            cycles = period * np.array([[max(end // period - 1.0, 0.0)], [end // period]])
            jumps = np.where(self._heights[0] != self._heights[-1], cycles[:, 0], 0.0)
            starts, stops = (np.append(cycles + times, jumps) for times in (starts, stops))
            changes = np.append(np.tile(changes, 2), [True, True])
        return float(np.minimum(stops[changes & (starts < end)], end).max(initial=0.0))


def read_time_function(
    value: object, quantity: Quantity, folder: Path = Path(), in_space: bool = False
) -> TimeFunction:
    """A value from TOML: number, text with a unit, expression in t, table, or columns of a CSV file.

    Args:
        value: the value in the file.
        quantity: its quantity; all numbers must be in its range.
        folder: where relative paths start.
        in_space: whether an expression may have x, y and z too.

    Raises:
        ValueError: the value is not valid; the message is for the user.
        ValidationError: mistakes inside a table, each at its key.
    """
    if isinstance(value, TimeFunction):
        return value
    if isinstance(value, Mapping):
        if "file" in value or "column" in value:
            return Table(*read_csv_table(value, quantity, folder))
        return Table(*read_table(value, quantity))
    if isinstance(value, str) and units.split(value) is None:
        return _read_formula(value, quantity, in_space)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(
            f"got {show(value)}; {quantity.expected}, as an expression in t, as {{ times = […], values = […] }}, or as "
            '{ file = "….csv", time = "…", column = "…" }'
        )
    return Constant(quantity.read(value))


def _read_formula(text: str, quantity: Quantity, in_space: bool) -> Formula | SpaceFormula:
    wanted = "in x, y, z (in m) and t (in s)" if in_space else "in t (in s)"
    expression = quantity.read_expression(text, ("x", "y", "z", "t") if in_space else ("t",), wanted)
    if expression.used & {"x", "y", "z"}:
        return SpaceFormula(expression)
    return Formula(Expression(text, ("t",)))
