"""Reading a TOML file into a ``Scenario``; all mistakes are reported together."""

import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.errors import Mistake, ScenarioError
from heatsim.scenario.documents.changes import steer
from heatsim.scenario.documents.copies import in_file, with_copies
from heatsim.scenario.documents.overrides import Override, read_overrides
from heatsim.scenario.documents.syntax import describe_error
from heatsim.scenario.files import is_utf_16, reading_once
from heatsim.scenario.messages import has_control_characters, show_key, suggest
from heatsim.scenario.rules.checks import CHECKS
from heatsim.scenario.rules.hints import hints
from heatsim.scenario.rules.idle_keys import idle_keys
from heatsim.scenario.rules.material_hints import material_hints
from heatsim.scenario.rules.validation import read_model
from heatsim.scenario.tables.model import Scenario, complete

_DICTIONARY = "scenario"  # stands for the name of a file in messages
_MOST_LEVELS = 50
LONGEST = 2**26  # bytes of a scenario file


def load(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """A scenario from a file.

    Args:
        path: the TOML file; paths inside it are relative to its folder.
        overrides: ``key.path=value`` settings that replace keys of the file or add keys. A value is TOML, or plain text
            if it is not valid TOML.

    Raises:
        ScenarioError: lists every mistake in the file and the overrides.
    """
    file = Path(path)
    document, settings, mistakes = read_with_overrides(file, overrides)
    try:
        scenario = parse(document, file)
    except ScenarioError as error:
        mistakes.extend(_with_origin(mistake, settings) for mistake in error.mistakes)
        raise ScenarioError(path, mistakes) from None
    if mistakes:
        raise ScenarioError(path, mistakes)
    return scenario


def read_with_overrides(file: Path, overrides: Sequence[str]) -> tuple[dict[str, Any], list[Override], list[Mistake]]:
    """The tables of a TOML file with overrides, without any checks; the overrides, and the mistakes in them.

    Raises:
        ScenarioError: the file cannot be read, or has tables within tables without end.
    """
    document = read_document(file)
    settings, mistakes = read_overrides(overrides)
    for number, setting in enumerate(settings):
        settings[number] = setting.numbered(document)
        mistakes += filter(None, [setting.apply(document)])
    _check_depth(document, file)
    return document, settings, mistakes


def parse(document: Mapping[str, Any], path: str | Path) -> Scenario:
    """A scenario from the tables of a TOML document; ``path`` is the file of the document.

    Raises:
        ScenarioError: lists every mistake.
    """
    with reading_once():
        return _parse(document, Path(path))


def _parse(document: Mapping[str, Any], file: Path) -> Scenario:
    """As :func:`parse`."""
    title = "".join("_" if has_control_characters(character) else character for character in file.stem)
    copies = with_copies(document)
    document = copies.document
    scenario, mistakes = read_model(Scenario, {"title": title, **document}, CHECKS, file.parent, complete)
    if scenario is not None and not copies.mistakes:
        mistakes = steer(scenario, document, file.parent)
        mistakes += [mistake for check in CHECKS if scenario.changes for mistake in check(scenario)]
    if scenario is None or copies.mistakes or mistakes:
        raise ScenarioError(file, [*copies.mistakes, *in_file(mistakes, copies.origins)])
    scenario._path, scenario._origins = file, copies.origins
    scenario._hints = (*hints(document, file.parent, scenario), *material_hints(scenario), *idle_keys(scenario))
    return scenario


def parse_dict(document: Mapping[str, Any], folder: str | Path = ".") -> Scenario:
    """A scenario from a dictionary with the tables and keys of a TOML document.

    Args:
        document: the tables; NumPy's numbers and arrays, tuples and paths become TOML's numbers, lists and texts.
        folder: where relative paths start.

    Raises:
        ScenarioError: lists every mistake.
    """
    tables = plain_tables(document, _DICTIONARY, "Simulation.from_scenario")
    return parse(tables, Path(folder) / _DICTIONARY)


def plain_tables(document: Mapping[str, Any], name: str, reader: str) -> dict[str, Any]:
    """The tables of a dictionary with TOML's types.

    Args:
        document: as for :func:`parse_dict`.
        name: of the dictionary in messages.
        reader: the method that reads a file instead.

    Raises:
        ScenarioError: it is no dictionary, or its tables are too deep.
    """
    _check_depth(document, name)
    tables = _plain(document)
    if not isinstance(tables, dict):
        message = f"got {type(document).__name__}; a dictionary is expected; {reader} reads a file"
        raise ScenarioError(name, [Mistake("", message)])
    return tables


def _check_depth(document: object, path: str | Path) -> None:
    """Refuse a document whose levels no recursive function could follow.

    Raises:
        ScenarioError: it is deeper than any scenario.
    """
    level: list[Any] = [document]
    for _ in range(_MOST_LEVELS):
        tables = [each.values() if isinstance(each, Mapping) else each for each in level]
        level = [each for table in tables for each in table if isinstance(each, Mapping | list | tuple)]
        if not level:
            return
    message = f"a key has more than {_MOST_LEVELS} parts, or lists within lists; a scenario needs fewer than ten"
    raise ScenarioError(path, [Mistake("", message)])


def _plain(value: Any) -> Any:
    """A value with TOML's types."""
    match value:
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [_plain(each) for each in value]
        case np.ndarray() | np.generic():
            return value.tolist()
        case Path():
            return str(value)
        case _:
            return value


def read_document(file: Path) -> dict[str, Any]:
    """The tables of a TOML file, without any checks.

    Raises:
        ScenarioError: it cannot be read.
    """
    text = ""
    try:
        # Some editors write a byte order mark, which is not part of the text.
        content = _content(file)
        if is_utf_16(content):
            raise ScenarioError(file, [Mistake("", "is UTF-16 text; save it as UTF-8")])
        text = content.decode("utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise ScenarioError(file, [Mistake("", f"there is no such file{_nearest_file(file)}")]) from None
    except IsADirectoryError:
        inside = max(file.glob("*.toml"), key=lambda path: path.name == "scenario.toml", default="scenarios/cube.toml")
        raise ScenarioError(file, [Mistake("", f"is a folder; give a TOML file, for instance {inside}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        message = f"byte {error.object[error.start]:#04x} in line {line} is not UTF-8; save the file as UTF-8 text"
        raise ScenarioError(file, [Mistake("", message)]) from None
    except RecursionError:
        raise ScenarioError(file, [Mistake("", "not readable as TOML: nested too deeply")]) from None
    except OSError as error:
        raise ScenarioError(file, [Mistake("", f"cannot be read: {error.strerror or error}")]) from None
    except ValueError as error:
        raise ScenarioError(file, [Mistake("", f"not readable as TOML: {describe_error(text, error)}")]) from None


def _content(file: Path) -> bytes:
    """All bytes of a regular file; a pipe or a device could block or never end.

    Raises:
        ScenarioError: it is not a regular file, or too long for a scenario.
        OSError: it cannot be read.
    """

    def without_waiting(path: str, flags: int) -> int:
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe waits for a writer

    with open(file, "rb", opener=without_waiting) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ScenarioError(file, [Mistake("", "is a pipe or a device; give the scenario as a file of TOML text")])
        if status.st_size > LONGEST:
            size = f"{status.st_size:,} bytes; a scenario has at most {LONGEST:,}"
            raise ScenarioError(file, [Mistake("", f"has {size}: put large data into separate files")])
        return stream.read(LONGEST)


def _nearest_file(file: Path) -> str:
    try:
        names = [entry.name for entry in file.parent.glob("*.toml")]
    except OSError:
        return ""
    nearest = suggest(file.name, names)
    return f'; did you mean "{file.parent / nearest}"?' if nearest else ""


def _with_origin(mistake: Mistake, settings: Sequence[Override]) -> Mistake:
    """The mistake, with a remark if it comes from an override and not from the file."""
    for setting in settings:
        key = show_key(setting.parts)
        if mistake.key == key or mistake.key.startswith(f"{key}."):
            return Mistake(mistake.key, f"{mistake.message} (from --set)")
    return mistake
