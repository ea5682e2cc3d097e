"""All statistics of arrays that heatsim needs, in one pass, on a GPU or on the CPU.

Arrays are cut into sections: a field between the groups of planes of :class:`heatsim.grid.PlaneGroups`, the sums of a
ledger at the same planes. Labels may divide the values into parts, such as the cell types of a body. The pass gives
STATISTICS for each part of each section; :func:`heatsim.kernels.reductions.statistics.combined` combines them. Values
of cells with unequal volumes have weights, which count in all sums.

Sums are formed in float64, in an order that depends only on the length of the section and on its labels. So the same
values give the same bits on every GPU, and on the CPU with any number of threads. GPU and CPU use different orders:
their sums agree to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.cpu.oracle import share_rows
from heatsim.kernels.reductions.launch_batch import uploaded
from heatsim.kernels.reductions.statistics import NUMBERS, STATISTICS, Partials, Statistics, combined

SOURCE = "fused.cu"
THREADS = 256  # of a block
WARP = 32  # threads of the block that combines the chunks of a section
LOADS = 4  # loads of 16 bytes per round
ROUNDS = 8
LABELLED = 16  # values of a thread, if there are labels
_CHUNK_BYTES = THREADS * 16 * LOADS * ROUNDS
_WINDOW = 64  # parts that a block handles; further blocks handle further parts

_LIGHTER = 16  # a cell is this many times less work than in a step, so threads need more cells to be worthwhile

# struct Section of fused.cu.
SECTION = np.dtype([(name, np.uint64) for name in ("values", "before", "labels", "count")])
WEIGHTED_SECTION = np.dtype(
    SECTION.descr + [(name, SECTION["values"].str) for name in ("across", "along", "plane", "place")]
)
# struct Part of fused.cu.
PART = np.dtype([(name, np.float64) for name in ("per_kelvin", "first", "last", "base", "solidus", "melting")])
_TYPES = {"uint8": "unsigned char", "uint16": "unsigned short"}


@dataclass(frozen=True, eq=False)
class Thermometers:
    """Tables that give temperatures from contents (heatsim/physics/matter/enthalpy.py), on the device of the values.

    Attributes:
        parts: for each part its table, its solidus and its melting range in K, of type PART.
        temperatures: T − T_ref in K at the nodes of all tables, without the last one of each.
        rises: their differences to the next node.
    """

    parts: Any
    temperatures: Any
    rises: Any


@dataclass(frozen=True, eq=False)
class Labelling:
    """How labels divide values into parts.

    Attributes:
        parts: their number.
        mask: the bits of a label that are the number of its part.
        thermometers: tables for sums of temperatures and liquid parts; None if these sums are not needed.
    """

    parts: int = 1
    mask: int = 0xFFFF
    thermometers: Thermometers | None = None


WHOLE = Labelling()


@dataclass(frozen=True, eq=False)
class PlaneWeights:
    """What values count for in sums: that at index i counts across[i mod n]·along[i // n] times, n = len(across).

    Attributes:
        across: for each value of a plane, float64 on the device of the values.
        along: for each plane, the same.
    """

    across: Any
    along: Any


@dataclass(frozen=True, eq=False)
class Sections:
    """An array in sections.

    Attributes:
        values: a contiguous float32 or float64 array on its device.
        bounds: the index of the first value of each section, and the end of the last one; ascending.
        labels: an unsigned array of the same length on the device; None if all values belong to part 0.
        before: an array like ``values`` to find the largest change from, for the first part; None if not needed.
        weights: those of the values; None to count all of them alike.
    """

    values: Any
    bounds: NDArray[np.int64]
    labels: Any = None
    before: Any = None
    weights: PlaneWeights | None = None

    @property
    def count(self) -> int:
        """Number of sections."""
        return len(self.bounds) - 1


def statistics(device: Device, arrays: Sequence[Sections], division: Labelling = WHOLE) -> list[list[Statistics]]:
    """The statistics of each part of several arrays of one precision; on a GPU with the same launches for all."""
    return [combined(found) for found in partials(device, arrays, division)]


def partials(device: Device, arrays: Sequence[Sections], division: Labelling = WHOLE) -> list[Partials]:
    """STATISTICS of each section and part of several arrays of one precision, on the host, shape (sections, parts).

    All labels have the same type. Either all arrays have ``before``, or none has; the same holds for ``weights``.
    """
    if device.backend == "cpu":
        return [_on_cpu(array, division) for array in arrays]
    launches = Pass.of(device.xp, arrays, division)
    return list(launches.read(device.to_host(launches.queue())))


def macros(
    precision: str,
    compared: bool,
    aligned: bool,
    division: Labelling = WHOLE,
    label: str | None = None,
    *,
    weighted: bool = False,
) -> dict[str, str | int]:
    """The macros of fused.cu; ``label``: the type of the labels, None if there are none."""
    return {
        "REAL": compiled.REAL[precision],
        "THREADS": THREADS,
        "ROUNDS": ROUNDS,
        "COMPARED": int(compared),
        "ALIGNED": int(aligned),
        "LABEL": _TYPES[label] if label else "unsigned char",
        "LABELLED": LABELLED if label else 0,
        "WINDOW": _WINDOW,
        "THERMOMETERS": int(division.thermometers is not None),
        "WEIGHTED": int(weighted),
    }


def chunk_length(precision: str, labelled: bool = False) -> int:
    """The number of values of a section that a block handles."""
    return THREADS * LABELLED if labelled else _CHUNK_BYTES // np.dtype(precision).itemsize


@dataclass(frozen=True, eq=False)
class Pass:
    """Launches that find the statistics of sections of device arrays.

    Attributes:
        look, fold: the kernels; ``fold`` combines the chunks of a section, if there are several.
        counts: the number of sections of each array. The arrays themselves are not kept.
        division: how their cells are divided into parts.
        table: struct Section of all sections, as bytes.
        chunks: the number of blocks of each section.
        workspaces: device arrays for the statistics of chunks, by size. Passes that never run at once may share them.
    """

    look: Any
    fold: Any
    counts: Sequence[int]
    division: Labelling
    table: Any
    chunks: int
    xp: Any
    workspaces: dict[int, Any]

    @classmethod
    def of(
        cls, xp: Any, arrays: Sequence[Sections], division: Labelling = WHOLE, workspaces: dict[int, Any] | None = None
    ) -> "Pass":
        """Compile the kernels and upload the table of sections. ``workspaces``: those to share; None for new ones."""
        first = arrays[0]
        precision = str(first.values.dtype)
        label = next((str(array.labels.dtype) for array in arrays if array.labels is not None), None)
        if division.thermometers is not None and label is None:
            label = "uint8"
        size = np.dtype(precision).itemsize
        weighted = first.weights is not None
        table = np.zeros(sum(array.count for array in arrays), WEIGHTED_SECTION if weighted else SECTION)
        for array, end in zip(arrays, accumulate(array.count for array in arrays), strict=True):
            _fill(table[end - array.count : end], array, size)
        aligned = not (np.any(table["values"] % 16) or np.any(table["before"] % 16))
        defined = macros(precision, first.before is not None, aligned, division, label, weighted=weighted)
        longest = int(table["count"].max(initial=0))
        return cls(
            compiled.function(SOURCE, "look", defined),
            compiled.function(SOURCE, "fold", defined),
            [array.count for array in arrays],
            division,
            uploaded(xp, table),
            max(1, ceil(longest / chunk_length(precision, label is not None))),
            xp,
            {} if workspaces is None else workspaces,
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the results."""
        return sum(self.counts) * self.division.parts * STATISTICS.itemsize

    @property
    def _workspace(self) -> Any:
        """The device array for the statistics of chunks, used if sections have several chunks."""
        size = self.nbytes * self.chunks
        if size not in self.workspaces:
            self.workspaces[size] = self.xp.empty(size, dtype=np.uint8)
        return self.workspaces[size]

    def queue(self, result: Any = None) -> Any:
        """Launch; return the device array that will hold STATISTICS of each section and part, as bytes.

        Args:
            result: this array; None for a new one.
        """
        if result is None:
            result = self.xp.empty(self.nbytes, dtype=np.uint8)
        sections = sum(self.counts)
        if not sections:  # a rank may have no sums; CuPy would launch one block
            return result
        tables = self.division.thermometers
        thermometers = () if tables is None else (tables.parts, tables.temperatures, tables.rises)
        numbers = (np.uint32(self.chunks), np.uint32(self.division.parts), np.uint32(self.division.mask))
        windows = ceil(self.division.parts / _WINDOW)
        partial = result if self.chunks == 1 else self._workspace
        self.look((sections * self.chunks, windows), (THREADS,), (self.table, *numbers, *thermometers, partial))
        if self.chunks > 1:
            self.fold((sections, self.division.parts), (WARP,), (self.table, np.uint32(self.chunks), partial, result))
        return result

    def read(self, found: NDArray[np.uint8]) -> Sequence[Partials]:
        """STATISTICS of the sections and parts of each array, from the bytes on the host.

        One array of shape (arrays, sections, parts) if all of them have equal numbers of sections.
        """
        rows = found.view(STATISTICS).reshape(-1, self.division.parts)
        if len(set(self.counts)) == 1:
            together: Any = rows.reshape(len(self.counts), self.counts[0], self.division.parts)
            return together  # type: ignore[no-any-return]
        return [rows[end - count : end] for end, count in zip(accumulate(self.counts), self.counts, strict=True)]


def _fill(table: NDArray[Any], array: Sections, size: int) -> None:
    """Fill ``table``, which holds zeros, with the sections of an array for fused.cu; its values have ``size`` bytes."""
    starts = array.bounds[:-1].astype(np.uint64)
    table["values"] = starts * np.uint64(size) + np.uint64(array.values.data.ptr)
    table["count"] = array.bounds[1:] - array.bounds[:-1]
    if array.before is not None:
        table["before"] = starts * np.uint64(size) + np.uint64(array.before.data.ptr)
    if array.labels is not None:
        table["labels"] = starts * np.uint64(array.labels.dtype.itemsize) + np.uint64(array.labels.data.ptr)
    if array.weights is not None and len(starts):
        across, along = array.weights.across, array.weights.along
        table["plane"] = across.size
        planes, table["place"] = np.divmod(starts, np.uint64(across.size))
        table["across"], table["along"] = across.data.ptr, planes * np.uint64(8) + np.uint64(along.data.ptr)


def _on_cpu(array: Sections, division: Labelling) -> Partials:
    from heatsim.kernels.reductions import cpu_fused

    values, parts, tables = array.values.reshape(-1), division.parts, division.thermometers
    labels = np.empty(0, np.uint8) if array.labels is None else array.labels.reshape(-1)
    mask = labels.dtype.type(division.mask & np.iinfo(labels.dtype).max)
    found = np.empty((array.count, parts, NUMBERS))
    across, along = (None, None) if array.weights is None else (array.weights.across, array.weights.along)
    given = values, labels, mask, array.bounds, across, along

    def work(first: int, end: int) -> None:
        room, seen = np.empty((parts, 4, cpu_fused.LANES)), np.empty(parts, np.uint8)
        cpu_fused.look(*given, room, seen, found, first, end)
        if tables is not None:
            of_part = tables.parts.reshape(-1, 6), tables.temperatures, tables.rises
            cpu_fused.add_degrees(*given, *of_part, found, first, end)
        if array.before is not None:
            cpu_fused.find_changes(values, array.before.reshape(-1), array.bounds, found, first, end)

    share_rows(work, array.count, values.size // _LIGHTER)
    return found.view(STATISTICS)[..., 0]
