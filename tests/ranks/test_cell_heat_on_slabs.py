"""Sources in single cells, light that the body absorbs, and lit surfaces towards void have the same bits on slabs."""

from functools import partial

import numpy as np
import pytest
from covering import mostly_slow, pairwise
from cuda_host import gpu
from slab_runs import AROUND, LIT, problem_of, same

from heatsim.kernels.temporal_composite import correction

# Light that falls through a periodic z axis, and sources on both sides of its ends.
LIT_AROUND = (
    AROUND
    + '[[sources]]\npower_density = "1e9*(T - 300)/300"\n'
    + '[[sources]]\npower_density = "1e8*sin(400*z)"\n'
    + '[[sources]]\nbeam = { face = "x_max", power = 3.0, radius = 1e-3, absorption_depth = 2e-3, '
    + "path = [[0.004, 0.001], [0.004, 0.014]], speed = 0.4 }\n"
)
BODIES = {"lit": LIT, "around": LIT_AROUND}


@pytest.mark.parametrize(
    ("name", "precision", "ranks"),
    mostly_slow(pairwise(BODIES, ("float32", "float64"), (2, 3)), ("lit", "float64", 3), ("around", "float32", 3)),
)
def test_eulers_method(name: str, precision: str, ranks: int) -> None:
    problem = problem_of(BODIES[name], solver={"device": "cpu", "precision": precision})
    assert len(problem.materials.heated)
    same(problem, ranks)


@pytest.mark.parametrize("text", BODIES.values(), ids=BODIES)
def test_stabilized_steps(text: str) -> None:
    same(problem_of(text, solver={"device": "cpu"}).with_method("stabilized"), 3)


def test_cuda_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))
    gpu.play_gpu(monkeypatch)
    same(problem_of(LIT, solver={"device": "cuda", "kernel": "temporal", "precision": "float32"}), 2)


def test_light_crosses_cuts() -> None:
    """The beams from above and below light the ball, which three ranks share, and the plate below it."""
    problem = problem_of(LIT, solver={"device": "cpu"})
    heated = problem.materials.heated
    planes = problem.materials.weighted_surfaces.cells // (12 * 10)
    assert np.unique(planes[heated.lit > 0]).size > 4
    assert heated.has_beams
