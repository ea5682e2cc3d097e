"""The folder of a run: the names of what a run writes, and which folders may be written to.

Nothing is ever removed from a folder but files of these names, pictures in figures/, exported fields in export/ and
the copies of input files that the run's scenario.toml names. Symbolic links are never heatsim's.

A folder in which a run is being prepared is known by scenario.toml.part without scenario.toml. To remove a run, its
scenario.toml gets that name first and goes last; to start one, the file with that name comes first, then the input
files that it names are copied, then it gets its own name. A process killed in between leaves what the next `heatsim
run` takes for its own; from then on `resume` goes on.
"""

import errno
import json
import math
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from heatsim.errors import FolderError, StorageError
from heatsim.storage import system
from heatsim.storage.disk import AGAIN, PARTS, make_folders, part_of, reason, resume_command, write_whole
from heatsim.storage.own_files import refuse_links

SCENARIO = "scenario.toml"
FIELDS = "fields.vtkhdf"
CHECKPOINT = "checkpoint.h5"
PREVIOUS = "checkpoint.previous.h5"
PROBES = "probes.csv"
ENERGY = "energy.csv"
SUMMARY = "summary.json"
FAILURE = "failure.json"  # of a run in a study, in place of a summary
FIGURES = "figures"
EXPORT = "export"

FILES = (FIELDS, CHECKPOINT, PREVIOUS, PROBES, ENERGY, SUMMARY, SCENARIO)
SUFFIXES = {FIGURES: (".png",), EXPORT: (".vti", ".pvd")}
# The keys of a scenario whose value is the path of an input file.
INPUT_KEYS = ("file", "image", "stl")


def prepare(folder: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Make `folder` an empty folder that a run can write to.

    A folder that is missing is created. What a finished run wrote is removed, and what is left of one that was killed
    while it was prepared; what an unfinished one wrote only with `overwrite`. A folder with anything else in it is
    refused, and then nothing is removed.

    Args:
        folder: where the run will write.
        overwrite: replace an unfinished run too.
        inputs: files the coming run reads, which must not be among those removed.

    Raises:
        FolderError: the folder cannot be used; says why and what to do.
    """
    try:
        make_folders(folder)
    except (FileExistsError, NotADirectoryError):
        raise FolderError(f"{folder}: is a file or inside of one; choose another --output") from None
    except OSError as error:
        raise FolderError(f"{folder}: could not be created: {reason(error)}; choose another --output") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise FolderError(f"{folder}: may not be written to; change its permissions or choose another --output")
    with claim(folder):
        try:
            ours, others = _contents(folder)
        except OSError as error:
            raise FolderError(f"{folder}: could not be read: {reason(error)}; choose another --output") from error
        if not ours and not others:
            return
        scenario, marker = folder / SCENARIO, part_of(folder / SCENARIO)
        if others and scenario in ours and _are_inputs(folder, others):
            raise FolderError(
                f"{folder}: holds a scenario and its input files ({_few(folder, others)}) but no fields; whether "
                f"they are copies cannot be told: run it by `{resume_command(folder)}` or choose another --output"
            )
        if others or not {scenario, marker} & set(ours):
            raise FolderError(
                f"{folder}: holds files that are not from a heatsim run ({_few(folder, others or ours)}); nothing was "
                f"removed; move them away or choose another --output"
            )
        if scenario in ours and folder / SUMMARY not in ours and not overwrite:
            raise FolderError(
                f"{folder}: holds an unfinished run; go on with it by `{resume_command(folder)}`, or replace it "
                f"with --overwrite, or choose another --output"
            )
        kept = {path.resolve() for path in inputs} & {path.resolve() for path in ours}
        if kept:
            raise FolderError(
                f"{folder}: holds input files of this very run ({_few(folder.resolve(), sorted(kept))}), which "
                f"replacing the run there would remove; choose another --output"
            )
        try:
            if scenario in ours:
                system.calls.rename(scenario, marker)
            for path in ours:
                if path.is_dir():
                    system.calls.remove_folder(path)
                elif path not in (scenario, marker):
                    system.calls.remove(path)
            system.calls.remove(marker)
        except OSError as error:
            raise FolderError(
                f"{error.filename}: could not be removed: {reason(error)}; choose another --output"
            ) from error


@contextmanager
def claim(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process while a run writes to it; a killed process lets go by itself.

    Raises:
        FolderError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Network file systems may not lock folders at all; that is no reason not to run.
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise FolderError(
                    f"{folder}: another heatsim process is writing there; wait for it or choose another --output"
                ) from None
        yield
    finally:
        os.close(descriptor)


def check_names(folder: Path) -> None:
    """See that the files of a run can have their names in `folder`, which need not be there yet.

    Raises:
        FolderError: the system does not take such names, for instance because they are too long.
    """
    try:
        os.lstat(part_of(folder / PREVIOUS))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise FolderError(f"{folder}: cannot be the folder of a run: {reason(error)}; choose another folder") from None


def bytes_on_disk(folder: Path) -> int:
    """What the files of a run in `folder` take up on the disk, room set aside for fields included; no pictures."""
    total = 0
    for name in FILES:
        for path in (folder / name, part_of(folder / name)):
            if _is_file(path):
                status = path.stat()
                # In units of 512 bytes (POSIX), where the system counts them.
                total += 512 * status.st_blocks if hasattr(status, "st_blocks") else status.st_size
    return total


def require_run(folder: Path) -> Path:
    """Return `folder` if a run wrote it.

    Raises:
        FolderError: it is not there, is not the folder of a run, or has a symbolic link among the run's files.
    """
    advice = "give the folder that `heatsim run` wrote to, for instance outputs/cube"
    check_names(folder)
    if not folder.is_dir():
        raise FolderError(f"{folder}: is {'a file' if folder.exists() else 'not there'}; {advice}")
    if not (folder / SCENARIO).is_file():
        raise FolderError(f"{folder}: is not the folder of a heatsim run, {SCENARIO} is missing; {advice}")
    refuse_links([folder / name for name in (*FILES, FAILURE, FIGURES, EXPORT)])
    return folder


def require_files(folder: Path, names: Iterable[str]) -> None:
    """See that files of a run are still in its folder.

    Raises:
        StorageError: one was removed while the run wrote; says which.
    """
    for name in names:
        if not (folder / name).is_file():
            raise removed(folder / name)


def removed(path: Path) -> StorageError:
    """What to raise where a file that a run relies on is gone, or another one has its name."""
    return StorageError(f"{path}: was removed or replaced while the run was writing to its folder; {AGAIN}")


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write summary.json, whole or not at all, its keys in the order given.

    NumPy's numbers and arrays and paths are allowed; a number that is not finite becomes null.

    Raises:
        StorageError: the disk refused.
    """
    text = json.dumps(_plain(summary), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / SUMMARY, (text + "\n").encode())


def read_summary(folder: Path) -> dict[str, Any]:
    """What summary.json of a finished run holds.

    Raises:
        FolderError: the run has not finished, or the folder is not a run's.
        StorageError: the file is damaged.
    """
    path = require_run(folder) / SUMMARY
    try:
        summary = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FolderError(
            f"{path}: is not there, the run has not finished; go on with it by `{resume_command(folder)}`"
        ) from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error
    if not isinstance(summary, dict):
        raise StorageError(f"{path}: holds a {type(summary).__name__} where an object was expected")
    return summary


def _contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """What a run wrote, in the order in which it can be removed, and everything else."""
    names = [name + suffix for name in (FAILURE, *FILES) for suffix in (*PARTS, "")]
    scenario = folder / SCENARIO if _is_file(folder / SCENARIO) else part_of(folder / SCENARIO)
    # With a scenario and nothing else there has been no run yet, and the files that it names may be the user's own.
    ran = any(_is_file(folder / name) for name in FILES if name != SCENARIO)
    copies = _input_copies(folder, scenario) if scenario.suffix == ".part" or ran else []
    expected: list[Path] = []
    for sub, suffixes in SUFFIXES.items():
        if _is_folder(folder / sub):
            found = sorted(path for path in (folder / sub).iterdir() if _is_file(path))
            expected += [path for path in found if path.name.removesuffix(".part").endswith(suffixes)]
            expected.append(folder / sub)
    expected += copies
    parents = {parent for copy in copies for parent in copy.parents if folder in parent.parents}
    expected += sorted(parents, key=lambda path: len(path.parts), reverse=True)
    expected += [folder / name for name in names if _is_file(folder / name)]
    ours = list(dict.fromkeys(expected))
    others = sorted(path for path in _walk(folder) if path not in ours)
    return ours, others


def _are_inputs(folder: Path, paths: Iterable[Path]) -> bool:
    files = {path for path in paths if not _is_folder(path)}
    return bool(files) and files <= set(_input_copies(folder, folder / SCENARIO))


def _walk(folder: Path) -> Iterator[Path]:
    """Everything below a folder, links not followed."""
    for path in folder.iterdir():
        yield path
        if _is_folder(path):
            yield from _walk(path)


def _input_copies(folder: Path, scenario: Path) -> list[Path]:
    """The files inside `folder` that the scenario file names as input, those still being copied, and their folders."""
    try:
        tables = tomllib.loads(scenario.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    copies: list[Path] = []
    folders: set[Path] = set()
    for name in _input_names(tables):
        for relative in (PurePosixPath(f"{name}.part"), PurePosixPath(name), *PurePosixPath(name).parents[:-1]):
            path = folder / relative
            inside = bool(relative.parts) and not relative.is_absolute() and ".." not in relative.parts
            # Nothing that is reached through a link is inside.
            if not inside or path.resolve() != folder.resolve() / relative:
                continue
            if _is_file(path):
                copies.append(path)
            elif _is_folder(path):
                folders.add(path)
                if path.name == PurePosixPath(name).name:  # The slices of a label image.
                    slices = sorted(file for file in path.iterdir() if _is_file(file))
                    copies += [file for file in slices if file.name.lower().removesuffix(".part").endswith(".png")]
    return [*copies, *sorted(folders, key=lambda path: len(path.parts), reverse=True)]


def _input_names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in INPUT_KEYS and isinstance(value, str):
                yield value
            else:
                yield from _input_names(value)
    elif isinstance(node, list):
        for value in node:
            yield from _input_names(value)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _few(folder: Path, paths: Sequence[Path]) -> str:
    names = [path.relative_to(folder).as_posix() for path in paths[:4]]
    return ", ".join(names) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")


def _plain(value: Any) -> Any:
    """The same with JSON's own types."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            return float(value) if math.isfinite(value) else None
        case Path():
            return str(value)
        case _:
            return value
