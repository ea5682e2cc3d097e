"""fields.vtkhdf: the temperature over time in one file that grows, opened by ParaView and VTK as it is.

VTKHDF 2.0 ImageData (VTK file formats documentation, "VTKHDF File Format") with cell data:

    /VTKHDF                        Version, Type, WholeExtent in points, Origin, Spacing, Direction; Size (ours)
    /VTKHDF/CellData/temperature   (time, z, y, x) in K
    /VTKHDF/CellData/heat_flux     (time, z, y, x, component) in W/m², components along x, y, z; where it is asked for
    /VTKHDF/CellData/material      (1, z, y, x), which of its attribute Names; where there are several or void
    /VTKHDF/Steps                  NSteps, the number of times that count
    /VTKHDF/Steps/Values           the times in s
    /VTKHDF/Steps/CellDataOffsets/temperature   0, 1, 2, …; the same for heat_flux; for material 0, 0, 0, …

A time is written first, then flushed, then counted in NSteps: what a crash leaves beyond NSteps is never read.
HDF5's oldest file version, h5py's default, has no mark of a file being open for writing and so opens after a crash.

Room for the times expected is set aside when the file is created: while the run writes, HDF5's index of the chunks
does not change, and no kill can come between two halves of a change; nor can the disk fill up with other files.
On closing, the field is cut to NSteps and nearly all of the room not used is given back.
The numbers themselves are written straight to the chunks' places in the file: HDF5 would take twice as long.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from math import ceil, prod
from os import fsync
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.errors import FolderError, StorageError
from heatsim.grid import Grid
from heatsim.storage.disk import reason, reserve, write_at, writing

ROOT = "VTKHDF"
TEMPERATURE = "CellData/temperature"
VALUES = "Steps/Values"
OFFSETS = "Steps/CellDataOffsets/temperature"
HEAT_FLUX = "CellData/heat_flux"
HEAT_FLUX_OFFSETS = "Steps/CellDataOffsets/heat_flux"
MATERIAL = "CellData/material"
MATERIAL_OFFSETS = "Steps/CellDataOffsets/material"
VOID = "void"

SLAB_BYTES = 4 << 20
# Smaller than a full slab's chunk: HDF5 then writes whole chunks from where they are, without copying them first.
CACHE_BYTES = 1 << 20
# Upper bounds of what one more chunk adds to HDF5's index, and of what else a longer field needs.
INDEX_BYTES_PER_CHUNK = 256
INDEX_BYTES = 1 << 16

Field = NDArray[np.floating[Any]]


class FieldWriter:
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
        dtype = _float_type(dtype)
        with writing(path):
            # Made in memory and written by the system itself: HDF5 crashes on a disk too full for a file's beginning.
            path.write_bytes(_empty_file(grid, dtype, expected, heat_flux, materials))
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
        dtype = _float_type(dtype)
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
            for name in (VALUES, *dict(_offsets(root))):
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
            for name, value in ((VALUES, time), *_offsets(self._root, index)):
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(StorageError):
                self.close()


class FieldReader:
    """Reads fields by the number of their time; can look at a file that is being written.

    Attributes:
        times: in s, shape (times,).
        grid: where the cells are.
        dtype: float32 or float64.
        materials: the names that :meth:`read_materials` counts; none where all cells are of one material.
    """

    def __init__(self, path: Path) -> None:
        """Open a file.

        Raises:
            FolderError: there is no such file.
            StorageError: it is damaged or not one that heatsim wrote.
        """
        if not path.is_file():
            raise FolderError(f"{path}: is not there; give the folder of a run that wrote it")
        self.path = path
        with self._reading():
            self._file = h5py.File(path, "r", locking=False)
        try:
            with self._reading():
                root = self._file[ROOT]
                count = int(root["Steps"].attrs["NSteps"])
                self.grid = _grid(root)
                self.times: NDArray[np.float64] = root[VALUES][:count]
                self._field = root[TEMPERATURE]
                self.dtype = _float_type(self._field.dtype)
                self.materials: tuple[str, ...] = tuple(root[MATERIAL].attrs["Names"]) if MATERIAL in root else ()
                if len(self.times) != count or len(self._field) < count or self._field.shape[1:] != self.grid.shape:
                    raise ValueError(
                        f"{count} times of {self.grid.shape} are announced, {len(self.times)} times and fields "
                        f"of shape {self._field.shape} are there"
                    )
        except StorageError:
            self._file.close()
            raise

    def __len__(self) -> int:
        """Number of times in the file."""
        return len(self.times)

    def read(self, i: int) -> Field:
        """The temperature in K at time number `i`, shape (nz, ny, nx).

        Raises:
            IndexError: there is no such time.
            StorageError: the file is damaged.
        """
        return self._slab(i, slice(None))

    def read_plane(self, i: int, axis: int, index: int) -> Field:
        """One plane of cells at time number `i`, without holding more than a slab of the field.

        Args:
            i: the number of the time.
            axis: the one the plane is normal to: 0 = x gives shape (nz, ny), 1 = y (nz, nx), 2 = z (ny, nx).
            index: which plane along that axis.

        Raises:
            IndexError: there is no such time or plane.
            StorageError: the file is damaged.
        """
        if not 0 <= index < self.grid.cells[axis]:
            raise IndexError(f"plane {index} of {self.grid.cells[axis]} along {'xyz'[axis]}")
        plane: Field
        if axis == 2:
            plane = self._slab(i, slice(index, index + 1))[0]
            return plane
        # Whole slabs from the disk: picking single cells of a row apart is far slower than reading the row.
        across = 2 if axis == 0 else 1
        plane = np.concatenate([slab.take(index, axis=across) for _, slab in self.slabs(i)])
        return plane

    def read_heat_flux(self, i: int) -> Field:
        """The heat flux in W/m² at time number `i`, shape (nz, ny, nx, 3), components along x, y, z.

        Raises:
            IndexError: there is no such time.
            StorageError: the file is damaged, or holds no heat flux.
        """
        if not 0 <= i < len(self.times):
            raise IndexError(f"{self.path}: time {i} of {len(self.times)}")
        with self._reading():
            flux: Field = self._file[ROOT][HEAT_FLUX][i]
        return flux

    def read_materials(self, planes: slice = slice(None)) -> NDArray[np.uint8]:
        """Which of ``materials`` the cells of some planes are of, shape (planes, ny, nx); 0 where none is named.

        Raises:
            StorageError: the file is damaged.
        """
        nz, ny, nx = self.grid.shape
        if not self.materials:
            return np.zeros((len(range(*planes.indices(nz))), ny, nx), dtype=np.uint8)
        with self._reading():
            numbers: NDArray[np.uint8] = self._file[ROOT][MATERIAL][0, planes]
        return numbers

    @property
    def has_heat_flux(self) -> bool:
        """Whether there are heat-flux vectors beside the temperature."""
        with self._reading():
            return HEAT_FLUX in self._file[ROOT]

    def conducting(self, planes: slice) -> NDArray[np.bool_]:
        """Which cells of some planes are not void, shape (planes, ny, nx).

        Raises:
            StorageError: the file is damaged.
        """
        void = self.materials.index(VOID) if VOID in self.materials else -1
        conducts: NDArray[np.bool_] = self.read_materials(planes) != void
        return conducts

    def range(self, i: int) -> tuple[float, float]:
        """The lowest and the highest temperature in K at time number `i`, void left out, read slab by slab.

        Raises:
            IndexError: there is no such time.
            StorageError: the file is damaged.
        """
        lowest, highest = [], []
        for planes, slab in self.slabs(i):
            inside = slab[self.conducting(planes)] if VOID in self.materials else slab
            if inside.size:
                lowest.append(inside.min())
                highest.append(inside.max())
        return float(min(lowest)), float(max(highest))

    def close(self) -> None:
        """Close the file; it can be closed twice."""
        self._file.close()

    def slabs(self, i: int) -> Iterator[tuple[slice, Field]]:
        """The temperature in K at time number `i` a few planes at a time: which planes, and (planes, ny, nx).

        Raises:
            IndexError: there is no such time.
            StorageError: the file is damaged.
        """
        nz, ny, nx = self.grid.shape
        planes = max(1, 4 * SLAB_BYTES // (ny * nx * self.dtype.itemsize))
        for start in range(0, nz, planes):
            part = slice(start, min(start + planes, nz))
            yield part, self._slab(i, part)

    def _slab(self, i: int, planes: slice) -> Field:
        if not 0 <= i < len(self.times):
            raise IndexError(f"{self.path}: time {i} of {len(self.times)}")
        with self._reading():
            slab: Field = self._field[i, planes]
        return slab

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
            raise StorageError(
                f"{self.path}: could not be read: {reason(error)}; it is damaged or was not written by heatsim"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _float_type(dtype: DTypeLike) -> np.dtype[Any]:
    found = np.dtype(dtype)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype {found}; allowed are float32 and float64")
    return found


def _offsets(root: h5py.Group, index: int = 0) -> list[tuple[str, int]]:
    """The datasets that say where each array's values at a time are, and what they say for time ``index``."""
    places = {TEMPERATURE: (OFFSETS, index), HEAT_FLUX: (HEAT_FLUX_OFFSETS, index), MATERIAL: (MATERIAL_OFFSETS, 0)}
    return [place for name, place in places.items() if name in root]


def _empty_file(grid: Grid, dtype: np.dtype[Any], expected: int, heat_flux: bool, materials: Sequence[str]) -> bytes:
    """The bytes of a file without any time in it."""
    with h5py.File("empty", "w", driver="core", backing_store=False) as file:
        _create_layout(file, grid, dtype, expected, heat_flux, materials)
        file.flush()
        image: bytes = file.id.get_file_image()
    return image


def _create_layout(
    file: h5py.File, grid: Grid, dtype: np.dtype[Any], expected: int, heat_flux: bool, materials: Sequence[str]
) -> None:
    nx, ny, nz = grid.cells
    root = file.create_group(ROOT)
    root.attrs["Version"] = np.array([2, 0], np.int64)
    root.attrs.create("Type", b"ImageData", dtype=h5py.string_dtype("ascii", len("ImageData")))
    root.attrs["WholeExtent"] = np.array([0, nx, 0, ny, 0, nz], np.int64)
    root.attrs["Origin"] = np.array(grid.origin, np.float64)
    root.attrs["Spacing"] = np.array(grid.spacing, np.float64)
    # Nine numbers in a row: as a matrix, VTK finds a mesh without arrays.
    root.attrs["Direction"] = np.eye(3).ravel()
    # The box itself: spacing times cells may differ from it in the last digit.
    root.attrs["Size"] = np.array(grid.size, np.float64)
    storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    storage.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    storage.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    fields: list[tuple[str, tuple[int, ...], np.dtype[Any], bytes]] = [(TEMPERATURE, (), dtype, b"Scalars")]
    if heat_flux:
        fields.append((HEAT_FLUX, (3,), dtype, b"Vectors"))
    if materials:
        fields.append((MATERIAL, (), np.dtype(np.uint8), b""))
    for name, components, numbers, attribute in fields:
        field = root.create_dataset(
            name,
            shape=(0, *grid.shape, *components),
            maxshape=(None, *grid.shape, *components),
            chunks=(*_chunks(grid.shape, numbers.itemsize * prod(components)), *components),
            dtype=numbers,
            dcpl=storage,
        )
        if attribute:
            field.attrs.create("Attribute", attribute, dtype=h5py.string_dtype("ascii", len(attribute)))
    if materials:
        root[MATERIAL].attrs["Names"] = list(materials)
    # One chunk for all the times expected; of length 1, so that it is there from the start.
    rows = (max(512, expected),)
    root.create_dataset(VALUES, shape=(1,), maxshape=(None,), chunks=rows, dtype=np.float64)[:] = 0.0
    for name, _ in _offsets(root):
        root.create_dataset(name, shape=(1,), maxshape=(None,), chunks=rows, dtype=np.int64)[:] = 0
    root["Steps"].attrs["NSteps"] = np.int64(0)


def _chunks(shape: tuple[int, int, int], itemsize: int) -> tuple[int, int, int, int]:
    """One time and as many whole rows, then whole planes, as a slab's bytes allow, in pieces of nearly equal size."""
    room = SLAB_BYTES // itemsize
    lengths = []
    for n in reversed(shape):
        length = ceil(n / ceil(n / min(n, max(room, 1))))
        lengths.append(length)
        room //= length
    x, y, z = lengths
    return (1, z, y, x)


def _grid(root: h5py.Group) -> Grid:
    extent = [int(value) for value in root.attrs["WholeExtent"]]
    size = [float(value) for value in root.attrs["Size"]]
    origin = [float(value) for value in root.attrs["Origin"]]
    return Grid((extent[1], extent[3], extent[5]), (size[0], size[1], size[2]), (origin[0], origin[1], origin[2]))
