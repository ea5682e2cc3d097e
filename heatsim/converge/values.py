"""The values of a run whose error is estimated, read from its folder: probes, responses, extremes and heat flows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from heatsim.storage.run_tables import WATT, read_energy, read_probes
from heatsim.storage.summary_file import read_summary
from heatsim.study.model import Response
from heatsim.study.results import evaluate
from heatsim.temperature_units import KELVIN

# Values by name and unit; temperatures in K, others in SI units.
Values = dict[tuple[str, str], float]

_SECOND = "s"
_LEFT_OUT = ("stored", "residual", "imbalance")
_AT_END = {"coldest cell": "min", "hottest cell": "max", "mean of the body": "mean"}
_EVER = {"hottest cell, highest": "highest_temperature", "coldest cell, lowest": "lowest_temperature"}
EXTREME_CELLS = (*list(_AT_END)[:2], *_EVER)
OF_BODY = (*_AT_END, *_EVER)


def read_values(folder: Path, responses: Sequence[Response]) -> Values:
    """The values of a finished run.

    Raises:
        StorageError: a file cannot be read.
    """
    return dict([*_of_probes(folder), *_responses(folder, responses), *_of_body(folder), *_flows(folder)])


def _of_probes(folder: Path) -> Iterator[tuple[tuple[str, str], float]]:
    """The value of each probe at the end; its maximum and minimum in time if they lie between start and end."""
    probes = read_probes(folder)
    for (name, unit), values in ({} if probes is None else probes.columns).items():
        yield (name, unit), float(values[-1])
        for what, row in (("highest", int(values.argmax())), ("lowest", int(values.argmin()))):
            if 0 < row < len(values) - 1:
                yield (f"{name}, {what}", unit), float(values[row])


def _responses(folder: Path, responses: Sequence[Response]) -> Iterator[tuple[tuple[str, str], float]]:
    probes = read_probes(folder)
    if probes is None:
        return
    columns = {name: (unit, values) for (name, unit), values in probes.columns.items()}
    for response in responses:
        if response.probe in columns:
            unit, values = columns[response.probe]
            found = evaluate(response, probes.times, values)
            yield (response.name, _SECOND if response.is_time else unit), np.nan if found is None else found


def _of_body(folder: Path) -> Iterator[tuple[tuple[str, str], float]]:
    summary = read_summary(folder)
    ends = summary.get("temperature") or {}
    for name, key in _AT_END.items():
        if ends.get(key) is not None:
            yield (name, KELVIN.name), float(ends[key])
    for name, key in _EVER.items():
        found = summary.get(key)
        if found and 0.0 < found["time"] < (summary.get("time") or 0.0):
            yield (name, KELVIN.name), float(found["temperature"])


def _flows(folder: Path) -> Iterator[tuple[tuple[str, str], float]]:
    """The heat flow through each surface and contact, and into each region, at the end in W."""
    energy = read_energy(folder)
    if energy is None or not len(energy.times):
        return
    for name, values in {**energy.of_body(WATT), **energy.of_parts(WATT)}.items():
        if name not in _LEFT_OUT and np.isfinite(values[-1]):
            yield (f"heat from {name}", WATT), float(values[-1])


def temperature_range(folder: Path) -> float:
    """The range in K of the temperatures of a run in its body and time."""
    summary = read_summary(folder)
    found = [summary["temperature"]["min"], summary["temperature"]["max"]]
    found += [summary[key]["temperature"] for key in ("highest_temperature", "lowest_temperature") if summary.get(key)]
    return float(max(found) - min(found))
