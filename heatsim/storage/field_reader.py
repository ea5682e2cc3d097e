"""Reading fields.vtkhdf: whole fields, planes or slabs, also while the file is being written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, StorageError
from heatsim.storage.disk import Closing, reason
from heatsim.storage.own_files import check_contained
from heatsim.storage.vtkhdf import (
    HEAT_FLUX,
    MATERIAL,
    ROOT,
    TEMPERATURE,
    VALUES,
    VOID,
    Field,
    check_shapes,
    float_type,
    read_grid,
)

SLAB_BYTES = 1 << 24

# The first cell and the one after the last, along x, y, z.
Cells = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


class FieldReader(Closing):
    """Reads fields by the number of their time, also from a file that is being written.

    Attributes:
        times: in s, shape (times,).
        grid: the cells that are read.
        dtype: float32 or float64.
        materials: the names for the numbers of :meth:`read_materials`; empty if all cells have one material.
    """

    def __init__(self, path: Path, cells: Cells | None = None) -> None:
        """Open a file.

        Args:
            path: of the file.
            cells: a box of cells to read instead of all; :meth:`read_part` and :meth:`shape_of` count all cells.

        Raises:
            FolderError: there is no such file.
            StorageError: it is damaged or was not written by heatsim.
        """
        if not path.is_file():
            raise FolderError(f"{path}: is not there; the run writes it with output.fields = true")
        self.path = path
        with self._reading():
            self._file = h5py.File(path, "r", locking=False)
        try:
            with self._reading():
                check_contained(self._file)
                root = self._file[ROOT]
                count = int(root["Steps"].attrs["NSteps"])
                whole = read_grid(root)
                self.times: NDArray[np.float64] = root[VALUES][:count]
                self._field = root[TEMPERATURE]
                self.dtype = float_type(self._field.dtype)
                self.materials: tuple[str, ...] = tuple(root[MATERIAL].attrs["Names"]) if MATERIAL in root else ()
                check_shapes(root, count, whole, self.times, self.materials)
        except StorageError:
            self._file.close()
            raise
        self._x, self._y, self._z = (slice(*ends) for ends in cells or ((0, n) for n in whole.cells))
        self.grid = whole if cells is None else whole.part(cells)

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
        """The temperature in K of one plane of cells at time number `i`; reads no more than one slab at a time.

        Args:
            i: the number of the time.
            axis: the normal of the plane: 0 = x gives shape (nz, ny), 1 = y (nz, nx), 2 = z (ny, nx).
            index: the number of the plane along that axis.

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
        # Read whole slabs: reading single cells of a row is much slower than reading the row.
        across = 2 if axis == 0 else 1
        plane = np.concatenate([slab.take(index, axis=across) for _, slab in self.slabs(i)])
        return plane

    def read_heat_flux(self, i: int, planes: slice = slice(None)) -> Field:
        """The heat flux in W/m² at time number `i`, shape (planes, ny, nx, 3), components along x, y, z.

        Raises:
            IndexError: there is no such time.
            StorageError: the file is damaged, or holds no heat flux.
        """
        if not 0 <= i < len(self.times):
            raise IndexError(f"{self.path}: time {i} of {len(self.times)}")
        with self._reading():
            flux: Field = self._file[ROOT][HEAT_FLUX][i, self._planes(planes), self._y, self._x]
        return flux

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of TEMPERATURE, (times, nz, ny, nx), or of HEAT_FLUX, (times, nz, ny, nx, 3).

        Raises:
            StorageError: the file is damaged, or does not hold it.
        """
        with self._reading():
            return (len(self.times), *self._file[ROOT][name].shape[1:])

    def read_part(self, name: str, index: tuple[Any, ...]) -> Field:
        """A part of TEMPERATURE or HEAT_FLUX at an index of h5py: numbers, slices, one ascending list; NaN in void.

        Raises:
            StorageError: the file is damaged, or does not hold it.
        """
        with self._reading():
            part: Field = np.asarray(self._file[ROOT][name][index])
            if VOID in self.materials:
                void = np.asarray(self._file[ROOT][MATERIAL][(0, *index[1:4])]) == self.materials.index(VOID)
                # The index may leave dimensions out; those of time come first, those of components last.
                before = not isinstance(index[0], int | np.integer)
                after = part.ndim - before - void.ndim
                part = np.where(void.reshape((*(1,) * before, *void.shape, *(1,) * after)), np.nan, part)
        return part.astype(self.dtype, copy=False)

    def read_materials(self, planes: slice = slice(None)) -> NDArray[np.uint8]:
        """The materials of the cells of some planes, shape (planes, ny, nx).

        Values are indices of ``materials``; all are 0 if it is empty.

        Raises:
            StorageError: the file is damaged.
        """
        nz, ny, nx = self.grid.shape
        if not self.materials:
            return np.zeros((len(range(*planes.indices(nz))), ny, nx), dtype=np.uint8)
        with self._reading():
            numbers: NDArray[np.uint8] = self._file[ROOT][MATERIAL][0, self._planes(planes), self._y, self._x]
            if numbers.size and int(numbers.max()) >= len(self.materials):
                raise ValueError(f"a cell has material {numbers.max()} of {len(self.materials)}")
        return numbers

    @property
    def has_heat_flux(self) -> bool:
        """Whether the file has heat flux vectors."""
        with self._reading():
            return HEAT_FLUX in self._file[ROOT]

    def conducting(self, planes: slice) -> NDArray[np.bool_]:
        """Whether each cell of some planes is not void, shape (planes, ny, nx).

        Raises:
            StorageError: the file is damaged.
        """
        void = self.materials.index(VOID) if VOID in self.materials else -1
        conducts: NDArray[np.bool_] = self.read_materials(planes) != void
        return conducts

    def range(self, i: int) -> tuple[float, float]:
        """The lowest and highest temperature in K at time number `i`, without void; reads slab by slab.

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
        if not np.isfinite([*lowest, *highest]).all() or not lowest:
            raise StorageError(f"{self.path}: has no finite temperatures at t = {self.times[i]:.6g} s; it is damaged")
        return float(min(lowest)), float(max(highest))

    def close(self) -> None:
        """Close the file; it can be closed twice."""
        self._file.close()

    def slabs(self, i: int) -> Iterator[tuple[slice, Field]]:
        """The temperature in K at time number `i`, in slabs of a few planes.

        Yields:
            The planes, and their temperatures, shape (planes, ny, nx).

        Raises:
            IndexError: there is no such time.
            StorageError: the file is damaged.
        """
        nz, ny, nx = self.grid.shape
        planes = max(1, SLAB_BYTES // (ny * nx * self.dtype.itemsize))
        for start in range(0, nz, planes):
            part = slice(start, min(start + planes, nz))
            yield part, self._slab(i, part)

    def _slab(self, i: int, planes: slice) -> Field:
        if not 0 <= i < len(self.times):
            raise IndexError(f"{self.path}: time {i} of {len(self.times)}")
        with self._reading():
            slab: Field = self._field[i, self._planes(planes), self._y, self._x]
        return slab

    def _planes(self, planes: slice) -> slice:
        """Planes of the file from those of the cells that are read."""
        start, stop, _ = planes.indices(self.grid.cells[2])
        return slice(self._z.start + start, self._z.start + stop)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise StorageError(
                f"{self.path}: could not be read: {reason(error)}; it is damaged or was not written by heatsim"
            ) from error
