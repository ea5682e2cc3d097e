"""What the scenario.toml in a run's folder says about how to show the results."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import dist, nan
from pathlib import Path
from typing import Any

from heatsim.errors import FolderError
from heatsim.grid import AXES
from heatsim.limits import LIMITS, Limits, LimitVerdict, judge
from heatsim.storage.disk import reason
from heatsim.storage.folder import SCENARIO
from heatsim.storage.run_tables import RunTable, Values
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS, TemperatureUnit

_MOST_POINTS = 1 << 20  # of a probe along a line


@dataclass(frozen=True)
class LayerPlace:
    """Where a thin layer lies.

    Attributes:
        name: of the layer.
        material: its name.
        axis: the axis normal to it (0 = x).
        at: its coordinate along this axis in m.
        rectangle: the smallest and the largest coordinates in m along the two other axes; None for the whole plane.
    """

    name: str
    material: str
    axis: int
    at: float
    rectangle: tuple[tuple[float, float], tuple[float, float]] | None


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run that decide how its results are shown.

    Attributes:
        title: of the results.
        steady: whether the run is a steady state.
        end: of the run in s; NaN if it has none.
        start: the date of t = 0, on the clock of its time zone; None if it has none.
        temperature_unit: the unit in which temperatures are shown.
        table_unit: the unit of temperatures in tables.
        patches: the face of each patch, by the name of the patch.
        lines: the length in m and the number of points of each probe along a line, by the name of the probe.
        material: the material of the domain; "material" if it has no name. It is that of all cells where the fields
            name none.
        melting: the solidus and the liquidus in K of each material that melts, by its name; a material without a name
            is "material".
        layers: the thin layers.
        limits: the limits of probes by name, of those that have any.
        text: the whole scenario.toml.
    """

    title: str
    steady: bool
    end: float
    start: datetime | None
    temperature_unit: TemperatureUnit
    table_unit: TemperatureUnit
    patches: Mapping[str, str]
    lines: Mapping[str, tuple[float, int]]
    material: str
    melting: Mapping[str, tuple[float, float]]
    layers: Sequence[LayerPlace]
    limits: Mapping[str, Limits]
    text: str

    def line_of(self, column: str) -> str | None:
        """The probe along a line to which a column of probes.csv belongs; None for points and regions."""
        name, bracket, rest = column.rpartition("[")
        return name if bracket and name in self.lines and rest.removesuffix("]").isdecimal() else None

    def verdicts(self, probes: RunTable | None) -> list[LimitVerdict]:
        """Whether the probes keep their limits, from all rows."""
        columns: dict[str, dict[tuple[str, str], Values]] = {}
        for (name, unit), values in ({} if probes is None else probes.columns).items():
            columns.setdefault(self.line_of(name) or name, {})[name, unit] = values
        return [] if probes is None or not len(probes.times) else judge(self.limits, columns, probes.times)


def read_settings(folder: Path) -> RunSettings:
    """The settings of the run in a folder; temperatures in K if they name no unit.

    Raises:
        FolderError: scenario.toml cannot be read.
    """
    path = folder / SCENARIO
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
        output = document.get("output", {})
        unit = output.get("temperature", KELVIN.name)
        return RunSettings(
            str(document.get("title", "")),
            document.get("time", {}).get("method") == "steady",
            float(document.get("time", {}).get("end") or nan),
            _start(document.get("time", {}).get("start")),
            TEMPERATURE_UNITS[unit],
            TEMPERATURE_UNITS[output.get("table_temperature", unit)],
            {str(patch["name"]): str(patch["face"]) for patch in document.get("patches", [])},
            {str(probe["name"]): _line(probe["line"]) for probe in document.get("probes", []) if "line" in probe},
            str(document.get("domain", {}).get("material") or "material"),
            _melting({"material": document.get("material"), **document.get("materials", {})}),
            [_layer(number, table) for number, table in enumerate(document.get("layers", []), 1)],
            {str(probe["name"]): _limits(probe) for probe in document.get("probes", []) if probe.keys() & {*LIMITS}},
            text,
        )
    except (OSError, ValueError) as error:
        raise FolderError(f"{path}: cannot be read as a scenario: {reason(error)}") from error
    except (AttributeError, KeyError, TypeError) as error:
        message = "its tables are not those that a run writes; put a good copy of the file there"
        raise FolderError(f"{path}: cannot be read as a scenario: {message}") from error


def _start(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=None)


def _line(line: Mapping[str, Any]) -> tuple[float, int]:
    count = int(line["count"])
    if not 1 <= count <= _MOST_POINTS:
        raise ValueError(f"a line has {count} points")
    return dist(line["from"], line["to"]), count


def _layer(number: int, table: Mapping[str, Any]) -> LayerPlace:
    plane = table["plane"]
    rectangle = plane.get("rectangle")
    corners = None if rectangle is None else (_pair(rectangle["min"]), _pair(rectangle["max"]))
    name = str(table.get("name", f"layer {number}"))
    return LayerPlace(name, str(table["material"]), AXES.index(plane["axis"]), float(plane["at"]), corners)


def _limits(probe: Mapping[str, Any]) -> Limits:
    return Limits(**{key: float(probe[key]) for key in LIMITS if key in probe})


def _pair(values: Sequence[float]) -> tuple[float, float]:
    one, other = values
    return float(one), float(other)


def _melting(materials: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    return {
        name: (float(table["solidus"]), float(table["liquidus"]))
        for name, table in materials.items()
        if table and table.get("solidus") is not None and table.get("liquidus") is not None
    }
