"""Writing fields.vtkhdf: a file that grows by one time after the other and can be read after a kill at any moment.

The structure of the file, with room for the expected times, is built in memory and written once. During the run, only
values and counters are written to their positions (heatsim/storage/field_layout.py), in this order:

    values of the cells, time and offsets → sync → NSteps

After a kill or a power cut, every counted time is therefore complete. A thread waits for the disk and counts while the
caller continues; if times come faster than the disk writes them, they are counted together. If the file needs room for
another number of times, a new file is written and renamed into place: the structure of a file never changes.

Several ranks write one file: rank 0 makes it, each rank writes its own planes and syncs them, rank 0 counts the time.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import StorageError
from heatsim.grid import Grid
from heatsim.parallel.slab import Slab
from heatsim.parallel.team import ALONE, Team
from heatsim.storage.checksums import combined
from heatsim.storage.disk import Closing, writing
from heatsim.storage.field_check import open_checked
from heatsim.storage.field_counter import TimeCounter
from heatsim.storage.field_file import FieldFile, Record
from heatsim.storage.field_layout import Layout, integer
from heatsim.storage.vtkhdf import HEAT_FLUX, MATERIAL, TEMPERATURE, Field, float_type

# A field of fewer bytes waits until the one before counts: the disk needs only milliseconds.
_WAITED_FOR = 1 << 20


class FieldWriter(Closing):
    """Appends fields to a file; use `create` or `reopen`, and close it or use it in a `with` statement.

    Attributes:
        path: the file.
        checksums: CRC-32 of the materials (0 if there are none), then of the arrays of each time.
        times: in s, of the fields in the file.
    """

    def __init__(self, fields: FieldFile, times: Sequence[float], checksums: Sequence[int]) -> None:
        self.path = fields.path
        self.times = list(times)
        self.checksums = list(checksums)
        self._fields = fields
        self._team = ALONE
        self._slab = Slab.whole(fields.layout.grid.cells[2])
        self._counter = TimeCounter(len(self.times))

    @classmethod
    def create(
        cls,
        path: Path,
        grid: Grid,
        dtype: DTypeLike,
        expected: int = 0,
        heat_flux: bool = False,
        materials: Sequence[str] = (),
        team: Team = ALONE,
        slab: Slab | None = None,
    ) -> Self:
        """Start a file without any times; an existing file is replaced. Collective.

        Args:
            path: the file to write.
            grid: the cells.
            dtype: float32 or float64.
            expected: number of times to reserve space for; more can be appended, which copies the file.
            heat_flux: whether the file also holds heat flux vectors.
            materials: names of the materials, for `write_materials`.
            team: the ranks that write the file.
            slab: the planes that this rank writes.

        Raises:
            StorageError: the disk refused or has not enough space.
            ValueError: another dtype.
        """
        writer = None
        with team.agreeing():
            if team.first:
                # First without room if there is a file: it is removed before space is reserved.
                room = 0 if path.exists() else expected
                layout = Layout.create(grid, float_type(dtype), room, heat_flux, tuple(materials))
                writer = cls(FieldFile.create(path, layout, ()), (), (0,))._prepared(expected)
        return cls._shared(path, writer, team, slab)

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
        team: Team = ALONE,
        slab: Slab | None = None,
    ) -> Self:
        """Continue after the first `keep` times; later times do not count any more. Collective.

        Args:
            path: the file.
            grid: the cells.
            dtype: float32 or float64.
            keep: number of times to keep.
            expected: as in `create`.
            record: the result of `record` for these times. With it, only the values of the cells are taken from the
                file, after a check; without it, the file must be undamaged.
            checked: whether `check` has checked the values just before.
            team: as in `create`.
            slab: as in `create`.

        Raises:
            StorageError: the file is missing, is damaged, belongs to another grid or dtype, or holds fewer times; it is
                unchanged.
            ValueError: another dtype than float32 or float64.
        """
        writer = None
        with team.agreeing():
            if team.first:
                writer = cls(*open_checked(path, grid, float_type(dtype), keep, record, checked))
                writer = writer._prepared(max(keep, expected), restore=True)
        return cls._shared(path, writer, team, slab)

    @classmethod
    def check(
        cls, path: Path, grid: Grid, dtype: DTypeLike, keep: int, record: Record | None = None, team: Team = ALONE
    ) -> None:
        """Raise the errors that `reopen` would raise. Nothing is changed. Collective; each rank reads some times."""
        with team.agreeing():
            open_checked(path, grid, float_type(dtype), keep, record, False, team)[0].file.close()

    def __len__(self) -> int:
        """Number of times in the file."""
        return len(self.times)

    def append(self, time: float, planes: Iterable[Field], heat_flux: Iterable[Field] = ()) -> None:
        """Append the field at one time. Collective.

        It counts as soon as it is on the disk, at the latest after `flush`.

        Args:
            time: in s, later than the one before.
            planes: temperatures in K of the planes of this rank, as slabs of shape (m, ny, nx), in the order of z;
                slabs of a few MiB are the fastest.
            heat_flux: in W/m², slabs of shape (m, ny, nx, 3); for a file with heat flux vectors.

        Raises:
            StorageError: the disk refused this time or the one before; earlier ones are still there.
            ValueError: the slabs have another shape.
        """
        index, team = len(self.times), self._team
        if index == self._fields.layout.room:
            self._grow(max(1, 2 * index))
        with team.agreeing():
            self._counter.wait(until_counted=self._fields.bytes_per_time < _WAITED_FOR)
            sums = [self._fields.fill(TEMPERATURE, planes, index, self._slab)]
            if HEAT_FLUX in self._fields.layout:
                sums.append(self._fields.fill(HEAT_FLUX, heat_flux, index, self._slab))
            self._sync_of_other_ranks()
        of_ranks = team.gathered(sums)
        with team.agreeing(), writing(self.path):
            if team.first:
                file = self._fields.file
                for series in self._fields.layout.series:
                    file.write(series.entries_at + 8 * index, series.entry(index, time))
                    file.write(series.length_at, integer(index + 1))
        self.times.append(float(time))
        self.checksums.append(combined(of_rank[number] for number in range(len(sums)) for of_rank in of_ranks))
        if team.first:
            self._counter.begin(self._fields, lambda: len(self.times))

    def write_materials(self, planes: Iterable[NDArray[np.uint8]]) -> None:
        """Write the material of every cell, once, before the first time. Collective.

        Args:
            planes: indices of the names that `create` received, as slabs of shape (m, ny, nx); those of this rank.

        Raises:
            StorageError: the disk refused.
            ValueError: the slabs have another shape.
        """
        with self._team.agreeing():
            summed = self._fields.fill(MATERIAL, planes, 0, self._slab)
            self._sync_of_other_ranks()
        self.checksums[0] = combined(self._team.gathered(summed))

    def flush(self) -> None:
        """Wait until every time is on the disk; a checkpoint that counts them needs this.

        Raises:
            StorageError: the disk refused.
        """
        self._counter.wait()
        with writing(self.path):
            self._fields.file.sync()

    @property
    def is_in_place(self) -> bool:
        """Whether the file still has its path."""
        return self._fields.file.is_in_place

    def record(self, count: int) -> Record:
        """The part of the file that a checkpoint stores for the first `count` times: structure, times and checksums.

        For a file that this writer created, or reopened with such a record.
        """
        return self._fields.record(self.times[:count], self.checksums[: count + 1])

    def record_shapes(self, count: int) -> dict[str, tuple[tuple[int, ...], DTypeLike]]:
        """Shape and type of each array that `record` returns after `count` times are written."""
        return self._fields.record_shapes(count)

    def close(self, give_back: bool = True) -> None:
        """Close the file; a second call does nothing.

        Args:
            give_back: release the space reserved for more times. If that fails, the file stays as it is, which is valid
                too.

        Raises:
            StorageError: the disk refused.
        """
        try:
            self._counter.wait()
        except StorageError:
            self._fields.file.close()
            raise
        finally:
            self._counter.end()
        if give_back and self._team.first and self._fields.layout.room > len(self.times):
            with suppress(StorageError):
                self._make_room(len(self.times))
        with writing(self.path):
            self._fields.file.close()

    @classmethod
    def _shared(cls, path: Path, writer: Self | None, team: Team, slab: Slab | None) -> Self:
        """The writers of all ranks for the file of rank 0, which has made it. Collective."""
        known = team.broadcast(None if writer is None else (writer.times, writer.checksums))
        assert known is not None, "rank 0 has a writer"
        with team.agreeing():
            if writer is None:
                writer = cls(FieldFile.found(path, 0), *known)
        writer._team, writer._slab = team, slab or writer._slab
        return writer

    def _grow(self, times: int) -> None:
        """Make room for this number of times. Collective."""
        with self._team.agreeing():
            if self._team.first:
                self._counter.wait()
                self._make_room(times)
        with self._team.agreeing():
            if not self._team.first:
                self._fields.file.close()
                self._fields = FieldFile.found(self.path, 0)

    def _sync_of_other_ranks(self) -> None:
        """Bring the planes of this rank to the disk, unless it is rank 0, which syncs before it counts."""
        if not self._team.first:
            with writing(self.path):
                self._fields.file.sync()

    def _prepared(self, room: int, restore: bool = False) -> Self:
        """This writer with room for times; ``restore``: with the file in the state in which it held its times."""
        try:
            if restore:
                self._fields.restore(self.times)
            self._make_room(room)
        except StorageError:
            self._fields.file.close()
            raise
        return self

    def _make_room(self, times: int) -> None:
        """Give the arrays room for exactly this number of times."""
        if times != self._fields.layout.room:
            self._fields = self._fields.resized(times, self.times)
