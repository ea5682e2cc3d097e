"""The connections that NCCL takes, and exchanges that hang."""

import os
import signal
import subprocess
import time
from typing import Any

import host_nccl
import pytest
from cuda_host import gpu
from thread_team import on_ranks

from heatsim.device import Device
from heatsim.errors import DeviceError
from heatsim.parallel import nccl
from heatsim.parallel.exchange_events import Hangs
from heatsim.parallel.nccl import NcclExchange, check_connections, connections, name_of
from heatsim.parallel.process import Process
from heatsim.parallel.signs import Sign
from heatsim.parallel.team import ExchangeProgress
from heatsim.parallel.transport import choose_transport
from heatsim.parallel.watch import SILENCE, SILENCE_VARIABLE, WAIT, WAIT_VARIABLE, _seconds

LOG = """\
node1:980:1265 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.5<0>
node1:980:1265 [0] NCCL INFO Using network IB
node1:980:1265 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
node1:980:1265 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
node1:981:1267 [1] NCCL INFO Channel 00/1 : 1[1] -> 2[0] [send] via NET/IB/3/GDRDMA
node2:983:1261 [0] NCCL INFO Channel 02/0 : 3[2f000] -> 2[2b000] via SHM/direct/direct
"""
FOUND = {(0, 1): "P2P/CUMEM", (1, 2): "NET/IB", (3, 2): "SHM/direct"}


def test_connections_in_a_log() -> None:
    assert connections(LOG) == FOUND
    assert name_of(FOUND) == "NCCL (SHM/direct, P2P/CUMEM, NET/IB)"
    assert name_of(connections("nothing of the kind")) == "NCCL"


def test_tcp_that_was_not_asked_for_is_refused() -> None:
    hosts = ["node1", "node1", "node2", "node2"]
    check_connections(FOUND, hosts, {})
    found = connections(LOG.replace("NET/IB/3/GDRDMA", "NET/Socket/0"))
    with pytest.raises(DeviceError, match=r"from rank 1 on node1 to rank 2 on node2 and took TCP .* NCCL_NET=Socket"):
        check_connections(found, hosts, {"NCCL_NET": "IB"})
    check_connections(found, hosts, {"NCCL_NET": "Socket"})


def test_all_ranks_refuse_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.play_gpu(monkeypatch)
    host_nccl.play_nccl(monkeypatch)
    monkeypatch.setattr(host_nccl, "WAY", "NET/Socket/0")
    monkeypatch.delenv("NCCL_NET", raising=False)
    here = gpu.host_device()

    def refused(team: Any) -> str:
        with pytest.raises(DeviceError) as error:
            choose_transport(team, here)
        return str(error.value)

    texts = on_ranks(3, refused)
    assert len(set(texts)) == 1
    assert "NCCL_DEBUG" not in os.environ


def test_a_log_of_the_user_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    with nccl.logged() as log:
        assert log is None
    assert os.environ["NCCL_DEBUG"] == "WARN"


class SomeEvent:
    def __init__(self) -> None:
        self.done = False


def test_progress_counts_exchanges_that_the_gpu_has_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[SomeEvent] = []
    monkeypatch.setattr(Device, "recorded", lambda device: events.append(SomeEvent()) or events[-1])

    class Communicator(host_nccl.NcclCommunicator):
        def __init__(self) -> None:
            """On one rank."""

    monkeypatch.setattr(host_nccl, "groupEnd", lambda: None)
    exchange = NcclExchange(host_nccl, Communicator(), gpu.host_device())
    assert exchange.progress() == ExchangeProgress(0, 0)
    exchange.exchange([], [])
    exchange.exchange([], [])
    assert exchange.progress() == ExchangeProgress(0, 0)
    events[0].done = True
    assert exchange.progress() == ExchangeProgress(1, 0)
    events[1].done = events[2].done = True
    assert exchange.progress() == ExchangeProgress(2, 1)
    events[3].done = True
    assert exchange.progress() == ExchangeProgress(2, 2)
    monkeypatch.setattr(host_nccl, "FAULTS", ["remote error"])
    with pytest.raises(RuntimeError, match="remote error"):
        exchange.progress()


def test_an_exchange_hangs_if_all_ranks_have_come_to_it() -> None:
    def signs(*progress: tuple[int, int]) -> list[Sign]:
        return [Sign(progress=(ExchangeProgress(*each),)) for each in progress]

    hangs = Hangs()
    assert hangs.look(signs((5, 4), (4, 4))) == (0, 0), "rank 1 still computes"
    assert [hangs.look(signs((5, 5), (6, 4))) for _ in range(3)] == [(0, 1), (1, 1), (2, 1)]
    assert hangs.look(signs((6, 5), (6, 6)))[0] == 0, "another exchange"
    assert hangs.look([Sign(), Sign()]) == (0, 0)


def test_why_a_process_is_silent() -> None:
    child = subprocess.Popen(["sleep", "60"])
    here = Process.this()
    process = Process(here.host, here.namespace, child.pid)
    try:
        until = time.monotonic() + 10.0
        while "cannot be reached" not in process.why_silent():  # it sleeps, as any process that waits
            assert time.monotonic() < until, "its program was loaded long ago"
            time.sleep(0.01)
        assert "cannot be reached" in Process("elsewhere", here.namespace, child.pid).why_silent()
        for number, text in ((signal.SIGSTOP, "stopped, for instance by SIGSTOP"), (signal.SIGKILL, "was killed")):
            child.send_signal(number)
            until = time.monotonic() + 10.0
            while text not in process.why_silent():
                assert time.monotonic() < until
                time.sleep(0.01)
    finally:
        child.kill()
        child.wait()
    assert "was killed" in process.why_silent()


@pytest.mark.parametrize(("variable", "default"), [(SILENCE_VARIABLE, SILENCE), (WAIT_VARIABLE, WAIT)])
def test_the_limits_of_the_watch_can_be_set(monkeypatch: pytest.MonkeyPatch, variable: str, default: float) -> None:
    monkeypatch.delenv(variable, raising=False)
    assert _seconds(variable, default) == default
    monkeypatch.setenv(variable, "3600")
    assert _seconds(variable, default) == 3600.0
    for text in ("x", "0", "1.9", "nan", "inf"):
        monkeypatch.setenv(variable, text)
        with pytest.raises(DeviceError, match=f'{variable} = "{text}": expected a number of seconds, 2 or more'):
            _seconds(variable, default)
