"""The keys `at_most` and `at_least` of probes and responses: numbers in the unit of what they limit."""

from collections.abc import Mapping
from math import nan
from typing import Annotated, Any

from pydantic import PlainValidator

from heatsim.limits import AT_LEAST, AT_MOST, LIMITS
from heatsim.scenario.messages import show
from heatsim.scenario.tables.fields import Form
from heatsim.scenario.values.quantities import FACTOR, TEMPERATURE, Quantity, si_number
from heatsim.temperature_units import TEMPERATURE_UNITS

_QUANTITIES = {
    **dict.fromkeys(TEMPERATURE_UNITS, TEMPERATURE),
    "m": Quantity("a length", "m", "5 mm", at_least=0.0),
    "s": Quantity("a duration", "s", "10 min", at_least=0.0),
    "1": FACTOR,
}


def _read(value: object) -> float:
    """The SI number; NaN for what :func:`limit_mistakes` refuses, which knows the unit."""
    number = si_number(value)
    return nan if number is None else number


LimitValue = Annotated[Any, PlainValidator(_read), Form("number, or text with a unit of the probe")]


def limit_quantity(unit: str | None) -> Quantity:
    """The quantity of the limits of values in a unit; None stands for temperatures."""
    unit = unit or TEMPERATURE.unit
    return _QUANTITIES.get(unit) or Quantity("a limit", unit, f"1 {unit}")


def limit_mistakes(table: Mapping[str, Any], quantity: Quantity) -> dict[str, str]:
    """What is wrong with the limits in a table, by key: they are of another quantity, or exclude each other."""
    mistakes, values = dict[str, str](), dict[str, float]()
    for key in LIMITS:
        try:
            if table.get(key) is not None:
                values[key] = quantity.read(table[key])
        except ValueError as error:
            mistakes[key] = str(error)
    if len(values) == len(LIMITS) and values[AT_LEAST] > values[AT_MOST]:
        got = f"got {show(table[AT_LEAST])}, above {AT_MOST} = {show(table[AT_MOST])}"
        mistakes[AT_LEAST] = f"{got}; no value keeps both"
    return mistakes
