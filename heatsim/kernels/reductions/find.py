"""The first cell with a given value of each of many fields: on a GPU with one launch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.reductions.launch_batch import uploaded
from heatsim.kernels.reductions.statistics import STATISTICS

SOURCE = "find.cu"
THREADS = 256
CHUNK = 1 << 15  # cells of a block
MOST_PARTS = 256  # of a field in a search for an extreme; the numbers of parts are bytes

_NO_PARTS = (0,) * (MOST_PARTS // 32)

# struct Wanted of find.cu.
WANTED = np.dtype(
    [
        *((name, np.uint64) for name in ("field", "labels", "count")),
        ("value", np.float64),
        ("found", np.uint64),
        *((name, np.uint32) for name in ("mask", "label", "sections", "parts")),
        ("chosen", np.uint32, MOST_PARTS // 32),
        *((name, np.uint32) for name in ("highest", "of_part")),
    ],
    align=True,
)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Restricts a search to the cells with a certain label.

    Attributes:
        labels: bytes of all cells on the device.
        mask: the bits of a label that count.
        label: the value of these bits. None in a search for an extreme: then it is the first part that has the extreme.
    """

    labels: Any
    mask: int
    label: int | None


@dataclass(frozen=True)
class ExtremeOf:
    """The extreme of some parts, from statistics that only the device has yet.

    Attributes:
        parts: the numbers of the parts, each less than MOST_PARTS.
        highest: True for the highest value, False for the lowest.
    """

    parts: tuple[int, ...]
    highest: bool

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """A bit for each part, in words of 32 bits."""
        words = [0] * (MOST_PARTS // 32)
        for part in self.parts:
            words[part // 32] |= 1 << part % 32
        return tuple(words)


@dataclass(frozen=True, eq=False)
class Search:
    """A search for the first cell of a field.

    Attributes:
        field: a contiguous device array.
        value: the number to search for, which a cell must have; or an extreme.
        among: the cells to search; None for all cells.
        found: for an extreme, the device array of STATISTICS that contains it, shape (sections, parts); else None.
        parts: the number of parts in ``found``.
    """

    field: Any
    value: float | ExtremeOf
    among: Labelled | None = None
    found: Any = None
    parts: int = 1


class Searches:
    """Several searches in fields of one precision on a GPU, with one launch.

    Attributes:
        nbytes: bytes of the results.
    """

    def __init__(self, device: Device, searches: Sequence[Search]) -> None:
        table = np.array([_row(search) for search in searches], WANTED)
        self._chunks = ceil(int(table["count"].max()) / CHUNK)
        self._count = len(searches)
        # Rows of a run have the same addresses but other values.
        recurs = all(isinstance(search.value, ExtremeOf) for search in searches)
        self._table = uploaded(device.xp, table) if recurs else device.xp.asarray(table.view(np.uint8))
        precision = str(searches[0].field.dtype)
        self._find = compiled.function(SOURCE, "find", macros(precision))
        self.nbytes = self.most_bytes(self._count, int(table["count"].max()))

    @staticmethod
    def most_bytes(searches: int, cells: int) -> int:
        """Bytes of the results of searches in fields of at most ``cells`` cells."""
        return 8 * searches * ceil(cells / CHUNK)

    def queue(self, result: Any) -> None:
        """Launch; ``result``: a device array of ``nbytes`` bytes."""
        blocks = self._count * self._chunks
        self._find((blocks,), (THREADS,), (self._table, np.uint32(self._chunks), result))

    def read(self, found: NDArray[np.uint8]) -> list[int]:
        """The index of the first cell of each search, from the bytes on the host; a huge number if no cell fits."""
        cells: list[int] = found.view(np.uint64).reshape(self._count, self._chunks).min(axis=1).tolist()
        return cells


def macros(precision: str) -> dict[str, str | int]:
    """The macros of find.cu."""
    return {"REAL": compiled.REAL[precision], "THREADS": THREADS, "CHUNK": CHUNK, "PARTS": MOST_PARTS}


def first_of_each(
    device: Device, fields: Sequence[Any], values: Sequence[float], among: Sequence[Labelled | None] | None = None
) -> list[int]:
    """The index of the first cell of each flattened field that equals its value.

    Args:
        device: of the fields.
        fields: contiguous arrays of one precision.
        values: for each field a number that one of its cells has.
        among: the cells to search in each field, or None for all its cells; None to search all cells of all fields.

    Raises:
        ValueError: on the CPU, no cell has it.
    """
    among = among or [None] * len(fields)
    each = list(zip(fields, values, among, strict=True))
    if device.backend == "cpu":
        return [_on_cpu(field.reshape(-1), value, labelled) for field, value, labelled in each]
    searches = Searches(device, [Search(field, value, labelled) for field, value, labelled in each])
    result = device.xp.empty(searches.nbytes, dtype=np.uint8)
    searches.queue(result)
    return searches.read(device.to_host(result))


def _row(search: Search) -> tuple[Any, ...]:
    """A row of WANTED."""
    field, value, among, found = search.field, search.value, search.among, search.found
    labels, mask, label = (0, 0, 0) if among is None else (among.labels.data.ptr, among.mask, among.label or 0)
    where = field.data.ptr, labels, field.size
    if not isinstance(value, ExtremeOf):
        return *where, value, 0, mask, label, 0, 0, _NO_PARTS, 0, 0
    sections = found.nbytes // (STATISTICS.itemsize * search.parts)
    of_part = among is not None and among.label is None
    return *where, 0.0, found.data.ptr, mask, label, sections, search.parts, value.bits, value.highest, of_part


def _on_cpu(field: NDArray[Any], value: float, among: Labelled | None) -> int:
    labels = None if among is None else among.labels.reshape(-1)
    for first in range(0, field.size, CHUNK):
        equal = field[first : first + CHUNK] == value
        if among is not None and labels is not None:
            equal &= labels[first : first + CHUNK] & np.uint8(among.mask) == among.label
        place = int(equal.argmax())
        if equal[place]:
            return first + place
    raise ValueError(f"no cell has the value {value!r}")
