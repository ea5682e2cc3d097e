"""Single values of many fields on a GPU, with one launch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.reductions.launch_batch import uploaded

SOURCE = "gather.cu"
_THREADS = 64

# struct Request of gather.cu.
REQUEST = np.dtype([("field", np.uint64), ("cells", np.uint64), ("count", np.uint64), ("first", np.uint64)], align=True)


class Gather:
    """Selected cells of fields of one precision on a GPU.

    Args:
        device: a GPU.
        requests: pairs of a field and the indices of its cells, a device array of int64; together at least one cell.

    Attributes:
        nbytes: bytes of the results.
    """

    def __init__(self, device: Device, requests: Sequence[tuple[Any, Any]]) -> None:
        self._precision = str(requests[0][0].dtype)
        counts = [int(cells.size) for _, cells in requests]
        table = np.zeros(len(requests), REQUEST)
        table["field"] = [field.data.ptr for field, _ in requests]
        table["cells"] = [cells.data.ptr for _, cells in requests]
        table["count"] = counts
        self._ends: list[int] = np.cumsum(counts).tolist()
        table["first"] = np.array(self._ends) - counts
        self._counts = counts
        self._table = uploaded(device.xp, table)
        self._gather = compiled.function(SOURCE, "gather", {"REAL": compiled.REAL[self._precision]})
        self.nbytes = self._ends[-1] * np.dtype(self._precision).itemsize

    def queue(self, result: Any) -> None:
        """Launch; ``result``: a device array of ``nbytes`` bytes."""
        self._gather((len(self._counts),), (_THREADS,), (self._table, result))

    def read(self, found: NDArray[np.uint8]) -> list[NDArray[Any]]:
        """The values of each request, from the bytes on the host."""
        values = found.view(self._precision)
        return [values[end - count : end] for end, count in zip(self._ends, self._counts, strict=True)]


def gather(device: Device, requests: Sequence[tuple[Any, Any]]) -> list[NDArray[Any]]:
    """The values of selected cells, on the host: one array per request.

    Args:
        device: a GPU.
        requests: pairs of a field and the indices of its cells, a device array of int64; all fields of one precision.
    """
    if not any(cells.size for _, cells in requests):  # all points lie in planes of other ranks
        return [np.empty(0, field.dtype) for field, _ in requests]
    launch = Gather(device, requests)
    result = device.xp.empty(launch.nbytes, dtype=np.uint8)
    launch.queue(result)
    return launch.read(device.to_host(result))
