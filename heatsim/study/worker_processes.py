"""The worker processes of a study on this machine, and their number.

A worker takes about a second to import its modules. So `heatsim study` starts workers before anything else
(heatsim/study/early_workers.py), and this module imports little.
"""

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from heatsim.device import count_gpus, usable_cores, visible_gpus

# The most workers that share a GPU, and the fewest runs for each worker. On an H200 (MEASUREMENTS.md), 200 runs of 48³
# cells took 4.3 to 4.6 s with four workers, 4.0 to 4.5 s with six and 4.1 to 4.6 s with eight; with an earlier version,
# 24 runs took 7.7 s with one worker, 6.8 s with two and 8.5 s with four.
_WORKERS_A_GPU, _RUNS_A_WORKER = 8, 12
_SECONDS_TO_END = 30.0


@dataclass(frozen=True)
class Shares:
    """What each worker may use.

    Attributes:
        workers: the number of workers.
        threads: CPU threads of each worker.
        gpus: the values of CUDA_VISIBLE_DEVICES, which workers take in turn; if empty, workers inherit the variable.
    """

    workers: int
    threads: int
    gpus: tuple[str, ...] = ()

    @classmethod
    def of(cls, runs: int, backend: str, requested: int | None = None, fitting: int | None = None) -> "Shares":
        """Divide this machine among the workers of a study.

        Args:
            runs: the number of runs that are not done.
            backend: "cpu" or "cuda".
            requested: the number of workers that the user asks for; None for the default.
            fitting: the number of workers whose fields fit the memory of the device; None if it is not known yet.
        """
        found = visible_gpus() or count_gpus() if backend == "cuda" else 0
        return cls.among(runs, names_of_gpus(found), requested, fitting)

    @classmethod
    def among(
        cls, runs: int, gpus: tuple[str, ...], requested: int | None = None, fitting: int | None = None
    ) -> "Shares":
        """Divide this machine. ``gpus``: CUDA_VISIBLE_DEVICES for each GPU; other arguments as for `of`."""
        cores = usable_cores()
        workers = requested or default_workers(runs, cores, len(gpus), runs if fitting is None else fitting)
        workers = max(1, min(workers, runs))
        return cls(workers, max(1, cores // workers), gpus)


def default_workers(runs: int, cores: int, gpus: int, fitting: int) -> int:
    """The number of workers on this machine if the user names none.

    Without GPUs it is one per core. A worker of a GPU spends longer in Python, on rows and files, than its GPU
    computes, so several workers share a GPU. Each takes time to start, so few runs have few workers.

    Args:
        runs: the number of runs.
        cores: of this machine.
        gpus: the number of GPUs; 0 without GPUs.
        fitting: the number of workers whose fields fit the memory of a device.
    """
    if not gpus:
        return min(cores, fitting)
    sharing = min(_WORKERS_A_GPU, fitting, cores // (2 * gpus), ceil(runs / (_RUNS_A_WORKER * gpus)))
    return gpus * max(1, sharing)


def names_of_gpus(count: int) -> tuple[str, ...]:
    """For each GPU that this process may use, the value of CUDA_VISIBLE_DEVICES that selects it.

    ``count``: the number of GPUs; their names if this variable is not set.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return tuple(visible.split(",")) if visible and count else tuple(map(str, range(count)))


@dataclass(eq=False)
class WorkerProcess:
    """A worker process.

    Attributes:
        slot: its number among the workers.
        process: the process.
        errors: the file with its standard error.
        ready: whether it waits for groups.
        group: the runs that it was sent and that have not ended.
        begun: the first reported step of each of these runs that has begun.
    """

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


class WorkerProcesses:
    """Worker processes, which start when this object is created.

    Args:
        study: the study's folder, which need not exist yet.
        shares: what each may use.
        device: that of the scenario, for which the workers get ready.
    """

    def __init__(self, study: Path, shares: Shares, device: str) -> None:
        self.shares = shares
        self.lines: queue.Queue[tuple[WorkerProcess, str | None]] = queue.Queue()
        self._study = study.absolute()
        self._device = device
        self._started = [self.start(slot) for slot in range(shares.workers)]

    def start(self, slot: int) -> WorkerProcess:
        """Start a process in a slot. Its lines arrive in ``lines``, and None when it has ended."""
        package = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_NUM_THREADS": str(self.shares.threads)}
        if self.shares.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.shares.gpus[slot % len(self.shares.gpus)]
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed when the worker ends)
        process = subprocess.Popen(
            # -P: do not import modules from the current folder.
            [sys.executable, "-P", "-m", "heatsim.study.worker", str(self._study), self._device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            env=environment,
            # Ctrl-C reaches only the study, which then stops the workers.
            start_new_session=True,
        )
        worker = WorkerProcess(slot, process, errors)
        worker.listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        worker.listener.start()
        return worker

    def close(self) -> None:
        """End the processes that have not been taken. They have not started any run."""
        for worker in self.take():
            worker.process.kill()
            worker.process.wait()
            worker.close()

    def take(self) -> list[WorkerProcess]:
        """The processes that were started with this object; the caller ends them."""
        taken, self._started = self._started, []
        return taken

    def _listen(self, worker: WorkerProcess) -> None:
        assert worker.process.stdout is not None
        with worker.process.stdout as lines:
            for line in lines:
                # A killed worker may leave an incomplete last line.
                if line.endswith("\n"):
                    self.lines.put((worker, line))
        self.lines.put((worker, None))


def end(workers: Sequence[WorkerProcess]) -> None:
    """Close the inputs of workers, and wait until they have saved checkpoints and exited; kill those that take long."""
    for worker in workers:
        worker.tell_to_end()
    deadline = time.monotonic() + _SECONDS_TO_END
    for worker in workers:
        try:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        worker.close()
