"""What the workers of a cluster do: bind a device, and run groups. Dask imports this module on each worker."""

import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from heatsim.run.interrupt import Stop
from heatsim.study import folder as study_folder
from heatsim.study.gpu_binding import bind_device
from heatsim.study.run_group import run_group
from heatsim.version import NUMERICS, version

# A kernel uses all threads of its process, and numba's kernels must not run twice at a time.
_ONE_GROUP_AT_A_TIME = threading.Lock()


def run_task(study: str, numbers: list[int], token: str, requested: str) -> None:
    """Run a group in a Dask worker on the device that it is bound to, and log events."""
    from distributed import get_worker

    worker, lease, stop = get_worker(), Path(study) / study_folder.LEASE, Stop()

    def look() -> None:
        try:
            stop.requested = lease.read_text() != token
        except OSError:
            stop.requested = True

    def report(number: int, step: int) -> None:
        look()
        worker.log_event(topic(token), {"number": number, "step": step})

    with _ONE_GROUP_AT_A_TIME:
        bind_device(requested)
        look()
        for event in run_group(Path(study), numbers, report, stop):
            worker.log_event(topic(token), asdict(event))


def topic(token: str) -> str:
    """The topic of the events of a start of a study."""
    return f"heatsim-{token}"


@dataclass(frozen=True)
class BoundWorker:
    """What a worker says about itself.

    Attributes:
        backend: of its device.
        memory: free memory of its device in bytes.
        version: of heatsim.
    """

    backend: str
    memory: int
    version: str


def bound_worker(requested: str) -> BoundWorker:
    """Bind the device of this worker.

    Raises:
        DeviceError: it has no such device, or none for itself.
    """
    device = bind_device(requested)
    return BoundWorker(device.backend, device.free_memory(), full_version())


def full_version() -> str:
    """The version of heatsim with that of its numerics."""
    return f"{version()} (numerics {NUMERICS})"
