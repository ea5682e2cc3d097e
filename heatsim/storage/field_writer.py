"""Writing fields.vtkhdf: a file that grows by one time after the other and is whole whenever the run is killed.

The structure of the file, with room for the times expected, is built in memory and written once. While the run writes,
only values and counters are put to their places (heatsim/storage/field_layout.py), in this order:

    values of the cells, time and offsets  →  sync  →  NSteps

So neither a kill nor a power cut leaves a time that is counted and not there. A file that needs room for another number
of times is written anew beside the old one and renamed: its structure is never changed in place.
"""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import StorageError
from heatsim.grid import Grid
from heatsim.storage import system
from heatsim.storage.disk import AGAIN, Closing, free_part_of, part_of, reason, remove_if_there, reserve, writing
from heatsim.storage.field_layout import Layout, integer
from heatsim.storage.hdf5_image import Image
from heatsim.storage.system import File
from heatsim.storage.vtkhdf import HEAT_FLUX, MATERIAL, TEMPERATURE, Field, float_type

_COPIED_AT_ONCE = 1 << 24
_DAMAGED = (OSError, RuntimeError, KeyError, ValueError, TypeError)

Record = Mapping[str, NDArray[Any]]


class FieldWriter(Closing):
    """Appends fields to a file; use `create` or `reopen`, and close it or use it in a `with`.

    Attributes:
        path: the file.
        checksums: CRC-32 of the materials (0 where there are none), then of the arrays of each time.
        times: in s, of the fields in the file.
    """

    def __init__(self, path: Path, file: File, layout: Layout, times: Sequence[float], sums: Sequence[int]) -> None:
        self.path = path
        self.times = list(times)
        self.checksums = list(sums)
        self._file = file
        self._layout = layout

    @classmethod
    def create(
        cls,
        path: Path,
        grid: Grid,
        dtype: DTypeLike,
        expected: int = 0,
        heat_flux: bool = False,
        materials: Sequence[str] = (),
    ) -> Self:
        """Start a file without any time in it; an existing one is replaced.

        Args:
            path: the file to write.
            grid: where the cells are.
            dtype: float32 or float64.
            expected: number of times to set room aside for; more can be appended, which copies the file.
            heat_flux: whether the file also holds heat-flux vectors.
            materials: names of the materials that cells are of, for `write_materials`.

        Raises:
            StorageError: the disk refused or has too little room.
            ValueError: another dtype.
        """
        layout = Layout.create(grid, float_type(dtype), 0, heat_flux, materials)
        # First without room: what an earlier run left there is gone before room is set aside.
        writer = cls(path, _write_new(path, layout, ()), layout, (), (0,))
        try:
            writer._make_room(expected)
        except StorageError:
            writer._file.close()
            raise
        return writer

    @classmethod
    def reopen(
        cls,
        path: Path,
        grid: Grid,
        dtype: DTypeLike,
        keep: int,
        expected: int = 0,
        record: Record | None = None,
        *,
        checked: bool = False,
    ) -> Self:
        """Go on after the first `keep` times; what follows them does not count any more.

        Args:
            path: the file.
            grid: where the cells are.
            dtype: float32 or float64.
            keep: number of times to keep.
            expected: as in `create`.
            record: what `record` gave for these times. With it only the values of the cells are taken from the file,
                and they are checked; without it the file has to be whole.
            checked: the values have been checked just before, by `check`.

        Raises:
            StorageError: the file is not there, is damaged, belongs to another grid or dtype, or holds fewer times; it
                is as it was then.
            ValueError: another dtype than float32 or float64.
        """
        writer = cls._opened(path, grid, float_type(dtype), keep, record, checked)
        try:
            with writing(path):
                writer._restore(keep)
            writer._make_room(max(keep, expected))
        except StorageError:
            writer._file.close()
            raise
        return writer

    @classmethod
    def check(cls, path: Path, grid: Grid, dtype: DTypeLike, keep: int, record: Record | None = None) -> None:
        """Raise what `reopen` would raise of a file that is not good; nothing is changed."""
        cls._opened(path, grid, float_type(dtype), keep, record, checked=False)._file.close()

    def __len__(self) -> int:
        """Number of times in the file."""
        return len(self.times)

    def append(self, time: float, planes: Iterable[Field], heat_flux: Iterable[Field] = ()) -> None:
        """Append the field at one time.

        Args:
            time: in s, later than the one before.
            planes: temperatures in K as slabs of shape (m, ny, nx), in the order of z, nz planes in all; slabs of
                some MiB are the fastest.
            heat_flux: in W/m², slabs of shape (m, ny, nx, 3); for a file with heat-flux vectors.

        Raises:
            StorageError: the disk refused; the times before are still there.
            ValueError: slabs of another shape.
        """
        index = len(self.times)
        if index == self._layout.room:
            self._make_room(max(1, 2 * index))
        checksum = self._fill(TEMPERATURE, planes, index, 0)
        if HEAT_FLUX in self._layout:
            checksum = self._fill(HEAT_FLUX, heat_flux, index, checksum)
        with writing(self.path):
            for series in self._layout.series:
                self._file.write(series.entries_at + 8 * index, series.entry(index, time))
                self._file.write(series.length_at, integer(index + 1))
            self._file.sync()
            self._file.write(self._layout.count_at, integer(index + 1))
        self.times.append(float(time))
        self.checksums.append(checksum)

    def write_materials(self, planes: Iterable[NDArray[np.uint8]]) -> None:
        """Say what every cell is, once, before the first time.

        Args:
            planes: for each cell which of the names given to `create`, as slabs of shape (m, ny, nx).

        Raises:
            StorageError: the disk refused.
            ValueError: slabs of another shape.
        """
        self.checksums[0] = self._fill(MATERIAL, planes, 0, 0)

    def flush(self) -> None:
        """Wait until every time is on the disk itself, as a checkpoint that counts them needs.

        Raises:
            StorageError: the disk refused, or the file was removed.
        """
        with writing(self.path):
            self._file.sync()

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still where it was created."""
        return self._file.is_in_place

    def record(self, count: int) -> Record:
        """What a checkpoint keeps of the first `count` times, for `reopen`: structure, times and checksums.

        Of a file that was created by this writer, or reopened with such a record.
        """
        parts = self._layout.image.parts()
        return {
            "parts": np.array([[start, len(content)] for start, content in parts] + [[self._layout.length, 0]]),
            "structure": np.frombuffer(b"".join(content for _, content in parts), np.uint8),
            "times": np.array(self.times[:count], np.float64),
            "checksums": np.array(self.checksums[: count + 1], np.uint32),
        }

    def record_shapes(self, count: int) -> dict[str, tuple[tuple[int, ...], DTypeLike]]:
        """Shape and type of each array that `record` will give once `count` times are written."""
        parts = self._layout.image.parts()
        return {
            "parts": ((len(parts) + 1, 2), np.int64),
            "structure": ((sum(len(content) for _, content in parts),), np.uint8),
            "times": ((count,), np.float64),
            "checksums": ((count + 1,), np.uint32),
        }

    def close(self, give_back: bool = True) -> None:
        """Close the file; it can be closed twice.

        Args:
            give_back: give room that was set aside for more times back to the disk. Where that fails the file stays
                as it is, which is good too.

        Raises:
            StorageError: the disk refused.
        """
        if give_back and self._layout.room > len(self.times):
            with suppress(StorageError):
                self._make_room(len(self.times))
        with writing(self.path):
            self._file.close()

    @classmethod
    def _opened(
        cls, path: Path, grid: Grid, dtype: np.dtype[Any], keep: int, record: Record | None, checked: bool
    ) -> Self:
        """A writer of a file that is there and good, as far as `keep` times go; nothing is changed yet."""
        if not path.is_file():
            raise StorageError(f"{path}: is missing, the checkpoint counts {keep} times in it; {AGAIN}")
        try:
            file = File(path)
            try:
                layout, times, sums = _known(record) if record is not None else _found(path, file, keep)
                if (layout.grid, layout.dtype) != (grid, dtype):
                    raise StorageError(
                        f"{path}: holds {layout.dtype} on {layout.grid}, the run needs {dtype} on {grid}; {AGAIN}"
                    )
                writer = cls(path, file, layout, times, sums)
                if record is not None and not checked:
                    writer._compare()
            except BaseException:
                file.close()
                raise
        except _DAMAGED as error:
            raise StorageError(
                f"{path}: could not be read: {reason(error)}; it is damaged or was not written by heatsim; {AGAIN}"
            ) from error
        return writer

    def _compare(self) -> None:
        """See that the values of every time, read from the file, have the checksums that they were written with."""
        arrays = [name for name in (TEMPERATURE, HEAT_FLUX) if name in self._layout]
        wanted = [([MATERIAL], 0, 0)] if MATERIAL in self._layout else []
        wanted += [(arrays, index, index + 1) for index in range(len(self.times))]
        for names, index, number in wanted:
            if self._checksum(names, index) != self.checksums[number]:
                what = f"the field at t = {self.times[index]!r} s" if number else "the materials"
                raise StorageError(
                    f"{self.path}: {what} differs from what was written: the checksums are not the same; put a good "
                    f"copy of the file there, or {AGAIN}"
                )

    def _checksum(self, names: Iterable[str], index: int) -> int:
        checksum = 0
        for name in names:
            for place, count in self._layout.pieces(name, index):
                for start in range(place, place + count, _COPIED_AT_ONCE):
                    wanted = min(_COPIED_AT_ONCE, place + count - start)
                    checksum = zlib.crc32(self._file.read(start, wanted), checksum)
        return checksum

    def _restore(self, keep: int) -> None:
        """Make the file what it was when it had this many times, but for room and for values that do not count."""
        self.times, self.checksums = self.times[:keep], self.checksums[: keep + 1]
        remove_if_there(part_of(self.path))
        reserve(self._file, self._layout.length)
        counted = self._file.read(self._layout.count_at, 8)
        # First less is counted, then changed; a higher number comes last, when all that it counts is there.
        if int.from_bytes(counted, "little", signed=True) not in range(keep + 1):
            self._file.write(self._layout.count_at, integer(keep))
            self._file.sync()
        counted = self._file.read(self._layout.count_at, 8)
        for start, content in self._layout.counting(self.times, counted):
            found = self._file.read(start, len(content))
            if found != content:
                differ = [i for i, (old, new) in enumerate(zip(found, content, strict=True)) if old != new]
                self._file.write(start + differ[0], content[differ[0] : differ[-1] + 1])
        self._file.sync()
        if counted != integer(keep):
            self._file.write(self._layout.count_at, integer(keep))

    def _make_room(self, times: int) -> None:
        """Give the arrays places for exactly this number of times, in a new file that takes the name of this one."""
        if times == self._layout.room:
            return
        layout = self._layout.resized(times)
        old = self._file

        def copy(file: File) -> None:
            arrays = [(name, i) for name in (TEMPERATURE, HEAT_FLUX) for i in range(len(self.times))]
            for name, index in [(MATERIAL, 0), *arrays]:
                if name in layout:
                    pairs = zip(self._layout.pieces(name, index), layout.pieces(name, index), strict=True)
                    for (source, count), (target, _) in pairs:
                        for done in range(0, count, _COPIED_AT_ONCE):
                            piece = old.read(source + done, min(_COPIED_AT_ONCE, count - done))
                            file.write(target + done, piece)

        self._file = _write_new(self.path, layout, self.times, copy)
        self._layout = layout
        old.close()

    def _fill(self, name: str, planes: Iterable[NDArray[Any]], index: int, checksum: int) -> int:
        """Write slabs, in all one array of cells, to place `index` of an array; the checksum with them."""
        array, places = self._layout.array(name), self._layout.places(name, index)
        nz, *shape = array.shape[1:]
        filled = 0
        with ThreadPoolExecutor(1) as summing:
            for slab in planes:
                if slab.shape[1:] != tuple(shape) or filled + len(slab) > nz:
                    raise ValueError(f"{self.path}: a slab of shape {slab.shape} at plane {filled} of {(nz, *shape)}")
                with writing(self.path):
                    content = np.ascontiguousarray(slab, dtype=array.dtype).data.cast("B")
                    summed = summing.submit(zlib.crc32, content, checksum)
                    self._place(places, filled * prod(shape) * array.dtype.itemsize, content)
                checksum = summed.result()
                filled += len(slab)
        if filled != nz:
            raise ValueError(f"{self.path}: {filled} planes for a field of {nz}")
        return checksum

    def _place(self, places: Sequence[tuple[int, int]], start: int, content: memoryview) -> None:
        """Write a part of an array of cells that begins at byte `start` of it."""
        end = start + content.nbytes
        number = bisect_right(places, (start, 1 << 62)) - 1
        while start < end:
            first, offset = places[number]
            number += 1
            until = min(end, places[number][0] if number < len(places) else end)
            self._file.write(offset + start - first, content[: until - start])
            content, start = content[until - start :], until


def _write_new(
    path: Path, layout: Layout, times: Sequence[float], copy: Callable[[File], object] = lambda file: None
) -> File:
    """Write a whole file beside, `copy` its values, and rename it into place; returns it open."""
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
    return file


def _known(record: Record) -> tuple[Layout, list[float], list[int]]:
    """Structure, times and checksums from a checkpoint."""
    content, parts, at = record["structure"].tobytes(), [], 0
    for start, count in record["parts"][:-1].tolist():
        parts.append((start, content[at : at + count]))
        at += count
    layout = Layout(Image(parts, int(record["parts"][-1, 0])))
    return layout, record["times"].tolist(), record["checksums"].tolist()


def _found(path: Path, file: File, keep: int) -> tuple[Layout, list[float], list[int]]:
    """The same from the file itself, checksums unknown."""
    layout = Layout(Image(length=file.length, base=file.read))
    holds = min(layout.count, len(layout.times), layout.room)
    if holds < keep:
        raise StorageError(f"{path}: holds {holds} times, the checkpoint counts {keep}; {AGAIN}")
    return layout, layout.times[:keep], [0] * (keep + 1)
