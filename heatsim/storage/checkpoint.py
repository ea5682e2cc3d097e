"""Checkpoints: everything needed to resume a run.

A checkpoint is an HDF5 file with a user block of 512 bytes in front:

    heatsim checkpoint 1␤
    bytes <length of what follows the block>␤
    crc32 <checksum of what follows the block>␤            then zeros
    ── HDF5 ──
    /values        one JSON object as text: flat, numbers in their shortest exact form
    /arrays/NAME   the arrays, contiguous
    /files/NAME    arrays that describe other files of the run: checksums of rows and fields

The checksum covers the whole HDF5 part. A damaged file is therefore detected before HDF5 parses any of it.

Three names hold checkpoints, the newest first: checkpoint.h5; checkpoint.h5.part, which is complete between the two
renames of `write`; checkpoint.previous.h5. One of them is good at any moment.

HDF5 builds the structure of the file in memory and tells where the large arrays belong. heatsim then writes the arrays
and computes their checksum in one pass.
"""

import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import StorageError
from heatsim.storage import system
from heatsim.storage.disk import (
    AGAIN,
    free_part_of,
    part_of,
    reason,
    remove_if_there,
    reserve,
    sync_folder,
    writing,
)
from heatsim.storage.folder import CHECKPOINT, PREVIOUS
from heatsim.storage.hdf5_image import Image, early_without_fill
from heatsim.storage.own_files import check_contained
from heatsim.storage.system import File

Value = int | float | str | bool

# The start of a part of the file, and its content.
Segment = tuple[int, "bytes | Pieces"]

BLOCK = 512
SLAB_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run between two steps.

    Attributes:
        arrays: arrays of any shape by name, stored bit for bit.
        values: numbers, texts and booleans by name, stored exactly.
        files: arrays that describe other files of the run.
    """

    arrays: Mapping[str, NDArray[Any]]
    values: Mapping[str, Value]
    files: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pieces:
    """An array that is read in pieces.

    Attributes:
        shape, dtype: of the whole array, which has at least one axis and one value.
        read: yields contiguous pieces of the values in C order; each is used before the next is requested.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike
    read: Callable[[], Iterable[NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Pieces":
        """The one piece of an array in memory."""
        return cls(array.shape, array.dtype, lambda: [array])

    def whole(self) -> NDArray[Any]:
        """All values, in memory."""
        return np.concatenate([np.ravel(piece) for piece in self.read()]).astype(self.dtype).reshape(self.shape)


def write(
    folder: Path,
    checkpoint: Checkpoint,
    large: Mapping[str, Pieces] | None = None,
    before: Callable[[], object] = lambda: None,
    files: Mapping[str, Pieces] | None = None,
) -> None:
    """Make `checkpoint` the newest of a folder and keep the one before it.

    Returns when the checkpoint is on the disk. Large arrays are written without a second copy in memory.

    Args:
        folder: the folder of the run.
        checkpoint: the state to store.
        large: more arrays, which need not fit in memory as a whole.
        before: called before the checkpoint takes effect, to sync the files that it relies on.
        files: more arrays for `Checkpoint.files`; they are read after `before`.

    Raises:
        StorageError: the disk refused; the earlier checkpoints are still there.
    """
    path, previous = folder / CHECKPOINT, folder / PREVIOUS
    part = part_of(path)
    with writing(path):
        if not path.exists() and part.is_file() and _damage(part) is None:
            # After a kill between the two renames, finish them; otherwise the newest checkpoint would be overwritten.
            system.calls.rename(part, path)
    part = free_part_of(path)
    try:
        with writing(path):
            segments, late, length = _build(checkpoint, large or {}, files or {})
            with File.create(part) as file:
                reserve(file, length)
                end, checksum = _fill(file, BLOCK, 0, segments)
                before()
                end, checksum = _fill(file, end, checksum, late)
                _, checksum = _fill(file, end, checksum, [(length, b"")])
                # The names of the files that the checkpoint relies on must be on the disk too.
                sync_folder(folder)
                # From here on a reader may take it for a checkpoint; the first one even under this name.
                file.write(0, _header(length - BLOCK, checksum))
                file.sync()
    except StorageError:
        remove_if_there(part)
        raise
    with writing(path):
        if path.exists() and not previous.is_dir():
            system.calls.rename(path, previous)
        system.calls.rename(part, path)
        sync_folder(folder)


def read_last_good(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest undamaged checkpoint of a folder, and warnings; None if there is no checkpoint.

    Raises:
        StorageError: there are checkpoints and all of them are damaged.
    """
    path = folder / CHECKPOINT
    problems: list[str] = []
    damaged = False
    for candidate in (path, part_of(path), folder / PREVIOUS):
        if not candidate.exists():
            if candidate == path:
                problems.append(f"{candidate} is missing")
            continue
        problem = _damage(candidate)
        if problem is None:
            checkpoint = _read_contents(candidate)
            return checkpoint, [f"{text}; using {candidate.name}" for text in problems[-1:]] if problems else []
        if candidate != part_of(path):
            damaged = True
            problems.append(f"{candidate} is damaged ({problem})")
    if not damaged:
        return None, []
    raise StorageError(f"{'; '.join(problems)}; {AGAIN}")


@contextmanager
def understanding(folder: Path) -> Iterator[None]:
    """Run a block that takes its state from a checkpoint in `folder`; its errors become a message with advice.

    Raises:
        StorageError: a value of the checkpoint is missing or wrong.
    """
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise StorageError(
            f"{folder / CHECKPOINT}: is undamaged, but a value in it is missing or wrong ({type(error).__name__}: "
            f"{reason(error)}); this version of heatsim did not write it. Start again with `heatsim run … --overwrite`"
        ) from error


def _build(
    checkpoint: Checkpoint, large: Mapping[str, Pieces], files: Mapping[str, Pieces]
) -> tuple[list[Segment], list[Segment], int]:
    """The segments of the file before the first of `files`, the segments from there on, and the file's length."""
    files = {**{name: Pieces.of(array) for name, array in checkpoint.files.items()}, **files}
    for name, value in checkpoint.values.items():
        if not isinstance(value, Value):
            raise TypeError(f"checkpoint value {name!r} is a {type(value).__name__}, not a number or a text")
    values = json.dumps(dict(checkpoint.values), ensure_ascii=False).encode()
    image, places = Image(), dict[int, Pieces]()
    first_late = None
    with h5py.File(image, "w", userblock_size=BLOCK) as file:
        file.create_dataset("values", data=values, dtype=h5py.string_dtype("utf-8", len(values)))
        groups = file.create_group("arrays"), file.create_group("files")
        for name, array in checkpoint.arrays.items():
            groups[0].create_dataset(name, data=array, shape=array.shape, dtype=array.dtype)
        for group, pieces_by_name in zip(groups, (large, files), strict=True):
            for name, pieces in pieces_by_name.items():
                storage = early_without_fill()
                dataset = group.create_dataset(name, shape=pieces.shape, dtype=pieces.dtype, dcpl=storage)
                places[dataset.id.get_offset()] = pieces
                if group == groups[1]:
                    first_late = min(first_late or image.length, dataset.id.get_offset())
    segments: list[Segment] = [(start, content) for start, content in image.parts() if start >= BLOCK]
    segments = sorted([*segments, *places.items()], key=lambda segment: segment[0])
    early = [segment for segment in segments if first_late is None or segment[0] < first_late]
    return early, segments[len(early) :], image.length


def _fill(file: File, end: int, checksum: int, segments: Sequence[Segment]) -> tuple[int, int]:
    """Write segments to their places in a new file.

    Args:
        file: the file, which holds zeros where nothing is written.
        end: end of what was written before.
        checksum: checksum of the bytes before `end`.
        segments: where each begins, in ascending order, and its content.

    Returns:
        The end and the checksum after the last segment.
    """
    with ThreadPoolExecutor(1) as summing:
        for start, array in segments:
            checksum, end = zlib.crc32(bytes(start - end), checksum), start
            for piece in array.read() if isinstance(array, Pieces) else [np.frombuffer(array, np.uint8)]:
                content = np.ascontiguousarray(piece).data.cast("B")
                summed = summing.submit(zlib.crc32, content, checksum)
                file.write(end, content)
                checksum = summed.result()
                end += content.nbytes
    return end, checksum


def _sum(file: io.FileIO, length: int) -> int:
    """The checksum of an open file from the current position up to `length`, or to the end of the file."""
    checksum, left = 0, length - file.tell()
    buffer = memoryview(bytearray(max(0, min(SLAB_BYTES, left))))
    while left and (count := file.readinto(buffer[:left])):
        checksum, left = zlib.crc32(buffer[:count], checksum), left - count
    return checksum


def _read_contents(path: Path) -> Checkpoint:
    try:
        with h5py.File(path, "r", locking=False) as file:
            check_contained(file)
            values = json.loads(file["values"][()].decode())
            arrays, files = (
                {name: np.asarray(dataset[()]) for name, dataset in file.get(group, {}).items()}
                for group in ("arrays", "files")
            )
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}; it was not written by heatsim") from error
    return Checkpoint(arrays, values, files)


def _header(length: int, checksum: int) -> bytes:
    """The user block for an HDF5 part with this length and checksum."""
    return f"heatsim checkpoint 1\nbytes {length}\ncrc32 {checksum:08x}\n".encode().ljust(BLOCK, b"\0")


def _damage(path: Path) -> str | None:
    """Why a checkpoint is damaged, or None."""
    try:
        with open(path, "rb", buffering=0) as file:
            length, found = os.fstat(file.fileno()).st_size, file.read(BLOCK)
            right = _header(max(length - BLOCK, 0), _sum(file, length))
            return None if found == right else "checksum differs"
    except OSError as error:
        return reason(error)
