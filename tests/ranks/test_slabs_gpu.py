"""Slabs on GPUs, and on the host in the part of one, give the bits of the whole grid."""

from functools import partial

import bodies
import numpy as np
import pytest
from cuda_host import gpu
from host_nccl import play_nccl
from slab_runs import AROUND, LINEAR, problem_of, same

from heatsim.kernels.temporal_composite import correction


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
