"""The arrays in a checkpoint, read in parts."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

SLAB_BYTES = 1 << 24


class StoredArrays(Mapping[str, NDArray[Any]]):
    """The arrays in a checkpoint. An access to an array reads it.

    Args:
        path: the file; it must not change.
        names: the names of the arrays.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path = path
        self._names = tuple(names)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name, 0, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def part(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Entries ``first`` to ``last`` − 1 along the first axis of an array."""
        return self._read(name, first, last)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a whole array."""
        with h5py.File(self._path, "r", locking=False) as file:
            shape: tuple[int, ...] = file["arrays"][name].shape
        return shape

    def _read(self, name: str, first: int, last: int | None) -> NDArray[Any]:
        with h5py.File(self._path, "r", locking=False) as file:
            dataset = file["arrays"][name]
            shape, dtype, place = dataset.shape, dataset.dtype, dataset.id.get_offset()
            if not shape or place is None:
                return np.asarray(dataset[first:last] if shape else dataset[()])
        # Not by HDF5, which would stop all threads of Python for the whole time.
        found = np.empty((len(range(*slice(first, last).indices(shape[0]))), *shape[1:]), dtype)
        with open(self._path, "rb", buffering=0) as raw:
            raw.seek(place + first * (dtype.itemsize * prod(shape[1:])))
            left = found.reshape(-1).view(np.uint8).data
            while left and (count := raw.readinto(left[:SLAB_BYTES])):
                left = left[count:]
        return found
