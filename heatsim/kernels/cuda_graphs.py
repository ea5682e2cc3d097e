"""CUDA graphs of many sweeps, for small grids: there a launch from Python takes longer than a sweep.

A graph is recorded for a number of sweeps that begin in one of the two buffers, and is launched again for as many. The
data that change from step to step, struct StepData, are read through a pointer. Recorded kernels read them from a
window at a fixed address; before each launch of the graph the next ones are copied there:

        table of the steps to come    | . . . . | next run | . . . . . . |
                                                     │ copied on the device
        window                                  | next run |  ◄── read by the graph's kernels

Coefficients, pointers and launch shapes are recorded in the graph. Each combination that occurs has its own graph.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels.composite.arrays import SweepTable
from heatsim.kernels.launch import CudaKernel, Launch

# Sweeps per graph, each a multiple of the next, so that few launches do any number of sweeps. The longest keeps a GPU
# busy while Python queues the next one; the shortest still saves more than the copy of the window costs.
RUNS = (256, 64, 16, 4)
# With more cells a sweep takes longer than its launch from Python, on every GPU.
LARGEST_GRID = 1 << 24
_MOST_GRAPHS = 64
# Requests for a number of sweeps that is not in RUNS before it is recorded.
_REQUESTS = 8
_MOST_WANTED = 1024

# Queues what a sweep needs before or beside it; its argument is the field. What it returns is called after the sweep.
Before = Callable[[Any], Callable[[], None] | None]


@dataclass(frozen=True)
class Sweeps:
    """The data that are the same for all sweeps.

    Attributes:
        kernel: the kernel.
        launches: the launches of one sweep.
        coefficients: struct Coefficients.
        ledger: struct Ledger.
        before: what each sweep needs before it; None for nothing. It is the same in all calls of one kernel.
    """

    kernel: CudaKernel
    launches: Sequence[Launch]
    coefficients: NDArray[Any]
    ledger: NDArray[Any]
    before: Before | None = None

    @property
    def together(self) -> bool:
        """Whether one launch does all the sweeps."""
        return self.kernel.build.spec.resident

    @property
    def sweep_bytes(self) -> int:
        """Bytes of struct StepData of all steps of a sweep."""
        build = self.kernel.build
        return build.spec.steps * build.sweep_dtype.itemsize

    def queue(self, count: int, T: Any, T_new: Any, address: int) -> tuple[Any, Any]:
        """Launch ``count`` sweeps; the first struct StepData is at ``address``. Return (T, T_new) after them."""
        if self.together and count:
            self.kernel(self.launches, T, T_new, self.coefficients, address, self.ledger, steps=count)
            return (T_new, T) if count % 2 else (T, T_new)
        steps = self.kernel.build.spec.steps
        most = self.kernel.build.stage_table // steps or count
        for sweep in range(count):
            at, place = address + sweep * self.sweep_bytes, sweep % most
            if place == 0:
                self.kernel.load_stages(at, min(most, count - sweep) * steps)
            beside = None if self.before is None else self.before(T)
            self.kernel(self.launches, T, T_new, self.coefficients, at, self.ledger, place * steps)
            if beside is not None:
                beside()
            T, T_new = T_new, T
        return T, T_new

    def recorded_from(self, T: Any, T_new: Any, count: int) -> Hashable:
        """Everything that a graph of ``count`` sweeps depends on; the launches follow from the kernel and its grid.

        The kernel lives as long as the graphs.
        """
        buffers = int(T.data.ptr), int(T_new.data.ptr)
        return id(self.kernel), buffers, count, self.coefficients.tobytes(), self.ledger.tobytes()


def record(device: Device, work: Callable[[], object]) -> Any:
    """A CUDA graph of the launches that ``work`` makes; its ``launch()`` queues them all.

    It has the addresses of arrays, but does not keep them alive.
    """
    # The default stream cannot be recorded, and neither can a stream that waits for it.
    stream = device.xp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        work()
        return stream.end_capture()


class CudaGraphs:
    """Queues sweeps on one grid, as CUDA graphs if the grid is small.

    Attributes:
        recording: whether graphs are used; if not, each sweep is launched separately.
    """

    def __init__(self, device: Device, cells: int) -> None:
        self.recording = cells <= LARGEST_GRID
        self._device = device
        self._graphs: dict[Hashable, Any] = {}
        self._wanted: Counter[Hashable] = Counter()
        self._window: Any = None

    def advance(self, sweeps: Sweeps, T: Any, T_new: Any, table: SweepTable, step: int, count: int) -> tuple[Any, Any]:
        """Queue some sweeps.

        Args:
            sweeps: their common data.
            T: the field, a device array.
            T_new: the buffer that the first sweep writes.
            table: struct StepData of each step.
            step: the first step in the table.
            count: the number of sweeps.

        Returns:
            The buffer that holds the field afterwards, and the other one.
        """
        reach = sweeps.kernel.build.spec.steps
        while self.recording and not sweeps.together and count >= RUNS[-1]:
            run, graph = self._next(sweeps, T, T_new, min(count, RUNS[0]))
            if graph is None:
                T, T_new = sweeps.queue(run, T, T_new, table.address(step))
            else:
                steps = table.part(step, run * reach)
                self._window.data.copy_from_device_async(steps.data, steps.nbytes)
                graph.launch()
                if run % 2:
                    T, T_new = T_new, T
            step, count = step + run * reach, count - run
        return sweeps.queue(count, T, T_new, table.address(step))

    def _next(self, sweeps: Sweeps, T: Any, T_new: Any, left: int) -> tuple[int, Any]:
        """How many of ``left`` sweeps to queue next, and their graph; None to launch them one by one.

        It is all of them if the same number was asked for often, as rows at equal intervals do; otherwise the longest
        of ``RUNS``.
        """
        graph = self._graph(sweeps, T, T_new, left)
        if graph is not None or left in RUNS:
            return left, graph
        count = next(run for run in RUNS if run < left)
        return count, self._graph(sweeps, T, T_new, count)

    def _graph(self, sweeps: Sweeps, T: Any, T_new: Any, count: int) -> Any:
        """The graph of ``count`` sweeps, recorded at the second request, or later if not in ``RUNS``; before that None.

        Recording takes as long as launching, so sweeps requested only once are launched. And a kernel's first launch
        may load it, which cannot be recorded.
        """
        key = sweeps.recorded_from(T, T_new, count)
        if key in self._graphs:
            return self._graphs[key]
        if self._wanted[key] < (1 if count in RUNS else _REQUESTS):
            if len(self._wanted) >= _MOST_WANTED:
                self._wanted.clear()
            self._wanted[key] += 1
            return None
        self._make_room(RUNS[0] * sweeps.sweep_bytes)
        window = int(self._window.data.ptr)
        self._graphs[key] = record(self._device, lambda: sweeps.queue(count, T, T_new, window))
        return self._graphs[key]

    def _make_room(self, window: int) -> None:
        """Make room for a window of this many bytes and for one more graph; a new window invalidates all graphs."""
        larger = self._window is None or self._window.size < window
        if larger or len(self._graphs) >= _MOST_GRAPHS:
            self._device.synchronise()
            self._graphs.clear()
        if larger:
            self._window = self._device.xp.empty(window, dtype=np.uint8)
