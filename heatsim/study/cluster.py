"""Running groups on the workers of a Dask scheduler, one group a task.

Workers need a shared file system with the study's folder under the same path, and heatsim installed. The file ``lease``
in that folder has a token of the current start of the study. When the file is missing or has another token, workers
save checkpoints and stop.
"""

import logging
import queue
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heatsim.errors import DeviceError, RunError
from heatsim.run.interrupt import Stop
from heatsim.storage.disk import write_whole
from heatsim.study import folder as study_folder
from heatsim.study.columns import DONE, FAILED
from heatsim.study.run_group import run_group
from heatsim.study.workers import Event

_TICK = 0.1
_SECONDS_TO_CONNECT = 10
_SECONDS_TO_STOP = 30.0
# A kernel uses all threads of its process, and numba's kernels must not run twice at a time.
_ONE_GROUP_AT_A_TIME = threading.Lock()


class Cluster:
    """The workers of a Dask scheduler.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786".

    Raises:
        DeviceError: no scheduler answers at the address, or Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise DeviceError("--cluster needs Dask; install heatsim[cluster]") from None
        # One message of heatsim replaces what Dask logs when a scheduler disappears.
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            _call_at(address)
            connect: Any = distributed.Client
            self._client = connect(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise DeviceError(
                f"--cluster {address}: no Dask scheduler answers there ({error}); start one with `dask scheduler`"
            ) from None
        except ValueError:
            raise DeviceError(
                f"--cluster {address}: is not the address of a Dask scheduler; write for example tcp://10.0.0.1:8786"
            ) from None
        self._address = address
        self._token = uuid.uuid4().hex
        self._news: queue.Queue[Event | tuple[int, Any]] = queue.Queue()
        self._futures: list[Any] = []
        self._lease: Path | None = None

    def wait_for_workers(self, stopped: Callable[[], bool]) -> int:
        """Wait for the first worker, and return the number of workers; 0 if ``stopped`` returns True before.

        Raises:
            RunError: the scheduler is gone.
        """
        while not stopped():
            try:
                workers = len(self._client.scheduler_info(n_workers=-1)["workers"])
            except OSError:
                raise self._gone() from None
            if workers:
                return workers
            time.sleep(_TICK)
        return 0

    def devices(self, requested: str) -> tuple[str, int]:
        """The backend of the workers' devices, and the smallest free memory in bytes.

        Raises:
            DeviceError: a worker has no such device, or cannot import heatsim.
        """
        try:
            found = self._client.run(_device, requested)
        except Exception as error:
            raise DeviceError(f"--cluster {self._address}: a worker cannot run this study: {error}") from None
        backends = sorted({backend for backend, _ in found.values()})
        return backends[0], min(memory for _, memory in found.values())

    def submit(self, study: Path, groups: Sequence[Sequence[int]]) -> None:
        """Write the lease, and submit the groups."""
        self._lease = study.absolute() / study_folder.LEASE
        write_whole(self._lease, self._token.encode(), study_folder.AGAIN)
        self._client.subscribe_topic(_topic(self._token), self._heard)
        for index, group in enumerate(groups):
            future = self._client.submit(
                run_task,
                str(study.absolute()),
                list(group),
                self._token,
                key=f"heatsim-{self._token}-{index}",
                pure=False,
            )
            future.add_done_callback(lambda done, index=index: self._news.put((index, done)))
            self._futures.append(future)
        self._groups = [list(group) for group in groups]

    def events(self) -> Iterator[Event | None]:
        """Yield events until all groups have ended; yield None after 0.1 s without one.

        Raises:
            RunError: the scheduler is gone.
        """
        left = len(self._futures)
        while left:
            try:
                news = self._news.get(timeout=_TICK)
            except queue.Empty:
                if self._client.status in ("closed", "closing"):
                    raise self._gone() from None
                yield None
                continue
            if isinstance(news, Event):
                yield news
            else:
                left -= 1
                yield from self._ended(*news)

    def stop(self) -> list[Event]:
        """Tell running groups to save checkpoints and stop, and disconnect from the scheduler."""
        ended: list[Event] = []
        if self._lease is not None:
            self._lease.unlink(missing_ok=True)
            deadline = time.monotonic() + _SECONDS_TO_STOP
            while time.monotonic() < deadline and not all(future.done() for future in self._futures):
                time.sleep(_TICK)
        with suppress(Exception):
            self._client.cancel(self._futures)
            self._client.close(timeout=_SECONDS_TO_CONNECT)
        return ended

    def _gone(self) -> RunError:
        return RunError(
            f"the Dask scheduler at {self._address} is gone, or dropped tasks; continue with {study_folder.AGAIN}"
        )

    def _heard(self, message: tuple[float, dict[str, Any]]) -> None:
        _, content = message
        # Dask adds other names to the message.
        self._news.put(Event(**{name: content[name] for name in Event.__dataclass_fields__ if name in content}))

    def _ended(self, index: int, future: Any) -> Iterator[Event]:
        """The last events of a group's runs, read from their folders.

        A result in memory would be lost with its worker.
        """
        assert self._lease is not None
        paths = {number: study_folder.run_path(self._lease.parent, number) for number in self._groups[index]}
        if future.status == "cancelled":
            raise self._gone()
        if future.status == "error":
            # Dask drops a task after its workers have died several times.
            message = f"the group's task failed on the cluster: {future.exception()}"
            for path in paths.values():
                if not study_folder.is_done(path):
                    study_folder.write_failure(path, message, again=True)
        for number, path in paths.items():
            failure = study_folder.read_failure(path)
            if study_folder.is_done(path):
                yield Event(number, None, DONE)
            elif failure is not None:
                yield Event(number, None, FAILED, failure[0])


def _call_at(address: str) -> None:
    """Check that something listens at an address; a client of Dask that cannot connect leaves threads behind.

    Raises:
        ValueError: it is not the address of a scheduler.
        OSError: nothing listens there.
    """
    from distributed.comm.addressing import get_address_host_port

    host, port = get_address_host_port(address)
    if not host or not 0 < port < 2**16:
        raise ValueError(address)
    socket.create_connection((host, port), _SECONDS_TO_CONNECT).close()


def run_task(study: str, numbers: list[int], token: str) -> None:
    """Run a group in a Dask worker, and log events."""
    from distributed import get_worker

    worker, lease, stop = get_worker(), Path(study) / study_folder.LEASE, Stop()

    def look() -> None:
        try:
            stop.requested = lease.read_text() != token
        except OSError:
            stop.requested = True

    def report(number: int, step: int) -> None:
        look()
        worker.log_event(_topic(token), {"number": number, "step": step})

    with _ONE_GROUP_AT_A_TIME:
        look()
        for outcome in run_group(Path(study), numbers, report, stop):
            worker.log_event(_topic(token), asdict(outcome))


def _topic(token: str) -> str:
    return f"heatsim-{token}"


def _device(requested: str) -> tuple[str, int]:
    from heatsim.device import choose

    device = choose(requested)
    return device.backend, device.free_memory()
