"""Memory of a GPU that another process on the same machine can read and write, and signals between their streams.

Copy engines move the values, and a stream waits for a number in memory. Neither occupies a multiprocessor, so copies
and kernels run at the same time. NCCL's kernels would wait for those of the steps.
"""

import ctypes
from typing import Any, Protocol

_ANY_MEMORY = 4  # cudaMemcpyDefault: the addresses tell where the memory is
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ: until (int32)(number in memory − value) ≥ 0
_WORD = 1 << 32

# What another process needs to open memory: CUDA's handle of an allocation, and the first byte in it.
Offer = tuple[bytes, int]


class PeerMemory(Protocol):
    """What CUDA offers for memory that processes share. Copies, waits and writes are queued on the current stream."""

    def allocate(self, count: int) -> int:
        """The address of ``count`` bytes of 0."""

    def offer(self, address: int) -> Offer:
        """What another process needs to open the memory at an address."""

    def open(self, handle: bytes) -> int:
        """The address here of another process's allocation."""

    def copy(self, target: int, source: int, count: int) -> None:
        """Copy bytes."""

    def write(self, address: int, number: int) -> None:
        """Write a number of 32 bits, after all copies queued before."""

    def wait(self, address: int, number: int) -> None:
        """Let the stream wait until the number at an address, of 32 bits, is ``number`` or more."""

    def read(self, address: int) -> int:
        """The number of 32 bits at an address, after all queued work."""


class CudaPeerMemory:
    """The memory of GPUs.

    Args:
        xp: CuPy.

    Raises:
        OSError, AttributeError: the driver does not offer the calls.
    """

    def __init__(self, xp: Any) -> None:
        self._cuda = xp.cuda
        driver = ctypes.CDLL("libcuda.so.1")
        self._range = driver.cuMemGetAddressRange_v2
        self._range.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        self._write, self._wait = driver.cuStreamWriteValue32_v2, driver.cuStreamWaitValue32_v2
        for call in (self._write, self._wait):
            call.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint]

    def allocate(self, count: int) -> int:
        """The address of ``count`` bytes of 0."""
        runtime = self._cuda.runtime
        address: int = runtime.malloc(count)
        runtime.memset(address, 0, count)
        runtime.deviceSynchronize()
        return address

    def offer(self, address: int) -> Offer:
        """What another process needs to open the memory at an address, which may lie within an allocation."""
        base = ctypes.c_uint64()
        self._check(self._range(ctypes.addressof(base), None, address))
        return bytes(self._cuda.runtime.ipcGetMemHandle(base.value)), address - base.value

    def open(self, handle: bytes) -> int:
        """The address here of another process's allocation."""
        address: int = self._cuda.runtime.ipcOpenMemHandle(handle)
        return address

    def copy(self, target: int, source: int, count: int) -> None:
        """Queue a copy of bytes."""
        self._cuda.runtime.memcpyAsync(target, source, count, _ANY_MEMORY, self._stream)

    def write(self, address: int, number: int) -> None:
        """Queue the writing of a number, after all copies queued before."""
        self._check(self._write(self._stream, address, number % _WORD, 0))

    def wait(self, address: int, number: int) -> None:
        """Let the stream wait until the number at an address is ``number`` or more."""
        self._check(self._wait(self._stream, address, number % _WORD, _AT_LEAST))

    def read(self, address: int) -> int:
        """The number at an address, after all queued work of the device."""
        found = ctypes.c_uint32()
        self._cuda.runtime.deviceSynchronize()
        self._cuda.runtime.memcpy(ctypes.addressof(found), address, ctypes.sizeof(found), _ANY_MEMORY)
        return found.value

    @property
    def _stream(self) -> int:
        pointer: int = self._cuda.get_current_stream().ptr
        return pointer

    @staticmethod
    def _check(code: int) -> None:
        if code:
            raise RuntimeError(f"the CUDA driver refused to share memory between GPUs: error {code}")
