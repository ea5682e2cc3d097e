"""Single values of many fields on a GPU, with one launch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.reductions.uploads import uploaded

SOURCE = "gather.cu"
_THREADS = 64

# struct Request of gather.cu.
REQUEST = np.dtype([("field", np.uint64), ("cells", np.uint64), ("count", np.uint64), ("first", np.uint64)], align=True)


def gather(device: Device, requests: Sequence[tuple[Any, Any]]) -> list[NDArray[Any]]:
    """The values of selected cells, on the host: one array per request.

    Args:
        device: a GPU.
        requests: pairs of a field and the indices of its cells, a device array of int64; all fields of one precision.
    """
    if not requests:
        return []
    precision = str(requests[0][0].dtype)
    counts = np.array([cells.size for _, cells in requests])
    ends = np.cumsum(counts)
    if not ends[-1]:  # all points lie in planes of other ranks
        return [np.empty(0, precision) for _ in requests]
    table = np.zeros(len(requests), REQUEST)
    table["field"] = [field.data.ptr for field, _ in requests]
    table["cells"] = [cells.data.ptr for _, cells in requests]
    table["count"] = counts
    table["first"] = ends - counts
    on_device = uploaded(device.xp, table)
    results = device.xp.empty(int(ends[-1]), dtype=precision)
    function = compiled.function(SOURCE, "gather", {"REAL": compiled.REAL[precision]})
    function((len(requests),), (_THREADS,), (on_device, results))
    found = device.to_host(results)
    return [found[end - count : end] for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]
