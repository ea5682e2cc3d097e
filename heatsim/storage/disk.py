"""The disk under the files: its errors with advice, and writes that are whole or not there at all."""

import errno
import os
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from heatsim.errors import StorageError
from heatsim.storage import system
from heatsim.storage.system import File

# What stands behind a file's name while it is written; the second where a folder has the first name.
PARTS = (".part", ".part2")

# Advice where the files of a run are lost.
AGAIN = "start again with `heatsim run … --overwrite`"

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Closing(ABC):
    """What a with statement closes; if closing fails too, the error that ended the block is the one that is told."""

    @abstractmethod
    def close(self) -> None:
        """Put all that was written on the disk.

        Raises:
            StorageError: that did not work.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(StorageError):
                self.close()


@contextmanager
def writing(path: Path, again: str = "") -> Iterator[None]:
    """Run a block that writes `path`; what the system or HDF5 raise there becomes a message with advice.

    Args:
        path: the file.
        again: the command that goes on afterwards; `heatsim resume` with the file's folder if not given.

    Raises:
        StorageError: naming the file, the reason and how to go on.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        told = f"{path}: could not be written: {reason(error)}"
        if not path.parent.is_dir():
            # There is nothing left to resume.
            command = again or "heatsim run"
            raise StorageError(f"{told}; its folder was removed: start again with `{command}`") from error
        remedy = "free some disk space" if _number(error) in FULL else "check the disk and its permissions"
        raise StorageError(f"{told}; {remedy} and run `{again or resume_command(path.parent)}`") from error


def reason(error: Exception) -> str:
    """Why, in the system's words where it gave a number, else in those of the library."""
    number = _number(error)
    if number:
        return os.strerror(number)
    return next(iter(str(error).splitlines()), type(error).__name__)


def _number(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno:
        return error.errno
    # Some of HDF5's errors carry the system's number in their text only.
    found = re.search(r"errno = (\d+)", str(error))
    return int(found[1]) if found else None


def resume_command(folder: Path) -> str:
    """The command that goes on with the run in `folder`, quoted for a shell."""
    return f"heatsim resume {shlex.quote(str(folder))}"


def reserve(file: File, length: int) -> None:
    """Make a file at least `length` bytes long and have the file system set aside the room for them.

    A disk that fills up halfway through would otherwise refuse when the file is already in use; asked beforehand, it
    refuses while nothing relies on it. Where the system cannot set room aside, the file only gets its length.

    Raises:
        OSError: no space left, or a quota or limit reached; the file's length is as before.
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
    """Make the names in a folder survive a loss of power (POSIX wants the folder itself synced).

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
    """Make a folder and those above it, where they are missing.

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
    """The name under which a file is written before it is renamed into place."""
    return path.with_name(path.name + PARTS[0])


def parts_of(path: Path) -> list[Path]:
    """All names under which a file may be written before it is renamed into place."""
    return [path.with_name(path.name + suffix) for suffix in PARTS]


def free_part_of(path: Path) -> Path:
    """The same, or another name where a folder has this one."""
    names = parts_of(path)
    return next((name for name in names if not name.is_dir()), names[0])


def write_whole(path: Path, content: bytes, again: str = "") -> None:
    """Replace a small file so that a reader finds the old content or all of the new one.

    Args:
        path: the file.
        content: all of it.
        again: the command that goes on where the disk refuses, as for `writing`.

    Raises:
        StorageError: the disk refused.
    """
    part = free_part_of(path)
    with writing(path, again):
        write_beside(part, content)
        system.calls.rename(part, path)
        sync_folder(path.parent)


def write_beside(part: Path, content: bytes) -> None:
    """Write a whole file and wait until it is on the disk itself; where that fails there is none.

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
    """Remove a file that is of no use; one that cannot be removed stays."""
    with suppress(OSError):
        system.calls.remove(path)


def clear_pictures(folder: Path, patterns: Iterable[str]) -> None:
    """Make a folder for pictures; remove from it the files of earlier ones, whose names match the patterns.

    Raises:
        StorageError: the system refused.
    """
    try:
        make_folders(folder)
        for pattern in patterns:
            for path in folder.glob(pattern):
                system.calls.remove(path)
    except OSError as error:
        raise StorageError(f"{folder}: pictures could not be replaced: {reason(error)}") from error
