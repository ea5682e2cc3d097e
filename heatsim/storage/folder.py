"""The folder of a run: the names of its files, and which folders may be written to.

heatsim removes only files of these names, pictures in figures/, exported fields in export/ and the copies of input
files that the run's scenario.toml names. It never removes or follows symbolic links.

scenario.toml.part without scenario.toml marks a folder in which a run is being prepared or removed. It is the first
file written and the last removed. After a kill in between, the next `heatsim run` may use the folder.
"""

import errno
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from heatsim.errors import FolderError, StorageError
from heatsim.storage import system
from heatsim.storage.disk import AGAIN, PARTS, make_folders, part_of, reason, resume_command, write_whole
from heatsim.storage.input_copies import input_copies
from heatsim.storage.own_files import is_own_file, is_own_folder, refuse_links, walk
from heatsim.storage.study_hint import study_hint

SCENARIO = "scenario.toml"
FIELDS = "fields.vtkhdf"
CHECKPOINT = "checkpoint.h5"
PREVIOUS = "checkpoint.previous.h5"
PROBES = "probes.csv"
ENERGY = "energy.csv"
SUMMARY = "summary.json"
REPORT = "report.html"
FAILURE = "failure.json"  # of a run in a study, instead of a summary
FIGURES = "figures"
EXPORT = "export"

# The files of a run that its report lists: their contents, in the order of interest to a reader.
CONTENTS = {
    REPORT: "all of this on one page, for a browser",
    SCENARIO: "the scenario, resolved",
    FIELDS: "temperature over time, for ParaView",
    PROBES: "probes over time",
    ENERGY: "energy balance over time",
    SUMMARY: "these numbers",
    CHECKPOINT: "the last state, for resume",
}
FILES = (*CONTENTS, PREVIOUS)
SUFFIXES = {FIGURES: (".png", ".pdf", ".svg", ".gif", ".mp4"), EXPORT: (".vti", ".pvd")}


def prepare(folder: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Make `folder` an empty folder that a run can write to.

    A missing folder is created. Files of a finished run, and of a run that was killed during its preparation, are
    removed; files of an unfinished run only with `overwrite`. A folder with any other file is refused, and nothing is
    removed.

    Args:
        folder: where the run will write.
        overwrite: replace an unfinished run too.
        inputs: files that the coming run reads; they must not be among those removed.

    Raises:
        FolderError: the folder cannot be used; says why and what to do.
    """
    try:
        make_folders(folder)
    except (FileExistsError, NotADirectoryError):
        raise FolderError(f"{folder}: is a file, or inside of a file; choose another --output") from None
    except OSError as error:
        raise FolderError(f"{folder}: could not be created: {reason(error)}; choose another --output") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise FolderError(f"{folder}: is not writable; change its permissions or choose another --output")
    with claim(folder):
        try:
            ours, others = _contents(folder)
        except OSError as error:
            raise FolderError(f"{folder}: could not be read: {reason(error)}; choose another --output") from error
        if ours or others:
            _refuse_to_replace(folder, ours, others, overwrite, inputs)
            _remove(folder, ours)


def describe_finished(folder: Path) -> str | None:
    """The title and the time of the finished run in a folder, as text; None without one."""
    try:
        written = (folder / SUMMARY).stat().st_mtime
        title = read_summary(folder).get("title")
    except (OSError, FolderError, StorageError):
        return None
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(written))
    return f'"{title}" of {moment}' if title else f"of {moment}"


def _refuse_to_replace(
    folder: Path, ours: Sequence[Path], others: Sequence[Path], overwrite: bool, inputs: Iterable[Path]
) -> None:
    """Check that all files of a folder may be removed: ``ours`` are of a run, ``others`` are not.

    Raises:
        FolderError: a file must not be removed.
    """
    scenario, marker = folder / SCENARIO, part_of(folder / SCENARIO)
    if others and scenario in ours and _are_inputs(folder, others):
        raise FolderError(
            f"{folder}: holds a scenario and its input files ({_few(folder, others)}) but no fields; the "
            f"files may be originals: run it with `{resume_command(folder)}`, or choose another --output"
        )
    if others or not {scenario, marker} & set(ours):
        raise FolderError(
            f"{folder}: holds files that are not from a heatsim run ({_few(folder, others or ours)}); nothing was "
            f"removed; move them away, or choose another --output"
        )
    if scenario in ours and folder / SUMMARY not in ours and not overwrite:
        raise FolderError(
            f"{folder}: holds an unfinished run; continue it with `{resume_command(folder)}`, replace it with "
            f"--overwrite, or choose another --output"
        )
    kept = {path.resolve() for path in inputs} & {path.resolve() for path in ours}
    if kept:
        raise FolderError(
            f"{folder}: holds input files of this very run ({_few(folder.resolve(), sorted(kept))}), and "
            f"replacing the run there would remove them; choose another --output"
        )


def _remove(folder: Path, ours: Sequence[Path]) -> None:
    """Remove the files of a run from its folder; scenario.toml becomes scenario.toml.part first and goes last.

    Raises:
        FolderError: the system refused.
    """
    scenario, marker = folder / SCENARIO, part_of(folder / SCENARIO)
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
    """Lock `folder` for this process while a run writes to it; the lock ends with the process.

    Raises:
        FolderError: another process holds the lock.
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
            # Some network file systems cannot lock folders; run without a lock there.
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise FolderError(
                    f"{folder}: another heatsim process is writing there; wait for it, or choose another --output"
                ) from None
        yield
    finally:
        os.close(descriptor)


def check_names(folder: Path) -> None:
    """Check that the system allows the names of a run's files in `folder`, which may not exist yet.

    Raises:
        FolderError: the system refuses them, for instance because they are too long.
    """
    try:
        os.lstat(part_of(folder / PREVIOUS))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise FolderError(f"{folder}: cannot be the folder of a run: {reason(error)}; choose another folder") from None


def bytes_on_disk(folder: Path) -> int:
    """Bytes of disk space that the files of a run in `folder` occupy, including reserved space; without pictures."""
    total = 0
    for name in FILES if folder.is_dir() else ():
        for path in (folder / name, part_of(folder / name)):
            if is_own_file(path):
                status = path.stat()
                # In units of 512 bytes (POSIX), where the system counts them.
                total += 512 * status.st_blocks if hasattr(status, "st_blocks") else status.st_size
    return total


def require_run(folder: Path) -> Path:
    """`folder`, if a run wrote it.

    Raises:
        FolderError: it does not exist, is not of a run, or has a symbolic link among the run's files.
    """
    advice = "give the folder that `heatsim run` wrote to, for instance outputs/cube"
    check_names(folder)
    if not folder.is_dir():
        raise FolderError(f"{folder}: is {'a file' if folder.exists() else 'not there'}; {advice}")
    if not (folder / SCENARIO).is_file():
        missing = f"is not the folder of a heatsim run, {SCENARIO} is missing; {advice}"
        raise FolderError(f"{folder}: {study_hint(folder) or missing}")
    refuse_links([folder / name for name in (*FILES, FAILURE, FIGURES, EXPORT)])
    return folder


def require_files(folder: Path, names: Iterable[str]) -> None:
    """Check that files of a run still exist in its folder.

    Raises:
        StorageError: one was removed while the run was writing; names it.
    """
    for name in names:
        if not (folder / name).is_file():
            raise removed(folder / name)


def removed(path: Path) -> StorageError:
    """The error for a file that a run relies on and that was removed or replaced."""
    return StorageError(f"{path}: was removed or replaced while the run was writing to its folder; {AGAIN}")


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write summary.json, completely or not at all, with its keys in the order of `summary`.

    Values may be numbers and arrays of NumPy, and paths; infinity and NaN become null.

    Raises:
        StorageError: the disk refused.
    """
    text = json.dumps(_plain(summary), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(folder / SUMMARY, (text + "\n").encode())


def read_summary(folder: Path) -> dict[str, Any]:
    """The content of summary.json of a finished run.

    Raises:
        FolderError: the run has not finished, or the folder is not of a run.
        StorageError: the file is damaged.
    """
    path = require_run(folder) / SUMMARY
    try:
        summary = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FolderError(
            f"{path}: is missing, the run has not finished; continue it with `{resume_command(folder)}`"
        ) from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error
    if not isinstance(summary, dict):
        raise StorageError(f"{path}: holds a {type(summary).__name__} instead of an object")
    return summary


def _contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files and folders of a run in the order in which they can be removed, and all other paths."""
    names = [name + suffix for name in (FAILURE, *FILES) for suffix in (*PARTS, "")]
    scenario = folder / SCENARIO if is_own_file(folder / SCENARIO) else part_of(folder / SCENARIO)
    # A scenario alone may be the user's, and so may the files that it names: no run has written here yet.
    ran = any(is_own_file(folder / name) for name in FILES if name != SCENARIO)
    copies = input_copies(folder, scenario) if scenario.suffix == ".part" or ran else []
    expected: list[Path] = []
    for sub, suffixes in SUFFIXES.items():
        if is_own_folder(folder / sub):
            found = sorted(path for path in (folder / sub).iterdir() if is_own_file(path))
            expected += [path for path in found if path.name.removesuffix(".part").endswith(suffixes)]
            expected.append(folder / sub)
    parents = {parent for copy in copies for parent in copy.parents if folder in parent.parents}
    expected += [*copies, *sorted(parents, key=lambda path: len(path.parts), reverse=True)]
    expected += [folder / name for name in names if is_own_file(folder / name)]
    ours = list(dict.fromkeys(expected))
    return ours, sorted(path for path in walk(folder) if path not in ours)


def _are_inputs(folder: Path, paths: Iterable[Path]) -> bool:
    files = {path for path in paths if not is_own_folder(path)}
    return bool(files) and files <= set(input_copies(folder, folder / SCENARIO))


def _few(folder: Path, paths: Sequence[Path]) -> str:
    names = [path.relative_to(folder).as_posix() for path in paths[:4]]
    return ", ".join(names) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")


def _plain(value: Any) -> Any:
    """The same value with JSON's types."""
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
