"""A study on a Dask scheduler with two workers, all in separate processes; one worker is killed during a run."""

import gc
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import runs
import study_text

import heatsim
from heatsim.errors import DeviceError
from heatsim.run.interrupt import Stop
from heatsim.storage import checkpoint
from heatsim.study import cluster, cluster_connection
from heatsim.study import folder as study_folder
from heatsim.study.cluster_worker import BoundWorker, full_version
from heatsim.study.folder import is_done
from heatsim.study.results import Results
from heatsim.study.run_group import run_group

pytest.importorskip("distributed", reason="Dask is not installed")

# A third of a second of steps per run, so that a kill hits a run.
OPTIONS = ["--quiet", "--set", "time.dt=1.25e-3", "--set", "output.checkpoint_wall=0.1"]


def dask(at: Path, *words: str) -> "subprocess.Popen[bytes]":
    with open(at / f"{len(list(at.glob('*.log')))}.log", "wb") as log:
        return subprocess.Popen([sys.executable, "-m", *words], cwd=at, env=runs.environment(), stdout=log, stderr=log)


@pytest.fixture(scope="module")
def scheduler(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """The address of a scheduler, and the processes of its two workers and of the scheduler.

    The first test loses a worker, the last one the scheduler; the worker that is left is enough for it.
    """
    at = tmp_path_factory.mktemp("dask")
    port_file = at / "scheduler.json"
    words = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    processes = [dask(at, *words, "--scheduler-file", str(port_file))]
    try:
        until(port_file.exists, processes[0])
        words = ["distributed.cli.dask_worker", "--scheduler-file", str(port_file), "--nthreads", "1"]
        processes += [dask(at, *words, "--no-dashboard", "--no-nanny") for _ in range(2)]
        yield json.loads(port_file.read_text())["address"], [*processes[1:], processes[0]]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def until(true: Callable[[], object], process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60.0
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_lost_worker_and_an_interruption_change_nothing(
    tmp_path: Path, scheduler: tuple[str, list["subprocess.Popen[bytes]"]]
) -> None:
    address, workers = scheduler
    path, out = study_text.write(tmp_path), tmp_path / "out"
    command = ["study", path, "--output", out, "--cluster", address, *OPTIONS]

    # Ctrl-C: the runs save checkpoints and stop; the workers stay.
    process = runs.start(*command)
    until(lambda: len(list((out / "runs").glob("*/checkpoint.h5"))) >= 2, process)
    process.send_signal(signal.SIGINT)
    stdout, err = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert "continue with the same command again" in err
    begun = [at for at in (out / "runs").iterdir() if not is_done(at)]
    assert begun
    assert all(checkpoint.read_last_good(at)[0] is not None for at in begun)
    assert not (out / study_folder.LEASE).exists()

    # Both continue; then one of them is lost.
    done = sum(map(is_done, (out / "runs").iterdir()))
    process = runs.start(*command)
    until(lambda: sum(map(is_done, (out / "runs").iterdir())) > done, process)
    workers[0].send_signal(signal.SIGKILL)
    stdout, err = process.communicate(timeout=120)
    assert (process.returncode, stdout, err) == (0, "", "")
    assert workers[1].poll() is None

    local, definition = tmp_path / "local", study_folder.read_study(out)
    local.mkdir()
    study_folder.write_study(local, definition)
    assert len(list(run_group(local, definition.numbers, lambda number, step: None, Stop()))) == 6
    Results(local, definition).write()
    tables = [study_text.without_times(at / study_folder.RESULTS_CSV) for at in (out, local)]
    assert tables[0] == tables[1]
    for number in range(1, 7):
        at = Path("runs") / f"{number:04d}"
        assert runs_alike(out / at) == runs_alike(local / at)


def runs_alike(at: Path) -> dict[str, bytes]:
    saved, warnings = checkpoint.read_last_good(at)
    assert saved is not None
    assert not warnings
    return {
        "probes": (at / "probes.csv").read_bytes(),
        "energy": (at / "energy.csv").read_bytes(),
        "field": saved.arrays["deviation"].tobytes(),
    }


def test_no_scheduler_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_connection, "SECONDS_TO_CONNECT", 0.3)
    study = heatsim.Study.from_scenario(
        study_text.write(tmp_path), output=tmp_path / "out", cluster="tcp://127.0.0.1:9"
    )
    with pytest.raises(DeviceError, match=r"--cluster tcp://127.0.0.1:9: no Dask scheduler answers there") as caught:
        study.run()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:notaport",
        "tcp://127.0.0.1",
        "tcp://:8786",
        "smoke://127.0.0.1:8786",
        "tcp://a:99999",
        "",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(DeviceError) as caught:
        cluster.Cluster(address)
    wanted = "is not the address of a Dask scheduler; write for example tcp://10.0.0.1:8786"
    assert str(caught.value) == f"--cluster {address}: {wanted}"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["nothing", "HTTP"])
def test_another_program_at_the_address_is_one_message(
    answer: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """For instance the dashboard of the scheduler, which has another port."""
    monkeypatch.setattr(cluster_connection, "SECONDS_TO_CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError), ExitStack() as connections:
                while True:
                    connection = connections.enter_context(server.accept()[0])
                    connection.sendall(answer)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(DeviceError, match=f"--cluster {address}: no Dask scheduler answers there"):
            cluster.Cluster(address)
        server.shutdown(socket.SHUT_RDWR)  # ends accept()
        serving.join(timeout=5.0)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_what_is_no_address_is_one_message(tmp_path: Path) -> None:
    words = ["--output", tmp_path / "out", "--cluster", "tcp://127.0.0.1:notaport"]
    code, out, err = runs.command("study", study_text.write(tmp_path), *words)
    assert (code, out) == (2, "")
    assert err.startswith("heatsim: --cluster tcp://127.0.0.1:notaport: is not the address")
    assert err.count("\n") == 1


def test_a_scheduler_that_dies_is_one_message(
    tmp_path: Path, scheduler: tuple[str, list["subprocess.Popen[bytes]"]]
) -> None:
    address, processes = scheduler
    out = tmp_path / "out"
    process = runs.start("study", study_text.write(tmp_path), "--output", out, "--cluster", address, *OPTIONS)
    until(lambda: list((out / "runs").glob("*/checkpoint.h5")), process)
    processes[-1].kill()
    stdout, err = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (1, "")
    assert err.splitlines(keepends=True)[-1] == (  # before it perhaps: waiting for workers
        f"heatsim: the Dask scheduler at {address} is gone, or dropped tasks; continue with the same command again\n"
    )


class _FakeClient:
    """A client of a scheduler with one worker, whose answer is given."""

    def __init__(self, answer: Callable[[], object]) -> None:
        self.answer = answer

    def scheduler_info(self, n_workers: int) -> dict[str, dict[str, object]]:
        return {"workers": {"tcp://node2:40001": {}}}

    def run(self, function: object, requested: str, workers: list[str]) -> dict[str, object]:
        return {worker: self.answer() for worker in workers}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda: BoundWorker("cpu", 1, "0.0.9 (numerics 1)"),
            rf"tcp://node2:40001 has heatsim 0\.0\.9 \(numerics 1\), but this machine has {re.escape(full_version())}; "
            "install the same version on all machines",
        ),
        (lambda: time.sleep(1.0), "no answer for 0.05 s; restart the workers that hang"),
    ],
    ids=["version", "stopped"],
)
def test_workers_that_cannot_be_used(
    answer: Callable[[], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "connected", lambda address: _FakeClient(answer))
    monkeypatch.setattr(cluster, "_SECONDS_TO_ANSWER", 0.05)
    found = cluster.Cluster("tcp://node1:8786")
    assert found.wait_for_workers(lambda: False) == 1
    with pytest.raises(DeviceError, match=f"--cluster tcp://node1:8786: a worker cannot run this study: {message}"):
        found.devices("auto")


def test_a_study_without_workers_says_how_to_start_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client, looks = _FakeClient(lambda: None), iter([{}, {}, {}, {"tcp://node2:40001": {}}])
    client.scheduler_info = lambda n_workers: {"workers": next(looks)}  # type: ignore[method-assign]
    monkeypatch.setattr(cluster, "connected", lambda address: client)
    monkeypatch.setattr(cluster, "_SECONDS_BEFORE_ADVICE", 0.0)
    assert cluster.Cluster("tcp://node1:8786").wait_for_workers(lambda: False) == 1
    advice = "start them with `dask worker tcp://node1:8786 --nthreads 1`"
    assert capsys.readouterr().err == f"heatsim: waiting for workers; {advice}\n"
