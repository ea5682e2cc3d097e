"""Properties of materials that may vary with temperature."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.counts import counted
from heatsim.scenario.messages import fault, key_faults, refuse, show
from heatsim.scenario.values import units
from heatsim.scenario.values.course import course_of, refined
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.function_tables import read_column, slopes_are_finite
from heatsim.scenario.values.quantities import TEMPERATURE, Quantity

# An expression in T that is positive nowhere between these temperatures (K) is a mistake in any run.
TRIED = (1.0, 5000.0)

# Between nodes a function is nearly a polynomial of degree 5: two are equal if they agree at that number of points.
_SAME_RATIO, _BETWEEN = 1e-6, 8

Array = NDArray[np.float64]


class MaterialFunction:
    """A property of a material that varies with temperature: a table or a formula."""

    def at(self, temperatures: ArrayLike) -> Array:
        """Values at temperatures in K, of the same shape."""
        raise NotImplementedError

    def nodes(self, low: float, high: float) -> Array:
        """Temperatures from ``low`` to ``high``, ascending, between which it is smooth and rises or falls."""
        raise NotImplementedError

    def poles(self, low: float, high: float) -> Array:
        """Temperatures from ``low`` to ``high`` near which it certainly grows without bound; a table has none."""
        return np.zeros(0)


@dataclass(frozen=True)
class MaterialTable(MaterialFunction):
    """Values at temperatures: linear in between, constant beyond the ends.

    Attributes:
        temperatures: ascending, in K.
        values: one for each temperature, positive.
    """

    temperatures: tuple[float, ...]
    values: tuple[float, ...]
    _nodes: Array = field(init=False, repr=False, compare=False)
    _heights: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_nodes", np.array(self.temperatures, dtype=np.float64))
        object.__setattr__(self, "_heights", np.array(self.values, dtype=np.float64))

    def at(self, temperatures: ArrayLike) -> Array:
        """Values interpolated in the table."""
        return np.asarray(
            np.interp(np.asarray(temperatures, dtype=np.float64), self._nodes, self._heights), dtype=np.float64
        )

    def nodes(self, low: float, high: float) -> Array:
        """The table's temperatures within [low, high], and the ends."""
        inside = self._nodes[(self._nodes > low) & (self._nodes < high)]
        return np.unique(np.concatenate(([low], inside, [high])))


@dataclass(frozen=True)
class MaterialFormula(MaterialFunction):
    """An expression in T (K).

    Its values matter only at temperatures that the field can have.
    """

    expression: Expression

    def at(self, temperatures: ArrayLike) -> Array:
        """Values of the expression; the caller checks for infinite, NaN and negative values."""
        return self.expression.evaluate(T=temperatures)

    def nodes(self, low: float, high: float) -> Array:
        """The nodes of its course."""
        return course_of(self.expression, low, high).nodes if self.expression.used else np.unique([low, high])

    def poles(self, low: float, high: float) -> Array:
        """The poles of its course."""
        return course_of(self.expression, low, high).poles if self.expression.used else np.zeros(0)


@dataclass(frozen=True)
class Orthotropic(MaterialFunction):
    """Conductivities along x, y and z that vary with temperature, with ratios that do not.

    As a function it is the largest of the three.

    Attributes:
        axes: along x, y and z.
    """

    axes: tuple[float | MaterialFunction, ...]
    largest: MaterialFunction = field(init=False, repr=False, compare=False)
    ratios: tuple[float, float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Find the largest function and the ratios.

        Raises:
            ValueError: the ratios change with temperature; the message is for the user.
        """
        functions = [axis for axis in self.axes if isinstance(axis, MaterialFunction)]
        T = refined(np.unique(np.concatenate([function.nodes(*TRIED) for function in functions])), _BETWEEN)
        values = np.array(
            [axis.at(T) if isinstance(axis, MaterialFunction) else np.full(len(T), axis) for axis in self.axes]
        )
        usable = np.flatnonzero((np.isfinite(values) & (values > 0.0)).all(axis=0))
        if not len(usable):
            raise ValueError(f"at no temperature from {TRIED[0]!r} to {TRIED[1]!r} K are all three above 0")
        values, T = values[:, usable], T[usable]
        most = int(np.argmax(values[:, 0]))
        ratios = values / values[most]
        apart = np.abs(ratios / ratios[:, :1] - 1.0).max(axis=0)
        if apart.max() > _SAME_RATIO:
            at = int(np.argmax(apart))
            first, other = (np.round(ratios[:, place] / ratios[0, place], 6).tolist() for place in (0, at))
            raise ValueError(
                f"their ratios must be the same at all temperatures; they are {first} at {float(T[0])!r} K and {other} "
                f"at {float(T[at])!r} K"
            )
        largest = self.axes[most]
        assert isinstance(largest, MaterialFunction), "a constant beside a function has no constant ratio"
        x, y, z = ratios[:, 0].tolist()
        object.__setattr__(self, "largest", largest)
        object.__setattr__(self, "ratios", (x, y, z))

    def at(self, temperatures: ArrayLike) -> Array:
        """Values of the largest."""
        return self.largest.at(temperatures)

    def nodes(self, low: float, high: float) -> Array:
        """The nodes of the largest."""
        return self.largest.nodes(low, high)


def read_material_function(value: object, quantity: Quantity) -> float | MaterialFunction:
    """A property from TOML: number, text with a unit, expression in T, or table; a number if the property is constant.

    Raises:
        ValueError: the value is not valid; the message is for the user.
        ValidationError: mistakes inside a table, each at its key.
    """
    if isinstance(value, MaterialFunction):
        return value
    if isinstance(value, Mapping):
        return _read_table(value, quantity)
    if isinstance(value, str) and units.split(value) is None:
        return _read_formula(value, quantity)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(
            f"got {show(value)}; {quantity.expected}, as an expression in T, or as {{ temperatures = […], "
            "values = […] }"
        )
    return quantity.read(value)


def _read_formula(text: str, quantity: Quantity) -> float | MaterialFormula:
    formula = MaterialFormula(quantity.read_expression(text, ("T",), "in T (in K)"))
    tried = formula.nodes(*TRIED) if formula.expression.used else np.array(TRIED[:1])
    faults = [quantity.range_fault(number) for number in formula.at(tried).tolist()]
    if None not in faults:
        when = f"at every temperature from {TRIED[0]!r} to {TRIED[1]!r} K" if formula.expression.used else "always"
        raise ValueError(f"got {show(text)}, which is out of range {when}; {faults[0]}")
    return formula if formula.expression.used else float(formula.at(TRIED[0]))


def _read_table(table: Mapping[str, object], quantity: Quantity) -> float | MaterialTable:
    faults = key_faults(
        table,
        {"temperatures": "temperatures = [300.0, 600.0]", "values": "values = [1.0, 2.0], one for each temperature"},
    )
    temperatures = read_column(table, "temperatures", TEMPERATURE, faults)
    values = read_column(table, "values", quantity, faults)
    for index in range(1, len(temperatures)):
        before, after = temperatures[index - 1 : index + 1]
        if after <= before:
            message = f"got {after!r} after {before!r}; temperatures must increase"
            faults.append(fault(message, ("temperatures", index)))
    if temperatures and values and len(temperatures) != len(values):
        got = f"got {counted(len(temperatures), 'temperature')} and {counted(len(values), 'value')}"
        faults.append(fault(f"{got}; each temperature needs one value"))
    if not faults and not slopes_are_finite(temperatures, values):
        faults.append(fault(f"got {show(temperatures)}; temperatures are too close to each other"))
    if faults:
        refuse(faults)
    return MaterialTable(tuple(temperatures), tuple(values)) if len(set(values)) > 1 else values[0]
