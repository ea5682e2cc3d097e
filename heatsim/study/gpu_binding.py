"""Bind the workers of a cluster to GPUs: each worker takes a GPU of its machine that no other worker has.

A worker that has a GPU locks a file with the GPU's name in the machine's temporary folder. The system removes the lock
when the worker ends.
"""

import os
import tempfile
import threading
from pathlib import Path

from heatsim import device
from heatsim.device import Device
from heatsim.errors import DeviceError

_taking = threading.Lock()
# The GPU of this process, and the descriptor of the file with its lock, which stays open.
_taken: list[tuple[int, int]] = []


def bind_device(requested: str) -> Device:
    """The device of this worker for "auto", "cuda" or "cpu". Selects its GPU in the calling thread.

    Raises:
        DeviceError: the device does not work, or other workers have all GPUs that this one sees.
    """
    chosen = device.choose(requested)
    if chosen.backend != "cuda":
        return chosen
    with _taking:
        if not _taken:
            _taken.append(_take(chosen))
    device.choose_gpu(_taken[0][0])
    return device.choose(requested)


def _take(chosen: Device) -> tuple[int, int]:
    """The number of the first GPU that is free, and the descriptor of its locked file."""
    runtime = chosen.xp.cuda.runtime
    count = int(runtime.getDeviceCount())
    for number in range(count):
        lock = _lock(str(runtime.deviceGetPCIBusId(number)))
        if lock is not None:
            return number, lock
    import platform

    host = platform.node()
    taken = f"another worker on {host} has the GPU" if count == 1 else f"other workers on {host} have the {count} GPUs"
    raise DeviceError(
        f"{taken} that this worker sees; start one worker for each GPU, with different values of CUDA_VISIBLE_DEVICES "
        "or without this variable"
    )


def _lock(name: str) -> int | None:
    """The descriptor of a GPU's file, locked for this process; None if another process has it."""
    try:
        import fcntl
    except ImportError:
        return -1
    user = os.getuid() if hasattr(os, "getuid") else 0
    path = Path(tempfile.gettempdir()) / f"heatsim-gpu-{user}-{name.replace(':', '-').lower()}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
