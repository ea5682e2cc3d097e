"""The calls that change files, all in one place.

Every call that changes a file of a run goes through `calls`. Tests put another object there, which fails, ends the
process or forgets what was not synced at any one of these calls.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from heatsim.errors import FolderError

# Bytes from which on writing them to the disk is worth a call of its own.
_BEGUN_AT_ONCE = 1 << 20


def link_refused(path: Path) -> FolderError:
    """What to raise where a file or folder of a run is a symbolic link."""
    return FolderError(
        f"{path}: is a symbolic link, through which heatsim neither reads nor writes; put the file or folder "
        "itself in its place"
    )


class System:
    """The calls that change files. Each raises OSError where the system refuses."""

    def open(self, path: Path, flags: int) -> int:
        """Open a file for reading and writing; `flags` are those of `os.open` that create or empty it.

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
        """Write bytes from a place in a file on; returns how many were written."""
        if hasattr(os, "pwrite"):
            return os.pwrite(descriptor, content, start)
        os.lseek(descriptor, start, os.SEEK_SET)
        return os.write(descriptor, content)

    def truncate(self, descriptor: int, length: int) -> None:
        """Give a file this length."""
        os.ftruncate(descriptor, length)

    def reserve(self, descriptor: int, start: int, count: int) -> None:
        """Set bytes of a file aside; the file grows to their end."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, start, count)

    def sync(self, descriptor: int) -> None:
        """Wait until a file, or the names in a folder, are on the disk itself."""
        os.fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name; a file of that name is replaced."""
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
    """An open file that is read and written at given places; use `create` or `reopen`. Methods raise OSError.

    Attributes:
        path: its name when it was opened.
    """

    def __init__(self, path: Path, flags: int = 0) -> None:
        self.path = path
        self._descriptor: int | None = calls.open(path, flags)

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open an empty file; what it held before is gone."""
        return cls(path, os.O_CREAT | os.O_TRUNC)

    @property
    def descriptor(self) -> int:
        """The system's number of the open file."""
        if self._descriptor is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._descriptor

    @property
    def length(self) -> int:
        """Bytes in the file."""
        return os.fstat(self.descriptor).st_size

    @property
    def is_in_place(self) -> bool:
        """Whether the file still has the name under which it was opened."""
        try:
            there, here = os.stat(self.path), os.fstat(self.descriptor)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def write(self, start: int, content: bytes | memoryview) -> None:
        """Write bytes to their place and have the system begin to bring large ones to the disk.

        A later sync then finds little left to do. Python's lock is released meanwhile.
        """
        left = memoryview(content)
        size, place = left.nbytes, start
        while left:
            # A disk that is nearly full takes a part and refuses only the next write.
            count = calls.write(self.descriptor, left, place)
            left, place = left[count:], place + count
        if size >= _BEGUN_AT_ONCE and hasattr(os, "posix_fadvise"):
            # The advice that these pages are not needed any more makes Linux write them now; none waits for it.
            with suppress(OSError):
                os.posix_fadvise(self.descriptor, start, size, os.POSIX_FADV_DONTNEED)

    def read(self, start: int, count: int) -> bytes:
        """The bytes from a place on; fewer where the file ends before."""
        pieces = []
        while count and (piece := _read(self.descriptor, count, start)):
            pieces.append(piece)
            start, count = start + len(piece), count - len(piece)
        return b"".join(pieces)

    def truncate(self, length: int) -> None:
        """Give the file this length."""
        calls.truncate(self.descriptor, length)

    def sync(self) -> None:
        """Wait until all that was written is on the disk itself."""
        calls.sync(self.descriptor)

    def close(self) -> None:
        """Close the file; it can be closed twice."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read(descriptor: int, count: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, start)
    os.lseek(descriptor, start, os.SEEK_SET)
    return os.read(descriptor, count)
