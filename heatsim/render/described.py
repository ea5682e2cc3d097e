"""What pictures and reports need to know of a run's scenario, from the scenario.toml in its folder."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatsim.errors import FolderError
from heatsim.storage import folder as run_folder
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS, TemperatureUnit

_Point = tuple[float, float, float]


@dataclass(frozen=True)
class LineProbe:
    """A probe along a line: its first and last point in m, and the number of points."""

    first: _Point
    last: _Point
    count: int

    @property
    def length(self) -> float:
        """The length in m."""
        return float(sum((b - a) ** 2 for a, b in zip(self.first, self.last, strict=True)) ** 0.5)


@dataclass(frozen=True)
class DescribedRun:
    """A run as its scenario describes it.

    Attributes:
        title: the scenario's title.
        steady: whether it is a steady state.
        unit: of the temperatures that are shown.
        patches: the face of each patch, by the patch's name.
        lines: the probes along lines, by name.
        text: the file itself.
    """

    title: str
    steady: bool
    unit: TemperatureUnit
    patches: Mapping[str, str]
    lines: Mapping[str, LineProbe]
    text: str


def read_description(folder: Path) -> DescribedRun:
    """Read the scenario.toml of a run. Entries that heatsim would not write are ignored.

    Raises:
        FolderError: it cannot be read.
    """
    path = folder / run_folder.SCENARIO
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FolderError(f"{path}: cannot be read as a scenario ({error})") from error
    time, output = _table(document, "time"), _table(document, "output")
    return DescribedRun(
        title=str(document.get("title", "")),
        steady=time.get("method") == "steady",
        unit=TEMPERATURE_UNITS.get(str(output.get("temperature")), KELVIN),
        patches={str(patch.get("name")): str(patch.get("face")) for patch in _tables(document, "patches")},
        lines=dict(found for probe in _tables(document, "probes") if (found := _line(probe)) is not None),
        text=text,
    )


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


def _tables(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    tables = document.get(key)
    return [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []


def _line(probe: Mapping[str, Any]) -> tuple[str, LineProbe] | None:
    line = _table(probe, "line")
    try:
        (x, y, z), (a, b, c) = (map(float, line[end]) for end in ("from", "to"))
        return str(probe["name"]), LineProbe((x, y, z), (a, b, c), int(line["count"]))
    except (KeyError, TypeError, ValueError):
        return None
