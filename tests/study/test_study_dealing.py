"""The groups that a study deals to the workers of a cluster while workers join and leave."""

import shutil
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
import study_text

from heatsim.errors import CapacityError, DeviceError
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.storage import manifest
from heatsim.storage.folder import CHECKPOINT, bytes_on_disk
from heatsim.study import cluster as clusters
from heatsim.study import cluster_connection
from heatsim.study import folder as study_folder
from heatsim.study.cluster import Cluster
from heatsim.study.cluster_worker import BoundWorker, full_version
from heatsim.study.definition import read
from heatsim.study.dispatch import Dispatch
from heatsim.study.groups import RunsLeft
from heatsim.study.progress import Event

FREE = 1 << 30


class FakeFuture:
    status = "pending"

    def __init__(self, group: list[int], workers: list[str]) -> None:
        self.group, self.workers = group, workers
        self._tell: Callable[[Any], None] = lambda future: None

    def add_done_callback(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell

    def cancel(self) -> None:
        self.end("cancelled")

    def end(self, status: str = "finished") -> None:
        self.status = status
        self._tell(self)

    def done(self) -> bool:
        return self.status != "pending"

    def exception(self) -> BaseException | None:
        return CancelledError() if self.status == "cancelled" else None


class FakeClient:
    """A Dask client whose workers do nothing."""

    status = "running"
    closed = False

    def __init__(self, workers: list[str]) -> None:
        self.workers = workers
        self.refusing: set[str] = set()
        self.futures: list[FakeFuture] = []

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": dict.fromkeys(self.workers)}

    def run(self, function: Any, requested: str, workers: list[str]) -> dict[str, BoundWorker]:
        if self.refusing & set(workers):
            raise DeviceError("another worker has the GPU")
        return dict.fromkeys(workers, BoundWorker("cpu", FREE, full_version()))

    def submit(self, function: Any, *arguments: Any, workers: list[str], **options: Any) -> FakeFuture:
        self.futures.append(FakeFuture(arguments[1], workers))
        return self.futures[-1]

    def subscribe_topic(self, topic: str, heard: Any) -> None:
        pass

    def cancel(self, futures: list[FakeFuture]) -> None:
        pass

    def close(self, timeout: float) -> None:
        self.closed = True


@pytest.fixture
def dealt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, FakeClient, Path]:
    """A cluster of one worker to which a study of twelve runs has been dealt."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    client = FakeClient(["a"])
    monkeypatch.setattr(cluster_connection, "_call_at", lambda address: None)
    monkeypatch.setattr("distributed.Client", lambda *arguments, **options: client)
    monkeypatch.setattr(clusters, "_SECONDS_BETWEEN_LOOKS", 0.0)
    study = study_text.STUDY.replace("[20.0, 40.0]", "[20.0, 30.0, 40.0, 50.0]")
    _, problems = read(study_text.write(tmp_path, study))
    cluster = Cluster("tcp://127.0.0.1:8786")
    assert cluster.wait_for_workers(lambda: False) == 1
    assert cluster.devices("cpu") == ("cpu", FREE)
    manifest.create(tmp_path, [])
    cluster.submit(tmp_path, RunsLeft(problems, "cpu", FREE))
    return cluster, client, tmp_path


def groups(client: FakeClient) -> list[list[int]]:
    return [future.group for future in client.futures if not future.done()]


def test_a_worker_that_joins_late_gets_work(dealt: tuple[Cluster, FakeClient, Path]) -> None:
    cluster, client, folder = dealt
    assert groups(client) == [[1, 2, 3, 4, 5, 6]]
    client.workers += ["b", "c"]
    events = cluster.events()
    assert next(events) is None
    assert next(events) is None
    assert groups(client) == [[1, 2, 3, 4, 5, 6], [7], [8]]
    # What ends makes room for the next group.
    study_folder.write_failure(study_folder.run_path(folder, 7), "no disk", again=True)
    client.futures[1].end()
    assert next(events) == Event(7, None, "failed", "no disk")
    assert next(events) is None
    assert groups(client) == [[1, 2, 3, 4, 5, 6], [8], [9]]


def test_a_worker_without_a_gpu_for_itself_gets_nothing(
    dealt: tuple[Cluster, FakeClient, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, client, _ = dealt
    client.workers += ["b"]
    client.refusing = {"b"}
    events = cluster.events()
    assert [next(events) for _ in range(4)] == [None] * 4
    assert groups(client) == [[1, 2, 3, 4, 5, 6]]
    warning = "heatsim: warning: worker b gets no runs: another worker has the GPU\n"
    assert capsys.readouterr().err == warning


def test_runs_of_workers_that_are_all_lost_go_to_others(dealt: tuple[Cluster, FakeClient, Path]) -> None:
    cluster, client, folder = dealt
    client.workers = ["b"]
    events = cluster.events()
    assert [next(events) for _ in range(2)] == [None] * 2
    assert client.futures[0].status == "cancelled"
    assert groups(client) == [[1, 2, 3, 4, 5, 6]]
    assert client.futures[1].workers == ["b"]
    for number in client.futures[1].group:
        study_folder.write_failure(study_folder.run_path(folder, number), "no disk", again=True)
    client.futures[1].end()
    ended = [event for event in (next(events) for _ in range(6)) if event is not None]
    assert ended == [Event(number, None, "failed", "no disk") for number in range(1, 7)]


def test_runs_that_workers_leave_unfinished_are_dealt_again_and_fail_at_the_third_time(
    dealt: tuple[Cluster, FakeClient, Path],
) -> None:
    """As workers do that cannot read the lease."""
    cluster, client, folder = dealt
    events = cluster.events()
    for _ in range(2):
        client.futures[-1].end()
        assert next(events) is None
        assert groups(client) == [[1, 2, 3, 4, 5, 6]]
    client.futures[-1].end()
    ended = [event for event in (next(events) for _ in range(6)) if event is not None]
    message = f"workers stopped it 3 times: they do not see the file {folder / study_folder.LEASE}"
    assert ended == [Event(number, None, "failed", message) for number in range(1, 7)]
    assert study_folder.read_failure(study_folder.run_path(folder, 6)) == (message, True)


def test_ends_that_nobody_has_read_are_told_at_a_stop(dealt: tuple[Cluster, FakeClient, Path]) -> None:
    cluster, client, folder = dealt
    study_folder.write_failure(study_folder.run_path(folder, 2), "no disk", again=True)
    client.futures[0].end()
    assert cluster.stop() == [Event(2, None, "failed", "no disk")]
    assert not (folder / study_folder.LEASE).exists()


def test_a_start_that_fails_disconnects(
    dealt: tuple[Cluster, FakeClient, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client, folder = dealt
    client.refusing = {"a"}
    monkeypatch.setattr(clusters, "connected", lambda address: client)
    _, problems = read(folder / "plate.toml")
    with pytest.raises(DeviceError, match="another worker has the GPU"):
        Dispatch(folder, problems, {}, cluster="tcp://127.0.0.1:8786")._start(Stop())
    assert client.closed


def test_a_refusal_at_the_start_stops_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    client = FakeClient(["a", "b"])
    client.refusing = {"b"}
    monkeypatch.setattr(cluster_connection, "_call_at", lambda address: None)
    monkeypatch.setattr("distributed.Client", lambda *arguments, **options: client)
    cluster = Cluster("tcp://127.0.0.1:8786")
    cluster.wait_for_workers(lambda: False)
    with pytest.raises(DeviceError, match="a worker cannot run this study: another worker has the GPU"):
        cluster.devices("cuda")


def test_files_of_interrupted_runs_count_as_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, problems = read(study_text.write(tmp_path))
    plans = {number: Plan.of(problem) for number, problem in problems.items()}
    begun = study_folder.run_path(tmp_path, 1)
    begun.mkdir(parents=True)
    (begun / CHECKPOINT).write_bytes(bytes(1 << 16))
    free = sum(plan.disk_bytes for plan in plans.values()) - bytes_on_disk(begun)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(free, 0, free))
    Dispatch(tmp_path, problems, plans).check_capacity(overwrite=False)
    free -= 1
    with pytest.raises(CapacityError, match="in addition to the 64 KiB of interrupted runs; leave"):
        Dispatch(tmp_path, problems, plans).check_capacity(overwrite=False)
