"""The file fields.vtkhdf as bytes: values are read and written at the positions in its layout."""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.counts import counted
from heatsim.errors import StorageError
from heatsim.parallel.slab import Slab
from heatsim.parallel.team import ALONE, Team
from heatsim.storage import system
from heatsim.storage.checksums import Summed, WrittenSum
from heatsim.storage.disk import AGAIN, free_part_of, part_of, reason, remove_if_there, reserve, writing
from heatsim.storage.field_layout import Layout, integer
from heatsim.storage.hdf5_image import Image
from heatsim.storage.system import File
from heatsim.storage.vtkhdf import HEAT_FLUX, MATERIAL, TEMPERATURE

_DAMAGED = (OSError, RuntimeError, KeyError, ValueError, TypeError)

# The part of a file that a checkpoint stores: its structure, the times and the checksums.
Record = Mapping[str, NDArray[Any]]


class FieldFile:
    """An open file and its layout.

    Attributes:
        path: the path of the file.
        file: the bytes.
        layout: the positions of everything in the file.
    """

    def __init__(self, path: Path, file: File, layout: Layout) -> None:
        self.path = path
        self.file = file
        self.layout = layout

    @classmethod
    def create(
        cls, path: Path, layout: Layout, times: Sequence[float], copy: Callable[[File], object] = lambda file: None
    ) -> Self:
        """Write a complete new file, have `copy` write the values of these times, and rename it into place.

        Raises:
            StorageError: the disk refused; an earlier file of this name is still there.
        """
        part = free_part_of(path)
        with writing(path):
            file = File.create(part)
            try:
                reserve(file, layout.length)
                for start, content in layout.counting(times, integer(len(times))):
                    file.write(start, content)
                copy(file)
                file.sync()
                system.calls.rename(part, path)
            except OSError:
                file.close()
                remove_if_there(part)
                raise
        file.path = path
        return cls(path, file, layout)

    @classmethod
    def known(cls, path: Path, record: Record) -> Self:
        """Open a file whose structure is stored in a checkpoint; the structure in the file is not read.

        Raises:
            StorageError: it cannot be opened.
        """
        content, parts, at = record["structure"].tobytes(), [], 0
        for start, count in record["parts"][:-1].tolist():
            parts.append((start, content[at : at + count]))
            at += count
        with reading(path):
            return cls(path, File(path), Layout(Image(parts, int(record["parts"][-1, 0]))))

    @classmethod
    def found(cls, path: Path, keep: int) -> Self:
        """Open a file and read its structure.

        Raises:
            StorageError: it is damaged or holds fewer than `keep` times.
        """
        with reading(path):
            file = File(path)
            try:
                layout = Layout(Image(length=file.length, base=file.read))
                holds = min(layout.count, len(layout.times), layout.room)
                if holds < keep:
                    raise StorageError(f"{path}: holds {counted(holds, 'time')}, the checkpoint counts {keep}; {AGAIN}")
            except BaseException:
                file.close()
                raise
            return cls(path, file, layout)

    @property
    def arrays(self) -> list[str]:
        """The names of the arrays that have values at each time."""
        return [name for name in (TEMPERATURE, HEAT_FLUX) if name in self.layout]

    @property
    def bytes_per_time(self) -> int:
        """Bytes of all arrays at one time."""
        arrays = [self.layout.array(name) for name in self.arrays]
        return sum(prod(array.shape[1:]) * array.dtype.itemsize for array in arrays)

    def resized(self, room: int, times: Sequence[float]) -> "FieldFile":
        """A new file with these times and room for another number of times; it replaces this file, which is closed.

        Raises:
            StorageError: the disk refused; this file is unchanged.
        """
        layout = self.layout.resized(room)

        def copy(file: File) -> None:
            wanted = [(MATERIAL, 0)] if MATERIAL in layout else []
            wanted += [(name, index) for name in self.arrays for index in range(len(times))]
            for name, index in wanted:
                for (source, count), (target, _) in zip(
                    self.layout.pieces(name, index), layout.pieces(name, index), strict=True
                ):
                    file.write(target, self.file.read(source, count))

        new = FieldFile.create(self.path, layout, times, copy)
        self.file.close()
        return new

    def compare(self, times: Sequence[float], sums: Sequence[int], team: Team = ALONE) -> None:
        """Read all values and compare their checksums with those of the writing; each rank reads some of the times.

        Raises:
            StorageError: they differ; names the time.
        """
        wanted = [([MATERIAL], 0, "the materials")] if MATERIAL in self.layout else []
        numbers = [0] * len(wanted) + list(range(1, len(times) + 1))
        wanted += [(self.arrays, index, f"the field at t = {time!r} s") for index, time in enumerate(times)]
        mine = slice(team.rank, None, team.size)
        for (names, index, what), number in zip(wanted[mine], numbers[mine], strict=True):
            checksum = 0
            with reading(self.path):
                for name in names:
                    for place, count in self.layout.pieces(name, index):
                        checksum = zlib.crc32(self.file.read(place, count), checksum)
            if checksum != sums[number]:
                raise StorageError(
                    f"{self.path}: {what} differs from what was written: its checksum has changed; put a good "
                    f"copy of the file there, or {AGAIN}"
                )

    def restore(self, times: Sequence[float]) -> None:
        """Reset the file to the state in which it held these times; values of later times stay and do not count.

        Raises:
            StorageError: the disk refused.
        """
        keep, at = integer(len(times)), self.layout.count_at
        with writing(self.path):
            remove_if_there(part_of(self.path))
            reserve(self.file, self.layout.length)
            # Lower the count before the change, or raise it after: then all counted times are complete at any moment.
            if int.from_bytes(self.file.read(at, 8), "little", signed=True) not in range(len(times) + 1):
                self.file.write(at, keep)
                self.file.sync()
            counted = self.file.read(at, 8)
            for start, content in self.layout.counting(times, counted):
                found = self.file.read(start, len(content))
                if found != content:
                    differ = [i for i, (old, new) in enumerate(zip(found, content, strict=True)) if old != new]
                    self.file.write(start + differ[0], content[differ[0] : differ[-1] + 1])
            self.file.sync()
            self.file.write(at, keep)

    def fill(self, name: str, planes: Iterable[NDArray[Any]], index: int, own: Slab) -> Summed:
        """Write slabs that together are the own planes of a rank to entry `index` of an array.

        Returns:
            Their checksum and number of bytes.

        Raises:
            StorageError: the disk refused.
            ValueError: the slabs have another shape.
        """
        array, places = self.layout.array(name), self.layout.places(name, index)
        shape = array.shape[2:]
        bytes_per_plane = prod(shape) * array.dtype.itemsize
        plane = own.first
        with WrittenSum() as written:
            for slab in planes:
                if slab.shape[1:] != tuple(shape) or plane + len(slab) > own.last:
                    raise ValueError(
                        f"{self.path}: a slab of shape {slab.shape} at plane {plane} of {(own.last, *shape)}"
                    )
                with writing(self.path):
                    content = np.ascontiguousarray(slab, dtype=array.dtype).data.cast("B")
                    written.add(content, partial(self._place, places, plane * bytes_per_plane, content))
                plane += len(slab)
        if plane != own.last:
            raise ValueError(f"{self.path}: {plane - own.first} planes for a field of {own.count}")
        return written.checksum, own.count * bytes_per_plane

    def record(self, times: Sequence[float], sums: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The part of the file that a checkpoint stores.

        The file was created here, or opened with such a record.
        """
        parts = self.layout.parts
        return {
            "parts": np.array([[start, len(content)] for start, content in parts] + [[self.layout.length, 0]]),
            "structure": np.frombuffer(b"".join(content for _, content in parts), np.uint8),
            "times": np.array(times, np.float64),
            "checksums": np.array(sums, np.uint32),
        }

    def record_shapes(self, count: int) -> dict[str, tuple[tuple[int, ...], DTypeLike]]:
        """Shape and type of each array that `record` returns for `count` times."""
        parts = self.layout.parts
        return {
            "parts": ((len(parts) + 1, 2), np.int64),
            "structure": ((sum(len(content) for _, content in parts),), np.uint8),
            "times": ((count,), np.float64),
            "checksums": ((count + 1,), np.uint32),
        }

    def _place(self, places: Sequence[tuple[int, int]], start: int, content: memoryview) -> None:
        """Write a part of an array of cells; the part begins at byte `start` of the array."""
        end = start + content.nbytes
        number = bisect_right(places, (start, 1 << 62)) - 1
        while start < end:
            first, offset = places[number]
            number += 1
            until = min(end, places[number][0] if number < len(places) else end)
            self.file.write(offset + start - first, content[: until - start])
            content, start = content[until - start :], until


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Run a block that reads a file; errors of the system and of HDF5 become a message with advice.

    Raises:
        StorageError: names the file, the reason and what to do.
    """
    try:
        yield
    except _DAMAGED as error:
        raise StorageError(
            f"{path}: could not be read: {reason(error)}; it is damaged or was not written by heatsim; {AGAIN}"
        ) from error
