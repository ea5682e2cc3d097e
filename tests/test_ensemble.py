"""Runs advanced together have the files, to the bit, that each has alone, whatever becomes of the others."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import runs
from cuda_host import gpu

from heatsim.errors import Interrupted, NotFiniteError
from heatsim.kernels import cuda_graphs
from heatsim.kernels.ensemble.launches import MemberSteps
from heatsim.run import batch_size
from heatsim.run.ensemble import Ended, run_together
from heatsim.run.simulation import Simulation
from heatsim.solver.euler.ensemble_stepper import EnsembleStepper
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage import checkpoint

# Whole patches for 07; every kind of face, a periodic axis.
COMMON, SAFETY = ("domain.cells=[8,8,6]", "solver.device=cuda"), "time.safety=0.3"
# Coefficients, dt, ends, faces, initial fields and when rows are due differ.
MEMBERS: tuple[tuple[str, ...], ...] = (
    (SAFETY,),
    (SAFETY, "material.density=1500.0", "time.end=7.0"),
    (SAFETY, "material.density=900.0", "boundaries.x_max.ambient=350.0", "output.probe_every=0.5"),
    (SAFETY, "boundaries.y_min.value=1e4", "initial.temperature=333.0", "output.every=10.0"),
    ("time.dt=0.0625",),
)


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)], autouse=True)
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or the host in its part."""
    monkeypatch.setattr(cuda_graphs, "RUNS", (4, 2))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)


def simulations(at: Path, *overrides: str) -> list[Simulation]:
    scenario = runs.write(at)
    return [
        Simulation.from_scenario(scenario, (*COMMON, *overrides, *own), output=at / f"member {number}")
        for number, own in enumerate(MEMBERS)
    ]


def together(members: Sequence[Simulation]) -> dict[int, Exception | None]:
    return {ended.number: ended.error for ended in run_together(members, [()] * len(members))}


def alone(at: Path, *overrides: str) -> list[Path]:
    at.mkdir()
    members = simulations(at, *overrides)
    for member in members:
        member.run()
    return [member.folder for member in members]


@pytest.mark.parametrize(
    "overrides",
    [
        ("solver.kernel=temporal",),
        pytest.param(("solver.kernel=boxed", "solver.precision=float64"), marks=pytest.mark.slow),
        pytest.param(("solver.kernel=naive",), marks=pytest.mark.slow),
        pytest.param(("solver.kernel=auto", "solver.precision=float64"), marks=pytest.mark.slow),
    ],
    ids=["temporal", "boxed", "naive", "auto"],
)
def test_the_files_are_those_of_runs_alone(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    members = simulations(tmp_path, *overrides)
    assert together(members) == dict.fromkeys(range(len(MEMBERS)))
    for member, folder in zip(members, alone(tmp_path / "alone", *overrides), strict=True):
        without = runs.OF_KERNELS if "solver.kernel=auto" in overrides else ()
        assert runs.results(member.folder, without) == runs.results(folder, without)
        fields = [checkpoint.read_last_good(at)[0] for at in (member.folder, folder)]
        assert fields[0] is not None
        assert fields[1] is not None
        assert fields[0].arrays.keys() == fields[1].arrays.keys()
        for name, array in fields[0].arrays.items():
            assert array.tobytes() == fields[1].arrays[name].tobytes(), name


def test_who_fails_drops_out_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = simulations(tmp_path)
    advance = EnsembleStepper.advance

    def spoil(stepper: EnsembleStepper, batch: Sequence[tuple[Stepper, MemberSteps]]) -> None:
        advance(stepper, batch)
        for member, _ in batch:
            if member.problem is members[1].plan.problem and member.step > 5:
                member.field.deviation[2, 1, 3] = np.nan

    monkeypatch.setattr(EnsembleStepper, "advance", spoil)
    (members[2].folder).mkdir()
    (members[2].folder / "someone's file").touch()
    ended = together(members)
    assert isinstance(ended[1], NotFiniteError)
    assert "is not from a heatsim run" in str(ended[2]) or "not from" in str(ended[2])
    assert [ended[number] for number in (0, 3, 4)] == [None, None, None]
    monkeypatch.undo()


def test_a_file_that_is_removed_at_the_end_fails_its_own_run_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs end together; each waits for its own files."""
    members = simulations(tmp_path)
    advance = EnsembleStepper.advance

    def remove(stepper: EnsembleStepper, turns: Sequence[tuple[Stepper, MemberSteps]]) -> None:
        advance(stepper, turns)
        (members[3].folder / "energy.csv").unlink(missing_ok=True)

    monkeypatch.setattr(EnsembleStepper, "advance", remove)
    ended = together(members)
    assert "energy.csv: was removed" in str(ended.pop(3))
    assert ended == dict.fromkeys((0, 1, 2, 4))
    assert [(member.folder / "summary.json").exists() for member in members] == [True, True, True, False, True]


def test_a_face_that_cannot_be_used_ends_its_own_run_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = simulations(tmp_path)[:3]
    runs.make_unphysical(monkeypatch, members[1].plan.problem.boundary, "boundaries.x_min", 3.1875)
    ended = together(members)
    assert "boundaries.x_min" in str(ended.pop(1))
    assert ended == {0: None, 2: None}


def interrupted(members: Sequence[Simulation], after: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ended]:
    """Run together; a signal comes in a round after so many."""
    advance, rounds = EnsembleStepper.advance, 0

    def advance_and_stop(stepper: EnsembleStepper, batch: Sequence[tuple[Stepper, MemberSteps]]) -> None:
        nonlocal rounds
        advance(stepper, batch)
        rounds += 1
        if rounds == after:
            runs.interrupt(batch[0][0])

    with monkeypatch.context() as patch:
        patch.setattr(EnsembleStepper, "advance", advance_and_stop)
        yield from run_together(members, [()] * len(members))


def test_interrupted_all_save_checkpoints_and_go_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted at steps that no sweep begins at, and gone on with in other company."""
    monkeypatch.setattr(batch_size, "BATCH_SECONDS", 0.0)
    members = simulations(tmp_path, "solver.kernel=temporal")
    ended = list(interrupted(members, 7, monkeypatch))
    assert [type(one.error) for one in ended] == [Interrupted] * len(members)
    resumed = [Simulation.resume(member.folder) for member in members]
    assert {member.step for member in resumed} == {7}
    assert together(resumed[:2]) == {0: None, 1: None}
    resumed[2].run()
    assert together(resumed[3:]) == {0: None, 1: None}
    for member, folder in zip(members, alone(tmp_path / "alone", "solver.kernel=temporal"), strict=True):
        assert runs.results(member.folder) == runs.results(folder)


def test_an_ensemble_may_have_a_single_member(tmp_path: Path) -> None:
    """As in a study of which one run is left."""
    members = simulations(tmp_path, "solver.kernel=naive")
    assert together(members[:1]) == {0: None}
    at = runs.write(tmp_path)
    single = Simulation.from_scenario(at, (*COMMON, SAFETY, "solver.kernel=naive"), output=tmp_path / "single")
    single.run()
    assert runs.results(members[0].folder) == runs.results(single.folder)


def test_runs_of_different_lengths_look_at_their_fields_at_the_same_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rounds as there are due times, not as there are steps at which any run has one."""
    rounds: list[list[int]] = []
    advance = EnsembleStepper.advance

    def count(stepper: EnsembleStepper, batch: Sequence[tuple[Stepper, MemberSteps]]) -> None:
        rounds.append([own.steps for _, own in batch])
        advance(stepper, batch)

    monkeypatch.setattr(EnsembleStepper, "advance", count)
    monkeypatch.setattr(batch_size.BatchSize, "__init__", lambda batch: setattr(batch, "steps", 1 << 20))
    scenario = runs.write(tmp_path)
    members = [
        Simulation.from_scenario(
            scenario, (*COMMON, SAFETY, f"material.density={density}"), output=tmp_path / str(density)
        )
        for density in (2000.0, 1500.0, 1200.0)
    ]
    steps = [member.plan.problem.timeline.last_step for member in members]
    assert together(members) == dict.fromkeys(range(3))
    assert len(set(steps)) == 3
    assert [sum(member) for member in zip(*rounds, strict=True)] == steps
    assert len(rounds) == len(members[0].plan.problem.timeline.times) - 1


def test_runs_stay_together_although_rounds_are_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rounds have few steps, because the time of a step is unknown. Later each due time takes one round."""
    rounds: list[int] = []
    advance = EnsembleStepper.advance

    def count(stepper: EnsembleStepper, batch: Sequence[tuple[Stepper, MemberSteps]]) -> None:
        rounds.append(max(own.steps for _, own in batch))
        advance(stepper, batch)

    monkeypatch.setattr(EnsembleStepper, "advance", count)
    monkeypatch.setattr(
        batch_size.BatchSize, "took", lambda batch, steps, seconds: setattr(batch, "steps", 2 * batch.steps)
    )
    scenario = runs.write(tmp_path)
    members = [
        Simulation.from_scenario(
            scenario, (*COMMON, SAFETY, f"material.density={density}"), output=tmp_path / str(density)
        )
        for density in (2000.0, 1500.0, 1200.0)
    ]
    most = max(member.plan.problem.timeline.last_step for member in members)
    assert together(members) == dict.fromkeys(range(3))
    assert sum(rounds) == most
    assert len(rounds) <= len(members[0].plan.problem.timeline.times) - 1 + 5
