"""Several launches on a GPU whose results come to the host in one copy, with one wait."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import cuda_graphs

# Results begin at multiples of this many bytes.
_ALIGNMENT = 256


class Work(Protocol):
    """Launches with results of a fixed size."""

    @property
    def nbytes(self) -> int:
        """Bytes of the results."""

    def queue(self, result: Any) -> object:
        """Launch; ``result``: a device array of ``nbytes`` bytes."""

    def read(self, found: NDArray[np.uint8]) -> Any:
        """The results from their bytes on the host."""


class Together:
    """Launches that are queued together, as often as wanted; from the second time on as one CUDA graph.

    Args:
        device: a GPU.
        room: a device array of bytes for the results, at least ``length`` of the works.
        works: the launches, in this order.
    """

    def __init__(self, device: Device, room: Any, works: Sequence[Work]) -> None:
        self._device, self._works = device, works
        self._starts, self._length = starts(work.nbytes for work in works)
        self._room = room
        self._results = [room[start : start + work.nbytes] for start, work in zip(self._starts, works, strict=True)]
        self._pinned = device.xp.cuda.alloc_pinned_memory(max(1, self._length))
        self._host = np.frombuffer(self._pinned, np.uint8, self._length)
        self._queued = False
        self._graph: Any = None

    def queue(self) -> None:
        """Launch everything, and the copy to the host."""
        if self._graph is None and self._queued:
            self._graph = cuda_graphs.record(self._device, self._launch)
        if self._graph is not None:
            self._graph.launch()
        else:
            self._launch()  # a first launch may load a kernel, which cannot be recorded
        self._queued = True
        # CuPy does not record copies to the host.
        self._room.data.copy_to_host_async(self._host.ctypes.data, self._length)

    def read(self) -> list[Any]:
        """Wait; return the results of each work."""
        self._device.synchronise()
        found = self._host.copy()  # the next ones overwrite it
        return [
            work.read(found[start : start + work.nbytes]) for start, work in zip(self._starts, self._works, strict=True)
        ]

    def _launch(self) -> None:
        for work, result in zip(self._works, self._results, strict=True):
            work.queue(result)


def starts(sizes: Any) -> tuple[list[int], int]:
    """Where results of some sizes in bytes begin, and the length of all."""
    ends = list(accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes), initial=0))
    return ends[:-1], ends[-1]
