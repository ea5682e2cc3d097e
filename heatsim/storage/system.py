"""The system calls that change files, all in one place.

Every change of a file of a run goes through `calls`. Tests replace it by an object that fails, ends the process or
forgets unsynced data at any one of these calls.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from heatsim.errors import FolderError

# From this number of bytes, it pays to ask the system to write them to the disk at once.
_BEGUN_AT_ONCE = 1 << 20


def link_refused(path: Path) -> FolderError:
    """The error for a file or folder of a run that is a symbolic link."""
    return FolderError(
        f"{path}: is a symbolic link; heatsim does not read or write through links: put the file or folder itself "
        "in its place"
    )


class System:
    """The system calls that change files. Each raises OSError if the system refuses."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file for reading and writing; returns its descriptor.

        `flags` are flags of `os.open` that create or empty it.

        Raises:
            FolderError: the path is a symbolic link.
        """
        for flag in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW"):
            flags |= getattr(os, flag, 0)
        try:
            return os.open(path, os.O_RDWR | flags, 0o666)
        except OSError:
            if path.is_symlink():
                raise link_refused(path) from None
            raise

    def write(self, descriptor: int, content: memoryview, start: int) -> int:
        """Write bytes at a position in a file; returns the number of bytes written."""
        if hasattr(os, "pwrite"):
            return os.pwrite(descriptor, content, start)
        os.lseek(descriptor, start, os.SEEK_SET)
        return os.write(descriptor, content)

    def truncate(self, descriptor: int, length: int) -> None:
        """Set the length of a file."""
        os.ftruncate(descriptor, length)

    def reserve(self, descriptor: int, start: int, count: int) -> None:
        """Reserve space for bytes of a file; the file grows to their end."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, start, count)

    def sync(self, descriptor: int) -> None:
        """Wait until a file, or the names in a folder, are on the disk."""
        os.fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file; a file with the new name is replaced."""
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_folder(self, path: Path) -> None:
        """Make one folder."""
        os.mkdir(path)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(path)


calls = System()


class File:
    """An open file that is read and written at given positions; use `create` or `reopen`. Methods raise OSError.

    Attributes:
        path: its path when it was opened.
    """

    def __init__(self, path: Path, flags: int = 0) -> None:
        self.path = path
        self._descriptor: int | None = calls.open(path, flags)

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open an empty file; earlier content is lost."""
        return cls(path, os.O_CREAT | os.O_TRUNC)

    @property
    def descriptor(self) -> int:
        """The file descriptor."""
        if self._descriptor is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._descriptor

    @property
    def length(self) -> int:
        """Bytes in the file."""
        return os.fstat(self.descriptor).st_size

    @property
    def is_in_place(self) -> bool:
        """Whether the path still leads to this file."""
        try:
            there, here = os.stat(self.path), os.fstat(self.descriptor)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def write(self, start: int, content: bytes | memoryview) -> None:
        """Write bytes at a position.

        The system starts to write large ones to the disk, so that a later sync is fast. Other Python threads can run
        meanwhile.
        """
        left = memoryview(content)
        size, place = left.nbytes, start
        while left:
            # A disk that is nearly full accepts a part and refuses only the next write.
            count = calls.write(self.descriptor, left, place)
            left, place = left[count:], place + count
        if size >= _BEGUN_AT_ONCE and hasattr(os, "posix_fadvise"):
            # DONTNEED makes Linux start to write these pages; the call does not wait.
            with suppress(OSError):
                os.posix_fadvise(self.descriptor, start, size, os.POSIX_FADV_DONTNEED)

    def read(self, start: int, count: int) -> bytes:
        """`count` bytes from a position; fewer at the end of the file."""
        pieces = []
        while count and (piece := _read(self.descriptor, count, start)):
            pieces.append(piece)
            start, count = start + len(piece), count - len(piece)
        return b"".join(pieces)

    def truncate(self, length: int) -> None:
        """Set the length of the file."""
        calls.truncate(self.descriptor, length)

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        calls.sync(self.descriptor)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _read(descriptor: int, count: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, count)
