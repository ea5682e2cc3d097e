"""HDF5 files that HDF5 builds in memory.

HDF5 ends the process with a signal where its own write to a disk fails. So it never writes to one: it builds the file's
structure here, and heatsim writes the bytes, with calls whose errors it sees. Datasets whose values heatsim writes to
their places itself take no memory.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import h5py

_PAGE = 4096

Part = tuple[int, bytes]


class Image(io.RawIOBase):
    """A file in memory that keeps only what was written to it.

    h5py opens it in place of a path. It has the length that HDF5 gave it, room for values included.

    Args:
        parts: what it holds at first.
        length: bytes of the file.
        base: reads (start, count) what was not written; without it that reads as zeros.
    """

    def __init__(
        self, parts: Iterable[Part] = (), length: int = 0, base: Callable[[int, int], bytes] | None = None
    ) -> None:
        super().__init__()
        self.length = 0
        self._base = base
        self._pages: dict[int, bytearray] = {}
        self._written: list[tuple[int, int]] = []
        self._place = 0
        for start, content in parts:
            self.put(start, content)
        self.length = max(self.length, length)

    def copy(self) -> "Image":
        """A copy that can be changed by itself; only what is changed there takes memory."""
        return Image(length=self.length, base=self.bytes_at)

    def put(self, start: int, content: bytes) -> None:
        """Write bytes to a place."""
        self.seek(start)
        self.write(content)

    def parts(self) -> list[Part]:
        """What was written, in ascending order: where each contiguous part begins, and its bytes."""
        self._written = list(_merged(self._written))
        return [(start, self.bytes_at(start, end - start)) for start, end in self._written]

    def bytes_at(self, start: int, count: int) -> bytes:
        """The bytes from a place on."""
        content = bytearray(count)
        for page, inside, done, many in self._pages_of(start, count):
            if page in self._pages:
                content[done : done + many] = self._pages[page][inside : inside + many]
            elif self._base is not None:
                piece = self._base(page * _PAGE + inside, many)
                content[done : done + len(piece)] = piece
        return bytes(content)

    def write(self, content: Any) -> int:
        """Write to the current place."""
        view = memoryview(content).cast("B")
        for page, inside, done, many in self._pages_of(self._place, len(view)):
            if page not in self._pages:
                self._pages[page] = bytearray(self.bytes_at(page * _PAGE, _PAGE))
            self._pages[page][inside : inside + many] = view[done : done + many]
        self._written.append((self._place, self._place + len(view)))
        self._place += len(view)
        self.length = max(self.length, self._place)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        """Read from the current place."""
        view = memoryview(buffer).cast("B")
        view[:] = self.bytes_at(self._place, len(view))
        self._place += len(view)
        return len(view)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the current place."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.length}[whence]
        return self._place

    def tell(self) -> int:
        """The current place."""
        return self._place

    def truncate(self, size: int | None = None) -> int:
        """Give the file a length."""
        self.length = self._place if size is None else size
        return self.length

    def readable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    @staticmethod
    def _pages_of(start: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Page, place in it, bytes before it and bytes in it of each piece of a range."""
        done = 0
        while done < count:
            page, inside = divmod(start + done, _PAGE)
            many = min(_PAGE - inside, count - done)
            yield page, inside, done, many
            done += many


def _merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    found: tuple[int, int] | None = None
    for start, end in sorted(ranges):
        if found is None or start > found[1]:
            if found is not None:
                yield found
            found = (start, end)
        else:
            found = (found[0], max(found[1], end))
    if found is not None:
        yield found


def early_without_fill() -> h5py.h5p.PropDCID:
    """For datasets whose values heatsim writes: they have their place from the start, and HDF5 fills nothing."""
    storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    storage.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    storage.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return storage
