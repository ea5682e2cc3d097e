"""Sweep after sweep on a GPU, in recorded runs: where a sweep takes microseconds, a launch from Python takes longer.

A run of an even number of sweeps ends in the buffer that it began in, so that what has been recorded once as a CUDA
graph can be launched again and again. What changes from step to step, struct Sweep, is read through a pointer. Recorded
kernels read it from a window of fixed address, and before each launch of the graph its contents are copied there:

        table of the steps to come    | . . . . | next run | . . . . . . |
                                                     │ copied on the device
        window                                  | next run |  ◄── read by the graph's kernels

Coefficients, pointers and launch shapes are part of what is recorded; there is a graph for each of them that comes up.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels.launch import CudaKernel, Launch

# Sweeps of a recorded run, each a multiple of the next: few launches do any number of sweeps. The longest keeps a GPU
# busy for as long as Python takes to queue the next, the shortest is worth more than what copying the window takes.
RUNS = (256, 64, 16, 4)
# Cells beyond which a sweep takes longer than its launch from Python, on any GPU.
LARGEST_GRID = 1 << 24
_MOST_GRAPHS = 32
_MOST_WANTED = 1024


@dataclass(frozen=True)
class Sweeps:
    """What stays the same from sweep to sweep.

    Attributes:
        kernel: what does them.
        launches: of one sweep.
        coefficients: struct Coefficients.
        ledger: struct Ledger.
    """

    kernel: CudaKernel
    launches: Sequence[Launch]
    coefficients: NDArray[Any]
    ledger: NDArray[Any]

    @property
    def sweep_bytes(self) -> int:
        """Bytes of struct Sweep of all steps of a sweep."""
        build = self.kernel.build
        return build.spec.steps * build.sweep_dtype.itemsize

    def queue(self, count: int, T: Any, T_new: Any, address: int) -> tuple[Any, Any]:
        """Launch so many; the first struct Sweep is at the address. Returns the buffers in their roles afterwards."""
        for sweep in range(count):
            self.kernel(self.launches, T, T_new, self.coefficients, address + sweep * self.sweep_bytes, self.ledger)
            T, T_new = T_new, T
        return T, T_new

    def recorded_from(self, T: Any, count: int) -> Hashable:
        """All that a recording of so many sweeps depends on; the launches follow from the kernel and its grid."""
        return self.kernel.build, int(T.data.ptr), count, self.coefficients.tobytes(), self.ledger.tobytes()


def record(device: Device, work: Callable[[], object]) -> Any:
    """A CUDA graph of the launches that ``work`` makes; its ``launch()`` queues them all."""
    # Not the default stream, which cannot be recorded, nor one that waits for it.
    stream = device.xp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        work()
        return stream.end_capture()


class CudaGraphs:
    """Queues sweeps on one grid.

    Attributes:
        recording: whether runs are recorded; if not, every sweep is launched on its own.
    """

    def __init__(self, device: Device, cells: int) -> None:
        self.recording = cells <= LARGEST_GRID
        self._device = device
        self._graphs: dict[Hashable, Any] = {}
        self._wanted: set[Hashable] = set()
        self._window: Any = None

    def advance(self, sweeps: Sweeps, T: Any, T_new: Any, table: Any) -> tuple[Any, Any]:
        """Queue as many sweeps as the table has steps for.

        Args:
            sweeps: what they have in common.
            T: the field, a device array.
            T_new: the buffer that the first of them writes.
            table: struct Sweep of every step, a device array of bytes; whole sweeps.

        Returns:
            The buffer that holds the field afterwards, and the other one.
        """
        size = sweeps.sweep_bytes
        first, last = 0, int(table.size) // size
        for count in RUNS if self.recording else ():
            while last - first >= count:
                steps = table[first * size : (first + count) * size]
                key = sweeps.recorded_from(T, count)
                graph = self._graph(key, sweeps, T, T_new, count)
                if graph is not None:
                    self._window.data.copy_from_device_async(steps.data, count * size)
                    graph.launch()
                else:
                    sweeps.queue(count, T, T_new, int(steps.data.ptr))
                first += count
        return sweeps.queue(last - first, T, T_new, int(table.data.ptr) + first * size)

    def _graph(self, key: Hashable, sweeps: Sweeps, T: Any, T_new: Any, count: int) -> Any:
        """A run, recorded when it is wanted for the second time; None at the first.

        Recording takes as long as launching, so what is wanted once is launched; and a kernel's first launch may load
        it, which cannot be recorded.
        """
        if key in self._graphs:
            return self._graphs[key]
        if key not in self._wanted:
            if len(self._wanted) >= _MOST_WANTED:
                self._wanted.clear()
            self._wanted.add(key)
            return None
        self._make_room(RUNS[0] * sweeps.sweep_bytes)
        window = int(self._window.data.ptr)
        self._graphs[key] = record(self._device, lambda: sweeps.queue(count, T, T_new, window))
        return self._graphs[key]

    def _make_room(self, window: int) -> None:
        """For a window of so many bytes, and one graph more; graphs that read from another window are of no use."""
        larger = self._window is None or self._window.size < window
        if larger or len(self._graphs) >= _MOST_GRAPHS:
            self._device.synchronise()
            self._graphs.clear()
        if larger:
            self._window = self._device.xp.empty(window, dtype=np.uint8)
