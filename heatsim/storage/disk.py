"""Writing to the disk: files are complete or absent, and errors become messages with advice."""

import errno
import json
import os
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from heatsim.errors import StorageError
from heatsim.storage import system
from heatsim.storage.system import File

# Endings of a file's name while it is written; the second is for when a folder has the first name.
PARTS = (".part", ".part2")

# Advice when the files of a run are lost.
AGAIN = "start again with `heatsim run … --overwrite`"

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Closing(ABC):
    """An object that a with statement closes.

    If the block raised an error and closing fails too, the error of the block is reported.
    """

    @abstractmethod
    def close(self) -> None:
        """Bring everything that was written to the disk.

        Raises:
            StorageError: the disk refused.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(StorageError):
                self.close()


@contextmanager
def writing(path: Path, again: str = "") -> Iterator[None]:
    """Run a block that writes `path`; errors of the system and of HDF5 become a message with advice.

    Args:
        path: the file.
        again: the command that continues afterwards; by default `heatsim resume` with the file's folder.

    Raises:
        StorageError: names the file, the reason and what to do.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        message = f"{path}: could not be written: {reason(error)}"
        if not path.parent.is_dir():
            # There is nothing left to resume.
            command = again or "heatsim run"
            raise StorageError(f"{message}; its folder was removed: start again with `{command}`") from error
        raise StorageError(f"{message}; {remedy(error)} and run `{again or resume_command(path.parent)}`") from error


def remedy(error: Exception) -> str:
    """What to do about an error of the disk."""
    number = _number(error)
    if number == errno.EFBIG:
        return "raise the limit on the size of files (`ulimit -f`) or use another disk"
    return "free some disk space" if number in _FULL else "check the disk and its permissions"


def reason(error: Exception) -> str:
    """The reason of an error: the system's text if the error has a number, else the first line of the error's text."""
    number = _number(error)
    if number:
        return os.strerror(number)
    match error:
        case UnicodeDecodeError():
            number = error.object[: error.start].count(b"\n") + 1
            return f"line {number} is not UTF-8 text; the file is damaged"
        case json.JSONDecodeError():
            return f"line {error.lineno} is not JSON; the file is damaged"
        case _:
            return next(iter(str(error).splitlines()), type(error).__name__)


def _number(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno:
        return error.errno
    # Some errors of HDF5 have the system's number only in their text.
    found = re.search(r"errno = (\d+)", str(error))
    return int(found[1]) if found else None


def resume_command(folder: Path) -> str:
    """The command that resumes the run in `folder`, quoted for a shell."""
    return f"heatsim resume {shlex.quote(str(folder))}"


def converge_command(scenario: Path) -> str:
    """The command that finds the error of a scenario, quoted for a shell."""
    return f"heatsim converge {shlex.quote(str(scenario))}"


def render_command(folder: Path) -> str:
    """The command that draws the pictures of the run in `folder`, quoted for a shell."""
    return f"heatsim render {shlex.quote(str(folder))}"


def reserve(file: File, length: int) -> None:
    """Make a file at least `length` bytes long and have the file system reserve the space.

    A full disk then refuses now, while nothing relies on the file, and not halfway through the run. If the system
    cannot reserve space, the file only gets its length.

    Raises:
        OSError: no space left, or a quota or limit was reached; the file has its old length.
    """
    before = file.length
    try:
        if length:
            system.calls.reserve(file.descriptor, 0, length)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV):
            with suppress(OSError):
                file.truncate(before)
            raise
    if file.length < length:
        file.truncate(length)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut. POSIX wants the folder itself synced.

    Raises:
        OSError: the disk refused.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        system.calls.sync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path) -> None:
    """Make a folder and the folders above it, if they are missing.

    Raises:
        OSError: the system refused; FileExistsError: there is a file of that name.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folders(folder.parent)
    try:
        system.calls.make_folder(folder)
    except FileExistsError:
        if not folder.is_dir():  # Another process may have made it.
            raise


def part_of(path: Path) -> Path:
    """The name that a file has until it is renamed into place."""
    return path.with_name(path.name + PARTS[0])


def parts_of(path: Path) -> list[Path]:
    """All names that a file may have before it is renamed into place."""
    return [path.with_name(path.name + suffix) for suffix in PARTS]


def free_part_of(path: Path) -> Path:
    """The name of :func:`part_of`, or the second one if a folder has the first."""
    names = parts_of(path)
    return next((name for name in names if not name.is_dir()), names[0])


def write_whole(path: Path, content: bytes, again: str = "") -> None:
    """Replace a small file; a reader finds either the old content or all of the new one.

    Args:
        path: the file.
        content: the new content.
        again: the command that continues if the disk refuses, as for `writing`.

    Raises:
        StorageError: the disk refused.
    """
    part = free_part_of(path)
    with writing(path, again):
        write_synced(part, content)
        system.calls.rename(part, path)
        sync_folder(path.parent)


def write_synced(part: Path, content: bytes) -> None:
    """Write a complete file and sync it; if that fails, remove it.

    Raises:
        OSError: the disk refused.
    """
    try:
        with File.create(part) as file:
            file.write(0, content)
            file.sync()
    except OSError:
        remove_if_there(part)
        raise


def remove_if_there(path: Path) -> None:
    """Remove a file that is not needed; if it cannot be removed, leave it."""
    with suppress(OSError):
        system.calls.remove(path)
