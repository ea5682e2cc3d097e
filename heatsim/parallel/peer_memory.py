"""Share memory of a GPU with other processes on the same machine, and send signals between their streams.

Copy engines move the values, and a stream waits for a number in memory. Neither occupies a multiprocessor, so copies
and kernels run at the same time. NCCL uses kernels, which would wait for the kernels of the steps.
"""

import ctypes
from typing import Any

_ANY_MEMORY = 4  # cudaMemcpyDefault: CUDA finds the direction from the addresses
_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ: until (int32)(number in memory − value) ≥ 0
_WORD = 1 << 32
# Bytes. CUDA puts smaller allocations together into blocks of this size, and shares only whole blocks.
_BLOCK = 2 << 20

# What another process needs to open memory: CUDA's handle of an allocation, and an offset in bytes.
Offer = tuple[bytes, int]


class PeerMemory:
    """Memory that GPUs share through the CUDA driver. Copies, waits and writes are queued on the current stream.

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
        """Allocate at least ``count`` bytes of value 0, and return the address."""
        runtime, count = self._cuda.runtime, -(-count // _BLOCK) * _BLOCK
        address: int = runtime.malloc(count)
        runtime.memset(address, 0, count)
        runtime.deviceSynchronize()
        return address

    def offer(self, address: int) -> Offer:
        """What another process needs to open the memory at an address, which may lie inside an allocation.

        Raises:
            RuntimeError: the allocation is too small to be shared, or the driver refuses.
        """
        base, size = ctypes.c_uint64(), ctypes.c_uint64()
        self._check(self._range(ctypes.addressof(base), ctypes.addressof(size), address))
        if size.value < _BLOCK:
            raise RuntimeError(f"an allocation of {size.value} bytes is too small to be shared")
        return bytes(self._cuda.runtime.ipcGetMemHandle(base.value)), address - base.value

    def open(self, handle: bytes) -> int:
        """Open an allocation of another process, and return its address in this process."""
        address: int = self._cuda.runtime.ipcOpenMemHandle(handle)
        return address

    def close(self, address: int) -> None:
        """Close an allocation of another process. No copy into it may be queued."""
        self._cuda.runtime.ipcCloseMemHandle(address)

    def copy(self, target: int, source: int, count: int) -> None:
        """Queue a copy of bytes."""
        self._cuda.runtime.memcpyAsync(target, source, count, _ANY_MEMORY, self._stream)

    def write(self, address: int, number: int) -> None:
        """Queue a write of a 32-bit number, after all copies queued before."""
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
