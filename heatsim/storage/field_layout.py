"""The positions of everything in fields.vtkhdf, so that heatsim can write values without HDF5.

HDF5 builds the file in memory with room for a number of times (heatsim/storage/hdf5_image.py). Its structure never
changes: a file with room for more or fewer times is a new file. Only the values of the arrays and a few integers of
8 bytes change:

    Steps/NSteps                                the number of times that count
    Steps/Values, Steps/CellDataOffsets/…       their lengths, and an entry for each time
"""

import atexit
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import Any
from weakref import WeakSet

import h5py
import numpy as np

from heatsim.grid import Grid
from heatsim.storage.hdf5_image import Image, Part
from heatsim.storage.own_files import check_contained
from heatsim.storage.vtkhdf import (
    HEAT_FLUX,
    MATERIAL,
    MATERIAL_OFFSETS,
    ROOT,
    TEMPERATURE,
    VALUES,
    create_layout,
    offsets,
    read_grid,
)

_INTEGER = "<i8"
_KEPT = 4
_PLACES_KEPT = 1024  # times whose positions a layout keeps


@dataclass(frozen=True)
class Series:
    """A list with one entry for each time.

    Attributes:
        name: its path in the file.
        length_at: position of its length in the file.
        entries_at: position of its entries.
    """

    name: str
    length_at: int
    entries_at: int

    def entry(self, index: int, time: float) -> bytes:
        """The 8 bytes of the entry for time number `index`."""
        if self.name == VALUES:
            return np.array(time, "<f8").tobytes()
        return integer(0 if self.name == MATERIAL_OFFSETS else index)


@dataclass(frozen=True)
class CellArray:
    """The shape of an array of cells, that of its chunks, and its type; the first axis is that of the times."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]


class Layout:
    """The structure of one file. Writers of equal files share it.

    Args:
        image: the file, whose structure HDF5 can read; it does not change any more.

    Raises:
        OSError, RuntimeError, KeyError, ValueError, TypeError: it is damaged or not one that heatsim wrote.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        self.length = image.length
        self._file = h5py.File(image, "r")
        _open.add(self)
        check_contained(self._file)
        root = self._file[ROOT]
        self._root = root
        self.grid: Grid = read_grid(root)
        self.dtype: np.dtype[Any] = root[TEMPERATURE].dtype
        self.room = len(root[TEMPERATURE])
        self.count = int(root["Steps"].attrs["NSteps"])
        self.times: list[float] = root[VALUES][:].tolist()
        if root[TEMPERATURE].shape[1:] != self.grid.shape:
            raise ValueError(f"fields of shape {root[TEMPERATURE].shape[1:]} on a grid of {self.grid.shape}")
        self.count_at = self._find(self.count, lambda steps, n: steps.attrs.modify("NSteps", np.int64(n)))
        self.series = tuple(self._series(name) for name in (VALUES, *offsets(root)))
        arrays = {name: root[name] for name in (TEMPERATURE, HEAT_FLUX, MATERIAL) if name in root}
        self._arrays = {name: CellArray(of.shape, of.chunks, of.dtype) for name, of in arrays.items()}
        self._places: dict[tuple[str, int], list[tuple[int, int]]] = {}

    @classmethod
    @lru_cache(maxsize=_KEPT)
    def create(
        cls, grid: Grid, dtype: np.dtype[Any], room: int, heat_flux: bool, materials: tuple[str, ...]
    ) -> "Layout":
        """The structure of a new file without any times; for the arguments see `vtkhdf.create_layout`.

        The last ones are kept: the runs of a study write equal files, and HDF5 needs some milliseconds for a structure.
        """
        image = Image()
        with h5py.File(image, "w") as file:
            create_layout(file, grid, dtype, room, heat_flux, materials)
        layout = cls(image)
        for series in layout.series:
            image.put(series.length_at, integer(0))
        layout.close()
        return cls(image)

    def resized(self, room: int) -> "Layout":
        """The structure of the same file with room for `room` times."""
        names = tuple(str(name) for name in self._root[MATERIAL].attrs["Names"]) if MATERIAL in self._root else ()
        return Layout.create(self.grid, self.dtype, room, HEAT_FLUX in self._root, names)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str) -> CellArray:
        """One of the arrays of cells."""
        return self._arrays[name]

    @cached_property
    def parts(self) -> list[Part]:
        """The bytes of the structure: the start of each part, and its content."""
        return self.image.parts()

    def counting(self, times: Sequence[float], counted: bytes) -> list[Part]:
        """All parts of the file with these times, except for the values of cells; NSteps becomes `counted`."""
        image = Image(self.parts, self.length)
        for series in self.series:
            image.put(series.length_at, integer(len(times)))
            image.put(series.entries_at, b"".join(series.entry(i, time) for i, time in enumerate(times)))
        image.put(self.count_at, counted)
        return image.parts()

    def places(self, name: str, index: int) -> list[tuple[int, int]]:
        """The positions of the chunks of entry `index`: in the bytes of one array of cells, and in the file.

        A chunk is a contiguous part of the array: whole planes, whole rows of one plane, or a part of one row.
        """
        key = (name, index)
        if key not in self._places:
            if len(self._places) >= _PLACES_KEPT:
                self._places.clear()
            self._places[key] = self._find_places(name, index)
        return self._places[key]

    def pieces(self, name: str, index: int) -> Iterator[tuple[int, int]]:
        """The positions of the values of entry `index` in the file, in C order: start and bytes of each chunk."""
        array, places = self.array(name), self.places(name, index)
        ends = [start for start, _ in places[1:]] + [prod(array.shape[1:]) * array.dtype.itemsize]
        for (start, place), end in zip(places, ends, strict=True):
            yield place, end - start

    def _find_places(self, name: str, index: int) -> list[tuple[int, int]]:
        array, dataset = self._arrays[name], self._root[name].id
        shape, chunk = array.shape[1:], array.chunks[1:]
        strides = [prod(shape[axis + 1 :]) * array.dtype.itemsize for axis in range(len(shape))]
        return [
            (
                sum(place * stride for place, stride in zip(origin, strides, strict=True)),
                dataset.get_chunk_info_by_coord((index, *origin)).byte_offset,
            )
            for origin in product(*(range(0, n, step) for n, step in zip(shape, chunk, strict=True)))
        ]

    def close(self) -> None:
        """Release the image."""
        self._file.close()

    def _series(self, name: str) -> Series:
        entries = self._root[name]

        def lengthen(steps: h5py.Group, n: int) -> None:
            steps.parent[name].resize(n, axis=0)

        return Series(name, self._find(len(entries), lengthen), entries.id.get_chunk_info(0).byte_offset)

    def _find(self, value: int, change: Any) -> int:
        """The position of an integer, found by having HDF5 add 1 to it in a copy."""
        copy = self.image.copy()
        with h5py.File(copy, "r+") as file:
            change(file[ROOT]["Steps"], value + 1)
        for start, new in copy.parts():
            old = self.image.bytes_at(start, len(new))
            for i in (i for i in range(len(new)) if new[i] != old[i]):
                if old[i : i + 8] == integer(value) and new[i : i + 8] == integer(value + 1):
                    return start + i
        raise ValueError("the number of times was not found in the file")


# HDF5 closes files when the process ends. It would then call Python for an image, after Python has ended, and crash.
_open = WeakSet[Layout]()


@atexit.register
def _close_all() -> None:
    for layout in list(_open):
        layout.close()


def integer(value: int) -> bytes:
    """The bytes of an integer in the file."""
    return np.array(value, _INTEGER).tobytes()
