"""The values of a run whose errors are estimated: probes, nodes, extremes, means of regions, heat flows."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.observers.state import RunState
from heatsim.physics.geometry.regions import region_number
from heatsim.solver.field.cell_parts import CellParts, conducting_regions, own_cells
from heatsim.solver.field.field_statistics import FieldStatistics
from heatsim.storage.run_tables import METRE, WATT, RunTable, read_energy, read_nodes, read_probes
from heatsim.storage.summary_file import read_summary
from heatsim.temperature_units import KELVIN

# Values by name and unit; temperatures in K, others in SI units.
Values = dict[tuple[str, str], float]

MEAN_OF = "mean of "  # before the name of a region
_LEFT_OUT = ("stored", "residual", "imbalance")
_AT_END = {"coldest cell": "min", "hottest cell": "max", "mean of the body": "mean"}
_EVER = {"hottest cell, highest": "highest_temperature", "coldest cell, lowest": "lowest_temperature"}
EXTREME_CELLS = (*list(_AT_END)[:2], *_EVER)
OF_BODY = (*_AT_END, *_EVER)


def read_values(folder: Path, ends: bool = False) -> Values:
    """The values of the finished run in a folder; ``ends`` as for :func:`values_of`.

    Raises:
        StorageError: a file cannot be read.
    """
    return values_of(read_summary(folder), read_probes(folder), read_energy(folder), read_nodes(folder), ends)


def values_of(
    summary: Mapping[str, Any],
    probes: RunTable | None,
    energy: RunTable | None,
    nodes: RunTable | None,
    ends: bool = False,
) -> Values:
    """The values of a run that has ended, from the content of its summary.json and of its tables.

    Extremes in time are values if they lie between start and end. With ``ends`` all of them are: another run may have
    them in between.
    """
    return dict([*_of_probes(probes, ends), *_of_nodes(nodes), *_of_body(summary, ends), *_flows(energy)])


def _of_nodes(nodes: RunTable | None) -> Iterator[tuple[tuple[str, str], float]]:
    """The temperature of each node, and of each channel at its outlet, at the end."""
    for name, values in ({} if nodes is None else nodes.in_unit(KELVIN.name)).items():
        yield (f"node {name}", KELVIN.name), float(values[-1])


def _of_probes(probes: RunTable | None, ends: bool) -> Iterator[tuple[tuple[str, str], float]]:
    """The value of each probe at the end; its maximum and minimum in time if they lie between start and end.

    Of an extent over time the maximum alone, wherever it lies: at the start and at the end it is mostly 0.
    """
    for (name, unit), values in ({} if probes is None else probes.columns).items():
        extent = unit == METRE and len(values) > 1
        if not extent:
            yield (name, unit), float(values[-1])
        if ends or extent or values.max() > max(values[0], values[-1]):
            yield (f"{name}, highest", unit), float(values.max())
        if ends or values.min() < min(values[0], values[-1]):
            yield (f"{name}, lowest", unit), float(values.min())


def _of_body(summary: Mapping[str, Any], ends: bool) -> Iterator[tuple[tuple[str, str], float]]:
    last = summary.get("temperature") or {}
    for name, key in _AT_END.items():
        if last.get(key) is not None:
            yield (name, KELVIN.name), float(last[key])
    for name, key in _EVER.items():
        found = summary.get(key)
        if found and (ends or 0.0 < found["time"] < (summary.get("time") or 0.0)):
            yield (name, KELVIN.name), float(found["temperature"])


def _flows(energy: RunTable | None) -> Iterator[tuple[tuple[str, str], float]]:
    """The heat flow through each surface and contact, and into each region, at the end in W."""
    if energy is None or not len(energy.times):
        return
    for name, values in {**energy.of_body(WATT), **energy.of_parts(WATT)}.items():
        if name not in _LEFT_OUT and np.isfinite(values[-1]):
            yield (f"heat from {name}", WATT), float(values[-1])


def means_of_regions(state: RunState) -> Values:
    """The mean temperature in K of each region at the end of a run. Collective."""
    problem, field = state.problem, state.field
    names = conducting_regions(problem)
    if not names:
        return {}
    before = field.labels, field.division
    parts = CellParts.of_regions(problem, [region_number(name, problem.scenario) for name in names], field)
    if problem.materials.varies:
        parts = parts.with_thermometers(problem, field.device.xp, field.reference)
    try:
        statistics = FieldStatistics(problem, field, own_cells(state.arrays, field), parts)
        return {(MEAN_OF + name, KELVIN.name): statistics.mean(name) for name in names}
    finally:
        field.divide(*before)


def temperature_range(summary: Mapping[str, Any]) -> float:
    """The range in K of the temperatures of a run in its body and time."""
    found = [summary["temperature"]["min"], summary["temperature"]["max"]]
    found += [summary[key]["temperature"] for key in ("highest_temperature", "lowest_temperature") if summary.get(key)]
    return float(max(found) - min(found))
