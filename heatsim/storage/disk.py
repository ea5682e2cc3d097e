"""The disk under the files: its errors with advice, and writes that are whole or not there at all."""

import errno
import io
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

# Bytes from which on writing them to the disk is worth a call of its own.
_BEGUN_AT_ONCE = 1 << 20

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
        remedy = "free some disk space" if _number(error) in FULL else "check the disk and its permissions"
        raise StorageError(
            f"{path}: could not be written: {reason(error)}; {remedy} and run `{again or resume_command(path.parent)}`"
        ) from error


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


def reserve(descriptor: int, start: int, count: int) -> None:
    """Have the file system set aside the bytes [start, start + count) of an open file.

    A disk that fills up halfway through an update of a file's index destroys what was there before; asked for
    beforehand, it refuses while the file is still whole. Where the system cannot reserve, nothing is done.

    Raises:
        OSError: no space left, or a quota or limit reached; the file's length is as before.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    length = os.fstat(descriptor).st_size
    try:
        os.posix_fallocate(descriptor, start, count)
    except OSError as error:
        if error.errno in FULL:
            with suppress(OSError):
                os.ftruncate(descriptor, length)
            raise


def write_at(file: io.FileIO, start: int, content: bytes | memoryview) -> None:
    """Write bytes to their place in an unbuffered file and have the system begin to bring large ones to the disk.

    A later fsync then finds little left to do. Python's lock is let go meanwhile.

    Raises:
        OSError: the disk refused.
    """
    left = memoryview(content)
    file.seek(start)
    while left:
        left = left[file.write(left) :]
    size = memoryview(content).nbytes
    if size >= _BEGUN_AT_ONCE and hasattr(os, "posix_fadvise"):
        # The advice that these pages are not needed any more makes Linux write them now; none waits for it.
        with suppress(OSError):
            os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a loss of power (POSIX wants the folder itself synced)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def part_of(path: Path) -> Path:
    """The name under which a file is written before it is renamed into place."""
    return path.with_name(path.name + ".part")


def write_whole(path: Path, content: bytes, again: str = "") -> None:
    """Replace a small file so that a reader finds the old content or all of the new one.

    Args:
        path: the file.
        content: all of it.
        again: the command that goes on where the disk refuses, as for `writing`.

    Raises:
        StorageError: the disk refused.
    """
    part = part_of(path)
    with writing(path, again):
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        sync_folder(path.parent)


def clear_pictures(folder: Path, patterns: Iterable[str]) -> None:
    """Make a folder for pictures; remove from it the files of earlier ones, whose names match the patterns.

    Raises:
        StorageError: the system refused.
    """
    try:
        folder.mkdir(exist_ok=True)
        for pattern in patterns:
            for path in folder.glob(pattern):
                path.unlink()
    except OSError as error:
        raise StorageError(f"{folder}: pictures could not be replaced: {reason(error)}") from error
