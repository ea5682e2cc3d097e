"""A scenario written out in full: every default filled in, SI numbers, input files beside it."""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from heatsim.errors import StorageError
from heatsim.scenario.expressions import Expression
from heatsim.scenario.initial import ArrayFile, ImageFile
from heatsim.scenario.model import Scenario
from heatsim.scenario.timefunction import Constant, Formula, Table, TimeFunction

NAME = "scenario.toml"
HEADER = "# A complete scenario: every default filled in, SI units. It runs as it is.\n\n"

# An array of three entries; no text reaches over the end of a line.
VECTOR = re.compile(r"\[\n    (\S+),\n    (\S+),\n    (\S+),\n\]")


def write_resolved(scenario: Scenario, folder: Path) -> None:
    """Write ``folder``/scenario.toml, from which ``load`` gives an equal scenario, and copy input files beside it.

    Each file is complete before it takes its name; one that is already in place is left alone. The scenario is there
    as ``scenario.toml.part`` before any copy is made, and takes its name when all of them are: a folder in which this
    was cut short shows by itself which files belong to it. Where one cannot be written none is.

    Raises:
        StorageError: a file could not be written or copied.
    """
    import tomli_w

    beside = folder / f"{NAME}.part"
    made = [beside]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside.write_text(HEADER + VECTOR.sub(_on_one_line, tomli_w.dumps(document(scenario))), encoding="utf-8")
        for source in scenario.input_files:
            target = folder / source.name
            if not (target.exists() and target.samefile(source)):
                made += [target, folder / f"{source.name}.part"]
                shutil.copyfile(source, made[-1])
                os.replace(made[-1], target)
        os.replace(beside, folder / NAME)
    except OSError as error:
        for path in reversed(made):
            with suppress(OSError):
                path.unlink()
        raise StorageError(
            f"{folder / NAME}: could not be written: {error.strerror or error}; free some disk space or check its "
            "permissions, and run the scenario again"
        ) from error


def document(scenario: Scenario) -> dict[str, Any]:
    """The tables of the resolved TOML file, as plain Python values; files by their base names."""
    tables: dict[str, Any] = _plain(scenario)
    return tables


def _plain(value: object) -> Any:
    match value:
        case BaseModel():
            return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
        case TimeFunction():
            return _plain_in_time(value)
        case Expression():
            return value.text
        case ArrayFile():
            return {"file": value.file.name}
        case ImageFile():
            return {"image": value.image.name, "range": list(value.range)}
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _plain_in_time(function: TimeFunction) -> Any:
    match function:
        case Constant(value=value):
            return value
        case Formula(expression=expression):
            return expression.text
        case Table(times=times, values=values, repeat=repeat):
            return {"times": list(times), "values": list(values), "repeat": repeat}
    raise AssertionError(f"{type(function).__name__} has no form in TOML")


def _on_one_line(vector: re.Match[str]) -> str:
    return f"[{', '.join(vector.groups())}]"
