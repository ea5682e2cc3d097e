"""Numbers that may vary in time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import units
from heatsim.scenario.averages import Integral, Length, mean_of_samples, mean_of_table
from heatsim.scenario.csv_table import CsvOrigin, read_csv_table
from heatsim.scenario.expressions import Expression
from heatsim.scenario.function_of_time import Constant as Constant
from heatsim.scenario.function_of_time import TimeFunction as TimeFunction
from heatsim.scenario.function_tables import read_table
from heatsim.scenario.messages import show
from heatsim.scenario.poles import pole_in
from heatsim.scenario.polyline import nodes, vertices, vertices_of_periods
from heatsim.scenario.quantities import Quantity
from heatsim.scenario.switching import switching_times

SAMPLES = 4096
# Multiples of the golden ratio, modulo 1, fill an interval evenly and resonate with no periodic function.
GOLDEN = 0.6180339887498949
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
        return np.zeros(0) if self.constant else switching_times(self.expression, end)

    def mean(self, times: NDArray[np.float64], dt: Length) -> NDArray[np.float64]:
        """Means by Gauss–Legendre quadrature with three points, between the jumps of the expression."""
        if self.constant:
            return self.at(times)
        jumps = None if self.end is None else switching_times(self.expression, self.end)
        if jumps is None:
            return mean_of_samples(self.at, times, dt, self.end)
        return Integral(self.at, np.concatenate(([0.0], jumps, [self.end or 0.0]))).mean(times, dt)

    def nodes(self, end: float) -> NDArray[np.float64]:
        """0, the jumps, and ``end``."""
        jumps = self.jumps(end)
        return np.concatenate((np.zeros(1), np.zeros(0) if jumps is None else jumps, np.full(1, end)))

    def samples(self, end: float) -> NDArray[np.float64]:
        """0, ``end`` and 4,096 times between them, spread so that they meet an oscillation in all of its phases."""
        if self.constant:
            return np.zeros(1)
        between = np.mod(np.arange(1, SAMPLES + 1) * GOLDEN, 1.0)
        return np.concatenate(([0.0], np.sort(between) * end, [end]))

    def last_change(self, end: float) -> float:
        """The first tested time from which all tested values equal the one at ``end``.

        Tested are the samples, and the times just before and after the last jumps. If there are too many jumps to find,
        ``end``.
        """
        jumps = self.jumps(end)
        if jumps is None:
            return end
        last = jumps[-SAMPLES:]
        times = np.concatenate((self.samples(end), last - NEAR_JUMP * end, last + NEAR_JUMP * end))
        times = np.unique(np.clip(times, 0.0, end))
        values = self.at(times)
        others = np.flatnonzero(values != values[-1])
        return float(times[others[-1] + 1]) if len(others) else 0.0

    def extremes(self, end: float) -> tuple[float, float]:
        """The lowest and highest value at the samples, and just before and after at most 4,096 jumps."""
        times, jumps = self.samples(end), self.jumps(end)
        if jumps is not None and len(jumps):
            some = jumps[np.linspace(0.0, len(jumps) - 1.0, min(len(jumps), SAMPLES)).astype(np.intp)]
            times = np.clip(np.concatenate((times, some - NEAR_JUMP * end, some + NEAR_JUMP * end)), 0.0, end)
        values = self.at(times)
        return float(values.min()), float(values.max())


@dataclass(frozen=True)
class SpaceFormula(TimeFunction):
    """An expression in x, y, z and t: a function of time at each point.

    Only ``constant``, ``last_change`` and ``at_point`` have a meaning.
    """

    expression: Expression
    end: float | None = field(default=None, compare=False)

    @property
    def constant(self) -> bool:
        """Whether the expression does not contain t."""
        return "t" not in self.expression.used

    def last_change(self, end: float) -> float:
        """0 for an expression without t, else ``end``."""
        return 0.0 if self.constant else end

    def at_point(self, x: float, y: float, z: float) -> Constant | Formula:
        """The function of time at a point in m."""
        expression = self.expression.with_values(x=x, y=y, z=z)
        if not expression.used:
            return Constant(float(expression.evaluate(t=0.0)))
        return Formula(expression, self.end)


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

    times: tuple[float, ...]
    values: tuple[float, ...]
    repeat: bool = False
    origin: CsvOrigin | None = field(default=None, compare=False)
    _nodes: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _heights: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _constant: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_nodes", np.array(self.times, dtype=np.float64))
        object.__setattr__(self, "_heights", np.array(self.values, dtype=np.float64))
        object.__setattr__(self, "_constant", len(set(self.values)) == 1)

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
        return nodes(self._nodes, self._heights, self.repeat, end)

    def samples(self, end: float) -> NDArray[np.float64]:
        """The table's times within [0, end], and the ends; for a repeated table those of the first period.

        At a jump, the moment just before it is included.
        """
        steps = self._nodes[1:][np.diff(self._nodes) == 0.0]
        nodes = np.concatenate((self._nodes, np.nextafter(steps, 0.0)))
        nodes = nodes[(nodes > 0.0) & (nodes < end)]
        last = end
        if self.repeat and end >= self.times[-1]:
            # At the period itself the table has started again; its last value is just before.
            nodes = nodes[nodes < self.times[-1]]
            last = float(np.nextafter(self.times[-1], 0.0))
        return np.unique(np.concatenate(([0.0], nodes, [last])))

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
    wanted = "x, y, z (in m) and t (in s)" if in_space else "t (in s)"
    try:
        expression = Expression(text, ("x", "y", "z", "t") if in_space else ("t",))
    except ValueError as error:
        advice = quantity.advice(text)
        if advice == quantity.expected:
            advice = f"{error}; {advice}, or as an expression in {wanted}"
        raise ValueError(f"got {show(text)}; {advice}") from None
    if expression.used & {"x", "y", "z"}:
        return SpaceFormula(expression)
    return Formula(Expression(text, ("t",)))


def find_out_of_range(formula: Formula, quantity: Quantity, end: float) -> str | None:
    """The message about the first sample in [0, ``end``] (s) that is out of range, or about a pole, or None."""
    times = formula.samples(end)
    values = formula.at(times)
    for time, number in zip(times.tolist(), values.tolist(), strict=True):
        outside = quantity.range_fault(number)
        if outside:
            when = "always" if formula.constant else f"at t = {time!r} s"
            return f"got {show(formula.expression.text)}, which is {number!r} {when}; {outside}"
    pole = None if formula.constant else pole_in(formula.expression, end)
    if pole is not None:
        return f"got {show(formula.expression.text)}, {pole}; {quantity.expected}"
    return None
