"""A copy of the field after one step, transferred to the host in parts while the device continues stepping.

    step 1000          1001, 1002, …
    deviation ──copy──► copy ───slab──► window ──► file           on a GPU: copy on the device, window page-locked
       │                                                          on the CPU: copy in memory, slabs without copying
       └── stepping continues at once

A copy on the device takes a thousandth of the time of writing. The host needs a window of a few MiB only.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.solver.field.field import Field

SLAB_BYTES = 16 << 20


class FieldCopy:
    """The values of a field at one time.

    At most one thread may read temperatures, and at most one thread deviations, at a time.

    If several ranks have the field, it holds the own planes of this rank.

    Attributes:
        shape: (planes, ny, nx).
        slab: the planes of the whole grid.
        precision: "float32" or "float64".
    """

    def __init__(self, field: Field, room: Any = None) -> None:
        """Copy the field as it is after all queued work.

        Args:
            field: the field.
            room: a device array like ``field.own`` for the copy. Without it the field itself is read and must not
                change while this object is used.
        """
        if room is not None:
            room[...] = field.own
        self.slab, self.precision = field.slab, field.precision
        self._field = field
        self._deviation = field.own if room is None else room
        self.shape = tuple(self._deviation.shape)
        self._download, self._download_of_deviations = Download(field.device), Download(field.device)

    def deviations(self) -> Iterator[NDArray[Any]]:
        """Deviations in K on the host, a few planes at a time, from the bottom up; the next ones overwrite them."""
        return slabs(self._download_of_deviations, self._deviation)

    def temperatures(self) -> Iterator[NDArray[Any]]:
        """Temperatures in K on the host, in the field's precision; as :meth:`deviations`."""
        return slabs(self._download, self._deviation, self._field.temperatures_of)

    def planes(self, first: int, last: int) -> NDArray[np.float64]:
        """Temperatures in K of planes ``first`` to ``last`` − 1 of the whole grid, all own, float64, in a new array."""
        place = slice(first - self.slab.first, last - self.slab.first)
        deviations = self._download.fetch(self._deviation[place], lambda values: self._field.degrees(values, place))
        found = deviations.astype(np.float64)
        found += self._field.reference
        return found


class Download:
    """Transfers device arrays to the host. Works in any thread, while the device continues stepping."""

    def __init__(self, device: Device) -> None:
        """Remember the work queued so far: transfers wait for it."""
        self.device = device
        self._stream: Any = None
        self._window: Any = None
        self._bytes = 0
        if device.backend == "cuda":
            cuda = device.xp.cuda
            self._number = cuda.runtime.getDevice()
            self._ready = cuda.get_current_stream().record()

    def fetch(self, array: Any, convert: Callable[[Any], Any] = lambda array: array) -> NDArray[Any]:
        """An array on the host, converted on the device first; on a GPU valid until the next call."""
        if self.device.backend == "cpu":
            return np.asarray(convert(array))
        cuda = self.device.xp.cuda
        with cuda.Device(self._number):
            if self._stream is None:
                self._stream = cuda.Stream(non_blocking=True)
                self._stream.wait_event(self._ready)
            with self._stream:
                values = convert(array)
                if self._bytes < values.nbytes:
                    self._window, self._bytes = cuda.alloc_pinned_memory(values.nbytes), values.nbytes
                host = np.frombuffer(self._window, dtype=values.dtype, count=values.size).reshape(values.shape)
                values.get(out=host)
        return host


def _at(convert: Callable[[Any, slice], Any], planes: slice, slab: Any) -> Any:
    return convert(slab, planes)


def slabs(
    download: Download, array: Any, convert: Callable[[Any, slice], Any] = lambda slab, planes: slab
) -> Iterator[NDArray[Any]]:
    """A device array [z, y, x] on the host, a few planes at a time; the next ones overwrite them."""
    count = max(1, SLAB_BYTES // array[0].nbytes)
    for first in range(0, len(array), count):
        planes = slice(first, min(first + count, len(array)))
        yield download.fetch(array[planes], partial(_at, convert, planes))
