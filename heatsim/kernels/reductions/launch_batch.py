"""Run several launches on a GPU with one copy of all results to the host, and one wait."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import cuda_graphs

_MOST = 64

_kept: "OrderedDict[tuple[int, bytes], Any]" = OrderedDict()


def uploaded(xp: Any, table: NDArray[Any]) -> Any:
    """The bytes of a table as an array of ``xp``. Equal tables share it, so it must not be changed."""
    content = table.tobytes()
    key = (id(xp), content)
    found = _kept.pop(key, None)
    if found is None:
        found = xp.asarray(np.frombuffer(content, np.uint8))
    _kept[key] = found
    if len(_kept) > _MOST:
        _kept.popitem(last=False)
    return found


# Results begin at multiples of this many bytes.
_ALIGNMENT = 256


class BatchedLaunch(Protocol):
    """One or more launches with results of a fixed size."""

    @property
    def nbytes(self) -> int:
        """Bytes of the results."""

    def queue(self, result: Any) -> object:
        """Launch; ``result``: a device array of ``nbytes`` bytes."""

    def read(self, found: NDArray[np.uint8]) -> Any:
        """The results from their bytes on the host."""


class LaunchBatch:
    """Launches that are queued together, any number of times. The second time they are recorded as a CUDA graph.

    Args:
        device: a GPU.
        buffer: a device array of bytes for the results; :func:`offsets` gives the length it needs.
        works: the launches, in the order in which they run.

    Attributes:
        sizes: bytes of the results of each work.
    """

    def __init__(self, device: Device, buffer: Any, works: Sequence[BatchedLaunch]) -> None:
        self._device, self._works = device, works
        self.sizes = tuple(work.nbytes for work in works)
        self._starts, self._length = offsets(self.sizes)
        self._buffer = buffer
        self._results = [buffer[start : start + work.nbytes] for start, work in zip(self._starts, works, strict=True)]
        self._pinned = device.xp.cuda.alloc_pinned_memory(max(1, self._length))
        self._host = np.frombuffer(self._pinned, np.uint8, self._length)
        self._address: int = self._host.ctypes.data
        self._wait: Callable[[], None] | None = None
        self._graph: Any = None
        self._launched = False

    @property
    def nbytes(self) -> int:
        """Bytes of the results of all works, with the gaps between them."""
        return self._length

    def queue(self) -> None:
        """Queue all launches, and the copy of the results to the host."""
        self._queue_launches()
        # CuPy does not record copies to the host.
        self._buffer.data.copy_to_host_async(self._address, self._length)
        self._wait = self._device.record_event()

    def queue_to(self, results: Any) -> None:
        """Queue all launches, and the copy of the results to another device array of ``nbytes`` bytes."""
        self._queue_launches()
        results.data.copy_from_device_async(self._buffer.data, self._length)

    def parts(self, results: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        """The bytes of each work, from those of :meth:`queue_to` of several times, shape (times, bytes)."""
        return [
            np.ascontiguousarray(results[:, start : start + work.nbytes])
            for start, work in zip(self._starts, self._works, strict=True)
        ]

    def _queue_launches(self) -> None:
        if self._graph is None and self._launched:
            self._graph = cuda_graphs.record(self._device, self._launch)
        if self._graph is not None:
            self._graph.launch()
        else:
            self._launch()  # the first launch may load a kernel, and loading cannot be recorded
        self._launched = True

    def read(self) -> list[Any]:
        """Wait for the copy, but not for later work. Returns the results of each work; call :meth:`queue` before."""
        assert self._wait is not None, "nothing was queued"
        self._wait()
        found = self._host.copy()  # the next results overwrite it
        return [
            work.read(found[start : start + work.nbytes]) for start, work in zip(self._starts, self._works, strict=True)
        ]

    def _launch(self) -> None:
        for work, result in zip(self._works, self._results, strict=True):
            work.queue(result)


def offsets(sizes: Any) -> tuple[list[int], int]:
    """The offset of each result in the buffer, and the length of the buffer, in bytes; ``sizes``: of the results."""
    ends = list(accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes), initial=0))
    return ends[:-1], ends[-1]
