"""Running groups on the workers of a Dask scheduler, one group a task.

There are as many tasks as workers. When a task ends or a worker joins, the next group is cut from the runs that are
left. Each worker binds a GPU of its machine that no other worker has (gpu_binding.py).

Workers need a shared file system with the study's folder under the same path, and heatsim installed. The file ``lease``
in that folder has a token of the current start of the study. When the file is missing or has another token, workers
save checkpoints and stop.
"""

import queue
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from heatsim.errors import DeviceError, RunError, StorageError
from heatsim.storage.manifest import write_own
from heatsim.study import folder as study_folder
from heatsim.study.cluster_connection import SECONDS_TO_CONNECT, connected
from heatsim.study.cluster_worker import BoundWorker, bound_worker, full_version, run_task, topic
from heatsim.study.columns import DONE, FAILED
from heatsim.study.groups import RunsLeft
from heatsim.study.progress import Event

_TICK = 0.1
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BEFORE_ADVICE = 5.0
_SECONDS_TO_ANSWER = 60.0  # of workers; the first answer imports heatsim
_SECONDS_TO_STOP = 30.0
_MOST_RETURNS = 3  # of a run that a worker has left unfinished without a reason, after which it fails


@dataclass(frozen=True)
class _Task:
    """A group, its future, and the addresses of the workers that may have it."""

    group: list[int]
    future: Any
    workers: frozenset[str]


class Cluster:
    """The workers of a Dask scheduler.

    Args:
        address: of the scheduler, such as "tcp://10.0.0.1:8786".

    Raises:
        DeviceError: no scheduler answers at the address, or Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        self._client = connected(address)
        self._address = address
        self._token = uuid.uuid4().hex
        self._news: queue.Queue[Event | tuple[int, Any]] = queue.Queue()
        self._tasks: dict[int, _Task] = {}
        self._submitted = 0
        self._workers: set[str] = set()
        self._refused: set[str] = set()
        self._requested = "auto"
        self._lease: Path | None = None
        self._returned: Counter[int] = Counter()

    def wait_for_workers(self, stopped: Callable[[], bool]) -> int:
        """Wait for the first worker, and return the number of workers; 0 if ``stopped`` returns True before.

        Raises:
            RunError: the scheduler is gone.
        """
        told_at = time.monotonic() + _SECONDS_BEFORE_ADVICE
        while not stopped():
            self._workers = self._present()
            if self._workers:
                return len(self._workers)
            if time.monotonic() > told_at:
                told_at = inf
                start = f"`dask worker {self._address} --nthreads 1`"
                print(f"heatsim: waiting for workers; start them with {start}", file=sys.stderr, flush=True)
            time.sleep(_TICK)
        return 0

    def devices(self, requested: str) -> tuple[str, int]:
        """Bind the devices of the workers; their backend, and the smallest free memory in bytes.

        Raises:
            DeviceError: a worker has no such device or none for itself, or cannot import heatsim.
        """
        self._requested = requested
        try:
            found = self._bind(sorted(self._workers))
        except Exception as error:
            raise DeviceError(f"--cluster {self._address}: a worker cannot run this study: {error}") from None
        return min(each.backend for each in found), min(each.memory for each in found)

    def submit(self, study: Path, runs: RunsLeft) -> None:
        """Write the lease, and submit the first group for each worker."""
        self._runs = runs
        self._lease = study.absolute() / study_folder.LEASE
        write_own(study, study_folder.LEASE, self._token.encode(), study_folder.AGAIN)
        self._client.subscribe_topic(topic(self._token), self._heard)
        self._deal()

    def events(self) -> Iterator[Event | None]:
        """Yield events until all runs have ended; yield None after 0.1 s without one.

        Raises:
            RunError: the scheduler is gone.
        """
        looked_at = time.monotonic()
        while self._tasks or len(self._runs):
            try:
                news = self._news.get(timeout=_TICK)
            except queue.Empty:
                if self._client.status in ("closed", "closing"):
                    raise self._gone() from None
                yield None
            else:
                if isinstance(news, Event):
                    yield news
                else:
                    yield from self._ended(*news)
                    self._deal()
            if time.monotonic() - looked_at > _SECONDS_BETWEEN_LOOKS:
                self._look()
                looked_at = time.monotonic()

    def stop(self) -> list[Event]:
        """Tell running groups to save checkpoints and stop, and disconnect from the scheduler.

        Returns the last events of runs that :meth:`events` has not yielded.
        """
        ended: list[Event] = []
        futures = [task.future for task in self._tasks.values()]
        if self._lease is not None:
            self._lease.unlink(missing_ok=True)
            deadline = time.monotonic() + _SECONDS_TO_STOP
            while time.monotonic() < deadline and not all(future.done() for future in futures):
                time.sleep(_TICK)
            with suppress(RunError, StorageError):
                while not self._news.empty():
                    news = self._news.get()
                    ended.extend([news] if isinstance(news, Event) else self._ended(*news))
        with suppress(Exception):
            self._client.cancel(futures)
            self._client.close(timeout=SECONDS_TO_CONNECT)
        return ended

    def _present(self) -> set[str]:
        """The addresses of the workers that are there."""
        try:
            return set(self._client.scheduler_info(n_workers=-1)["workers"])
        except OSError:
            raise self._gone() from None

    def _bind(self, workers: list[str]) -> "list[BoundWorker]":
        """Bind the devices of workers.

        Raises:
            DeviceError: a worker has another version of heatsim, or does not answer.
            Exception: what a worker raised.
        """
        answer: Future[dict[str, BoundWorker]] = Future()

        def ask() -> None:
            try:
                answer.set_result(self._client.run(bound_worker, self._requested, workers=workers))
            except Exception as error:
                answer.set_exception(error)

        # In a thread, because Dask waits for a worker without a time limit.
        threading.Thread(target=ask, daemon=True).start()
        try:
            found = answer.result(_SECONDS_TO_ANSWER)
        except TimeoutError:
            raise DeviceError(f"no answer for {_SECONDS_TO_ANSWER:g} s; restart the workers that hang") from None
        for worker, bound in found.items():
            if bound.version != full_version():
                raise DeviceError(
                    f"{worker} has heatsim {bound.version}, but this machine has {full_version()}; install the same "
                    "version on all machines"
                )
        return list(found.values())

    def _look(self) -> None:
        """Notice workers that have joined or left, and deal them groups."""
        present = self._present()
        self._workers &= present
        self._refused &= present
        for worker in sorted(present - self._workers - self._refused):
            try:
                self._bind([worker])
                self._workers.add(worker)
            except Exception as error:
                self._refused.add(worker)
                print(f"heatsim: warning: worker {worker} gets no runs: {error}", file=sys.stderr, flush=True)
        for number, task in list(self._tasks.items()):
            if not task.workers & present:
                # No worker that may have it is left.
                self._tasks.pop(number).future.cancel()
                self._runs.put_back(task.group)
        self._deal()

    def _deal(self) -> None:
        """Submit groups until there is a task for each worker."""
        assert self._lease is not None
        while len(self._tasks) < len(self._workers) and len(self._runs):
            group, number = self._runs.cut(len(self._workers)), self._submitted
            self._submitted += 1
            future = self._client.submit(
                run_task,
                str(self._lease.parent),
                group,
                self._token,
                self._requested,
                key=f"heatsim-{self._token}-{number}",
                pure=False,
                workers=sorted(self._workers),
            )
            self._tasks[number] = _Task(group, future, frozenset(self._workers))
            future.add_done_callback(lambda done, number=number: self._news.put((number, done)))

    def _gone(self) -> RunError:
        return RunError(
            f"the Dask scheduler at {self._address} is gone, or dropped tasks; continue with {study_folder.AGAIN}"
        )

    def _heard(self, message: tuple[float, dict[str, Any]]) -> None:
        _, content = message
        # Dask adds other names to the message.
        self._news.put(Event(**{name: content[name] for name in Event.__dataclass_fields__ if name in content}))

    def _ended(self, number: int, future: Any) -> Iterator[Event]:
        """The last events of the runs of a task, read from their folders. Runs without an end are put back.

        A result in memory would be lost with its worker.
        """
        assert self._lease is not None
        task = self._tasks.pop(number, None)
        if task is None:  # its runs were put back
            return
        paths = {run: study_folder.run_path(self._lease.parent, run) for run in task.group}
        if future.status == "cancelled":
            raise self._gone()
        if future.status == "error":
            # Dask drops a task after its workers have died several times.
            message = f"the group's task failed on the cluster: {future.exception()}"
            for path in paths.values():
                if not study_folder.is_done(path):
                    study_folder.write_failure(path, message, again=True)
        unfinished = []
        for run, path in paths.items():
            failure = study_folder.read_failure(path)
            if study_folder.is_done(path):
                yield Event(run, None, DONE)
            elif failure is not None:
                yield Event(run, None, FAILED, failure[0])
            else:
                unfinished.append(run)
        # The worker has read no lease, or another one: its file system may be late.
        self._returned.update(unfinished)
        self._runs.put_back([run for run in unfinished if self._returned[run] < _MOST_RETURNS])
        for run in unfinished:
            if self._returned[run] >= _MOST_RETURNS:
                message = f"workers stopped it {_MOST_RETURNS} times: they do not see the file {self._lease}"
                study_folder.write_failure(paths[run], message, again=True)
                yield Event(run, None, FAILED, message)
