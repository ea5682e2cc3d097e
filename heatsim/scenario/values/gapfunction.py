"""The conductance of a contact as a function of the mean temperature of its two surfaces and of time."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.scenario.messages import show
from heatsim.scenario.values import units
from heatsim.scenario.values.course import course_of, refined
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.function_of_time import TimeFunction
from heatsim.scenario.values.materialfunction import (
    MaterialFormula,
    MaterialFunction,
    MaterialTable,
    read_material_function,
)
from heatsim.scenario.values.quantities import Quantity
from heatsim.scenario.values.surfacefunction import SURFACE, SurfaceFunction, SurfaceTable
from heatsim.scenario.values.timefunction import Formula, read_time_function

Array = NDArray[np.float64]

_TIMES, _PARTS = 256, 4  # moments at which values are checked at most; parts of the time between two nodes


@dataclass(frozen=True)
class GapFormula(SurfaceFunction):
    """An expression in T, the mean temperature of two surfaces in K, and t in s.

    As a function of time it counts as constant; :meth:`at_temperature` gives its course at one temperature.
    """

    expression: Expression

    def of(self, T: ArrayLike, ambient: ArrayLike) -> Array:
        """Values at temperatures in K, and at times in s in the place of an ambient temperature."""
        return self.expression.evaluate(T=T, t=ambient)

    def last_change(self, end: float) -> float:
        """``end`` if it contains t."""
        return end if "t" in self.expression.used else 0.0

    def at_temperature(self, T: float, end: float) -> Formula:
        """The function of time at a temperature in K; ``end``: of the run in s."""
        return Formula(self.expression.with_values(T=T), end)


Conducting = TimeFunction | MaterialFunction | float


def values_at(function: Conducting, T: Array, times: Array) -> Array:
    """Values at temperatures in K and times in s, shape (times, temperatures); the caller checks them."""
    if isinstance(function, GapFormula):
        return function.of(T, times[:, None])
    if isinstance(function, SurfaceTable | MaterialFunction):
        values = function.at(T) if isinstance(function, MaterialFunction) else function.table.at(T)
        return np.broadcast_to(values, (len(times), len(T)))
    values = np.full(len(times), function) if isinstance(function, float) else function.at(times)
    return np.broadcast_to(values[:, None], (len(times), len(T)))


def temperature_nodes(function: Conducting, low: float, high: float, end: float) -> Array:
    """Temperatures in K from ``low`` to ``high`` between which a function is smooth; all those of a table."""
    if isinstance(function, SurfaceTable):
        return np.array(function.table.temperatures)
    if isinstance(function, MaterialTable):
        return np.array(function.temperatures)
    if isinstance(function, MaterialFunction):
        return function.nodes(low, high)
    if isinstance(function, GapFormula) and SURFACE in function.expression.used:
        some = (function.expression.with_values(t=time) for time in (0.0, 0.5 * end, end))
        return np.unique(np.concatenate([course_of(of, low, high).nodes for of in some]))
    return np.array([low, high])


def courses(function: Conducting, low: float, high: float, end: float) -> list[TimeFunction]:
    """The functions of time at the lowest, the middle and the highest temperature in K; none if nothing changes."""
    if isinstance(function, GapFormula) and "t" in function.expression.used:
        return [function.at_temperature(T, end) for T in dict.fromkeys((low, 0.5 * (low + high), high))]
    if isinstance(function, TimeFunction) and not isinstance(function, SurfaceFunction) and not function.constant:
        return [function]
    return []


def moments(function: Conducting, low: float, high: float, end: float) -> Array:
    """Times in s from 0 to ``end``, between which values rise or fall at the temperatures of :func:`courses`."""
    found = [refined(course.nodes(end), _PARTS) for course in courses(function, low, high, end)]
    times = np.unique(np.concatenate(([0.0, end], *found)))
    return times[np.unique(np.linspace(0, len(times) - 1, _TIMES).astype(np.intp))]


def read_gap_conductance(value: object, quantity: Quantity, folder: Path) -> TimeFunction:
    """A conductance: a number, an expression in T and t, a table in T, or a table in time.

    Raises:
        ValueError: the value is not valid; the message is for the user.
        ValidationError: mistakes inside a table, each at its key.
    """
    if isinstance(value, Mapping) and "temperatures" in value:
        table = read_material_function(value, quantity)
        return SurfaceTable(table) if isinstance(table, MaterialTable) else read_time_function(table, quantity, folder)
    if not isinstance(value, str) or units.split(value) is not None:
        return read_time_function(value, quantity, folder)
    try:
        expression = Expression(value, (SURFACE, "t"))
    except ValueError as error:
        advice = quantity.advice(value)
        if advice == quantity.expected:
            advice = (
                f"{error}; {advice}, or as an expression in T, the mean temperature of both surfaces in K, and t in s"
            )
        raise ValueError(f"got {show(value)}; {advice}") from None
    return GapFormula(expression) if SURFACE in expression.used else read_time_function(value, quantity, folder)


def follows(function: Conducting) -> bool:
    """Whether a function has an expression in T, whose range of temperatures has to be known."""
    return isinstance(function, GapFormula | MaterialFormula)
