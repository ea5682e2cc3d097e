"""Checkpoints: everything needed to resume a run.

A checkpoint is an HDF5 file with a user block of 512 bytes in front:

    heatsim checkpoint 1␤
    bytes <length of what follows the block>␤
    crc32 <checksum of what follows the block>␤            then zeros
    ── HDF5 ──
    /values        one JSON object as text, with spaces behind it: flat, numbers in their shortest exact form
    /arrays/NAME   the arrays, contiguous
    /files/NAME    arrays that describe other files of the run: checksums of rows and fields

The checksum covers the whole HDF5 part. A damaged file is therefore detected before HDF5 parses any of it.

Three names hold checkpoints, the newest first: checkpoint.h5; checkpoint.h5.part, which is complete between the two
renames of `write`; checkpoint.previous.h5. One of them is good at any moment.

Several ranks write and check one checkpoint together (heatsim/storage/checkpoint_draft.py). It holds whole arrays, so a
run may be resumed on another number of ranks.
"""

import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from heatsim.errors import StorageError
from heatsim.parallel.team import ALONE, Team
from heatsim.storage import system
from heatsim.storage.checkpoint_draft import BLOCK, Draft, Pieces, Value, fill
from heatsim.storage.checksums import Summed, combined
from heatsim.storage.disk import (
    AGAIN,
    free_part_of,
    part_of,
    reason,
    remove_if_there,
    sync_folder,
    writing,
)
from heatsim.storage.folder import CHECKPOINT, PREVIOUS
from heatsim.storage.own_files import check_contained
from heatsim.storage.stored_arrays import SLAB_BYTES, StoredArrays
from heatsim.storage.system import File


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

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array."""
        arrays = self.arrays
        return arrays.shape(name) if isinstance(arrays, StoredArrays) else arrays[name].shape

    def part(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Entries ``first`` to ``last`` − 1 along the first axis of an array."""
        arrays = self.arrays
        return arrays.part(name, first, last) if isinstance(arrays, StoredArrays) else arrays[name][first:last]


def write(
    folder: Path,
    checkpoint: Checkpoint,
    large: Mapping[str, Pieces] | None = None,
    before: Callable[[], object] = lambda: None,
    files: Mapping[str, Pieces] | None = None,
    team: Team = ALONE,
) -> None:
    """Make `checkpoint` the newest of a folder and keep the one before it. Collective.

    Returns when the checkpoint is on the disk. Large arrays are written without a second copy in memory.

    Args:
        folder: the folder of the run.
        checkpoint: the state to store; that of rank 0 counts.
        large: more arrays, which need not fit in memory as a whole; each rank writes its part.
        before: called before the checkpoint takes effect, to sync the files that it relies on.
        files: more arrays for `Checkpoint.files`; they are read after `before`, by rank 0.
        team: the ranks that write it.

    Raises:
        StorageError: the disk refused on a rank; the earlier checkpoints are still there.
    """
    path = folder / CHECKPOINT
    with ExitStack() as stack:
        draft = None
        with team.agreeing(), writing(path):
            if team.first:
                draft = _begin(path, checkpoint, large or {}, files or {})
        place = team.broadcast((draft.file.path, draft.places) if draft else None)
        assert place is not None, "rank 0 has a draft"
        part, places = place
        try:
            with team.agreeing(), writing(path):
                file = stack.enter_context(draft.file if draft else File(part))
                sums = {
                    name: fill(file, places[name] + each.start, each.read()) for name, each in (large or {}).items()
                }
                before()
                if not draft:
                    file.sync()
            of_ranks = team.gathered(sums)
            with team.agreeing(), writing(path):
                if draft:
                    checksum = draft.complete(of_ranks)
                    # The names of the files that the checkpoint relies on must be on the disk too.
                    sync_folder(folder)
                    # From here on a reader may take it for a checkpoint; the first one even under this name.
                    draft.file.write(0, _header(draft.length - BLOCK, checksum))
                    draft.file.sync()
        except StorageError:
            if draft:
                remove_if_there(part)
            raise
    with team.agreeing(), writing(path):
        if draft:
            if path.exists() and not (folder / PREVIOUS).is_dir():
                system.calls.rename(path, folder / PREVIOUS)
            system.calls.rename(part, path)
            sync_folder(folder)


def _begin(path: Path, checkpoint: Checkpoint, large: Mapping[str, Pieces], files: Mapping[str, Pieces]) -> Draft:
    """The draft of the next checkpoint."""
    part = part_of(path)
    if not path.exists() and part.is_file() and _damage(part) is None:
        # After a kill between the two renames, finish them; otherwise the newest checkpoint would be overwritten.
        system.calls.rename(part, path)
    late = {**{name: Pieces.of(array) for name, array in checkpoint.files.items()}, **files}
    part = free_part_of(path)
    try:
        return Draft(part, checkpoint.arrays, checkpoint.values, large, late)
    except OSError:
        remove_if_there(part)
        raise


def read_last_good(folder: Path, team: Team = ALONE) -> tuple[Checkpoint | None, list[str]]:
    """The newest undamaged checkpoint of a folder, and warnings; None if there is no checkpoint. Collective.

    Args:
        folder: the folder of the run.
        team: the ranks that check it. If there are several, its arrays are read when they are asked for.

    Raises:
        StorageError: there are checkpoints and all of them are damaged.
    """
    path = folder / CHECKPOINT
    problems: list[str] = []
    damaged = False
    for candidate in (path, part_of(path), folder / PREVIOUS):
        if not team.broadcast(candidate.exists()):
            if candidate == path:
                problems.append(f"{candidate} is missing")
            continue
        problem = _damage(candidate, team)
        if problem is None:
            checkpoint = _read_contents(candidate, whole=team.size == 1)
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


def _sum(file: io.FileIO, start: int, end: int) -> int:
    """The checksum of an open file from byte ``start`` up to ``end``, or to the end of the file."""
    file.seek(start)
    checksum, left = 0, end - start
    buffer = memoryview(bytearray(max(0, min(SLAB_BYTES, left))))
    while left > 0 and (count := file.readinto(buffer[:left])):
        checksum, left = zlib.crc32(buffer[:count], checksum), left - count
    return checksum


def _read_contents(path: Path, whole: bool) -> Checkpoint:
    arrays: Mapping[str, NDArray[Any]]
    try:
        with h5py.File(path, "r", locking=False) as file:
            check_contained(file)
            values = json.loads(file["values"][()].decode())
            files = _contents(file, "files")
            arrays = _contents(file, "arrays") if whole else StoredArrays(path, list(file["arrays"]))
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}; it was not written by heatsim") from error
    return Checkpoint(arrays, values, files)


def _header(length: int, checksum: int) -> bytes:
    """The user block for an HDF5 part with this length and checksum."""
    return f"heatsim checkpoint 1\nbytes {length}\ncrc32 {checksum:08x}\n".encode().ljust(BLOCK, b"\0")


def _contents(file: h5py.File, group: str) -> dict[str, NDArray[Any]]:
    """All arrays of a group."""
    return {name: np.asarray(dataset[()]) for name, dataset in file.get(group, {}).items()}


def _damage(path: Path, team: Team = ALONE) -> str | None:
    """Why a checkpoint is damaged, or None. Each rank reads a part of it. Collective."""
    try:
        with open(path, "rb", buffering=0) as file:
            length, found = os.fstat(file.fileno()).st_size, file.read(BLOCK)
            rest = max(length - BLOCK, 0)
            start, end = (BLOCK + rest * rank // team.size for rank in (team.rank, team.rank + 1))
            mine: Summed | str = _sum(file, start, end), end - start
    except OSError as error:
        mine = reason(error)
    of_ranks = team.gathered(mine)
    for each in of_ranks:
        if isinstance(each, str):
            return each
    sums = [each for each in of_ranks if not isinstance(each, str)]
    right = team.broadcast(not isinstance(mine, str) and found == _header(rest, combined(sums)))
    return None if right else "checksum differs"
