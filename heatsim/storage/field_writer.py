"""Writing fields.vtkhdf: a file that grows by one time after the other and is whole whenever the run is killed.

Room for the times expected is set aside when the file is created: while the run writes, HDF5's index of the chunks
does not change, and no kill can come between two halves of a change; nor can the disk fill up with other files.
On closing, the field is cut to NSteps and nearly all of the room not used is given back.
The numbers themselves are written straight to the chunks' places in the file: HDF5 would take twice as long.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product
from math import ceil, prod
from os import fsync
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import StorageError
from heatsim.grid import Grid
from heatsim.storage.disk import Closing, reserve, write_at, writing
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.vtkhdf import (
    HEAT_FLUX,
    MATERIAL,
    ROOT,
    TEMPERATURE,
    VALUES,
    Field,
    empty_file,
    float_type,
    offsets,
)

# Smaller than a full chunk: HDF5 then writes whole chunks from where they are, without copying them first.
CACHE_BYTES = 1 << 20
# Upper bounds of what one more chunk adds to HDF5's index, and of what else a longer field needs.
INDEX_BYTES_PER_CHUNK = 256
INDEX_BYTES = 1 << 16


class FieldWriter(Closing):
    """Appends fields to a file; use `create` or `reopen`, and close it or use it in a `with`."""

    def __init__(self, path: Path, file: h5py.File, grid: Grid, dtype: DTypeLike, count: int) -> None:
        self.path = path
        self.grid = grid
        self.dtype = np.dtype(dtype)
        self._file = file
        self._root = file[ROOT]
        self._count = count
        self._bytes = open(path, "r+b", buffering=0)  # noqa: SIM115  (open until the writer is closed)

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
            expected: number of times to set room aside for; more can be appended, with less safety.
            heat_flux: whether the file also holds heat-flux vectors.
            materials: names of the materials that cells are of, to be told by `write_materials`; none: not told.

        Raises:
            StorageError: the disk refused or has too little room.
            ValueError: another dtype.
        """
        dtype = float_type(dtype)
        with writing(path):
            # Made in memory and written by the system itself: HDF5 crashes on a disk too full for a file's beginning.
            path.write_bytes(empty_file(grid, dtype, expected, heat_flux, materials))
            # Readers may look while the run writes: nothing here relies on HDF5's locks.
            file = h5py.File(path, "r+", locking=False, rdcc_nbytes=CACHE_BYTES)
            return cls(path, file, grid, dtype, 0)._with_room(expected)

    @classmethod
    def reopen(cls, path: Path, grid: Grid, dtype: DTypeLike, keep: int, expected: int = 0) -> Self:
        """Go on after the first `keep` times; whatever follows them is removed. `expected` is as in `create`.

        Raises:
            StorageError: the file is not there, is damaged, belongs to another grid or dtype, or holds fewer times.
            ValueError: another dtype than float32 or float64.
        """
        dtype = float_type(dtype)
        again = "start again with `heatsim run … --overwrite`"
        if not path.is_file():
            raise StorageError(f"{path}: is missing, the checkpoint counts {keep} times in it; {again}")
        with FieldReader(path) as found:
            if (found.grid, found.dtype) != (grid, dtype):
                raise StorageError(
                    f"{path}: holds {found.dtype} on {found.grid}, the run needs {dtype} on {grid}; {again}"
                )
            if len(found) < keep:
                raise StorageError(f"{path}: holds {len(found)} times, the checkpoint counts {keep}; {again}")
        with writing(path):
            file = h5py.File(path, "r+", locking=False, rdcc_nbytes=CACHE_BYTES)
            root = file[ROOT]
            # Not counted first, removed afterwards: never a moment with times that are counted and not there.
            root["Steps"].attrs.modify("NSteps", np.int64(keep))
            file.flush()
            for name in (VALUES, *dict(offsets(root))):
                root[name].resize(keep, axis=0)
            return cls(path, file, grid, dtype, keep)._with_room(max(keep, expected))

    def __len__(self) -> int:
        """Number of times in the file."""
        return self._count

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
        index = self._count
        if index == len(self._root[TEMPERATURE]):
            self._make_room(index + 1)
        self._fill(self._root[TEMPERATURE], planes, index)
        if HEAT_FLUX in self._root:
            self._fill(self._root[HEAT_FLUX], heat_flux, index)
        with writing(self.path):
            for name, value in ((VALUES, time), *offsets(self._root, index)):
                self._root[name].resize(index + 1, axis=0)
                self._root[name][index] = value
            self._file.flush()
            self._root["Steps"].attrs.modify("NSteps", np.int64(index + 1))
            self._file.flush()
        self._count = index + 1

    def write_materials(self, planes: Iterable[NDArray[np.uint8]]) -> None:
        """Say what every cell is, once, before the first time.

        Args:
            planes: for each cell which of the names given to `create`, as slabs of shape (m, ny, nx).

        Raises:
            StorageError: the disk refused.
            ValueError: slabs of another shape.
        """
        self._lengthen(MATERIAL, 1)
        self._fill(self._root[MATERIAL], planes, 0)

    def _fill(self, field: h5py.Dataset, planes: Iterable[NDArray[Any]], index: int) -> None:
        """Write slabs, in all one array of cells, to place ``index`` of a dataset."""
        nz, *shape = field.shape[1:]
        filled, places = 0, self._places(field, index)
        for slab in planes:
            if slab.shape[1:] != tuple(shape) or filled + len(slab) > nz:
                raise ValueError(f"{self.path}: a slab of shape {slab.shape} at plane {filled} of {(nz, *shape)}")
            with writing(self.path):
                content = np.ascontiguousarray(slab, dtype=field.dtype).data.cast("B")
                self._place(places, filled * prod(shape) * field.dtype.itemsize, content)
            filled += len(slab)
        if filled != nz:
            raise ValueError(f"{self.path}: {filled} planes for a field of {nz}")

    def _places(self, field: h5py.Dataset, index: int) -> list[tuple[int, int]]:
        """Where the chunks of place ``index`` begin: in the bytes of one array of cells, and in the file.

        A chunk is a contiguous part of it, for it holds whole planes, or whole rows of one, or a part of one row.
        """
        shape, chunk = field.shape[1:], field.chunks[1:]
        strides = [prod(shape[axis + 1 :]) * field.dtype.itemsize for axis in range(len(shape))]
        with writing(self.path):
            return [
                (
                    sum(place * stride for place, stride in zip(origin, strides, strict=True)),
                    field.id.get_chunk_info_by_coord((index, *origin)).byte_offset,
                )
                for origin in product(*(range(0, n, step) for n, step in zip(shape, chunk, strict=True)))
            ]

    def _place(self, places: Sequence[tuple[int, int]], start: int, content: memoryview) -> None:
        """Write a part of an array of cells that begins at byte `start` of it; HDF5 would take twice as long."""
        end = start + content.nbytes
        number = bisect_right(places, (start, 1 << 62)) - 1
        while start < end:
            first, offset = places[number]
            number += 1
            until = min(end, places[number][0] if number < len(places) else end)
            write_at(self._bytes, offset + start - first, content[: until - start])
            content, start = content[until - start :], until

    def flush(self) -> None:
        """Wait until every time is on the disk itself, as a checkpoint that counts them needs.

        Raises:
            StorageError: the disk refused.
        """
        with writing(self.path):
            self._file.flush()
            fsync(self._file.id.get_vfd_handle())

    def close(self) -> None:
        """Close the file; it can be closed twice.

        Raises:
            StorageError: the disk refused.
        """
        self._bytes.close()
        try:
            if self._file:
                self._make_room(self._count)
        finally:
            with writing(self.path):
                self._file.close()

    def _with_room(self, times: int) -> Self:
        try:
            self._make_room(times)
        except StorageError:
            with suppress(StorageError):
                self.close()
            raise
        return self

    def _make_room(self, times: int) -> None:
        """Give the fields exactly this length."""
        for name in (TEMPERATURE, HEAT_FLUX):
            if name in self._root:
                self._lengthen(name, times)

    def _lengthen(self, name: str, length: int) -> None:
        field = self._root[name]
        more = length - len(field)
        if not more:
            return
        with writing(self.path):
            if more > 0:
                chunks = prod(ceil(n / chunk) for n, chunk in zip(field.shape[1:], field.chunks[1:], strict=True))
                per_chunk = prod(field.chunks) * field.dtype.itemsize + INDEX_BYTES_PER_CHUNK
                end = self._file.id.get_filesize()
                reserve(self._file.id.get_vfd_handle(), end, more * chunks * per_chunk + INDEX_BYTES)
            field.resize(length, axis=0)
            self._file.flush()
