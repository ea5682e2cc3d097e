"""Checkpoints: everything needed to resume, written beside and renamed into place.

An HDF5 file with a user block of 512 bytes in front:

    heatsim checkpoint 1␤
    bytes <length of what follows the block>␤
    crc32 <checksum of what follows the block>␤            then zeros
    ── HDF5 ──
    /values        one JSON object as text: flat, numbers in their shortest exact form
    /arrays/NAME   the arrays, contiguous

The checksum stands outside the HDF5 structures and covers all of them: a damaged file is told from a good one before
HDF5 parses a byte of it. Three names hold checkpoints, the newest first: checkpoint.h5; checkpoint.h5.part, which is
whole between the two renames of `write`; checkpoint.previous.h5. At every instant one of them is good.

HDF5 makes the file and says where in it large arrays go; they are written and summed there in one pass.
"""

import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import StorageError
from heatsim.storage.disk import part_of, reason, reserve, sync_folder, write_at, writing
from heatsim.storage.folder import CHECKPOINT, PREVIOUS
from heatsim.storage.own_files import check_contained

Value = int | float | str | bool

BLOCK = 512
SLAB_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run between two steps.

    Attributes:
        arrays: numbers of any shape by name, kept to the bit.
        values: numbers, texts and truth values by name, kept exactly.
    """

    arrays: Mapping[str, NDArray[Any]]
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Pieces:
    """An array that comes piece by piece.

    Attributes:
        shape, dtype: of the whole, which has a value at least and one axis.
        read: gives contiguous pieces of its values in C order; each is done with before the next is asked for.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike
    read: Callable[[], Iterable[NDArray[Any]]]

    @property
    def nbytes(self) -> int:
        """Bytes of the whole."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


def write(
    folder: Path,
    checkpoint: Checkpoint,
    large: Mapping[str, Pieces] | None = None,
    before: Callable[[], object] = lambda: None,
) -> None:
    """Make `checkpoint` the newest of a folder and keep the one before it.

    Returns when it is on the disk. Arrays are written from where they are, without a second copy.

    Args:
        folder: of a run.
        checkpoint: what is to be kept.
        large: more arrays, which need not be in memory as a whole.
        before: called before it counts, to bring to the disk what it relies on.

    Raises:
        StorageError: the disk refused; the checkpoints that were there still are.
    """
    path, previous = folder / CHECKPOINT, folder / PREVIOUS
    part = part_of(path)
    try:
        with writing(path):
            if not path.exists() and part.exists() and _damage(part) is None:
                # Finish what a kill between the two renames left, lest the newest checkpoint is overwritten.
                os.replace(part, path)
            places = _create(part, checkpoint, large or {})
            with open(part, "r+b", buffering=0) as file:
                length, checksum = _fill(file, places)
                before()
                # From here on it may be taken for a checkpoint, for the first one even under this name.
                write_at(file, 0, _header(length, checksum))
                os.fsync(file.fileno())
    except StorageError:
        with suppress(OSError):
            part.unlink()
        raise
    with writing(path):
        if path.exists():
            os.replace(path, previous)
        os.replace(part, path)
        sync_folder(folder)


def read_last_good(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest undamaged checkpoint of a folder (None where there has never been one), and warnings.

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
    raise StorageError(f"{'; '.join(problems)}; start again with `heatsim run … --overwrite`")


@contextmanager
def understanding(folder: Path) -> Iterator[None]:
    """Run a block that takes over what a checkpoint in `folder` says.

    Raises:
        StorageError: something is missing in the checkpoint, or is not what it should be.
    """
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise StorageError(
            f"{folder / CHECKPOINT}: is whole but cannot be understood ({type(error).__name__}: {reason(error)}); it "
            "was not written by this version of heatsim. Start again with `heatsim run … --overwrite`"
        ) from error


def _create(path: Path, checkpoint: Checkpoint, large: Mapping[str, Pieces]) -> list[tuple[int, Pieces]]:
    """Write everything but the large arrays, which get their places: the first byte of each, in ascending order."""
    for name, value in checkpoint.values.items():
        if not isinstance(value, Value):
            raise TypeError(f"checkpoint value {name!r} is a {type(value).__name__}, not a number or a text")
    values = json.dumps(dict(checkpoint.values), ensure_ascii=False).encode()
    total = sum(array.nbytes for array in checkpoint.arrays.values()) + sum(pieces.nbytes for pieces in large.values())
    room = total + len(values) + (1 << 16) + 1024 * (len(checkpoint.arrays) + len(large))
    storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    storage.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    storage.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    places = []
    with h5py.File(path, "w", userblock_size=BLOCK, locking=False) as file:
        reserve(file.id.get_vfd_handle(), 0, room)
        file.create_dataset("values", data=values, dtype=h5py.string_dtype("utf-8", len(values)))
        arrays = file.create_group("arrays", track_order=False)
        for name, array in checkpoint.arrays.items():
            dataset = arrays.create_dataset(name, shape=array.shape, dtype=array.dtype)
            if array.flags.c_contiguous or array.ndim == 0:
                dataset[...] = array
            else:
                rows = max(1, SLAB_BYTES * len(array) // max(array.nbytes, 1))
                for start in range(0, len(array), rows):
                    dataset[start : start + rows] = array[start : start + rows]
        for name, pieces in large.items():
            dataset = arrays.create_dataset(name, shape=pieces.shape, dtype=pieces.dtype, dcpl=storage.copy())
            places.append((dataset.id.get_offset(), pieces))
    return sorted(places, key=lambda place: place[0])


def _fill(file: io.FileIO, places: Sequence[tuple[int, Pieces]]) -> tuple[int, int]:
    """Write large arrays to their places in a file; the length of what follows the user block, and its checksum."""
    checksum, end = 0, BLOCK
    with ThreadPoolExecutor(1) as summing:
        for start, array in places:
            checksum, end = _pass(file, end, start, checksum), start
            for piece in array.read():
                content = np.ascontiguousarray(piece).data.cast("B")
                summed = summing.submit(zlib.crc32, content, checksum)
                write_at(file, end, content)
                checksum = summed.result()
                end += content.nbytes
    length = file.seek(0, os.SEEK_END)
    return length - BLOCK, _pass(file, end, length, checksum)


def _pass(file: io.FileIO, start: int, end: int, checksum: int) -> int:
    """The checksum after the bytes of an open file from `start` to `end`, or to where the file ends before."""
    file.seek(start)
    buffer = memoryview(bytearray(max(0, min(SLAB_BYTES, end - start))))
    while count := file.readinto(buffer[: end - file.tell()]):
        checksum = zlib.crc32(buffer[:count], checksum)
    return checksum


def _read_contents(path: Path) -> Checkpoint:
    try:
        with h5py.File(path, "r", locking=False) as file:
            check_contained(file)
            values = json.loads(file["values"][()].decode())
            arrays = {name: np.asarray(dataset[()]) for name, dataset in file["arrays"].items()}
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}; it was not written by heatsim") from error
    return Checkpoint(arrays, values)


def _header(length: int, checksum: int) -> bytes:
    """The user block in front of so many bytes with this checksum."""
    return f"heatsim checkpoint 1\nbytes {length}\ncrc32 {checksum:08x}\n".encode().ljust(BLOCK, b"\0")


def _damage(path: Path) -> str | None:
    """Why a checkpoint cannot be trusted, or None."""
    try:
        with open(path, "rb", buffering=0) as file:
            found, length = file.read(BLOCK), file.seek(0, os.SEEK_END)
            right = _header(max(length - BLOCK, 0), _pass(file, BLOCK, length, 0))
            return None if found == right else "checksum differs"
    except OSError as error:
        return reason(error)
