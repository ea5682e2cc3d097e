"""The files that a scenario names: each is read once, and this content is used, compared and copied."""

import codecs
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import HeatsimError
from heatsim.scenario.messages import has_control_characters, show

KEPT = 1 << 24  # bytes of a file, or of all slices in a folder, that are kept in memory
AT_ONCE = 1 << 24  # bytes


class ChangedError(ValueError):
    """A file has no longer the content that was read from it; the text continues the name of the file."""


@dataclass(frozen=True, eq=False)
class InputFile:
    """The content of a file, or of a folder of PNG slices, when a scenario was read.

    The bytes of small files are kept. Those of large ones are read again, and must then have the same checksum; what
    other programs append in the meantime does not count. Two are equal if they have the same name and content.

    Attributes:
        path: the file or folder.
        size: in bytes.
        checksum: CRC-32 of the content.
        slices: the PNG files of a folder, in the order of the numbers in their names.
    """

    path: Path
    size: int
    checksum: int
    slices: tuple["InputFile", ...] = ()
    _kept: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, path: Path) -> "InputFile":
        """The content of a file or folder now; within :func:`reading_once` always the same.

        Raises:
            OSError: it cannot be read.
        """
        known = _KNOWN.get()
        if known is None:
            return _shared(_read(path, KEPT))
        if path not in known:
            known[path] = _shared(_read(path, KEPT))
        return known[path]

    @property
    def name(self) -> str:
        """The name of a copy."""
        return self.path.name

    @property
    def files(self) -> tuple["InputFile", ...]:
        """The slices of a folder, or the file itself."""
        return self.slices or (self,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputFile) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.name, self.size, self.checksum, tuple(each.name for each in self.slices)

    def pieces(self) -> Iterator[bytes]:
        """The content of a file in pieces; all of it is as it was only if no error comes at the end.

        Raises:
            ChangedError: the file has another content now, or is gone.
        """
        if self._kept is not None:
            yield self._kept
            return
        checksum, left = 0, self.size
        try:
            for piece in self.stream():
                part = piece[:left]
                checksum, left = zlib.crc32(part, checksum), left - len(part)
                yield part
                if not left:
                    break
        except (OSError, HeatsimError) as error:
            raise ChangedError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if left or checksum != self.checksum:
            raise ChangedError("was changed while it was read; run again")

    def stream(self) -> Iterator[bytes]:
        """The content of the file as it is now, in pieces."""
        with open(self.path, "rb") as file:
            while piece := file.read(AT_ONCE):
                yield piece

    def read(self) -> bytes:
        """All bytes of a file; errors as for :meth:`pieces`."""
        return b"".join(self.pieces()) if self._kept is None else self._kept

    def open(self) -> BinaryIO:
        """The content as an open file; that of a large file may have changed, which a later copy finds."""
        return open(self.path, "rb") if self._kept is None else BytesIO(self._kept)

    @property
    def in_memory(self) -> bool:
        """Whether the content is kept in memory."""
        return self._kept is not None


# The files of a scenario that is being read, by their paths.
_KNOWN: ContextVar[dict[Path, InputFile] | None] = ContextVar("known", default=None)
# The folder of a run whose scenario is being read.
_RUN: ContextVar[Path | None] = ContextVar("run", default=None)
# All files in use, so that the runs of a study share the bytes.
_IN_USE: WeakValueDictionary[tuple[Path, int, int], InputFile] = WeakValueDictionary()


@contextmanager
def reading_once() -> Iterator[None]:
    """Within the context each file is read once, so that all parts of a scenario see the same content.

    So do all scenarios that are read within an outer context.
    """
    token = _KNOWN.set({} if (known := _KNOWN.get()) is None else known)
    try:
        yield
    finally:
        _KNOWN.reset(token)


@contextmanager
def reading_within(folder: Path) -> Iterator[None]:
    """Within the context a scenario may name only files in the folder of its run, without links on the way.

    The folder may come from someone else. Others are refused before they are read, because messages quote files.

    Raises:
        FolderError: the scenario names another file.
    """
    token = _RUN.set(folder)
    try:
        yield
    finally:
        _RUN.reset(token)


def _shared(file: InputFile) -> InputFile:
    used = _IN_USE.setdefault((file.path, file.size, file.checksum), file)
    return used if used._kept == file._kept else file


def _read(path: Path, kept: int) -> InputFile:
    """The content of a file or folder; at most ``kept`` bytes are kept."""
    if path.is_dir():
        slices = []
        for file in slice_files(path):
            slices.append(_read(file, kept))
            kept -= slices[-1].size
        checksum = zlib.crc32(b"".join(each.checksum.to_bytes(4, "little") for each in slices))
        return InputFile(path, sum(each.size for each in slices), checksum, tuple(slices))
    size, checksum, content = checked(InputFile(path, 0, 0).stream(), kept)
    return InputFile(path, size, checksum, (), content)


def checked(stream: Iterator[bytes], kept: int) -> tuple[int, int, bytes | None]:
    """The size and the checksum of a content, and the content itself if it has at most ``kept`` bytes."""
    size = checksum = 0
    pieces: list[bytes] = []
    for piece in stream:
        size, checksum = size + len(piece), zlib.crc32(piece, checksum)
        pieces = [*pieces, piece] if size <= kept else []
    return size, checksum, b"".join(pieces) if size <= kept else None


def input_file(name: object, folder: Path, suffixes: tuple[str, ...], folders: bool = False) -> InputFile:
    """The content of a file that a scenario names.

    Args:
        name: the value in the scenario.
        folder: the folder in which relative paths start.
        suffixes: the allowed endings, with dots, in lower case.
        folders: whether a folder is allowed too.

    Raises:
        ValueError: the file does not exist, has another ending or cannot be read; the message is for the user.
    """
    path = _existing(name, folder, suffixes, folders)
    run = _RUN.get()
    if run is not None:
        from heatsim.storage.own_files import refuse_outside  # with h5py, which other scenarios do not need

        refuse_outside(run, [path])
    try:
        return InputFile.of(path)
    except OSError as error:
        raise ValueError(f"got {show(name)}; it cannot be read: {error.strerror or error}") from None


def _existing(name: object, folder: Path, suffixes: tuple[str, ...], folders: bool) -> Path:
    if not isinstance(name, str) or not name or has_control_characters(name):
        raise ValueError(f"got {show(name)}; the name of a file is expected, relative to the scenario's folder")
    path = folder / name
    try:
        there, is_folder = path.is_file(), path.is_dir()
        special = path.is_fifo() or path.is_char_device() or path.is_socket()
    except OSError:  # For instance a name longer than the file system allows.
        there = is_folder = special = False
    if folders and is_folder:
        return Path(os.path.abspath(path))  # gives the folder its name, even for ".."
    if special:
        raise ValueError(f"got {show(name)}; this is a pipe or a device: name a regular file")
    if is_folder:
        raise ValueError(f"got {show(name)}; this is a folder: name a file in it")
    if not there:
        raise ValueError(f"got {show(name)}; there is no such file in {path.parent}")
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"got {show(name)}; a file ending in {', '.join(suffixes)} is expected")
    return path


def slice_files(folder: Path) -> list[Path]:
    """The PNG files of a folder in the order of the numbers in their names: 2 before 10."""
    files = [path for path in folder.iterdir() if path.suffix.lower() == ".png" and path.is_file()]
    return sorted(files, key=lambda path: (_natural(path.name), path.name))


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts]


def load_array(file: InputFile) -> NDArray[Any]:
    """The array in a .npy file, in its data type: a view of the bytes that are kept, or mapped from the file.

    Raises:
        ValueError: it cannot be read; the message continues "start.npy …".
    """
    from numpy.lib import format as npy

    try:
        if not file.in_memory:
            return npy.open_memmap(file.path, mode="r")
        with file.open() as stream:
            read_header = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
            shape, by_columns, dtype = read_header(stream)
            if dtype.hasobject:
                raise ValueError("it holds Python objects")
            return np.ndarray(shape, dtype, file.read(), stream.tell(), order="F" if by_columns else "C")
    except Exception as error:  # The header of a damaged file fails in many ways.
        raise ValueError(f"cannot be read as a .npy file ({one_line(error)})") from None


def is_utf_16(content: bytes) -> bool:
    """Whether a text file begins as UTF-16 text does: with a byte order mark, or with a zero in its first letter."""
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or content[:2].count(0) == 1


def one_line(error: Exception) -> str:
    """The text of a library's error, on one line of at most 200 characters."""
    if type(error).__name__ == "DecompressionBombError":  # of Pillow, which suspects an attack
        return "it has more than 178,956,970 pixels; make it smaller"
    return " ".join(str(error).split())[:200] or type(error).__name__
