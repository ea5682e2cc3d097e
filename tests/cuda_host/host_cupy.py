"""What heatsim uses of CuPy, on the host: arrays, streams, events, graphs, and a device with this module.

All is done at once: a launch has ended when it returns, and a copy too. A stream that captures keeps what is launched
on it, and its graph does it when it is launched. With :func:`cuda_host.deferred.defer` all is done later, when the host
waits for it.
"""

import ctypes
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from cuda_host.deferred import QUEUE
from numpy.typing import NDArray

from heatsim.device import Device


def _behind_all(name: str) -> Callable[..., Any]:
    """A method of NumPy's arrays that comes behind all that is queued."""
    method = getattr(np.ndarray, name)

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        QUEUE.do()
        return method(self, *arguments, **options)

    return call


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, HostArray) else value


class HostArray(np.ndarray[Any, Any]):
    """Memory of the host with what CuPy's arrays have."""

    for _name in ("__setitem__", "__array_function__", "copy", "fill", "astype", "tolist"):
        locals()[_name] = _behind_all(_name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        QUEUE.do()
        if out:
            options["out"] = tuple(map(_plain, out))
        found = getattr(ufunc, method)(*map(_plain, inputs), **options)
        if out:
            return out[0]
        return found.view(HostArray) if isinstance(found, np.ndarray) else found

    @property
    def data(self) -> Any:  # type: ignore[override]
        def copy(source: Any, size: int) -> None:
            do_or_record(lambda: ctypes.memmove(self.ctypes.data, source.ptr, size))

        def copy_to_host(target: int, size: int) -> None:
            assert HostStream.capturing is None, "CuPy does not record copies to the host"
            assert size <= self.nbytes, "a copy of more bytes than the array has"
            QUEUE.add(lambda: ctypes.memmove(target, self.ctypes.data, size))

        return SimpleNamespace(ptr=self.ctypes.data, copy_from_device_async=copy, copy_to_host_async=copy_to_host)

    def set(self, values: NDArray[Any]) -> None:
        self[...] = values

    def get(self, out: NDArray[Any]) -> None:
        QUEUE.do()
        out[...] = self


class HostEvent:
    done = True

    def __init__(self, disable_timing: bool = False) -> None:
        self.time = 0.0

    def record(self) -> None:
        self.time, self.place = time.perf_counter(), QUEUE.end

    def synchronize(self) -> None:
        assert self.time > 0.0
        QUEUE.do(self.place)


class HostGraph:
    def __init__(self, works: Sequence[Callable[[], object]]) -> None:
        self.works = works
        self.launches = 0

    def launch(self) -> None:
        assert HostStream.capturing is None
        self.launches += 1
        for work in self.works:
            QUEUE.add(work)


class HostStream:
    done = True
    capturing: "list[Callable[[], object]] | None" = None
    graphs: "list[HostGraph]" = []  # noqa: RUF012

    def __init__(self, non_blocking: bool = False) -> None:
        assert non_blocking, "work on the default stream would end the capture of a blocking one"
        self.captures = False

    def __enter__(self) -> "HostStream":
        return self

    def __exit__(self, *error: object) -> None:
        if self.captures:
            HostStream.capturing = None

    def wait_event(self, event: object) -> None:
        """What was queued before is done."""

    def begin_capture(self) -> None:
        self.captures = True
        HostStream.capturing = []

    def end_capture(self) -> HostGraph:
        assert HostStream.capturing is not None
        graph = HostGraph(HostStream.capturing)
        HostStream.capturing = None
        HostStream.graphs.append(graph)
        return graph


class HostNumber:
    """The only device that there is, by its number."""

    attributes: ClassVar[dict[str, int]] = {"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": 200 * 1024}

    def __init__(self, number: int = 0) -> None:
        assert number == 0

    def __enter__(self) -> "HostNumber":
        return self

    def __exit__(self, *error: object) -> None:
        pass


def do_or_record(work: Callable[[], object]) -> None:
    if HostStream.capturing is None:
        QUEUE.add(work)
    else:
        HostStream.capturing.append(work)


def empty(shape: Any, dtype: Any = np.float64) -> HostArray:
    """Aligned to 256 bytes, as memory of a GPU is."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 256, np.uint8)
    if QUEUE.deferring:
        QUEUE.kept.append(memory)
    start = -memory.ctypes.data % 256
    return memory[start : start + size].view(dtype).reshape(shape).view(HostArray)


def asarray(values: Any) -> HostArray:
    host = asnumpy(values) if isinstance(values, HostArray) else np.asarray(values)
    array = empty(host.shape, host.dtype)
    array[...] = host
    return array


def asnumpy(values: Any) -> NDArray[Any]:
    QUEUE.do()
    return np.array(values)


def full(shape: Any, value: Any, dtype: Any = None) -> HostArray:
    array = empty(shape, np.asarray(value).dtype if dtype is None else dtype)
    array[...] = value
    return array


def zeros(shape: Any, dtype: Any = np.float64) -> HostArray:
    return full(shape, 0, dtype)


class HostModule(SimpleNamespace):
    """CuPy's functions; those without another definition are NumPy's."""

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if not callable(function):
            return function

        def call(*arguments: Any, **options: Any) -> Any:
            found = function(*arguments, **options)
            return found.view(HostArray) if isinstance(found, np.ndarray) else found

        return call


def host_device(free: int = 2**30) -> Device:
    """The device, with ``free`` bytes of free memory."""
    xp: Any = HostModule(
        __version__="0.0",
        full=full,
        zeros=zeros,
        empty=empty,
        empty_like=lambda array: empty(array.shape, array.dtype),
        zeros_like=lambda array: zeros(array.shape, array.dtype),
        asarray=asarray,
        ascontiguousarray=asarray,
        asnumpy=asnumpy,
        where=np.where,
        positive=np.positive,
        add=np.add,
        isfinite=np.isfinite,
        floor=np.floor,
        minimum=np.minimum,
        maximum=np.maximum,
        count_nonzero=np.count_nonzero,
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0, free_all_blocks=lambda: None),
        cuda=SimpleNamespace(
            Device=HostNumber,
            Event=HostEvent,
            Stream=HostStream,
            get_elapsed_time=lambda first, last: (last.time - first.time) * 1e3,
            get_current_stream=lambda: SimpleNamespace(
                ptr=0, synchronize=QUEUE.do, record=lambda: None, wait_event=lambda event: None
            ),
            alloc_pinned_memory=bytearray,
            runtime=SimpleNamespace(
                memGetInfo=lambda: (free, free),
                driverGetVersion=lambda: 13000,
                getDevice=lambda: 0,
                deviceGetPCIBusId=lambda number: "host",
            ),
        ),
    )
    return Device("cuda", xp, "a GPU simulated on the host")
