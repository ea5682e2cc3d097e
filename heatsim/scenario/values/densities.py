"""Power densities of sources: numbers, functions of place and time, or functions of the cell's temperature."""

from collections.abc import Mapping

from heatsim.scenario.messages import show
from heatsim.scenario.values import units
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFormula, MaterialFunction, read_material_function
from heatsim.scenario.values.quantities import POWER_DENSITY
from heatsim.scenario.values.timefunction import SpaceFormula

_PLACE_AND_TIME, _TEMPERATURE = ("x", "y", "z", "t"), "T"

Density = float | SpaceFormula | MaterialFunction


def read_density(value: object) -> Density:
    """A power density from TOML: number, text with a unit, expression in x, y, z and t or in T, or table in T.

    Raises:
        ValueError: the value is not valid; the message is for the user.
        ValidationError: there are mistakes inside a table; each is reported at its key.
    """
    if isinstance(value, SpaceFormula | MaterialFunction):
        return value
    if isinstance(value, Mapping):
        if "times" in value or "file" in value:
            raise ValueError(f"got {show(value)}, a table in time; write a number here, and the table as scale")
        return read_material_function(value, POWER_DENSITY)
    if not isinstance(value, str) or units.split(value) is not None:
        return POWER_DENSITY.read(value)
    wanted = "in x, y, z (in m) and t (in s), or in T (in K)"
    expression = POWER_DENSITY.read_expression(value, (*_PLACE_AND_TIME, _TEMPERATURE), wanted)
    if _TEMPERATURE not in expression.used:
        if not expression.used:
            return POWER_DENSITY.read(float(Expression(value, ()).evaluate()))
        return SpaceFormula(Expression(value, _PLACE_AND_TIME))
    others = sorted(expression.used - {_TEMPERATURE})
    if others:
        raise ValueError(
            f"got {show(value)}; an expression in T, the temperature of the cell, cannot have {others[0]} too: write a "
            "change in time as scale, and use several sources for different places"
        )
    return MaterialFormula(Expression(value, (_TEMPERATURE,)))


def read_distribution(value: object) -> SpaceFormula:
    """The distribution of a power from TOML: an expression in x, y and z.

    Raises:
        ValueError: the value is not valid; the message is for the user.
    """
    if isinstance(value, SpaceFormula):
        return value
    if not isinstance(value, str):
        raise ValueError(f"got {show(value)}; an expression in x, y and z (in m) is expected, as text")
    try:
        return SpaceFormula(Expression(value, ("x", "y", "z")))
    except ValueError as error:
        raise ValueError(f"got {show(value)}; {error}; an expression in x, y and z (in m) is expected") from None
