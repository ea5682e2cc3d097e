"""The device of a field: a CPU with NumPy, or a GPU with CuPy. Only this module chooses between them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from heatsim.errors import DeviceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Backend = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Room:
    """What bounds the blocks of kernels on a GPU.

    Attributes:
        block_memory: bytes of shared memory that one block may have.
        multiprocessors: how many there are.
    """

    block_memory: int
    multiprocessors: int


@dataclass(frozen=True)
class Device:
    """A processor with its array library.

    Attributes:
        backend: "cpu" or "cuda"; each kernel is written for one of them.
        xp: the array module, NumPy or CuPy.
        name: the name for messages, such as "NVIDIA H100 80GB HBM3".
    """

    backend: Backend
    xp: ModuleType
    name: str

    def free_memory(self) -> int:
        """Free memory of the device in bytes."""
        if self.backend == "cuda":
            free: int = self.xp.cuda.runtime.memGetInfo()[0]
            return free + self.xp.get_default_memory_pool().free_bytes()  # type: ignore[no-any-return]
        return host_memory()

    def number(self) -> str:
        """Text that distinguishes the GPU from others in the machine; empty for the CPU."""
        if self.backend == "cpu":
            return ""
        runtime = self.xp.cuda.runtime
        found: str = runtime.deviceGetPCIBusId(runtime.getDevice())
        return found

    def multiprocessors(self) -> int:
        """Number of multiprocessors of a GPU."""
        count: int = self.xp.cuda.Device().attributes["MultiProcessorCount"]
        return count

    def block_memory(self) -> int:
        """Bytes of shared memory that one block of a GPU may have."""
        count: int = self.xp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        return count

    def float64_ratio(self) -> int:
        """How many times as many additions in float32 as in float64 a GPU does; 2 for a CPU, with its vectors."""
        if self.backend == "cpu":
            return 2
        ratio: int = self.xp.cuda.Device().attributes.get("SingleToDoublePrecisionPerfRatio", 2)
        return ratio

    def room(self) -> "Room":
        """What bounds the blocks of kernels on a GPU."""
        return Room(self.block_memory(), self.multiprocessors())

    def software(self) -> str:
        """Versions of CuPy and of the GPU's driver."""
        driver: int = self.xp.cuda.runtime.driverGetVersion()
        return f"cupy {self.xp.__version__}, driver {driver}"

    def synchronise(self) -> None:
        """Wait for all queued work."""
        if self.backend == "cuda":
            self.xp.cuda.get_current_stream().synchronize()

    def record_event(self) -> Callable[[], None]:
        """Record an event. Returns a function that waits for the work queued so far, but not for later work."""
        if self.backend == "cpu":
            return _no_wait
        wait: Callable[[], None] = self.recorded().synchronize
        return wait

    def recorded(self) -> Any:
        """An event of a GPU that is recorded behind what the current stream has queued; streams can wait for it."""
        event = self.xp.cuda.Event(disable_timing=True)
        event.record()
        return event

    def timed(self, work: Callable[[], object]) -> Callable[[], float]:
        """Do some work. Returns a function that waits until it is done and returns the seconds that it took.

        If the work queues launches on a GPU, these are the seconds from the end of what was queued before. Later work
        is not waited for.
        """
        if self.backend == "cpu":
            started = time.perf_counter()
            work()
            seconds = time.perf_counter() - started
            return lambda: seconds
        cuda = self.xp.cuda
        begin, end = cuda.Event(), cuda.Event()
        begin.record()
        work()
        end.record()

        def wait() -> float:
            end.synchronize()
            milliseconds: float = cuda.get_elapsed_time(begin, end)
            return 1e-3 * milliseconds

        return wait

    def copy(self, target: Any, source: Any) -> None:
        """Copy a contiguous device array to another one of its size. On a GPU this is queued behind the work so far."""
        if self.backend == "cpu":
            target[...] = source
        elif source.nbytes:
            target.data.copy_from_device_async(source.data, source.nbytes)

    def elsewhere(self, work: Callable[[], object]) -> Callable[[], object]:
        """Wrap work for another thread: there it uses the GPU that is current in this thread."""
        if self.backend == "cpu":
            return work
        cuda = self.xp.cuda
        number = cuda.runtime.getDevice()

        def on_this_gpu() -> object:
            with cuda.Device(number):
                return work()

        return on_this_gpu

    def to_host(self, array: Any) -> "NDArray[Any]":
        """A NumPy array with the values of a device array; on the CPU the array itself."""
        return self.xp.asarray(array) if self.backend == "cpu" else self.xp.asnumpy(array)  # type: ignore[no-any-return]


def _no_wait() -> None:
    """Return at once: work on a CPU is done when its function returns."""


def choose(requested: str) -> Device:
    """The device for "auto", "cuda" or "cpu"; auto chooses a GPU if one works.

    Raises:
        DeviceError: "cuda" was requested and does not work; the message gives the reason. Or the number of threads on
            the CPU is none.
    """
    _check_numba()
    if requested == "cpu" or (requested == "auto" and not _driver_installed()):
        return _cpu()
    try:
        return _cuda()
    except DeviceError:
        if requested == "auto":
            return _cpu()
        raise


def _check_numba() -> None:
    """Refuse a number of threads with which numba cannot be imported, and a numba that compiles nothing.

    Raises:
        DeviceError: names the environment variable.
    """
    import os

    name = "NUMBA_NUM_THREADS"
    given = os.environ.get(name, "1").strip()
    if not (given.isdecimal() and int(given) > 0):
        raise DeviceError(f'{name}: got "{given}"; a whole number from 1 is expected: correct it, or unset it')
    name = "NUMBA_DISABLE_JIT"
    given = os.environ.get(name, "0").strip()
    if given.isdecimal() and int(given) > 0:
        raise DeviceError(f'{name}: got "{given}"; kernels of the CPU are compiled: unset it')


def choose_gpu(number: int) -> None:
    """Use GPU ``number`` modulo the number of GPUs for this process, if there is a GPU.

    Works for the thread that calls it.
    """
    try:
        device = choose("auto")
    except DeviceError:
        return
    if device.backend == "cuda":
        device.xp.cuda.Device(number % count_gpus()).use()
        _cuda.cache_clear()  # its name may differ


def count_gpus() -> int:
    """The number of GPUs that this process may use; 0 if no GPU works."""
    device = choose("auto")
    return int(device.xp.cuda.runtime.getDeviceCount()) if device.backend == "cuda" else 0


def visible_gpus() -> int:
    """The number of GPUs that the driver shows to this process. Does not import CuPy, which takes longer."""
    import ctypes

    if not _driver_installed():
        return 0
    driver, count = ctypes.CDLL(_driver()), ctypes.c_int()
    found = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if found else 0


def cuda_of_driver() -> int:
    """The newest version of CUDA that the NVIDIA driver supports, such as 13; 0 without a driver."""
    import ctypes

    if not _driver_installed():
        return 0
    version = ctypes.c_int()
    return version.value // 1000 if ctypes.CDLL(_driver()).cuDriverGetVersion(ctypes.byref(version)) == 0 else 0


def listed_gpus() -> int:
    """The number of GPUs that the system lists. Does not start the driver, because that can take more than a second.

    It may be larger than :func:`visible_gpus`.
    """
    import os

    listed = (
        sum(name[:6] == "nvidia" and name[6:].isdigit() for name in os.listdir("/dev")) if os.name == "posix" else 0
    )
    return listed if listed and _driver_installed() else visible_gpus()


def connect() -> None:
    """Start the driver, and create the context of the first GPU of this process. Without a GPU, do nothing.

    This does not import CuPy, and other threads can import packages meanwhile. CuPy will use the same context.
    """
    import ctypes

    if not _driver_installed():
        return
    driver, number, context = ctypes.CDLL(_driver()), ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(number), 0) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number)


def host_memory() -> int:
    """Host memory available without swapping, in bytes; the physical size if the system does not report it."""
    import os

    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 62


def usable_cores() -> int:
    """The number of CPU cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _cpu() -> Device:
    import platform

    import numpy as np

    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return Device("cpu", np, f"{model}, {usable_cores()} cores")


@cache
def _driver_installed() -> bool:
    """Whether the library of the NVIDIA driver can be loaded. If not, importing CuPy (0.1 s) would find no GPU."""
    import ctypes

    try:
        ctypes.CDLL(_driver())
    except OSError:
        return False
    return True


def _driver() -> str:
    """The library of the NVIDIA driver."""
    import sys

    return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@cache
def _cuda() -> Device:
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f'device "cuda" needs CuPy, which cannot be imported ({error}); '
            'install heatsim[cuda13] or heatsim[cuda12], or use device "cpu"'
        ) from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f'device "cuda" cannot be used: {error}; use device "cpu" or check `nvidia-smi`') from None
    if count == 0:
        raise DeviceError(
            'device "cuda" cannot be used: no GPU is visible; use device "cpu" or check CUDA_VISIBLE_DEVICES'
        )
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["name"].decode()
    return Device("cuda", cupy, name)
