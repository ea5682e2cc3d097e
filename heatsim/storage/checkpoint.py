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
"""

import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from heatsim.errors import StorageError
from heatsim.storage.disk import part_of, reason, reserve, sync_folder, writing
from heatsim.storage.folder import CHECKPOINT, PREVIOUS

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


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Make `checkpoint` the newest of a folder and keep the one before it.

    Returns when it is on the disk. Arrays are written from where they are, without a second copy.

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
            _write_contents(part, checkpoint)
            with open(part, "r+b") as file:
                header = _header(file)
                file.seek(0)
                file.write(header)
                file.flush()
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


def _write_contents(path: Path, checkpoint: Checkpoint) -> None:
    for name, value in checkpoint.values.items():
        if not isinstance(value, Value):
            raise TypeError(f"checkpoint value {name!r} is a {type(value).__name__}, not a number or a text")
    values = json.dumps(dict(checkpoint.values), ensure_ascii=False).encode()
    total = sum(array.nbytes for array in checkpoint.arrays.values()) + len(values)
    with h5py.File(path, "w", userblock_size=BLOCK, locking=False) as file:
        reserve(file.id.get_vfd_handle(), 0, total + (1 << 16) + 1024 * len(checkpoint.arrays))
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


def _read_contents(path: Path) -> Checkpoint:
    try:
        with h5py.File(path, "r", locking=False) as file:
            values = json.loads(file["values"][()].decode())
            arrays = {name: np.asarray(dataset[()]) for name, dataset in file["arrays"].items()}
    except (OSError, RuntimeError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}") from error
    return Checkpoint(arrays, values)


def _header(file: Any) -> bytes:
    """The user block that belongs to what follows it in an open file."""
    file.seek(BLOCK)
    length, checksum = 0, 0
    buffer = memoryview(bytearray(SLAB_BYTES))
    while count := file.readinto(buffer):
        length += count
        checksum = zlib.crc32(buffer[:count], checksum)
    return f"heatsim checkpoint 1\nbytes {length}\ncrc32 {checksum:08x}\n".encode().ljust(BLOCK, b"\0")


def _damage(path: Path) -> str | None:
    """Why a checkpoint cannot be trusted, or None."""
    try:
        with open(path, "rb") as file:
            found = file.read(BLOCK)
            return None if found == _header(file) else "checksum differs"
    except OSError as error:
        return reason(error)
