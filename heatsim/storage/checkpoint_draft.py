"""A checkpoint while it is written: the structure that HDF5 builds in memory, and the places of the arrays in the file.

Rank 0 has the draft. Every rank writes its own part of the large arrays; rank 0 writes the rest, combines the
checksums, and writes the header, which makes the file valid.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.storage.checksums import Summed, WrittenSum, combined
from heatsim.storage.disk import reserve
from heatsim.storage.hdf5_image import Image, Part, early_without_fill
from heatsim.storage.system import File

BLOCK = 512
# The text of the values is filled up with spaces to a multiple of this, so that few structures differ.
_TEXT_BYTES = 1024
_KEPT = 4

# The start of a part of the file, and its content.
Segment = tuple[int, "bytes | Pieces"]
Value = int | float | str | bool


@dataclass(frozen=True)
class Pieces:
    """An array that is read in pieces.

    Attributes:
        shape, dtype: of the whole array, which has at least one axis and one value.
        read: yields contiguous pieces of the values in C order; each is used before the next is requested.
        first: where along the first axis the values of this rank begin.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike
    read: Callable[[], Iterable[NDArray[Any]]]
    first: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def start(self) -> int:
        """The byte of the whole array at which the values of this rank begin."""
        return self.first * (self.nbytes // self.shape[0])

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Pieces":
        """The one piece of an array in memory."""
        return cls(array.shape, array.dtype, lambda: [array])

    def whole(self) -> NDArray[Any]:
        """All values, in memory."""
        return np.concatenate([np.ravel(piece) for piece in self.read()]).astype(self.dtype).reshape(self.shape)


class Draft:
    """A new file, with space for everything.

    Args:
        part: the path of the file until it is valid.
        arrays, values, files: as in `Checkpoint`.
        large: arrays that all ranks write; ``late``: arrays to be read as late as possible.

    Attributes:
        file: the open file.
        places: the position of each large array in the file, by name.

    Raises:
        OSError: the disk refused.
        TypeError: one of ``values`` cannot be stored.
    """

    def __init__(
        self,
        part: Path,
        arrays: Mapping[str, NDArray[Any]],
        values: Mapping[str, Value],
        large: Mapping[str, Pieces],
        late: Mapping[str, Pieces],
    ) -> None:
        for name, value in values.items():
            if not isinstance(value, Value):
                raise TypeError(f"checkpoint value {name!r} is a {type(value).__name__}, not a number or a text")
        text = json.dumps(dict(values), ensure_ascii=False).encode()
        text += b" " * (-len(text) % _TEXT_BYTES)
        own = {name: Pieces.of(array) for name, array in arrays.items()}
        structure = _structure(len(text), _kinds(own), _kinds(large), _kinds(late))
        image = Image(structure.parts, structure.length)
        image.put(structure.text, text)
        for name, array in arrays.items():
            image.put(structure.own[name], array.tobytes())
        self.places = dict(structure.large)
        self._lengths = {self.places[name]: pieces.nbytes for name, pieces in large.items()}
        segments: list[Segment] = [(start, content) for start, content in image.parts() if start >= BLOCK]
        segments += [(structure.large[name], pieces) for name, pieces in large.items()]
        segments += [(structure.late[name], pieces) for name, pieces in late.items()]
        self._segments = sorted(segments, key=lambda segment: segment[0])
        self.length = structure.length
        self.file = File.create(part)
        try:
            reserve(self.file, self.length)
        except OSError:
            self.file.close()
            raise

    def complete(self, of_ranks: Sequence[Mapping[str, Summed]]) -> int:
        """Write everything but the large arrays, and return the checksum of the file behind the block.

        Args:
            of_ranks: what :func:`fill` returned for the large arrays, in the order of the ranks.
        """
        sums = {place: [of_rank[name] for of_rank in of_ranks] for name, place in self.places.items()}
        end, checksum = BLOCK, 0
        for start, content in [*self._segments, (self.length, b"")]:
            checksum, end = zlib.crc32(bytes(start - end), checksum), start
            if start in sums:
                checksum, end = combined(sums[start], checksum), end + self._lengths[start]
            else:
                for piece in content.read() if isinstance(content, Pieces) else [np.frombuffer(content, np.uint8)]:
                    values = np.ascontiguousarray(piece).data.cast("B")
                    self.file.write(end, values)
                    checksum, end = zlib.crc32(values, checksum), end + values.nbytes
        return checksum


def fill(file: File, start: int, pieces: Iterable[NDArray[Any]]) -> Summed:
    """Write contiguous pieces of an array to a file from a position on. Returns their checksum and length."""
    end = start
    with WrittenSum() as written:
        for piece in pieces:
            content = np.ascontiguousarray(piece).data.cast("B")
            written.add(content, partial(file.write, end, content))
            end += content.nbytes
    return written.checksum, end - start


@dataclass(frozen=True)
class _Structure:
    """A file without values.

    Attributes:
        parts: its bytes; those of the text and of the rank's own arrays are spaces and zeros.
        length: of the file in bytes.
        text: the position of the text of the values.
        own, large, late: the positions of the arrays of each sort, by name.
    """

    parts: list[Part]
    length: int
    text: int
    own: Mapping[str, int]
    large: Mapping[str, int]
    late: Mapping[str, int]


# For each array its name, its shape and its type.
_Kinds = tuple[tuple[str, tuple[int, ...], str], ...]


def _kinds(arrays: Mapping[str, Pieces]) -> _Kinds:
    return tuple((name, pieces.shape, np.dtype(pieces.dtype).str) for name, pieces in arrays.items())


@lru_cache(maxsize=_KEPT)
def _structure(text: int, own: _Kinds, large: _Kinds, late: _Kinds) -> _Structure:
    """The structure of a file whose text has ``text`` bytes.

    The last ones are kept: the runs of a study write files of equal structure, and HDF5 needs milliseconds for one.
    """
    image = Image()
    with h5py.File(image, "w", userblock_size=BLOCK) as file:
        values = file.create_dataset("values", data=b" " * text, dtype=h5py.string_dtype("utf-8", text))
        place = values.id.get_offset()
        arrays, files = file.create_group("arrays"), file.create_group("files")
        with_values = {
            name: arrays.create_dataset(name, data=np.zeros(shape, dtype)).id.get_offset() for name, shape, dtype in own
        }
        places = [
            {name: _add(group, name, shape, dtype) for name, shape, dtype in kinds}
            for group, kinds in ((arrays, large), (files, late))
        ]
    return _Structure(image.parts(), image.length, place, with_values, *places)


def _add(group: h5py.Group, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """Add an array to a group without values. Returns the position of its values in the file."""
    dataset = group.create_dataset(name, shape=shape, dtype=dtype, dcpl=early_without_fill())
    place: int = dataset.id.get_offset()
    return place
