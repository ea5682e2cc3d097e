"""A disk whose n-th change fails, is cut short, or is the last before the process or the power ends.

`FaultyDisk` replaces `heatsim.storage.system.calls`. It counts the calls that change something. Its model of a power
cut:

- Of the changes of a file since its last sync, any part may be on the disk: each change completely, by half or not.
- Of the changes of names in a folder since its last sync, the first ones are on the disk and the later ones are not, as
  on file systems with a journal.
"""

import errno
import os
import random
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from heatsim.storage.system import System

MODES = ("full", "error", "killed", "torn", "power")


class Ended(BaseException):
    """The end of the process; no code catches it."""


Key = tuple[int, int]
Change = tuple[int, bytes]


@dataclass
class _Content:
    """The content of a file at its last sync, and the changes since then."""

    descriptor: int
    synced: bytes
    changes: list[Change | int] = field(default_factory=list)  # bytes at a place, or a length


class FaultyDisk(System):
    """Does the requested changes, except for one call.

    Args:
        stash: a folder outside the run's, for files that a power cut restores.
        mode: "full": that call and all later ones find no space; "error": only that call fails; "killed", "torn",
            "power": the process ends there, in the middle of a write, or with the power.
        at: the number of the call, from 1.
        seed: decides what a power cut leaves.

    Attributes:
        count: number of calls so far.
        log: the request of each call.
    """

    def __init__(self, stash: Path, mode: str = "", at: int = 0, seed: int = 0) -> None:
        self.count = 0
        self.log: list[str] = []
        self.mode, self.at, self._stash = mode, at, stash
        self._random = random.Random(seed)
        self._lock = threading.RLock()
        self._files: dict[Key, _Content] = {}
        self._names: dict[Path, list[Callable[[], object]]] = {}
        self._over = False

    def open(self, path: Path, flags: int) -> int:
        with self._lock:
            if flags & (os.O_CREAT | os.O_TRUNC):
                self._call("open", path)
            new = not path.exists()
            descriptor = super().open(path, flags & ~os.O_TRUNC)
            found = self._content(descriptor)
            if new:
                self._named(path, path.unlink)
                found.synced = b""
            elif flags & os.O_TRUNC:
                self.truncate_quietly(descriptor, 0)
            return descriptor

    def write(self, descriptor: int, content: memoryview, start: int) -> int:
        with self._lock:
            self._call("write", descriptor, lambda: self._write(descriptor, content[: len(content) // 2], start))
            return self._write(descriptor, content, start)

    def truncate(self, descriptor: int, length: int) -> None:
        with self._lock:
            self._call("truncate", descriptor)
            self.truncate_quietly(descriptor, length)

    def truncate_quietly(self, descriptor: int, length: int) -> None:
        self._content(descriptor).changes.append(length)
        super().truncate(descriptor, length)

    def reserve(self, descriptor: int, start: int, count: int) -> None:
        with self._lock:
            self._call("reserve", descriptor)
            if os.fstat(descriptor).st_size < start + count:
                self.truncate_quietly(descriptor, start + count)

    def sync(self, descriptor: int) -> None:
        with self._lock:
            self._call("sync", descriptor)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                self._names.pop(_path(descriptor), None)
            else:
                content = self._content(descriptor)
                content.synced, content.changes = _read(descriptor), []

    def rename(self, source: Path, target: Path) -> None:
        with self._lock:
            self._call("rename", target)
            before = self._keep(target)
            super().rename(source, target)

            def undo() -> None:
                os.rename(target, source)
                if before is not None:
                    os.link(before, target)

            self._named(target, undo)

    def remove(self, path: Path) -> None:
        with self._lock:
            self._call("remove", path)
            before = self._keep(path)
            super().remove(path)
            if before is not None:
                self._named(path, lambda: os.link(before, path))

    def make_folder(self, path: Path) -> None:
        with self._lock:
            self._call("make folder", path)
            super().make_folder(path)
            self._named(path, lambda: shutil.rmtree(path))

    def remove_folder(self, path: Path) -> None:
        with self._lock:
            self._call("remove folder", path)
            super().remove_folder(path)
            self._named(path, lambda: path.mkdir())

    def close(self) -> None:
        """Close the files."""
        for content in self._files.values():
            os.close(content.descriptor)
        self._files.clear()

    def _call(self, what: str, where: Path | int, half: Callable[[], object] = lambda: None) -> None:
        if self._over:
            raise Ended
        self.count += 1
        path = where if isinstance(where, Path) else _path(where)
        self.log.append(f"{what} {path.name}")
        if self.mode == "full" and self.count >= self.at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if self.count != self.at:
            return
        if self.mode == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        if self.mode in ("killed", "torn", "power"):
            if self.mode == "torn":
                half()
            if self.mode == "power":
                self._lose()
            self._over = True
            raise Ended

    def _write(self, descriptor: int, content: memoryview, start: int) -> int:
        self._content(descriptor).changes.append((start, bytes(content)))
        return super().write(descriptor, content, start)

    def _content(self, descriptor: int) -> _Content:
        found = os.fstat(descriptor)
        key = found.st_dev, found.st_ino
        if key not in self._files:
            # Not a copy of the descriptor: it would keep the lock on the file.
            again = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
            self._files[key] = _Content(again, _read(descriptor))
        return self._files[key]

    def _named(self, path: Path, undo: Callable[[], object]) -> None:
        self._names.setdefault(path.parent, []).append(undo)

    def _keep(self, path: Path) -> Path | None:
        """Another name for a file that is about to lose this one."""
        if not path.is_file():
            return None
        kept = self._stash / f"{self.count}"
        os.link(path, kept)
        return kept

    def _lose(self) -> None:
        for content in self._files.values():
            left = bytearray(content.synced)
            for change in content.changes:
                share = self._random.choice((0.0, 0.5, 1.0))
                if isinstance(change, int):
                    if share == 1.0:
                        left[:] = left[:change].ljust(change, b"\0")
                else:
                    start, piece = change
                    piece = piece[: int(share * len(piece))]
                    if piece:
                        left[:] = left.ljust(start, b"\0")
                        left[start : start + len(piece)] = piece
            os.ftruncate(content.descriptor, 0)
            os.pwrite(content.descriptor, left, 0)
        for changes in reversed(self._names.values()):
            for undo in reversed(changes[self._random.randint(0, len(changes)) :]):
                with suppress(FileNotFoundError):
                    undo()


def _path(descriptor: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
