"""Worker processes on this machine: they receive groups and send events; a worker that dies is replaced.

Workers are separate commands that communicate through pipes. A study can therefore run in any script or notebook, and
workers notice when the study is killed.
"""

import json
import queue
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heatsim.errors import RunError, StorageError
from heatsim.study import folder as study_folder
from heatsim.study.columns import FAILED
from heatsim.study.progress import Event
from heatsim.study.worker_processes import WorkerProcess, WorkerProcesses, end

_TICK = 0.1
# Deaths at the same step of a run, and starts that fail, after which the run or the study fails.
_MOST_DEATHS = 5
_MOST_FAILED_STARTS = 3


class LocalWorkers:
    """Workers on this machine.

    Args:
        study: the study's folder.
        groups: the numbers of the runs of each group.
        processes: the workers, which are started.
    """

    def __init__(self, study: Path, groups: Sequence[Sequence[int]], processes: WorkerProcesses) -> None:
        self._study = study
        self._waiting = deque(list(group) for group in groups)
        self._processes = processes
        self._workers: list[WorkerProcess] = []
        self._deaths: dict[int, tuple[int, int]] = {}
        self._failed_starts = 0

    def events(self) -> Iterator[Event | None]:
        """Run all groups, and yield their events, or None after 0.1 s without one. Call :meth:`stop` afterwards.

        Raises:
            RunError: workers cannot be started.
        """
        self._workers = self._processes.take()
        while self._waiting or any(worker.group for worker in self._workers):
            try:
                worker, line = self._processes.lines.get(timeout=_TICK)
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
        self._processes.close()
        end(self._workers)
        ended: list[Event] = []
        while not self._processes.lines.empty():
            worker, line = self._processes.lines.get()
            ended += [event for event in self._heard(worker, json.loads(line or "{}")) if event.status]
        self._workers.clear()
        return ended

    def _heard(self, worker: WorkerProcess, message: dict[str, Any]) -> Iterator[Event]:
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

    def _give(self, worker: WorkerProcess) -> None:
        """Send a worker the next group. If there is none, tell it to end: that takes time, while others still work."""
        if not self._waiting or worker.process.stdin is None:
            worker.tell_to_end()
            return
        worker.group = self._waiting.popleft()
        # If the worker has just died, its closed output reports that.
        with suppress(OSError):
            worker.process.stdin.write(json.dumps(worker.group) + "\n")
            worker.process.stdin.flush()

    def _replace(self, worker: WorkerProcess) -> Iterator[Event]:
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
        # Before its first report it has set up one of its runs.
        begun = worker.begun or dict.fromkeys(worker.group, 0)
        if len(begun) == 1:
            ((number, first_step),) = begun.items()
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
        # Any of several runs may have killed the worker; halving the group finds it.
        half = len(worker.group) // 2 if len(begun) > 1 else 0
        for part in (worker.group[half:], worker.group[:half]):
            if part:
                self._waiting.appendleft(part)
        if self._waiting:
            self._workers.append(self._processes.start(worker.slot))
