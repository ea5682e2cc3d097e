"""Hints about values of a scenario that are allowed, but are probably not what was meant."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.counts import minus
from heatsim.grid import Grid
from heatsim.scenario.messages import show, show_key
from heatsim.scenario.stored_field import StoredField
from heatsim.scenario.tables.initial import ArrayFile
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.time import Time
from heatsim.scenario.values import units
from heatsim.scenario.values.bounds import bounds
from heatsim.scenario.values.document_quantities import Found, quantities, single_values
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.quantities import TEMPERATURE, Quantity
from heatsim.scenario.values.timefunction import Table, read_time_function
from heatsim.scenario.values.written_units import written_units
from heatsim.temperature_units import CELSIUS, FAHRENHEIT, TEMPERATURE_UNITS, TemperatureUnit

# A plain number below this many kelvins is suspected to be in degrees, unless all temperatures are as low.
_COLD = 200.0
_ROUNDING = 1e-9
# Up to this ratio of widths, the areas of faces of label images scatter by 6 % (physics/geometry/voxel_areas.py).
_GROWTH_OF_LABELS = 1.06


def hints(document: Mapping[str, Any], folder: Path, scenario: Scenario) -> list[str]:
    """Warnings about the values of a document that ``parse`` accepts, for the user.

    Args:
        document: the tables of the scenario.
        folder: where its relative paths start.
        scenario: what was read from the document.
    """
    early = [] if scenario.steady else data_that_end_early(document, folder, scenario.time)
    return cold_numbers(document, folder, scenario) + early + labels_on_unequal_cells(scenario)


def labels_on_unequal_cells(scenario: Scenario) -> list[str]:
    """Label images on cells whose widths change fast: the areas of their surfaces are known badly, face by face."""
    growth = 1.0
    for axis in scenario.grid.axes:
        ratios = axis.widths[1:] / axis.widths[:-1]
        growth = max([growth, *np.maximum(ratios, 1.0 / ratios).tolist()])
    if growth <= _GROWTH_OF_LABELS:
        return []
    return [
        f"regions.{number}.labels: neighbouring cells differ in width by a factor of up to {growth:.3g}; areas of "
        "single faces towards other materials or void may be off by a tenth or more, the total by a few percent: use "
        "equal cells"
        for number, region in enumerate(scenario.regions)
        if region.labels is not None
    ]


def data_that_end_early(document: Mapping[str, Any], folder: Path, time: Time) -> list[str]:
    """Columns of CSV files that begin after the start of a run, or end before its end.

    A gap of one row is allowed, because hourly data of a day end after 23 h. Tables inside the scenario file are not
    checked.
    """
    told, end = [], time.end
    for found in quantities(document, Scenario):
        if not isinstance(found.value, Mapping) or "column" not in found.value:
            continue
        table = read_time_function(found.value, found.quantity, folder)
        if not isinstance(table, Table) or table.repeat:
            continue
        if time.start_date is not None:
            table.count_from(time.start_date)
        key, file = show_key(found.key), show(found.value["file"])
        first, last, row = table.times[0], table.times[-1], table.times[-1] - table.times[-2]
        unit = str(found.value.get("unit", found.quantity.unit))
        if first > 0.0:
            kept = _in_unit(table.values[0], unit, found.quantity)
            told.append(f"{key}: the data of {file} begin at t = {_moment(first)}; until then {kept} holds")
        if last < end - row * (1.0 + _ROUNDING):
            kept = _in_unit(table.values[-1], unit, found.quantity)
            told.append(
                f"{key}: the data of {file} end at t = {_moment(last)}, and the run at {_moment(end)}; after the data "
                f"their last value holds, {kept}: add rows, end the run earlier, or write repeat = true"
            )
    return told


def _moment(time: float) -> str:
    """A time in s, with hours or days beside it."""
    for length, unit in ((86400.0, "days"), (3600.0, "h")):
        if time >= 2.0 * length:
            return f"{time:.10g} s ({time / length:.4g} {unit})"
    return f"{time:.10g} s"


def _in_unit(value: float, unit: str, quantity: Quantity) -> str:
    """A value in SI in the unit of its column."""
    if unit == quantity.unit:
        return f"{value:.6g} {unit}".rstrip()
    factor, offset = units.linear(unit, quantity.unit)
    return f"{(value - float(offset)) / float(factor):.6g} {unit}"


def cold_numbers(document: Mapping[str, Any], folder: Path, scenario: Scenario) -> list[str]:
    """Plain numbers of a few kelvins in a scenario that is not cryogenic throughout: they may be meant in degrees.

    Plain numbers are kelvins: `ambient = 20` is −253 °C. They are suspected beside temperatures in degrees, and beside
    temperatures of the body and its surroundings above 200 K. A number with its unit, such as "20 K", is never
    suspected. The same holds for columns of CSV files, with and without the key ``unit``, and for initial fields in
    files; ``folder`` is where their paths start.
    """
    grid, field = scenario.grid, scenario.initial.temperature
    found = [each for each in quantities(document, Scenario) if each.quantity is TEMPERATURE]
    temperatures = [single for each in found for single in single_values(each)]
    unit = _unit_of_others(document, found)
    others = f"other temperatures of this scenario are in {(unit or CELSIUS).symbol}"
    if unit is None:
        # Tables of materials may begin at low temperatures.
        found = [each for each in found if not {"temperatures", "temperature_range"} & {*each.key[1:]}]
        temperatures = [single for each in found for single in single_values(each)]
        highest = [_warmest(value, grid) for _, value in temperatures] + [_ends(each, folder)[1] for each in found]
        warmest = max(highest, default=-inf)
        if warmest < _COLD:
            return []
        others = f"other temperatures of this scenario reach {warmest:.6g} K"
    return (
        [
            f"{show_key(key)} = {show(value)}: {_cold(value, kelvins, unit or CELSIUS, others)}"
            for key, value in temperatures
            if (kelvins := _coldest_of_plain(value, grid)) is not None and 0.0 <= kelvins < _COLD
        ]
        + [
            f"{show_key(each.key)}: column {show(each.value['column'])} of {show(each.value['file'])} goes down to "
            f"{_cold_column(coldest, unit or CELSIUS, others)}"
            for each in found
            if isinstance(each.value, Mapping)
            and "unit" not in each.value
            and (coldest := _ends(each, folder)[0]) < _COLD
        ]
        + [
            f"initial.temperature: {show(field.file.path.name)} goes down to {field.lowest:.6g} K; {others}: save it "
            "in kelvins, unless that is meant"
            for field in [field]
            if isinstance(field, ArrayFile) and not isinstance(field.file, StoredField) and field.lowest < _COLD
        ]
    )


def _cold(value: object, kelvins: float, unit: TemperatureUnit, others: str) -> str:
    shown = minus(f"{unit.of(kelvins):.2f}".rstrip("0").rstrip("."))
    text = f"{kelvins:g} K is {shown} {unit.symbol}; {others}: "
    if not isinstance(value, str):
        return text + f'write "{kelvins:g} {unit.name}", or "{kelvins:g} K" if that is meant'
    conversion = f"T + {unit.zero}" if unit is CELSIUS else f"(T + {unit.zero * unit.degrees:.6g})/{unit.degrees}"
    return text + f"the numbers of an expression are in K, so write {conversion} for T in {unit.symbol}"


def _cold_column(coldest: float, unit: TemperatureUnit, others: str) -> str:
    return (
        f'{coldest:g} K, because it has no unit; {others}: write unit = "{unit.name}", or unit = "K" if that is meant'
    )


def _ends(found: Found, folder: Path) -> tuple[float, float]:
    """The lowest and the highest temperature in K of a column of a file; inf and −inf for anything else."""
    if not isinstance(found.value, Mapping) or "column" not in found.value:
        return inf, -inf
    table = read_time_function(found.value, found.quantity, folder)
    return (float(np.min(table.values)), float(np.max(table.values))) if isinstance(table, Table) else (inf, -inf)


def _warmest(value: object, grid: Grid) -> float:
    """The temperature in K of a number with or without a unit, or the lowest one of an expression; −inf if unknown."""
    plain = _coldest_of_plain(value, grid)
    if plain is not None:
        return plain
    parts = units.split(value) if isinstance(value, str) else None
    return -inf if parts is None else units.to_si(*parts)


def _unit_of_others(document: Mapping[str, Any], found: Sequence[Found]) -> TemperatureUnit | None:
    """The unit with degrees that a scenario's temperatures, its files or its results have; None for kelvins."""
    output = document.get("output")
    shown = TEMPERATURE_UNITS.get(str(output.get("temperature"))) if isinstance(output, Mapping) else None
    return next((unit for unit in (*written_units(found), shown) if unit in (CELSIUS, FAHRENHEIT)), None)


def _coldest_of_plain(value: object, grid: Grid) -> float | None:
    """The temperature in K of a number, or the lowest of an expression at the start; None for a text with a unit."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or units.split(value) is not None:
        return None
    return _lowest_at_start(value, tuple(grid.origin), tuple(grid.size))


@lru_cache(maxsize=256)
def _lowest_at_start(text: str, origin: tuple[float, ...], size: tuple[float, ...]) -> float | None:
    """The lowest value of an expression at t = 0 in a box; None if it is unknown. It is asked for several times."""
    ends = zip("xyz", origin, size, strict=True)
    box = {name: (start, start + length) for name, start, length in ends} | {"t": (0.0, 0.0)}
    try:
        low = bounds(Expression(text, tuple(box)), **box).low
    except ValueError:
        return None
    return low if isfinite(low) else None
