"""What the scenario.toml in a run's folder says about how to show the results."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from heatsim.errors import FolderError
from heatsim.storage.folder import SCENARIO
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS, TemperatureUnit


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run that decide how its results are shown.

    Attributes:
        title: of the results.
        steady: whether the run is a steady state.
        temperature_unit: the unit in which temperatures are shown.
    """

    title: str
    steady: bool
    temperature_unit: TemperatureUnit


def read_settings(folder: Path) -> RunSettings:
    """The settings of the run in a folder; those of runs before `output.temperature` say K.

    Raises:
        FolderError: scenario.toml cannot be read.
    """
    path = folder / SCENARIO
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        unit = document.get("output", {}).get("temperature", KELVIN.name)
        return RunSettings(
            str(document.get("title", "")),
            document.get("time", {}).get("method") == "steady",
            TEMPERATURE_UNITS[unit],
        )
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise FolderError(f"{path}: cannot be read as a scenario ({error})") from error
