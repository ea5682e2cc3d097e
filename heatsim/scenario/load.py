"""A TOML file read into a ``Scenario``, with all of its mistakes told at once."""

import os
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from heatsim.errors import Problem, ScenarioError
from heatsim.scenario import places
from heatsim.scenario.context import Reading
from heatsim.scenario.model import Scenario
from heatsim.scenario.overrides import Override, read_overrides
from heatsim.scenario.problems import (
    did_you_mean,
    has_control_characters,
    missing_key,
    show,
    show_key,
    suggest,
    unknown_key,
)

LONGEST = 2**26  # bytes of a scenario file
FACE_EXAMPLE = '{ type = "temperature", value = 300.0 }'


def load(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file.

    Args:
        path: the TOML file; paths inside it are relative to its folder.
        overrides: ``key.path=value`` settings that replace or add to what the file says. A value is read as TOML, or
            as plain text where it is not TOML.

    Raises:
        ScenarioError: carries every mistake of file and overrides.
    """
    file = Path(path)
    document = read_document(file)
    settings, problems = read_overrides(overrides)
    for setting in settings:
        refusal = setting.apply(document)
        if refusal:
            problems.append(refusal)
    try:
        scenario = parse(document, file)
    except ScenarioError as error:
        problems.extend(_with_origin(problem, settings) for problem in error.problems)
        raise ScenarioError(path, problems) from None
    if problems:
        raise ScenarioError(path, problems)
    return scenario


def parse(document: Mapping[str, Any], path: str | Path) -> Scenario:
    """A scenario from the tables of a TOML document; ``path`` is the file that they belong to.

    Raises:
        ScenarioError: carries every mistake.
    """
    file = Path(path)
    title = "".join("_" if has_control_characters(character) else character for character in file.stem)
    try:
        scenario = Scenario.model_validate({"title": title, **document}, context=Reading(folder=file.parent))
    except ValidationError as error:
        raise ScenarioError(path, [_problem(details) for details in error.errors()]) from None
    scenario._path = file
    return scenario


def read_document(file: Path) -> dict[str, Any]:
    """The tables of a TOML file, unchecked.

    Raises:
        ScenarioError: it cannot be read.
    """
    try:
        # A byte order mark, which some editors write, is no part of the text.
        return tomllib.loads(_content(file).decode("utf-8-sig"))
    except FileNotFoundError:
        raise ScenarioError(file, [Problem("", f"there is no such file{_nearest_file(file)}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        message = f"byte {error.object[error.start]:#04x} in line {line} is not UTF-8; save the file as UTF-8 text"
        raise ScenarioError(file, [Problem("", message)]) from None
    except RecursionError:
        raise ScenarioError(file, [Problem("", "not readable as TOML: nested too deeply")]) from None
    except OSError as error:
        raise ScenarioError(file, [Problem("", f"cannot be read: {error.strerror or error}")]) from None
    except ValueError as error:
        raise ScenarioError(file, [Problem("", f"not readable as TOML: {error}")]) from None


def _content(file: Path) -> bytes:
    """All bytes of a regular file; anything else could go on for ever, or never begin.

    Raises:
        ScenarioError: it is no regular file, or longer than any scenario.
        OSError: it cannot be read.
    """

    def without_waiting(path: str, flags: int) -> int:
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe waits for a writer

    with open(file, "rb", opener=without_waiting) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(file, [Problem("", "is a pipe or a device; give the scenario as a file of TOML text")])
        if status.st_size > LONGEST:
            size = f"{status.st_size:,} bytes; a scenario has at most {LONGEST:,}"
            raise ScenarioError(file, [Problem("", f"has {size}: keep large data in files that it names")])
        return stream.read(LONGEST)


def _nearest_file(file: Path) -> str:
    try:
        names = [entry.name for entry in file.parent.glob("*.toml")]
    except OSError:
        return ""
    nearest = suggest(file.name, names)
    return f'; did you mean "{file.parent / nearest}"?' if nearest else ""


def _with_origin(problem: Problem, settings: Sequence[Override]) -> Problem:
    """Say so where a mistake stands in an override and not in the file."""
    for setting in settings:
        key = show_key(setting.parts)
        if problem.key == key or problem.key.startswith(f"{key}."):
            return Problem(problem.key, f"{problem.message} (from --set)")
    return problem


def _problem(details: ErrorDetails) -> Problem:
    """One of pydantic's errors in the user's terms."""
    where = places.find(details["loc"])
    at, value = where.key, details["input"]
    match details["type"]:
        case "missing":
            message = missing_key(where.example)
        case "extra_forbidden":
            message = _unknown(where, value)
        case "union_tag_not_found":
            at = (*at, "type")
            message = f"{missing_key(FACE_EXAMPLE)}; the types are {_names(where.types)}"
        case "union_tag_invalid":
            at, given = (*at, "type"), value["type"]
            message = f"got {show(given)}; one of {_names(where.types)} is wanted{did_you_mean(given, where.types)}"
        case "model_type" | "model_attributes_type" | "tuple_type" | "mapping_type" | "dict_type":
            message = f"got {show(value)}; {_table_wanted(where)}"
        case "value_error":
            message = str(details["ctx"]["error"])
        case _:
            message = details["msg"]
    return Problem(show_key(at), message)


def _unknown(where: places.Place, value: object) -> str:
    if where.key == ("study",):
        return "stands in the file of a parameter study; run it with `heatsim study`, or leave this table out"
    key = str(where.key[-1])
    message = unknown_key(key, value, where.keys)
    homes = [
        f'"{table}.{key}"'
        for table, model in places.TABLES.items()
        if model is not where.table and key in places.keys_of(model)
    ]
    return f"{message}; there is {' and '.join(homes)}" if homes else message


def _table_wanted(where: places.Place) -> str:
    if where.types:
        return f"write for example {FACE_EXAMPLE}"
    if len(where.key) == 1 and where.key[0] in places.TABLES:
        return f"write a table, with the heading [{where.key[0]}] and its keys below it"
    return f"write for example {where.example}" if len(where.key) > 2 else f"write {where.example}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
