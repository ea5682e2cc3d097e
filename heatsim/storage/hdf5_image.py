"""HDF5 files that are built in memory.

If a write of HDF5 to the disk fails, HDF5 may end the process with a signal. heatsim therefore lets HDF5 build only the
file's structure in memory, and writes the bytes itself, with calls that report errors. Datasets whose values heatsim
writes itself need no memory.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import h5py

_PAGE = 4096

Part = tuple[int, bytes]


class Image(io.RawIOBase):
    """A file in memory that stores only the bytes written to it.

    h5py opens it instead of a path. Its length is the one that HDF5 sets, with the room for values.

    Args:
        parts: the first content.
        length: bytes of the file.
        base: reads (start, count) of bytes that were not written; without it they are zero.
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
        """A copy that can be changed independently; only changed pages need memory."""
        return Image(length=self.length, base=self.bytes_at)

    def put(self, start: int, content: bytes) -> None:
        """Write bytes at a position."""
        self.seek(start)
        self.write(content)

    def parts(self) -> list[Part]:
        """The written bytes in ascending order: the start of each contiguous part, and its bytes."""
        self._written = list(_merged(self._written))
        return [(start, self.bytes_at(start, end - start)) for start, end in self._written]

    def bytes_at(self, start: int, count: int) -> bytes:
        """`count` bytes from a position."""
        content = bytearray(count)
        for page, inside, done, many in self._pages_of(start, count):
            if page in self._pages:
                content[done : done + many] = self._pages[page][inside : inside + many]
            elif self._base is not None:
                piece = self._base(page * _PAGE + inside, many)
                content[done : done + len(piece)] = piece
        return bytes(content)

    def write(self, content: Any) -> int:
        """Write at the current position."""
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
        """Read from the current position."""
        view = memoryview(buffer).cast("B")
        view[:] = self.bytes_at(self._place, len(view))
        self._place += len(view)
        return len(view)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the current position."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.length}[whence]
        return self._place

    def tell(self) -> int:
        """The current position."""
        return self._place

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        self.length = self._place if size is None else size
        return self.length

    @staticmethod
    def _pages_of(start: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """The pages of a range: number, offset in the page, bytes of the range before it, bytes of the range in it."""
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
    """The property list of datasets whose values heatsim writes: allocated early, and not filled by HDF5."""
    storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    storage.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    storage.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    return storage
