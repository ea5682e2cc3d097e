"""Workers of a cluster on one machine: each binds a GPU that no other has."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heatsim import device
from heatsim.errors import DeviceError
from heatsim.study import gpu_binding


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine with two GPUs; the numbers of those that workers have chosen."""
    numbers: list[int] = []
    runtime = SimpleNamespace(getDeviceCount=lambda: 2, deviceGetPCIBusId=lambda number: f"0000:{number:02x}:00.0")
    xp: Any = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(device, "choose", lambda requested: device.Device("cuda", xp, "a GPU"))
    monkeypatch.setattr(device, "choose_gpu", numbers.append)
    monkeypatch.setattr(gpu_binding.tempfile, "gettempdir", lambda: str(tmp_path))
    return numbers


def another_worker(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What a worker that has not bound a GPU yet knows."""
    taken: list[tuple[int, int]] = []
    monkeypatch.setattr(gpu_binding, "_taken", taken)
    return taken


def test_each_worker_takes_a_free_gpu_and_keeps_it(used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fcntl", reason="the system has no locks of this kind")
    first = another_worker(monkeypatch)
    gpu_binding.bind_device("auto")
    gpu_binding.bind_device("auto")
    second = another_worker(monkeypatch)
    gpu_binding.bind_device("auto")
    assert used == [0, 0, 1]
    third = another_worker(monkeypatch)
    with pytest.raises(DeviceError, match=r"other workers on .* have the 2 GPUs that this worker sees; start one"):
        gpu_binding.bind_device("auto")
    # The first worker ends.
    os.close(first[0][1])
    gpu_binding.bind_device("auto")
    assert used == [0, 0, 1, 0]
    for worker in (second, third):
        os.close(worker[0][1])


def test_a_worker_without_a_gpu_binds_nothing(used: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    monkeypatch.setattr(device, "choose", lambda requested: device.Device("cpu", np, "a CPU"))
    assert gpu_binding.bind_device("cpu").backend == "cpu"
    assert used == []
