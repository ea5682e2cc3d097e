"""The folder of a run: the names of its files, its lock, and checks that it is one."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from heatsim.errors import FolderError, StorageError
from heatsim.storage import manifest
from heatsim.storage.disk import AGAIN, part_of, reason
from heatsim.storage.own_files import is_own_file, refuse_others
from heatsim.storage.study_hint import study_hint

SCENARIO = "scenario.toml"
FIELDS = "fields.vtkhdf"
CHECKPOINT = "checkpoint.h5"
PREVIOUS = "checkpoint.previous.h5"
PROBES = "probes.csv"
ENERGY = "energy.csv"
NODES = "nodes.csv"
CHANGES = "changes.csv"
SUMMARY = "summary.json"
KNOWN = "cells.json"  # how a run found its cells before it began, for its summary
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
    NODES: "temperatures and heats of nodes over time",
    CHANGES: "values that were set during the run",
    SUMMARY: "these numbers",
    KNOWN: "how the cells were found",
    CHECKPOINT: "the last state, for resume",
    manifest.NAME: "names, sizes and checksums of what heatsim wrote",
}
FILES = (*CONTENTS, PREVIOUS)
PICTURES = (".png", ".pdf", ".svg", ".gif", ".mp4")  # their suffixes


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
    """Check that the system allows the names of a run's files in `folder`, which may not exist yet, and libraries too.

    Raises:
        FolderError: the system refuses them, for instance because they are too long; or the name is no text.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise FolderError(f"{folder}: the name is not UTF-8 text; rename the folder, or choose another") from None
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
        FolderError: it does not exist, is not of a run, or has a link or a folder in the place of a file of the run.
    """
    check_names(folder)
    advice = f"give the folder that `heatsim run` wrote to, for instance {_run_within(folder)}"
    if not folder.is_dir():
        raise FolderError(f"{folder}: is {'a file' if folder.exists() else 'not there'}; {advice}")
    if not (folder / SCENARIO).is_file():
        missing = f"is not the folder of a heatsim run, {SCENARIO} is missing; {advice}"
        raise FolderError(f"{folder}: {study_hint(folder) or missing}")
    refuse_others([folder / name for name in (*FILES, FAILURE)], [folder / FIGURES, folder / EXPORT])
    manifest.check_layout(folder)
    return folder


def _run_within(folder: Path) -> str:
    """The latest run in a folder, or above a file of a run; else an example."""
    if folder.is_file() and (folder.parent / SCENARIO).is_file():
        return str(folder.parent)
    try:
        runs = [path for path in folder.iterdir() if (path / SCENARIO).is_file()]
        return str(max(runs, key=lambda path: (path / SCENARIO).stat().st_mtime, default="outputs/cube"))
    except OSError:
        return "outputs/cube"


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
