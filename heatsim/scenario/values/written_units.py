"""The units in which a document writes its temperatures."""

from collections import Counter
from collections.abc import Iterable, Mapping

from heatsim.scenario.values import units
from heatsim.scenario.values.document_quantities import Found, single_values
from heatsim.scenario.values.quantities import TEMPERATURE
from heatsim.temperature_units import CELSIUS, FAHRENHEIT, KELVIN, TemperatureUnit

_DEGREES = {name: unit for unit in (CELSIUS, FAHRENHEIT) for name in (unit.name, unit.symbol, unit.name.lower())} | {
    "celsius": CELSIUS,
    "degree_Celsius": CELSIUS,
    "fahrenheit": FAHRENHEIT,
    "degree_Fahrenheit": FAHRENHEIT,
}


def written_units(found: Iterable[Found]) -> list[TemperatureUnit]:
    """The units of temperatures in a document, the most frequent first; numbers without a unit do not count.

    Args:
        found: values of the document. A column of a CSV file counts as one value.
    """
    counted = Counter[TemperatureUnit]()
    for each in found:
        if each.quantity is not TEMPERATURE:
            continue
        of_column = each.value.get("unit") if isinstance(each.value, Mapping) else None
        split = [units.split(value) for _, value in single_values(each) if isinstance(value, str)]
        found_here = (of_column, *(parts[1] for parts in split if parts))
        counted.update(_DEGREES.get(unit, KELVIN) for unit in found_here if unit and isinstance(unit, str))
    return [unit for unit, _ in counted.most_common()]
