"""Equations that several ranks solve together give the bits of one rank: steady states, implicit steps."""

from pathlib import Path
from typing import Any

import bodies
import gap_bodies
import numpy as np
import pytest
from covering import mostly_slow
from cuda_host import gpu
from cuda_host.multigrid import sweeps_on_host
from host_nccl import play_nccl
from slab_runs import AROUND, LINEAR, LIT, SCENARIOS, equal, joined, painted, problem_of
from slab_runs import same as same_steps
from thread_team import on_ranks

from heatsim.errors import Interrupted, NotConvergedError, ScenarioError
from heatsim.grid import PlaneGroups
from heatsim.kernels.multigrid import pairs, rank_sweeps
from heatsim.kernels.multigrid.cuda_sweeps import CudaSweeps
from heatsim.kernels.multigrid.pairs import planes_below
from heatsim.kernels.multigrid.rank_sweeps import RankSweeps, cut_multiple
from heatsim.observers.state import RunState
from heatsim.parallel.halo import Halo
from heatsim.parallel.slab import HALO
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.run import initial_state as starting
from heatsim.run.initial_state import find_steady_state, initial_state
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.scenario import load
from heatsim.solver.steady import steady_state
from heatsim.storage.checkpoint import Checkpoint

# Each has enough planes for coarse levels that are divided too.
LINEAR = LINEAR.replace("[20, 8, 13]", "[20, 8, 33]")
AROUND = AROUND.replace("[12, 10, 15]", "[10, 8, 32]")
# Cells are so long along z that the first coarse levels keep their planes.
FLAT = LINEAR.replace("size = [0.2, 0.08, 0.13]", "size = [0.2, 0.08, 1.5]")
# Sources that fall with the temperature, so that there is a steady state.
LIT = LIT.replace("1 + 0.01*(T", "1 - 0.001*(T")
AROUND += '[[sources]]\npower_density = "1e8*(400 - T)/300"\n'
# Planes merge in pairs: some of them lie on both sides of a cut.
GRADED = LINEAR.replace("[material]", "[domain.z]\nintervals = [{ to = 0.13, cells = 33, growth = 1.12 }]\n[material]")
GRADED = GRADED.replace("[domain.z]", "[domain.x]\nintervals = [{ to = 0.2, cells = 20, growth = 1.2 }]\n[domain.z]")
GRADED_AROUND = AROUND.replace(
    "[materials.steel]", "[domain.z]\nintervals = [{ to = 0.015, cells = 32, growth = 1.1 }]\n[materials.steel]"
)
BODIES = {"linear": LINEAR, "flat": FLAT, "everything": bodies.EVERYTHING, "around": AROUND, "lit": LIT}
BODIES |= {
    "graded": GRADED,
    "graded around": GRADED_AROUND,
    "gaps": gap_bodies.AROUND.format(steel=gap_bodies.VARYING).replace("10, 15]", "10, 32]"),
}


@pytest.fixture(autouse=True)
def small_levels_are_divided(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Divide levels of any size. Returns how many planes each level below a divided one has, and whether it is."""
    monkeypatch.setattr(rank_sweeps, "FEW", 0)
    below, seen = RankSweeps.slab_below, list[tuple[int, bool]]()

    def noted(sweeps: RankSweeps, A: Any, factors: Any) -> Any:
        found = below(sweeps, A, factors)
        if A.slab is not None:
            seen.append((planes_below(factors[2], A.slab.planes), found is not None))
        return found

    monkeypatch.setattr(RankSweeps, "slab_below", noted)
    return seen


def steady(text: str, precision: str = "float64", device: str = "cpu", **tables: Any) -> HeatProblem:
    return problem_of(text, solver={"device": device, "precision": precision}, **tables).with_method("steady")


def found(problem: HeatProblem, team: Team) -> dict[str, Any]:
    plan = Plan.of(problem, team)
    state = initial_state(plan, Path("nowhere"))
    find_steady_state(state, Stop())
    assert state.steady is not None
    flows, progress = state.steady.flows, state.steady.progress
    of_state = {"T": state.field.temperature(), "heat": state.initial_heat, "couplings": state.steady.couplings}
    return {**of_state, "flows": flows, "progress": progress}


def same(problem: HeatProblem, ranks: int) -> None:
    results = on_ranks(ranks, lambda team: found(painted(problem, team), team))
    equal(found(painted(problem, ALONE), ALONE), results)


def implicit(text: str, precision: str = "float64", device: str = "cpu", **tables: Any) -> HeatProblem:
    return problem_of(text, solver={"device": device, "precision": precision}, **tables).with_method("implicit")


@pytest.mark.quick("around-2-float64", "everything-3-float32", "graded-3-float32", "flat-2-float64", "lit-3-float64")
@pytest.mark.parametrize(
    ("name", "ranks", "precision"),
    [
        ("linear", 2, "float32"),
        ("flat", 2, "float64"),
        ("everything", 3, "float32"),
        ("around", 2, "float64"),
        pytest.param("around", 3, "float32", marks=pytest.mark.slow),
        ("lit", 3, "float64"),
        ("graded", 2, "float64"),
        ("graded", 3, "float32"),
        ("gaps", 3, "float64"),
    ],
)
def test_steady_states(name: str, ranks: int, precision: str, small_levels_are_divided: list[tuple[int, bool]]) -> None:
    same(steady(BODIES[name], precision), ranks)
    divided = {planes for planes, is_divided in small_levels_are_divided if is_divided}
    if ranks == 2:
        assert divided == {"linear": {17, 9}, "flat": {33, 17}, "around": {16, 8}}.get(name, divided)
        assert divided


@pytest.mark.quick("graded-3")
@pytest.mark.parametrize(("name", "ranks"), [("graded", 3), ("graded around", 2)])
def test_lines_along_all_axes_on_all_levels(name: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "FEW", -1.0)
    same(steady(BODIES[name], "float32"), ranks)


SMALL = LINEAR.replace("[20, 8, 33]", "[8, 4, 33]")


@pytest.mark.quick("2")
@pytest.mark.parametrize("ranks", [2, 3])
def test_couplings(ranks: int) -> None:
    pairs = (("z_min", "x_min"), (["y_min", "x_max"], "y_max"))
    couplings = [{"name": str(number), "between": list(pair)} for number, pair in enumerate(pairs)]
    problem = problem_of(GRADED, time={"method": "steady"}, solver={"device": "cpu"}, couplings=couplings)
    same(problem, ranks)
    assert min(found(problem, ALONE)["couplings"]) > 0.0


# Heat that rises with the temperature, in planes of the first rank alone.
RISING = '[[sources]]\npower_density = "DENSITY*(1 + 0.01*(T - 300))"\ntemperature_range = [200.0, 900.0]\n'
RISING += "box = { min = [0.0, 0.0, 0.0], max = [0.2, 0.08, 0.03] }\n"


def test_heat_that_rises_on_one_rank() -> None:
    problem = steady(SMALL + RISING.replace("DENSITY", "1e5"))
    for ranks in (2, 3):
        same(problem, ranks)


def test_all_ranks_tell_a_runaway() -> None:
    problem = steady(SMALL + RISING.replace("DENSITY", "1e9"))
    with pytest.raises(NotConvergedError, match="thermal runaway"):
        on_ranks(2, lambda team: found(problem, team))


@pytest.mark.slow
def test_a_bundled_steady_state() -> None:
    overrides = ["domain.cells=[50, 40, 15]", "solver.device=cpu"]
    same(HeatProblem.from_scenario(load(SCENARIOS / "circuit_board.toml", overrides)), 3)


def test_a_rod_that_one_matrix_solves() -> None:
    """A grid with too few cells for a coarse level."""
    problem = steady(LINEAR.replace("[20, 8, 33]", "[1, 1, 40]"))
    for ranks in (2, 3):
        same(problem, ranks)


def test_large_levels_that_cannot_be_cut_and_small_ones_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_sweeps, "FEW", 700)
    same(steady(LINEAR), 3)
    monkeypatch.setattr(rank_sweeps, "FEW", 0)
    same(steady(LINEAR.replace("[20, 8, 33]", "[20, 8, 22]")), 3)


@pytest.mark.quick("around-3-float64", "lit-2-float32", "graded-3-float64")
@pytest.mark.parametrize(
    ("name", "ranks", "precision"),
    [
        ("linear", 3, "float64"),
        ("flat", 3, "float32"),
        pytest.param("everything", 2, "float64", marks=pytest.mark.slow),
        ("around", 3, "float64"),
        ("lit", 2, "float32"),
        ("graded", 3, "float64"),
        ("gaps", 2, "float64"),
    ],
)
def test_implicit_steps(name: str, ranks: int, precision: str) -> None:
    same_steps(implicit(BODIES[name], precision), ranks)


@pytest.mark.parametrize("name", mostly_slow(["everything", "around"], "everything"))
def test_implicit_steps_go_on_on_another_number_of_ranks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the end of a step, and from its start while rows within it are still to come."""
    monkeypatch.setattr(starting, "identity", lambda plan: {"scenario": "", "inputs": "{}"})
    monkeypatch.setattr(starting, "check_scenario", lambda *arguments: None)
    problem = implicit(BODIES[name], output={"probe_every": 1e-3})
    (expected,) = after(problem, ALONE, None, 9)
    of_ranks = on_ranks(3, lambda team: after(problem, team, None, 3, 6))
    for saved, ranks in zip(of_ranks[0], (2, 1), strict=True):
        equal(expected, on_ranks(ranks, lambda team, saved=saved: after(problem, team, saved, 9)[0]))


def after(problem: HeatProblem, team: Team, saved: dict[str, Any] | None, *steps: int) -> list[dict[str, Any]]:
    """What checkpoints keep after each of some numbers of due times; ``saved``: the checkpoint to go on from."""
    plan, target = Plan.of(problem, team), Path("nowhere")
    if saved is None:
        state = initial_state(plan, target)
    else:
        state = starting.saved_state(plan, target, Checkpoint(saved["arrays"], saved["values"]))
    return [checkpoint(state, team, number) for number in steps]


def checkpoint(state: RunState, team: Team, step: int) -> dict[str, Any]:
    """What a checkpoint keeps after a due time, up to which the state advances."""
    assert state.method is not None
    while state.method.step < step:
        state.method.advance(1)
    state.step = state.method.step
    point, host = state.restart_point(), state.field.device.to_host
    planes = {"deviation": host(point.field.own), **point.planes}
    whole = {name: np.concatenate(team.gathered(of.copy())) for name, of in planes.items()}
    begun = {"reference": state.field.reference, "initial_heat": state.initial_heat, "wall_time": 0.0}
    values = {**point.values, **begun, "step": point.step, "stopped": False, "scenario": "", "inputs": "{}"}
    return {"arrays": {**joined(team, point.sums), **whole}, "values": values}


@pytest.fixture
def cuda_on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.play_gpu(monkeypatch)
    _, queue = sweeps_on_host(np, monkeypatch)
    monkeypatch.setattr(
        steady_state, "CudaSweeps", lambda device, record, team: CudaSweeps(device, None, queue.compile, team)
    )


@pytest.mark.quick("everything", "linear")
@pytest.mark.usefixtures("cuda_on_host")
@pytest.mark.parametrize("name", mostly_slow(BODIES, "linear", "flat", "everything", "lit", "gaps"))
def test_gpus(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "flat":
        play_nccl(monkeypatch)
    small = BODIES[name].replace("[20, 8, 33]", "[6, 4, 33]").replace("[10, 8, 32]", "[6, 5, 32]")
    small = small.replace("[12, 9, 12]", "[6, 5, 12]").replace("cells = 20, growth", "cells = 6, growth")
    if name.startswith("graded"):
        monkeypatch.setattr(pairs, "FEW", -1.0)  # lines along all axes, on all levels
    same(steady(small, "float32", "cuda"), 2)
    if name == "everything":
        same_steps(implicit(small, "float32", "cuda"), 2)


@pytest.mark.gpu
@pytest.mark.parametrize("name", BODIES)
def test_a_real_gpu(name: str) -> None:
    for precision in ("float32", "float64"):
        same(steady(BODIES[name], precision, "cuda"), 2)
        same_steps(implicit(BODIES[name], precision, "cuda"), 2)


def test_missing_exchanges_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would mean nothing."""

    def forget(halo: Halo, values: Any) -> None:
        values[: halo.slab.own.start] = values[halo.slab.own.stop :] = 0.0

    monkeypatch.setattr(Halo, "exchange", forget)
    with pytest.raises((AssertionError, NotConvergedError)):
        same(steady(LINEAR), 2)


def test_a_signal_to_one_rank_stops_all() -> None:
    def work(team: Team) -> str:
        plan, stop = Plan.of(steady(LINEAR), team), Stop()
        stop.requested = team.first
        with pytest.raises(Interrupted, match="interrupted in the search") as caught:
            find_steady_state(initial_state(plan, Path("nowhere")), stop)
        return str(caught.value)

    assert len(set(on_ranks(3, work))) == 1


def test_a_ring_needs_an_even_number_of_planes() -> None:
    odd = steady(AROUND.replace("[10, 8, 32]", "[10, 8, 33]"))
    with pytest.raises(ScenarioError, match=r"domain.cells: got 33 cells along z, .* even number"):
        on_ranks(2, lambda team: Plan.of(odd, team))


@pytest.mark.parametrize(("planes", "ranks"), [(512, 3), (512, 8), (64, 2), (48, 5), (13, 3), (4096, 64)])
def test_cuts_let_coarse_levels_be_divided(planes: int, ranks: int) -> None:
    """Slabs differ by a quarter at most, and the level with a cut at an odd plane has few planes for each rank."""
    multiple = max(cut_multiple(planes, ranks), PlaneGroups.of((planes, 512, 512)).size)
    cuts = [round(planes * rank / ranks / multiple) * multiple for rank in range(ranks)] + [planes]
    counts = np.diff(cuts)
    assert counts.max() <= 1.25 * planes / ranks or multiple == 2
    assert planes / multiple <= 4 * HALO * ranks
