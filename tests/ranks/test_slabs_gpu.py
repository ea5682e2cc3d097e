"""Slabs on GPUs, and on the host in the part of one, give the bits of the whole grid."""

from functools import partial

import bodies
import numpy as np
import pytest
from cuda_host import gpu
from slab_runs import AROUND, problem_of, same

from heatsim.kernels.temporal_composite import correction


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU, or the host in its part; boxes may be all cells."""
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)
    return str(request.param)


LINEAR = """
[domain]
size = [0.2, 0.08, 0.13]
cells = [20, 8, 13]
[material]
conductivity = [20.0, 12.0, 16.0]
density = 2000.0
specific_heat = 500.0
[initial]
temperature = "320 + 30*sin(60*x)*cos(40*y) + 100*z"
[boundaries]
default = { type = "convection", coefficient = 300.0, ambient = "300 + t" }
x_min = { type = "temperature", value = 300.0 }
z_max = { type = "flux", value = 5e3 }
[time]
end = 100.0
method = "euler"
"""


@pytest.mark.parametrize("kernel", ["naive", "streamed", "temporal"])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("faces", [{}, {"z_min": {"type": "periodic"}, "z_max": {"type": "periodic"}}])
def test_one_material(kernel: str, rounding: str, faces: dict[str, dict[str, str]]) -> None:
    solver = {"device": "cuda", "kernel": kernel, "precision": "float32", "rounding": rounding}
    same(problem_of(LINEAR, solver=solver, **({"boundaries": faces} if faces else {})), 3)


@pytest.mark.parametrize("kernel", ["naive", "temporal"])
@pytest.mark.parametrize("text", [bodies.EVERYTHING, AROUND], ids=["everything", "around"])
def test_composite_bodies(kernel: str, text: str) -> None:
    same(problem_of(text, solver={"device": "cuda", "kernel": kernel, "precision": "float32"}), 2)
