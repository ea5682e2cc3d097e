"""Writing the complete scenario: every default, SI units, and copies of the input files."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel

from heatsim.errors import StorageError
from heatsim.grid import FACES
from heatsim.scenario.files import ChangedError, InputFile
from heatsim.scenario.tables.channels import ChannelOutlet, outlet_document
from heatsim.scenario.tables.domain import KEYS_OF_AUTOMATIC, Domain
from heatsim.scenario.tables.initial import ArrayFile, ImageFile
from heatsim.scenario.tables.labels import LabelFile
from heatsim.scenario.tables.measured import MeasuredValues
from heatsim.scenario.tables.model import Scenario
from heatsim.scenario.tables.named import Named
from heatsim.scenario.tables.patches import Patch
from heatsim.scenario.tables.surfaces import RegionSurface
from heatsim.scenario.tables.time import KEYS_OF_EULER
from heatsim.scenario.values.csv_table import CsvOrigin
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFormula, MaterialTable, Orthotropic
from heatsim.scenario.values.nodetemperature import AT, NODE, NodeTemperature
from heatsim.scenario.values.steered import Steered
from heatsim.scenario.values.surfacefunction import SurfaceFormula, SurfaceTable
from heatsim.scenario.values.timefunction import Constant, Formula, SpaceFormula, Table, TimeFunction
from heatsim.storage import system
from heatsim.storage.disk import free_part_of, make_folders, sync_folder, write_synced, writing
from heatsim.storage.system import File

NAME = "scenario.toml"
HEADER = "# A complete scenario: every default filled in, SI units. It runs as it is.\n\n"

# A run writes its output to folders and files of these names.
RESERVED = ("figures", "export", "probes.csv", "energy.csv", "nodes.csv", "changes.csv")
EMPTY: Named[Any] = Named(())

# Keys without meaning for a method. In a steady state no time passes.
_LENGTHS_OF_STEPS = tuple(("time", key) for key in KEYS_OF_EULER)
KEYS_WITHOUT_MEANING = {
    "auto": _LENGTHS_OF_STEPS,
    "euler": (),
    "stabilized": _LENGTHS_OF_STEPS,
    "implicit": _LENGTHS_OF_STEPS,
    "steady": (
        ("time", "end"),
        *_LENGTHS_OF_STEPS,
        ("time", "stop_below"),
        ("output", "every"),
        ("output", "probe_every"),
        ("output", "checkpoint_wall"),
    ),
}

# An array of three entries; a string never spans lines.
VECTOR = re.compile(r"\[\n    (\S+),\n    (\S+),\n    (\S+),\n\]")


def write_resolved(scenario: Scenario, folder: Path) -> None:
    """Write ``folder``/scenario.toml, from which ``load`` makes an equal scenario, and copy the input files beside it.

    Each file is complete and synced before it gets its name; a file that is already in place is not touched. The
    scenario is written as ``scenario.toml.part`` before any copy, and gets its name after all copies. After a kill in
    between, the folder therefore still shows which files belong to it. If any file cannot be written, all of them are
    removed.

    Raises:
        StorageError: a file could not be written or copied.
    """
    import tomli_w

    marker = free_part_of(folder / NAME)
    made = [marker]
    text = HEADER + VECTOR.sub(_on_one_line, tomli_w.dumps(document(scenario)))
    try:
        make_folders(folder)
        write_synced(marker, text.encode())
        folders = {folder: None}
        for source, name in _files(scenario):
            target = folder / name
            if target.exists() and target.samefile(source.path):
                for _ in source.pieces():  # raises if the file was changed
                    pass
            else:
                for parent in (folder / above for above in reversed(name.parents)):
                    if not parent.exists():
                        made.append(parent)
                        system.calls.make_folder(parent)
                    folders[parent] = None
                part = free_part_of(target)
                made += [target, part]
                _copy(source, part)
                system.calls.rename(part, target)
        for parent in reversed(folders):
            sync_folder(parent)
        system.calls.rename(marker, folder / NAME)
    except (OSError, ChangedError) as error:
        for path in reversed(made):
            with suppress(OSError):
                if path.is_dir():
                    system.calls.remove_folder(path)
                else:
                    system.calls.remove(path)
        if isinstance(error, ChangedError):
            raise StorageError(f"{source.path}: {error}") from None
        raise StorageError(
            f"{folder / NAME}: could not be written: {error.strerror or error}; free some disk space or check its "
            "permissions, and run the scenario again"
        ) from error
    # From here on the folder belongs to a run that can be resumed.
    with writing(folder / NAME):
        sync_folder(folder)


def input_names(scenario: Scenario) -> list[str]:
    """The names of the copies of input files that `write_resolved` makes, relative to the run's folder."""
    return [name.as_posix() for _, name in _files(scenario)]


def input_bytes(scenario: Scenario) -> int:
    """The bytes of the copies of input files that `write_resolved` makes."""
    return sum(file.size for file, _ in _files(scenario))


def input_checksums(scenario: Scenario) -> dict[str, int]:
    """CRC-32 of each input file as the scenario read it, by the name of its copy."""
    return {name.as_posix(): file.checksum for file, name in _files(scenario)}


def _copy(source: InputFile, target: Path) -> None:
    with File.create(target) as copy:
        place = 0
        for piece in source.pieces():
            copy.write(place, piece)
            place += len(piece)
        copy.sync()


def document(scenario: Scenario) -> dict[str, Any]:
    """The tables of the complete TOML file, as plain Python values; input files have the names of their copies."""
    copies = {file.path: name.as_posix() for file, name in _copies(scenario)}
    tables: dict[str, Any] = _plain(scenario, copies)
    for table, name in KEYS_WITHOUT_MEANING[scenario.time.method]:
        tables[table].pop(name, None)
    if scenario.time.dt != "auto":
        tables["time"].pop("safety", None)
    if any(steered.key[:2] == ("boundaries", "default") for steered in scenario.steered.values()):
        # Faces that have no condition in the scenario go on sharing this one.
        for face in FACES:
            if scenario.boundaries.face(face) is scenario.boundaries.default:
                del tables["boundaries"][face]
    # The cells stand in the file, so that how to find them has no meaning.
    for key in KEYS_OF_AUTOMATIC:
        if getattr(scenario.domain, key) == Domain.model_fields[key].default:
            tables["domain"].pop(key, None)
    return tables


def _files(scenario: Scenario) -> Iterator[tuple[InputFile, PurePosixPath]]:
    """Every file to copy, and its path below the folder."""
    for file, name in _copies(scenario):
        yield from ((each, name / each.name) for each in file.slices) if file.slices else ((file, name),)


def _copies(scenario: Scenario) -> list[tuple[InputFile, PurePosixPath]]:
    """The path of each copy, relative to the folder: beside the scenario, or in a numbered folder if names repeat."""
    copies: list[tuple[InputFile, PurePosixPath]] = []
    for file in scenario.inputs:
        number, name = 1, PurePosixPath(file.name)
        while name in [other for _, other in copies] or (name.name in RESERVED and number == 1):
            number += 1
            name = PurePosixPath(str(number), file.name)
        copies.append((file, name))
    return copies


def _plain(value: object, copies: Mapping[Path, str]) -> Any:
    match value:
        case Patch() | RegionSurface():
            own = {name: getattr(value, name) for name in type(value).model_fields if name != "condition"}
            given = {name: _plain(item, copies) for name, item in own.items() if item is not None}
            return {**given, **_plain(value.condition, copies)}
        case BaseModel():
            fields = {info.alias or name: getattr(value, name) for name, info in type(value).model_fields.items()}
            # Omits an empty heading [materials] beside [material].
            shared = [item for item in fields.values() if isinstance(item, Steered)][1:]  # surroundings, by default
            return {
                name: _plain(item, copies)
                for name, item in fields.items()
                if item is not None and item != EMPTY and not (name == "surroundings" and item in shared)
            }
        case Mapping():
            return {str(name): _plain(item, copies) for name, item in value.items()}
        case TimeFunction():
            return _plain_in_time(value, copies)
        case MaterialTable(temperatures=temperatures, values=values):
            return {"temperatures": list(temperatures), "values": list(values)}
        case Orthotropic(axes=axes):
            return [_plain(axis, copies) for axis in axes]
        case MaterialFormula(expression=expression):
            return expression.text
        case Expression():
            return value.text
        case MeasuredValues(origin=CsvOrigin(file=file, keys=keys)):
            return {"file": copies[file.path], **dict(keys)}
        case MeasuredValues(times=times, values=values):
            return {"times": list(times), "values": list(values)}
        case InputFile(path=path) | LabelFile(path=path):
            return copies[path]
        case ArrayFile(file=file):
            return {"file": copies[file.path]}
        case ImageFile(image=file):
            return {"image": copies[file.path], "range": list(value.range)}
        case tuple():
            return [_plain(item, copies) for item in value]
        case _:
            return value


def _plain_in_time(function: TimeFunction, copies: Mapping[Path, str]) -> Any:
    match function:
        case Constant(value=value):
            return value
        case Steered():
            return function.start
        case (
            Formula(expression=expression) | SpaceFormula(expression=expression) | SurfaceFormula(expression=expression)
        ):
            return expression.text
        case SurfaceTable(table=table):
            return _plain(table, copies)
        case ChannelOutlet():
            return outlet_document(function)
        case NodeTemperature(node=node, at_temperature=at):
            return {NODE: node} if at is None else {NODE: node, AT: at}
        case Table(origin=CsvOrigin(file=file, keys=keys), repeat=repeat):
            return {"file": copies[file.path], **dict(keys), "repeat": repeat}
        case Table(times=times, values=values, repeat=repeat):
            return {"times": list(times), "values": list(values), "repeat": repeat}
    raise AssertionError(f"{type(function).__name__} has no form in TOML")


def _on_one_line(vector: re.Match[str]) -> str:
    return f"[{', '.join(vector.groups())}]"
