"""Numbers that depend on the temperature of a surface: film coefficients and emissivities."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.scenario.messages import show
from heatsim.scenario.values import units
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialTable, read_material_function
from heatsim.scenario.values.quantities import Quantity
from heatsim.scenario.values.timefunction import TimeFunction, read_time_function

# The temperature of the surface, and that of its surroundings, in K.
SURFACE, AMBIENT = "T", "Tamb"


@dataclass(frozen=True)
class AtSurface:
    """Marks a field type whose values may depend on the temperature of the surface."""


class SurfaceFunction(TimeFunction):
    """A number that depends on T, the temperature of the surface, and Tamb, that of the fluid or surroundings, in K.

    It does not depend on time in itself: as a function of time it counts as constant.
    """

    @property
    def constant(self) -> bool:
        """True: only the temperatures change."""
        return True

    @property
    def ends(self) -> tuple[float, float]:
        """The temperatures in K of the surface between which values are known."""
        return -np.inf, np.inf

    @abstractmethod
    def of(self, T: ArrayLike, ambient: ArrayLike) -> NDArray[np.float64]:
        """Values at temperatures of the surface and around it in K; the caller checks them."""

    def at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """NaN: there is no value without a temperature."""
        return np.full(np.shape(times), np.nan)

    def jumps(self, end: float, error: float = 0.0) -> NDArray[np.float64]:
        """None at all."""
        return np.zeros(0)

    def nodes(self, end: float) -> NDArray[np.float64]:
        """0 and ``end``."""
        return np.array([0.0, end])

    def last_change(self, end: float) -> float:
        """0."""
        return 0.0


@dataclass(frozen=True)
class SurfaceFormula(SurfaceFunction):
    """An expression in T and Tamb."""

    expression: Expression

    def of(self, T: ArrayLike, ambient: ArrayLike) -> NDArray[np.float64]:
        """Values of the expression."""
        return self.expression.evaluate(T=T, Tamb=ambient)


@dataclass(frozen=True)
class SurfaceTable(SurfaceFunction):
    """A table in T: linear between its temperatures, constant beyond the ends."""

    table: MaterialTable

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last temperature of the table."""
        return self.table.temperatures[0], self.table.temperatures[-1]

    def of(self, T: ArrayLike, ambient: ArrayLike) -> NDArray[np.float64]:
        """Values of the table."""
        return self.table.at(T)


def read_surface_value(value: object, quantity: Quantity, folder: Path) -> TimeFunction:
    """A value that may depend on time or on the temperature of the surface.

    Raises:
        ValueError: the value is not valid; the message is for the user.
        ValidationError: mistakes inside a table, each at its key.
    """
    if isinstance(value, Mapping) and "temperatures" in value:
        table = read_material_function(value, quantity)
        return SurfaceTable(table) if isinstance(table, MaterialTable) else read_time_function(table, quantity, folder)
    if not isinstance(value, str) or units.split(value) is not None:
        return read_time_function(value, quantity, folder, in_space=True)
    try:
        expression = Expression(value, ("x", "y", "z", "t", SURFACE, AMBIENT))
    except ValueError as error:
        advice = quantity.advice(value)
        if advice == quantity.expected:
            advice = f"{error}; {advice}, or as an expression in x, y, z (in m) and t (in s), or in T and Tamb (in K)"
        raise ValueError(f"got {show(value)}; {advice}") from None
    if not expression.used & {SURFACE, AMBIENT}:
        return read_time_function(value, quantity, folder, in_space=True)
    others = sorted(expression.used - {SURFACE, AMBIENT})
    if others:
        message = f"an expression in T and Tamb cannot have {others[0]} too; the ambient temperature may change in time"
        raise ValueError(f"got {show(value)}; {message}")
    return SurfaceFormula(Expression(value, (SURFACE, AMBIENT)))
