"""Give the missing runs of a study to workers, and follow the workers until they end."""

import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from heatsim.errors import CapacityError
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import size
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.storage.folder import bytes_on_disk
from heatsim.study.columns import FAILED
from heatsim.study.early_workers import EarlyWorkers
from heatsim.study.folder import run_folders, run_path
from heatsim.study.groups import RunsLeft, make_groups
from heatsim.study.progress import Event, StudyProgress
from heatsim.study.results import Results
from heatsim.study.worker_processes import Shares
from heatsim.study.workers import LocalWorkers

_SECONDS_BETWEEN_TABLES = 10.0


class _Workers(Protocol):
    def events(self) -> Iterator[Event | None]: ...

    def stop(self) -> list[Event]: ...


@dataclass(frozen=True)
class Dispatch:
    """The missing runs of a study, and the workers that do them.

    Attributes:
        folder: the folder of the study.
        problems: the missing runs by number.
        plans: their plans by number; empty if a cluster does them.
        workers: the number of processes on this machine; None for the default.
        cluster: the address of a Dask scheduler that runs the groups instead.
        early: workers that have been started already.
    """

    folder: Path
    problems: Mapping[int, HeatProblem]
    plans: Mapping[int, Plan]
    workers: int | None = None
    cluster: str | None = None
    early: EarlyWorkers | None = None

    def run(self, results: Results, stop: Stop, runs: int, *, draws: bool, shown: bool) -> None:
        """Compute the runs; write the tables every ten seconds.

        Args:
            results: the table of the study.
            stop: a request to save checkpoints and stop.
            runs: the number of runs of the study.
            draws: whether pictures and a report follow.
            shown: whether to show the progress on stderr.

        Raises:
            RunError: workers cannot be started.
        """
        steps = {number: problem.timeline.last_step for number, problem in self.problems.items()}
        work = {number: float(steps[number] * problem.grid.cell_count) for number, problem in self.problems.items()}
        with (
            StudyProgress(work, steps, runs - len(steps), shown) as progress,
            ThreadPoolExecutor(1) as meanwhile,
        ):
            meanwhile.submit(_get_ready_to_end, draws)
            workers = self._start(stop)
            if workers is None:
                return
            written_at = time.monotonic()
            try:
                for event in workers.events():
                    if stop.requested:
                        break
                    _note(event, progress, results)
                    if event is None:
                        progress.show()
                    if time.monotonic() - written_at > _SECONDS_BETWEEN_TABLES:
                        results.write()
                        written_at = time.monotonic()
            finally:
                for event in workers.stop():
                    _note(event, progress, results)

    def _start(self, stop: Stop) -> _Workers | None:
        """Start the workers and give them the groups; None if the study is stopped first."""
        requested = next(iter(self.problems.values())).scenario.solver.device
        if self.cluster is not None:
            from heatsim.study.cluster import Cluster

            cluster = Cluster(self.cluster)
            try:
                if not cluster.wait_for_workers(lambda: stop.requested):
                    cluster.stop()
                    return None
                backend, memory = cluster.devices(requested)
                cluster.submit(self.folder, RunsLeft(self.problems, backend, memory))
            except BaseException:
                cluster.stop()
                raise
            return cluster
        plans = list(self.plans.values())
        device = plans[0].device
        largest = self._largest
        fitting = max(1, device.free_memory() // (2 * (largest.device_bytes + largest.host_bytes)))
        shares = Shares.of(len(plans), device.backend, self.workers, fitting)
        sharing = -(-shares.workers // max(len(shares.gpus), 1))
        memory = device.free_memory() // sharing
        groups = make_groups(self.problems, self.problems, device.backend, memory, shares.workers)
        early = self.early or EarlyWorkers(self.folder, self.workers)
        return LocalWorkers(self.folder, groups, early.take(shares, requested))

    @property
    def _largest(self) -> Plan:
        """The plan of the run that needs the most memory."""
        return max(self.plans.values(), key=lambda plan: plan.device_bytes + plan.host_bytes)

    def check_capacity(self, overwrite: bool) -> None:
        """Check that the runs fit the memory and the disk, before anything is written; not those of a cluster.

        Args:
            overwrite: whether all runs in the folder will be removed first, instead of those that are missing.

        Raises:
            CapacityError: they do not fit.
        """
        if not self.plans:
            return
        self._largest.check_memory()
        needed, free = sum(plan.disk_bytes for plan in self.plans.values()), shutil.disk_usage(self.folder).free
        replaced = run_folders(self.folder) if overwrite else [run_path(self.folder, number) for number in self.plans]
        there = sum(map(bytes_on_disk, replaced))
        if needed > free + there:
            path = next(iter(self.problems.values())).scenario.path
            whose = "the study there" if overwrite else "interrupted runs"
            held = f" in addition to the {size(there)} of {whose}" if there else ""
            raise CapacityError(
                f"{path}: its runs would write {size(needed)} to {self.folder}, where {size(free)} are free{held}; "
                "leave output.every out, use fewer cells or choose another --output"
            )


def _get_ready_to_end(draws: bool) -> None:
    """Import what the results and pictures need, while the workers run."""
    import pyarrow.parquet

    pyarrow.array([0.0])  # the first array imports pandas
    if draws:
        import heatsim.study.page  # noqa: F401


def _note(event: Event | None, progress: StudyProgress, results: Results) -> None:
    if event is None:
        return
    if event.step is not None:
        progress.advance(event.number, event.step)
        return
    progress.end(event.number, event.status == FAILED)
    if event.status == FAILED:
        results.note_failure(event.number, event.message)
    else:
        results.read(event.number)  # now, while the workers run
