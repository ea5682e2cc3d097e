"""Writing fields.vtkhdf: a file that grows by one time after the other and is whole whenever the run is killed.

The structure of the file, with room for the times expected, is built in memory and written once. While the run writes,
only values and counters are put to their places (heatsim/storage/field_layout.py), in this order:

    values of the cells, time and offsets  →  sync  →  NSteps

So neither a kill nor a power cut leaves a time that is counted and not there. A thread waits for the disk and counts,
while the caller goes on; times that come faster than the disk takes them are counted together.

A file that needs room for another number of times is written beside the old one and renamed: its structure is never
changed in place.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import StorageError
from heatsim.grid import Grid
from heatsim.storage.disk import AGAIN, Closing, writing
from heatsim.storage.field_file import FieldFile, Record
from heatsim.storage.field_layout import Layout, integer
from heatsim.storage.vtkhdf import HEAT_FLUX, MATERIAL, TEMPERATURE, Field, float_type

# Fields of fewer bytes wait until the one before counts: the disk takes milliseconds for them.
_WAITED_FOR = 1 << 20


class FieldWriter(Closing):
    """Appends fields to a file; use `create` or `reopen`, and close it or use it in a `with`.

    Attributes:
        path: the file.
        checksums: CRC-32 of the materials (0 where there are none), then of the arrays of each time.
        times: in s, of the fields in the file.
    """

    def __init__(self, fields: FieldFile, times: Sequence[float], checksums: Sequence[int]) -> None:
        self.path = fields.path
        self.times = list(times)
        self.checksums = list(checksums)
        self._fields = fields
        self._thread: ThreadPoolExecutor | None = None
        self._counting: Future[None] | None = None
        self._counted = len(self.times)

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
        return cls(FieldFile.create(path, layout, ()), (), (0,))._with_room(expected)

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
            writer._fields.restore(writer.times)
        except StorageError:
            writer._fields.file.close()
            raise
        return writer._with_room(max(keep, expected))

    @classmethod
    def check(cls, path: Path, grid: Grid, dtype: DTypeLike, keep: int, record: Record | None = None) -> None:
        """Raise what `reopen` would raise of a file that is not good; nothing is changed."""
        cls._opened(path, grid, float_type(dtype), keep, record, checked=False)._fields.file.close()

    def __len__(self) -> int:
        """Number of times in the file."""
        return len(self.times)

    def append(self, time: float, planes: Iterable[Field], heat_flux: Iterable[Field] = ()) -> None:
        """Append the field at one time; it counts when it is on the disk itself, at the latest after `flush`.

        Args:
            time: in s, later than the one before.
            planes: temperatures in K as slabs of shape (m, ny, nx), in the order of z, nz planes in all; slabs of
                some MiB are the fastest.
            heat_flux: in W/m², slabs of shape (m, ny, nx, 3); for a file with heat-flux vectors.

        Raises:
            StorageError: the disk refused this or the time before; those before are still there.
            ValueError: slabs of another shape.
        """
        index = len(self.times)
        counting = self._counting
        if counting is not None and (counting.done() or self._fields.bytes_per_time < _WAITED_FOR):
            counting.result()
        if index == self._fields.layout.room:
            self._wait()
            self._make_room(max(1, 2 * index))
        fields, file, layout = self._fields, self._fields.file, self._fields.layout
        checksum = fields.fill(TEMPERATURE, planes, index, 0)
        if HEAT_FLUX in layout:
            checksum = fields.fill(HEAT_FLUX, heat_flux, index, checksum)
        with writing(self.path):
            for series in layout.series:
                file.write(series.entries_at + 8 * index, series.entry(index, time))
                file.write(series.length_at, integer(index + 1))
        self.times.append(float(time))
        self.checksums.append(checksum)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "heatsim-sync")
        self._counting = self._thread.submit(self._count)

    def write_materials(self, planes: Iterable[NDArray[np.uint8]]) -> None:
        """Say what every cell is, once, before the first time.

        Args:
            planes: for each cell which of the names given to `create`, as slabs of shape (m, ny, nx).

        Raises:
            StorageError: the disk refused.
            ValueError: slabs of another shape.
        """
        self.checksums[0] = self._fields.fill(MATERIAL, planes, 0, 0)

    def flush(self) -> None:
        """Wait until every time is on the disk itself, as a checkpoint that counts them needs.

        Raises:
            StorageError: the disk refused.
        """
        self._wait()
        with writing(self.path):
            self._fields.file.sync()

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still where it was created."""
        return self._fields.file.is_in_place

    def record(self, count: int) -> Record:
        """What a checkpoint keeps of the first `count` times, for `reopen`: structure, times and checksums.

        Of a file that was created by this writer, or reopened with such a record.
        """
        return self._fields.record(self.times[:count], self.checksums[: count + 1])

    def record_shapes(self, count: int) -> dict[str, tuple[tuple[int, ...], DTypeLike]]:
        """Shape and type of each array that `record` will give once `count` times are written."""
        return self._fields.record_shapes(count)

    def close(self, give_back: bool = True) -> None:
        """Close the file; it can be closed twice.

        Args:
            give_back: give room that was set aside for more times back to the disk. Where that fails the file stays
                as it is, which is good too.

        Raises:
            StorageError: the disk refused.
        """
        try:
            self._wait()
        except StorageError:
            self._fields.file.close()
            raise
        finally:
            if self._thread is not None:
                self._thread.shutdown()
                self._thread = None
        if give_back and self._fields.layout.room > len(self.times):
            with suppress(StorageError):
                self._make_room(len(self.times))
        with writing(self.path):
            self._fields.file.close()

    @classmethod
    def _opened(
        cls, path: Path, grid: Grid, dtype: np.dtype[Any], keep: int, record: Record | None, checked: bool
    ) -> Self:
        """A writer of a file that is there and good, as far as `keep` times go; nothing is changed yet."""
        if not path.is_file():
            raise StorageError(f"{path}: is missing, the checkpoint counts {keep} times in it; {AGAIN}")
        fields = FieldFile.found(path, keep) if record is None else FieldFile.known(path, record)
        layout = fields.layout
        times, sums = (layout.times, [0] * (keep + 1)) if record is None else (record["times"], record["checksums"])
        writer = cls(fields, [float(time) for time in times[:keep]], [int(checksum) for checksum in sums])
        try:
            if (layout.grid, layout.dtype) != (grid, dtype):
                raise StorageError(
                    f"{path}: holds {layout.dtype} on {layout.grid}, the run needs {dtype} on {grid}; {AGAIN}"
                )
            whole = fields.file.length >= layout.length
            if record is not None and not (checked and whole):
                writer._compare(whole)
        except BaseException:
            writer._fields.file.close()
            raise
        return writer

    def _compare(self, whole: bool) -> None:
        """Compare checksums; the file is not `whole` where it is shorter than the structure that is known says."""
        try:
            self._fields.compare(self.times, self.checksums)
        except StorageError:
            if whole:
                raise
            # A run that ends early gives room back after its last checkpoint: the file has a structure of fewer times.
            self._fields.file.close()
            self._fields = FieldFile.found(self.path, len(self.times))
            self._fields.compare(self.times, self.checksums)

    def _count(self) -> None:
        """Count the times that have been written, once they are on the disk itself."""
        fields, times = self._fields, len(self.times)
        if times > self._counted:
            with writing(self.path):
                fields.file.sync()
                fields.file.write(fields.layout.count_at, integer(times))
            self._counted = times

    def _wait(self) -> None:
        """Wait until all times count, and raise what went wrong there."""
        counting = self._counting  # A checkpoint's thread waits here while another one appends.
        if counting is not None:
            counting.result()

    def _with_room(self, times: int) -> Self:
        try:
            self._make_room(times)
        except StorageError:
            self._fields.file.close()
            raise
        return self

    def _make_room(self, times: int) -> None:
        """Give the arrays places for exactly this number of times."""
        if times != self._fields.layout.room:
            self._fields = self._fields.resized(times, self.times)
