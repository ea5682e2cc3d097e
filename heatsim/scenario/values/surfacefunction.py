"""Numbers that depend on the temperature of surfaces: film coefficients, emissivities, conductances of contacts."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.scenario.messages import show
from heatsim.scenario.values import units
from heatsim.scenario.values.course import course_of
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.function_of_time import Unchanging
from heatsim.scenario.values.materialfunction import (
    MaterialFormula,
    MaterialFunction,
    MaterialTable,
    read_material_function,
)
from heatsim.scenario.values.points import Operations
from heatsim.scenario.values.quantities import Quantity
from heatsim.scenario.values.timefunction import Constant, Formula, TimeFunction, read_time_function

# The temperature of the surface, or the mean one of both surfaces of a contact, and that of the surroundings, in K.
SURFACE, AMBIENT = "T", "Tamb"
_ON_SURFACE = "in x, y, z (in m) and t (in s), or in T and Tamb (in K)"
_IN_CONTACT = "in T, the mean temperature of both surfaces in K, and t in s"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AtSurface:
    """Marks a field type whose values may depend on the temperature of the surface."""


class SurfaceFunction(Unchanging):
    """A number that depends on T, the temperature of the surface in K, and on a second variable.

    That is Tamb, the temperature of the fluid or surroundings in K, or for a contact the time in s. As a function of
    time the number counts as constant; :meth:`course` gives what it does at one temperature.
    """

    @property
    def ends(self) -> tuple[float, float]:
        """The temperatures in K of the surface between which values are known."""
        return -np.inf, np.inf

    @abstractmethod
    def of(self, T: ArrayLike, other: ArrayLike) -> Array:
        """Values at temperatures of the surface in K, and at those around it in K or times in s; not checked."""

    @abstractmethod
    def temperatures(self, low: float, high: float, others: Array) -> Array:
        """Temperatures from ``low`` to ``high`` (K) between which it is smooth; all those of a table.

        ``others``: values of the second variable, in K or in s.
        """

    def course(self, T: float, end: float) -> TimeFunction:
        """What the number of a contact does at a temperature in K up to ``end``, the end of the run in s."""
        return Constant(float(self.of(T, 0.0)))

    def at(self, times: Array) -> Array:
        """NaN: there is no value without a temperature."""
        return np.full(np.shape(times), np.nan)


@dataclass(frozen=True)
class SurfaceFormula(SurfaceFunction):
    """An expression in T and Tamb, or in T and t."""

    expression: Expression

    def of(self, T: ArrayLike, other: ArrayLike) -> Array:
        """Values of the expression."""
        return self.expression.evaluate(**dict(zip(self.expression.names, (T, other), strict=True)))

    def temperatures(self, low: float, high: float, others: Array) -> Array:
        """The nodes of its courses at some values of the second variable."""
        name = self.expression.names[1]
        courses = (course_of(self.expression.with_values(**{name: other}), low, high) for other in others.tolist())
        return np.unique(np.concatenate([course.nodes for course in courses]))

    def course(self, T: float, end: float) -> TimeFunction:
        """The expression in t at one temperature."""
        return Formula(self.expression.with_values(T=T), end) if "t" in self.expression.used else super().course(T, end)

    def last_change(self, end: float) -> float:
        """``end`` if it contains t."""
        return end if "t" in self.expression.used else 0.0


@dataclass(frozen=True)
class SurfaceTable(SurfaceFunction):
    """A table in T: linear between its temperatures, constant beyond the ends."""

    table: MaterialTable

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last temperature of the table."""
        return self.table.temperatures[0], self.table.temperatures[-1]

    def of(self, T: ArrayLike, other: ArrayLike) -> Array:
        """Values of the table."""
        return self.table.at(T)

    def temperatures(self, low: float, high: float, others: Array) -> Array:
        """Those of the table."""
        return np.array(self.table.temperatures)


def at_surface(given: float | MaterialFunction) -> TimeFunction:
    """What a table, an expression in T or a number gives at the temperature of a surface."""
    if isinstance(given, MaterialTable):
        return SurfaceTable(given)
    if isinstance(given, MaterialFormula):
        return SurfaceFormula(Expression(given.expression.text, (SURFACE, "t")))
    assert isinstance(given, float)
    return Constant(given)


def read_surface_value(value: object, quantity: Quantity, folder: Path, *, of_contact: bool = False) -> TimeFunction:
    """A value that may depend on time or on the temperature of the surface, or for a contact on both.

    Raises:
        ValueError: the value is not valid; the message is for the user.
        ValidationError: mistakes inside a table, each at its key.
    """
    if isinstance(value, Mapping) and "temperatures" in value:
        return at_surface(read_material_function(value, quantity))
    if not isinstance(value, str) or units.split(value) is not None:
        return read_time_function(value, quantity, folder, in_space=not of_contact)
    own, place = ((SURFACE, "t"), ()) if of_contact else ((SURFACE, AMBIENT), ("x", "y", "z", "t"))
    expression = quantity.read_expression(value, (*place, *own), _IN_CONTACT if of_contact else _ON_SURFACE)
    if not expression.used & {SURFACE, AMBIENT}:
        return read_time_function(value, quantity, folder, in_space=not of_contact)
    others = sorted(expression.used - {*own})
    if others:
        message = f"an expression in T and Tamb cannot have {others[0]} too; the ambient temperature may change in time"
        raise ValueError(f"got {show(value)}; {message}")
    if of_contact and Operations(expression.tree, own).jump_together:
        message = "it jumps at a temperature that changes in time: let it change over some kelvins, as in"
        raise ValueError(f'got {show(value)}; {message} "1/(1 + exp(-(T - 300 - t)/2))", or use min and max')
    return SurfaceFormula(Expression(value, own))
