"""Gaps have the same bits on slabs, also across cuts."""

from functools import partial

import numpy as np
import pytest
from cuda_host import gpu
from gap_bodies import AROUND, VARYING
from slab_runs import problem_of, same

from heatsim.kernels.temporal_composite import correction
from heatsim.physics.cells.cell_heat import GAPS

TEXTS = {"constant": AROUND.format(steel="40.0"), "varying": AROUND.format(steel=VARYING)}


@pytest.mark.quick("stabilized-varying")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("method", ["euler", "stabilized"])
def test_explicit_methods(text: str, method: str) -> None:
    problem = problem_of(text, solver={"device": "cpu", "precision": "float32"}).with_method(method)
    heated = problem.materials.heated
    planes = heated.cells[heated.owners[heated.numbers >= GAPS]] // (12 * 10)
    assert np.unique(planes).size == 12
    same(problem, 3)


def test_cuda_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))
    gpu.play_gpu(monkeypatch)
    same(problem_of(TEXTS["constant"], solver={"device": "cuda", "kernel": "temporal", "precision": "float32"}), 2)
