"""All statistics of a field that heatsim needs, in one pass, on a GPU or on the CPU.

Sums are computed in float64, in an order that depends only on the number of values. So the same field gives the same
bits on every GPU, and on the CPU with any number of threads. GPU and CPU use different orders: their sums agree to
rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled

SOURCE = "fused.cu"
THREADS = 256  # of a block
FOLDERS = 512  # threads of the one block that combines the chunks
LOADS = 4  # loads of 16 bytes per round
ROUNDS = 8
_CHUNK_BYTES = THREADS * 16 * LOADS * ROUNDS
_CPU_CHUNK = 1 << 15  # values, whose float64 copies stay in a core's cache

# struct Statistics of fused.cu.
STATISTICS = np.dtype(
    [
        *((name, np.float64) for name in ("total", "magnitude", "lowest", "highest", "change")),
        ("not_finite", np.uint64),
    ],
    align=True,
)

# struct Values of fused.cu.
VALUES = np.dtype([("values", np.uint64), ("count", np.uint64)], align=True)


@dataclass(frozen=True)
class Statistics:
    """Statistics of an array of values.

    Attributes:
        total: the sum; not finite if any value is not finite.
        absolute_total: the sum of the magnitudes.
        lowest, highest: the extremes, without NaN; inf and −inf if all values are NaN.
        not_finite: the number of values that are NaN or infinite.
        largest_change: the largest magnitude of the difference from a second array, without NaN; None if there is no
            second array.
    """

    total: float
    absolute_total: float
    lowest: float
    highest: float
    not_finite: int
    largest_change: float | None = None


def combined(parts: Sequence[Statistics]) -> Statistics:
    """The statistics of all values from those of several parts."""
    if len(parts) == 1:
        return parts[0]
    changes = [part.largest_change for part in parts if part.largest_change is not None]
    return Statistics(
        total=fsum(part.total for part in parts),
        absolute_total=fsum(part.absolute_total for part in parts),
        lowest=min(part.lowest for part in parts),
        highest=max(part.highest for part in parts),
        not_finite=sum(part.not_finite for part in parts),
        largest_change=max(changes) if changes else None,
    )


def statistics(device: Device, values: Any, before: Any = None) -> Statistics:
    """One pass over a contiguous float32 or float64 array on its device.

    Args:
        device: the array's device.
        values: the array.
        before: a second array of the same shape and precision, for ``largest_change``.
    """
    if device.backend == "cpu":
        return _on_cpu(values.reshape(-1), None if before is None else before.reshape(-1))
    result = Pass.of(device.xp, values, before).queue()
    return _read(device.to_host(result).view(STATISTICS)[0], before is not None)


def statistics_of_each(device: Device, arrays: Sequence[Any]) -> list[Statistics]:
    """Statistics of several arrays of one precision: on a GPU by two launches for all, to the same bits."""
    if device.backend == "cpu":
        return [_on_cpu(values.reshape(-1), None) for values in arrays]
    if not arrays:
        return []
    xp, precision = device.xp, str(arrays[0].dtype)
    table = np.zeros(len(arrays), VALUES)
    table["values"] = [values.data.ptr for values in arrays]
    table["count"] = [values.size for values in arrays]
    most = max(1, chunks(int(table["count"].max()), precision))
    defined = macros(precision, False, bool(np.all(table["values"] % 16 == 0)))
    on_device = xp.asarray(table.view(np.uint8))
    partial = xp.empty(len(arrays) * most * STATISTICS.itemsize, dtype=np.uint8)
    results = xp.empty(len(arrays) * STATISTICS.itemsize, dtype=np.uint8)
    look = compiled.function(SOURCE, "look_each", defined)
    look((len(arrays) * most,), (THREADS,), (on_device, np.uint32(most), partial))
    fold = compiled.function(SOURCE, "fold_each", defined)
    fold((len(arrays),), (FOLDERS,), (on_device, np.uint32(most), partial, results))
    return [_read(found, False) for found in device.to_host(results).view(STATISTICS)]


def _read(found: Any, compared: bool) -> Statistics:
    """Convert struct Statistics."""
    return Statistics(
        total=float(found["total"]),
        absolute_total=float(found["magnitude"]),
        lowest=float(found["lowest"]),
        highest=float(found["highest"]),
        not_finite=int(found["not_finite"]),
        largest_change=float(found["change"]) if compared else None,
    )


def macros(precision: str, compared: bool, aligned: bool) -> dict[str, str | int]:
    """The macros of fused.cu."""
    return {
        "REAL": compiled.REAL[precision],
        "THREADS": THREADS,
        "FOLDERS": FOLDERS,
        "ROUNDS": ROUNDS,
        "COMPARED": int(compared),
        "ALIGNED": int(aligned),
    }


def chunks(count: int, precision: str) -> int:
    """Blocks of the first launch for ``count`` values: one per chunk."""
    return ceil(count / (_CHUNK_BYTES // np.dtype(precision).itemsize))


@dataclass(frozen=True)
class Pass:
    """The two launches on device arrays.

    Attributes:
        look, fold: the kernels.
        values, before: the arrays; ``before`` may be None.
        partial, result: buffers for struct Statistics of every chunk and of the whole array, as bytes.
    """

    look: Any
    fold: Any
    values: Any
    before: Any
    partial: Any
    result: Any

    @classmethod
    def of(cls, xp: Any, values: Any, before: Any = None) -> "Pass":
        """Compile the kernels and allocate their buffers."""
        precision = str(values.dtype)
        aligned = all(array.data.ptr % 16 == 0 for array in (values, before) if array is not None)
        defined = macros(precision, before is not None, aligned)
        return cls(
            compiled.function(SOURCE, "look", defined),
            compiled.function(SOURCE, "fold", defined),
            values,
            before,
            xp.empty(chunks(values.size, precision) * STATISTICS.itemsize, dtype=np.uint8),
            xp.empty(STATISTICS.itemsize, dtype=np.uint8),
        )

    def queue(self) -> Any:
        """Launch; return the device array that will hold the result."""
        count = int(self.values.size)
        blocks = self.partial.size // STATISTICS.itemsize
        other = self.values if self.before is None else self.before
        self.look((blocks,), (THREADS,), (self.values, other, np.uint64(count), self.partial))
        self.fold((1,), (FOLDERS,), (self.partial, np.uint64(blocks), self.result))
        return self.result


def _on_cpu(values: NDArray[Any], before: NDArray[Any] | None) -> Statistics:
    """Statistics chunk by chunk, so that each value is read from memory once."""
    totals, magnitudes = [], []
    lowest, highest, change, not_finite = inf, -inf, 0.0, 0
    room = np.empty(min(_CPU_CHUNK, values.size))
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, values.size, _CPU_CHUNK):
            chunk = values[first : first + _CPU_CHUNK]
            exact = room[: chunk.size]
            exact[...] = chunk
            totals.append(float(exact.sum()))
            np.abs(exact, out=exact)
            magnitudes.append(float(exact.sum()))
            if not np.isfinite(magnitudes[-1]):
                not_finite += chunk.size - int(np.count_nonzero(np.isfinite(chunk)))
            # fmin and fmax ignore NaN.
            low, high = float(np.fmin.reduce(chunk)), float(np.fmax.reduce(chunk))
            lowest, highest = min(lowest, low), max(highest, high)
            if before is not None:
                np.subtract(chunk, before[first : first + _CPU_CHUNK], out=exact)
                difference = float(np.fmax.reduce(np.abs(exact, out=exact)))
                change = max(change, difference)
        found = Statistics(float(np.sum(totals)), float(np.sum(magnitudes)), lowest, highest, not_finite)
    return found if before is None else replace(found, largest_change=change)
