"""Worker processes on this machine: they receive groups and send events; a worker that dies is replaced.

Workers are separate commands that communicate through pipes. A study can therefore run in any script or notebook, and
workers notice when the study is killed.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heatsim.errors import RunError, StorageError
from heatsim.study import folder as study_folder
from heatsim.study.columns import FAILED

_TICK = 0.1
_SECONDS_TO_STOP = 30.0
# Deaths at the same step of a run, and starts that fail, after which the run or the study fails.
_MOST_DEATHS = 5
_MOST_FAILED_STARTS = 3


@dataclass(frozen=True)
class Event:
    """The progress of a run, or its end.

    Attributes:
        number: the run.
        step: the number of steps so far; None at the end.
        status: "done" or "failed" at the end, else "".
        message: the reason of a failure.
    """

    number: int
    step: int | None = None
    status: str = ""
    message: str = ""


@dataclass(eq=False)
class _Worker:
    slot: int
    process: "subprocess.Popen[str]"
    errors: Any
    ready: bool = False
    group: list[int] = field(default_factory=list)
    begun: dict[int, int] = field(default_factory=dict)
    listener: threading.Thread | None = None

    def tell_to_end(self) -> None:
        """Close the worker's input."""
        if self.process.stdin is not None:
            # Flushing fails if the worker died before it read everything.
            with suppress(OSError):
                self.process.stdin.close()

    def close(self) -> None:
        """Release a process that has ended."""
        self.tell_to_end()
        self.errors.close()
        if self.listener is not None:
            self.listener.join()


class LocalWorkers:
    """Workers on this machine.

    Args:
        study: the study's folder.
        groups: the numbers of the runs of each group.
        workers: the number of processes.
        threads: the number of CPU threads of each process.
        gpus: the values of CUDA_VISIBLE_DEVICES, which workers take in turn; if empty, workers inherit the variable.
    """

    def __init__(
        self, study: Path, groups: Sequence[Sequence[int]], workers: int, threads: int, gpus: Sequence[str] = ()
    ) -> None:
        self._study = study
        self._waiting = deque(list(group) for group in groups)
        self._threads = threads
        self._gpus = gpus
        self._lines: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()
        self._workers: list[_Worker] = []
        self._deaths: dict[int, tuple[int, int]] = {}
        self._failed_starts = 0
        self._size = min(workers, len(self._waiting))

    def events(self) -> Iterator[Event | None]:
        """Run all groups, and yield their events, or None after 0.1 s without one. Call :meth:`stop` afterwards.

        Raises:
            RunError: workers cannot be started.
        """
        for slot in range(self._size):
            self._workers.append(self._start(slot))
        while self._waiting or any(worker.group for worker in self._workers):
            try:
                worker, line = self._lines.get(timeout=_TICK)
            except queue.Empty:
                yield None
                continue
            if line is None:
                yield from self._replace(worker)
            else:
                yield from self._heard(worker, json.loads(line))

    def stop(self) -> list[Event]:
        """Tell all workers to save checkpoints and exit; returns the events until then."""
        self._waiting.clear()
        for worker in self._workers:
            worker.tell_to_end()
        deadline = time.monotonic() + _SECONDS_TO_STOP
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.close()
        ended: list[Event] = []
        while not self._lines.empty():
            worker, line = self._lines.get()
            ended += [event for event in self._heard(worker, json.loads(line or "{}")) if event.status]
        self._workers.clear()
        return ended

    def _start(self, slot: int) -> _Worker:
        package = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_NUM_THREADS": str(self._threads)}
        if self._gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self._gpus[slot % len(self._gpus)]
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed when the worker ends)
        process = subprocess.Popen(
            # -P: do not import modules from the current folder.
            [sys.executable, "-P", "-m", "heatsim.study.worker", str(self._study.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env=environment,
            # Ctrl-C reaches only the study, which then stops the workers.
            start_new_session=True,
        )
        worker = _Worker(slot, process, errors)
        worker.listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        worker.listener.start()
        return worker

    def _listen(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        with worker.process.stdout as lines:
            for line in lines:
                # A killed worker may leave an incomplete last line.
                if line.endswith("\n"):
                    self._lines.put((worker, line))
        self._lines.put((worker, None))

    def _heard(self, worker: _Worker, message: dict[str, Any]) -> Iterator[Event]:
        if "ready" in message:
            worker.ready = True
            self._failed_starts = 0
        if "ready" in message or "idle" in message:
            worker.group = []
            worker.begun.clear()
            self._give(worker)
        elif "status" in message:
            number = int(message["run"])
            if number in worker.group:
                worker.group.remove(number)
            worker.begun.pop(number, None)
            yield Event(number, None, message["status"], message["message"])
        elif "step" in message:
            worker.begun.setdefault(message["run"], message["step"])
            yield Event(message["run"], message["step"])

    def _give(self, worker: _Worker) -> None:
        if not self._waiting or worker.process.stdin is None:
            return
        worker.group = self._waiting.popleft()
        # If the worker has just died, its closed output reports that.
        with suppress(OSError):
            worker.process.stdin.write(json.dumps(worker.group) + "\n")
            worker.process.stdin.flush()

    def _replace(self, worker: _Worker) -> Iterator[Event]:
        """Return the runs of a dead worker to the queue, and start a new worker in its slot."""
        code = worker.process.wait()
        worker.errors.seek(0)
        said = worker.errors.read().decode(errors="replace").strip().splitlines()
        worker.close()
        self._workers.remove(worker)
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_FAILED_STARTS:
                raise RunError(f"worker processes cannot be started: {said[-1] if said else f'exit code {code}'}")
        if len(worker.begun) == 1:
            ((number, first_step),) = worker.begun.items()
            count, step = self._deaths.get(number, (0, first_step))
            count = 1 if first_step > step else count + 1
            self._deaths[number] = (count, first_step)
            if count >= _MOST_DEATHS:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
                last = f"; its last line of output: {said[-1]}" if said else ""
                message = f"the worker process {how}, {count} times at the same step of this run{last}"
                with suppress(StorageError, OSError):
                    study_folder.write_failure(study_folder.run_path(self._study, number), message, again=True)
                worker.group.remove(number)
                yield Event(number, None, FAILED, message)
        # Any run of an ensemble may have killed the worker; halving the group finds it.
        half = len(worker.group) // 2 if len(worker.begun) > 1 else 0
        for part in (worker.group[half:], worker.group[:half]):
            if part:
                self._waiting.appendleft(part)
        if self._waiting:
            self._workers.append(self._start(worker.slot))
