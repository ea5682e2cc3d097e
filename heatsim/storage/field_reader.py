"""Reading fields.vtkhdf, whole fields or as little of them as is asked for, while it is being written too."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import h5py
import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, StorageError
from heatsim.storage.disk import reason
from heatsim.storage.own_files import check_contained
from heatsim.storage.vtkhdf import (
    HEAT_FLUX,
    MATERIAL,
    ROOT,
    TEMPERATURE,
    VALUES,
    VOID,
    Field,
    float_type,
    read_grid,
)

SLAB_BYTES = 1 << 24


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
                check_contained(self._file)
                root = self._file[ROOT]
                count = int(root["Steps"].attrs["NSteps"])
                self.grid = read_grid(root)
                self.times: NDArray[np.float64] = root[VALUES][:count]
                self._field = root[TEMPERATURE]
                self.dtype = float_type(self._field.dtype)
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
        planes = max(1, SLAB_BYTES // (ny * nx * self.dtype.itemsize))
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
        except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise StorageError(
                f"{self.path}: could not be read: {reason(error)}; it is damaged or was not written by heatsim"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
