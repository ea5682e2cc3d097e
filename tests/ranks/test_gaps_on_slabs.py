"""Gaps have the same bits on slabs, also across cuts."""

from functools import partial

import numpy as np
import pytest
from cuda_host import gpu
from gap_bodies import AROUND, VARYING
from slab_runs import painted, problem_of, same
from thread_team import on_ranks

from heatsim.kernels.temporal_composite import correction
from heatsim.physics.cells.cell_heat import GAPS
from heatsim.physics.cells.type_links import links_between

TEXTS = {"constant": AROUND.format(steel="40.0"), "varying": AROUND.format(steel=VARYING)}
ENDS = (0.0, 0.0), (0.011, 0.009)


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


def test_links_of_the_first_and_last_cells_of_planes_are_found_once() -> None:
    """Columns of one cell at both ends of planes have links in every plane, also beside cuts."""
    columns = [f"box = {{ min = [{x}, {y}, 0.0], max = [{x + 0.001}, {y + 0.001}, 0.015] }}" for x, y in ENDS]
    text = TEXTS["constant"].replace("box = { min = [0.001, 0.001, 0.0], max = [0.006, 0.005, 0.004] }", columns[0])
    text = text.replace("sphere = { centre = [0.008, 0.006, 0.012], radius = 0.0035 }", columns[1])
    problem = problem_of(text, solver={"device": "cpu"})
    wanted = ~np.eye(len(problem.materials.types), dtype=bool)
    alone = links_between(problem.materials, problem.periodic, wanted)
    assert {0, 12 * 10 - 1} <= {*(alone.cells % (12 * 10)).ravel().tolist()}
    for of_rank in on_ranks(3, lambda team: links_between(painted(problem, team).materials, problem.periodic, wanted)):
        for mine, others in zip(of_rank, alone, strict=True):
            np.testing.assert_array_equal(mine, others)
