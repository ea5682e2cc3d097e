"""Slabs on GPUs, and on the host in the part of one, give the bits of the whole grid."""

from functools import partial

import bodies
import numpy as np
import pytest
from cuda_host import gpu
from host_nccl import play_nccl
from slab_runs import AROUND, LINEAR, problem_of, same
from thread_team import on_ranks

from heatsim.device import Device
from heatsim.kernels.temporal_composite import correction
from heatsim.parallel.transport import choose_transport


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU, or the host in its part; boxes may be all cells."""
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)
    return str(request.param)


@pytest.mark.parametrize("kernel", ["naive", "streamed", "temporal", "resident"])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("faces", [{}, {"z_min": {"type": "periodic"}, "z_max": {"type": "periodic"}}])
def test_one_material(
    kernel: str, rounding: str, faces: dict[str, dict[str, str]], some_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if some_gpu == "host" and rounding == "nearest":
        play_nccl(monkeypatch)
    solver = {"device": "cuda", "kernel": kernel, "precision": "float32", "rounding": rounding}
    problem = problem_of(LINEAR, solver=solver, **({"boundaries": faces} if faces else {}))
    for ranks in (2, 3):
        same(problem, ranks)


@pytest.mark.parametrize("kernel", ["naive", "temporal"])
@pytest.mark.parametrize("text", [bodies.EVERYTHING, AROUND], ids=["everything", "around"])
def test_composite_bodies(kernel: str, text: str) -> None:
    same(problem_of(text, solver={"device": "cuda", "kernel": kernel, "precision": "float32"}), 2)


@pytest.mark.parametrize("text", [bodies.EVERYTHING, LINEAR], ids=["everything", "linear"])
def test_stabilized_steps(text: str) -> None:
    solver = {"device": "cuda", "kernel": "temporal", "precision": "float32"}
    same(problem_of(text, solver=solver).with_method("stabilized"), 2)


def test_nccl_needs_a_gpu_for_each_rank(some_gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if some_gpu != "host":
        pytest.skip("the number of GPUs is not known")
    here = gpu.host_device()
    assert on_ranks(2, lambda team: choose_transport(team, here).name) == ["host buffers, because CuPy has no NCCL"] * 2
    play_nccl(monkeypatch)
    assert on_ranks(2, lambda team: choose_transport(team, here).name) == ["NCCL (P2P/CUMEM)"] * 2
    monkeypatch.setattr(Device, "number", lambda device: "the only one")
    shared = "host buffers, because 2 ranks share 1 GPU"
    assert on_ranks(2, lambda team: choose_transport(team, here).name) == [shared] * 2
