"""Slabs on GPUs, and on the host in the part of one, give the bits of the whole grid."""

from functools import partial
from itertools import product
from typing import Any

import bodies
import numpy as np
import pytest
from covering import mostly_slow, pairwise
from cuda_host import gpu
from host_nccl import play_nccl
from slab_runs import AROUND, LINEAR, equal, painted, problem_of, same, stepped
from test_graded_sums import graded
from thread_team import on_ranks

from heatsim.device import Device
from heatsim.kernels.temporal_composite import correction
from heatsim.parallel.team import ALONE, Team
from heatsim.parallel.transport import choose_transport
from heatsim.physics.problem import HeatProblem

TEXTS = {"everything": bodies.EVERYTHING, "around": AROUND}


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU, or the host in its part; boxes may be all cells."""
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)
    return str(request.param)


@pytest.mark.quick("host-resident-float64-periodic-3", "host-temporal-float64-open-3", "host-streamed-float32-open-3")
@pytest.mark.parametrize(
    ("kernel", "precision", "ends", "ranks"),
    pairwise(("naive", "streamed", "temporal", "resident"), ("float32", "float64"), ("open", "periodic"), (2, 3)),
)
def test_one_material(
    kernel: str, precision: str, ends: str, ranks: int, some_gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if some_gpu == "host" and precision == "float32":
        play_nccl(monkeypatch)
    solver = {"device": "cuda", "kernel": kernel, "precision": precision}
    faces = {"boundaries": {"z_min": {"type": ends}, "z_max": {"type": ends}}} if ends == "periodic" else {}
    same(problem_of(LINEAR, solver=solver, **faces), ranks)


@pytest.mark.quick("host-temporal-around")
@pytest.mark.parametrize(
    ("kernel", "name"),
    mostly_slow(product(("naive", "temporal"), TEXTS), ("naive", "everything"), ("temporal", "around")),
)
def test_composite_bodies(kernel: str, name: str) -> None:
    same(problem_of(TEXTS[name], solver={"device": "cuda", "kernel": kernel, "precision": "float32"}), 2)


@pytest.mark.quick("host-everything")
@pytest.mark.parametrize("text", [bodies.EVERYTHING, LINEAR], ids=["everything", "linear"])
def test_stabilized_steps(text: str) -> None:
    solver = {"device": "cuda", "kernel": "temporal", "precision": "float32"}
    same(problem_of(text, solver=solver).with_method("stabilized"), 2)


def test_cells_of_several_widths() -> None:
    same(graded(bodies.EVERYTHING, device="cuda", kernel="streamed", precision="float32"), 2)
    few = LINEAR.replace("[20, 8, 13]", "[8, 5, 13]")
    same(graded(few, device="cuda", kernel="auto", precision="float64").with_method("stabilized"), 3)


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


def row(problem: HeatProblem, team: Team) -> dict[str, Any]:
    """What observers read of a run after some steps, at two rows."""
    state = stepped(problem, team)
    numbers = np.array([5, 0, 3], dtype=np.int64)
    points = state.field.points(*np.broadcast_arrays(np.int64(3), np.int64(2), numbers))
    found: dict[str, Any] = {}
    for number in range(3):  # the first row loads kernels, the second is recorded, the third is launched from there
        state.field.changed()
        state.ledger.changed()
        state.queue_row()
        state.find_row()
        statistics = state.statistics
        found |= {
            f"heats {number}": state.ledger.heats().numbers,
            f"heat {number}": statistics.heat(),
            f"mean {number}": statistics.mean(),
            f"extremes {number}": statistics.extremes(),
            f"cell {number}": statistics.extreme_cells.of_region(None, True),
            f"points {number}": points.temperatures(),
        }
    return found


@pytest.mark.quick("host-everything")
@pytest.mark.parametrize("text", [bodies.EVERYTHING, LINEAR], ids=["everything", "linear"])
def test_rows_of_slabs(text: str) -> None:
    solver = {"device": "cuda", "kernel": "naive", "precision": "float32"}
    problem = problem_of(text, solver=solver)
    equal(row(problem, ALONE), on_ranks(3, lambda team: row(painted(problem, team), team)))


def test_a_row_of_ranks_without_heat_through_faces() -> None:
    boundaries = {"z_min": {"type": "temperature", "value": 300.0}}  # the other faces are insulated
    problem = problem_of(LINEAR, boundaries=boundaries, solver={"device": "cuda", "kernel": "naive"})
    equal(row(problem, ALONE), on_ranks(3, lambda team: row(painted(problem, team), team)))
    same(problem, 3)  # without rows: each number is found when it is asked for
