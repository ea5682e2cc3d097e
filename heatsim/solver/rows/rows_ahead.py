"""The sums of many rows, which a GPU finds between its steps, read together.

    host    queue steps, sums, steps, sums, … │ queue the next of them │ read all, call observers for each row │ …
    GPU     steps │ sums │ steps │ sums │ … │ copy │ steps │ sums │ …

Each row has a place in device memory. All places are copied to the host at once, and NumPy handles their rows together:
for one row it takes about as long as for many.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.solver.field.extreme_cells import Extreme
from heatsim.solver.rows.leading import Leading
from heatsim.solver.rows.observables import FoundRow, Observables
from heatsim.solver.rows.row_request import Request

MOST_ROWS = 64
_MOST_BYTES = 2**22  # of the places of all rows


class RowsAhead:
    """Rows of a field that is ahead of the one that observers read.

    Two sets of places take turns: one is filled while the other one is read.

    Args:
        shown: what observers read.
        leading: what is stepped.
        extremes: those whose cells observers may ask for.
    """

    def __init__(self, shown: Observables, leading: Leading, extremes: Sequence[Extreme]) -> None:
        self._shown, self._leading, self._extremes = shown, leading, tuple(extremes)
        self._requests: dict[object, Request] = {}
        self._workspaces: dict[int, Any] = {}
        self._filled: _RowMemory | None = None
        self._others: _RowMemory | None = None
        self._count = 0
        self._latest: Request | None = None
        self._has_memory = True

    def add(self) -> bool:
        """Queue the sums of the leading field as it is after the steps so far. False if there is no room for them."""
        if not self._has_memory:
            return False
        try:
            request = self._request()
            if self._filled is None or (not self._count and self._filled.sizes != request.batch.sizes):
                self._filled = _RowMemory.of(self._shown.field.device, request)
        except MemoryError:  # on the device: from here on each row is read at once
            self._has_memory = False
            return False
        if self._count == len(self._filled.each) or self._filled.sizes != request.batch.sizes:
            return False
        request.batch.queue_to(self._filled.each[self._count])
        self._count += 1
        self._latest = request
        return True

    def close(self) -> Callable[[], list[FoundRow]]:
        """Queue a copy of the rows to the host. Returns a function that waits for it and returns the rows.

        Call that before the rows after the next ones are added.
        """
        places, count, request = self._filled, self._count, self._latest
        self._filled, self._others, self._count = self._others, self._filled, 0
        if places is None or request is None or not count:
            return list
        places.device_memory.data.copy_to_host_async(places.host.ctypes.data, count * places.nbytes)
        wait = self._shown.field.device.record_event()

        def read() -> list[FoundRow]:
            wait()
            return request.rows(places.host[:count].copy())

        return read

    def _request(self) -> Request:
        field, ledger = self._leading.field, self._leading.ledger
        ledger.add_up()
        key = int(field.deviation.data.ptr), ledger.address, len(self._shown.field.all_points)
        if key not in self._requests:
            run = Observables(self._shown.field.with_values(field.deviation), ledger, self._shown.statistics)
            self._requests[key] = Request([run], [self._extremes], self._workspaces)
        return self._requests[key]


class _RowMemory(NamedTuple):
    """Memory for the results of rows.

    Attributes:
        sizes: bytes of the parts of a row.
        nbytes: of a row.
        device_memory: on the device, shape (rows, bytes).
        each: the memory of each row.
        pinned: keeps the memory of ``host``.
        host: a copy on the host.
    """

    sizes: tuple[int, ...]
    nbytes: int
    device_memory: Any
    each: Sequence[Any]
    pinned: Any
    host: NDArray[np.uint8]

    @classmethod
    def of(cls, device: Device, request: Request) -> "_RowMemory":
        """Room for as many rows of a request as are read together."""
        nbytes = request.batch.nbytes
        rows = max(1, min(MOST_ROWS, _MOST_BYTES // nbytes))
        memory = device.xp.empty((rows, nbytes), dtype=np.uint8)
        pinned = device.xp.cuda.alloc_pinned_memory(rows * nbytes)
        host = np.frombuffer(pinned, np.uint8, rows * nbytes).reshape(rows, nbytes)
        return cls(request.batch.sizes, nbytes, memory, [memory[row] for row in range(rows)], pinned, host)
