"""Composite bodies that are advanced together write the same files as alone, bit by bit, even if one of them fails."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from bodies import EVERYTHING
from cuda_host import gpu

from heatsim.errors import Interrupted, NotFiniteError
from heatsim.kernels.ensemble.launches import BodySteps
from heatsim.kernels.launch import CudaKernel
from heatsim.kernels.reductions import fused
from heatsim.run import batch_size
from heatsim.run.ensemble import run_together
from heatsim.run.simulation import Simulation
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.euler.ensemble_stepper import BodyEnsemble
from heatsim.solver.rows.observables import Observables
from heatsim.solver.rows.row_sums import RowSums

COMMON = (
    *("domain.cells=[12,8,6]", "time.end=0.08", "time.method=euler", "time.safety=0.4", "output.probe_every=0.02"),
    *("solver.device=cuda", "output.region_heat=true", "output.every=0.04"),
)
# Powers, materials, regions, conditions, initial fields, ends, dt and when rows are due differ.
MEMBERS: tuple[tuple[str, ...], ...] = (
    (),
    ("sources.0.power=9.0", "time.end=0.06"),
    ("materials.copper.conductivity=250.0", "boundaries.default.emissivity=0.2"),
    ("initial.temperature=333.0", "output.probe_every=0.01"),
    ("regions.1.box.max=[0.012, 0.009, 0.008]",),
)
# Materials that change with temperature are stepped one after the other; their rows are found together.
CHANGING = (
    "materials.copper.conductivity=400 - 0.07*(T - 300)",
    "materials.copper.temperature_range=[200, 1200]",
    "materials.glass.latent_heat=1e5",
    "materials.glass.solidus=315",
    "materials.glass.liquidus=318",
)


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)], autouse=True)
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or its emulation on the host."""
    if request.param == "host":
        gpu.play_gpu(monkeypatch)
        multiprocessors(monkeypatch, 5)


def multiprocessors(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the emulated GPU have this number of multiprocessors: one for each brick."""
    monkeypatch.setitem(gpu.HostNumber.attributes, "MultiProcessorCount", count)


def simulations(at: Path, *overrides: str, members: Sequence[tuple[str, ...]] = MEMBERS) -> list[Simulation]:
    scenario = runs.write(at, EVERYTHING)
    return [
        Simulation.from_scenario(scenario, (*COMMON, *own, *overrides), output=at / f"member {number}")
        for number, own in enumerate(members)
    ]


def together(members: Sequence[Simulation]) -> dict[int, Exception | None]:
    return {ended.number: ended.error for ended in run_together(members, [()] * len(members))}


def assert_results_of_runs_alone(members: Sequence[Simulation], at: Path, *overrides: str) -> None:
    at.mkdir()
    for member, single in zip(members, simulations(at, *overrides), strict=True):
        single.run()
        assert runs.results(member.folder, runs.OF_KERNELS) == runs.results(single.folder, runs.OF_KERNELS)


@pytest.mark.parametrize(
    ("count", "overrides"),
    [
        pytest.param(3, (), marks=pytest.mark.slow),  # two launches, of three and two bodies
        (10, ("solver.precision=float32",)),  # two bricks a body
        pytest.param(5, ("solver.precision=float32", "solver.kernel=streamed"), marks=pytest.mark.slow),
        (5, CHANGING),
    ],
    ids=["launches", "bricks", "streamed", "changing"],
)
def test_the_files_are_those_of_runs_alone(
    tmp_path: Path, count: int, overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    multiprocessors(monkeypatch, count)
    members = simulations(tmp_path, *overrides)
    assert together(members) == dict.fromkeys(range(len(MEMBERS)))
    assert_results_of_runs_alone(members, tmp_path / "alone", *overrides)


def test_one_launch_steps_several_bodies_and_one_pass_reads_their_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies with equal cells, steps and rows, which differ in the powers of their sources."""
    counts: dict[str, set[int]] = {"bodies of a launch": set(), "arrays of a pass": set(), "runs of a row": set()}
    do_members, queue, find = CudaKernel.do_members, fused.Pass.queue, RowSums.find

    def count_members(kernel: CudaKernel, launch: Any, table: Any, first: int, count: int) -> None:
        counts["bodies of a launch"].add(count)
        do_members(kernel, launch, table, first, count)

    def count_arrays(launches: fused.Pass, *places: Any) -> Any:
        counts["arrays of a pass"].add(len(launches.counts))
        return queue(launches, *places)

    def count_runs(sums: RowSums, runs: Sequence[Observables]) -> None:
        counts["runs of a row"].add(len(runs))
        find(sums, runs)

    members = simulations(tmp_path, members=[(f"sources.0.power={power}",) for power in (3.0, 5.0, 8.0, 9.0)])
    monkeypatch.setattr(CudaKernel, "do_members", count_members)
    monkeypatch.setattr(fused.Pass, "queue", count_arrays)
    monkeypatch.setattr(RowSums, "find", count_runs)
    assert together(members) == dict.fromkeys(range(4))
    assert counts == {what: {4} for what in counts}


def spoil(monkeypatch: pytest.MonkeyPatch, spoiled: Simulation) -> None:
    """Make a cell of a member NaN after some steps."""
    advance = BodyEnsemble.advance

    def advance_and_spoil(stepper: BodyEnsemble, batch: Sequence[tuple[CudaStepper, BodySteps]]) -> None:
        advance(stepper, batch)
        for member, _ in batch:
            if member.problem is spoiled.plan.problem and member.step > 5:
                member.field.deviation[2, 1, 3] = np.nan

    monkeypatch.setattr(BodyEnsemble, "advance", advance_and_spoil)


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = simulations(tmp_path)
    with monkeypatch.context() as patch:
        spoil(patch, members[1])
        ended = together(members)
    assert isinstance(ended.pop(1), NotFiniteError)
    assert ended == dict.fromkeys((0, 2, 3, 4))
    (tmp_path / "alone").mkdir()
    singles = simulations(tmp_path / "alone")
    for number in ended:
        singles[number].run()
        results = [runs.results(of[number].folder, runs.OF_KERNELS) for of in (members, singles)]
        assert results[0] == results[1]


def test_a_condition_that_cannot_be_used_ends_its_own_run_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = simulations(tmp_path)[:3]
    runs.make_unphysical(monkeypatch, members[1].plan.problem.boundary, "boundaries.x_max", 0.05)
    ended = together(members)
    assert "boundaries.x_max" in str(ended.pop(1))
    assert ended == {0: None, 2: None}


def test_interrupted_runs_save_checkpoints_and_continue_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are interrupted between rows, and continue in an ensemble with other members."""
    monkeypatch.setattr(batch_size, "BATCH_SECONDS", 0.0)
    members = simulations(tmp_path)
    advance, rounds = BodyEnsemble.advance, 0

    def advance_and_stop(stepper: BodyEnsemble, batch: Sequence[tuple[CudaStepper, BodySteps]]) -> None:
        nonlocal rounds
        advance(stepper, batch)
        rounds += 1
        if rounds == 7:
            runs.interrupt(batch[0][0])

    with monkeypatch.context() as patch:
        patch.setattr(BodyEnsemble, "advance", advance_and_stop)
        ended = together(members)
    assert [type(error) for error in ended.values()] == [Interrupted] * len(members)
    resumed = [Simulation.resume(member.folder) for member in members]
    assert all(member.step for member in resumed)
    assert together(resumed[:3]) == dict.fromkeys(range(3))
    resumed[3].run()
    assert together(resumed[4:]) == {0: None}
    assert_results_of_runs_alone(members, tmp_path / "alone")
