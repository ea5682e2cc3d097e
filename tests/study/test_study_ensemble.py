"""Runs of a study on a GPU advance together; the results are those of single runs, also after a stop or a kill."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
import runs
import study_text
from cuda_host import gpu

from heatsim.kernels.ensemble.launches import BodySteps, MemberSteps
from heatsim.run import batch_size
from heatsim.run.interrupt import Stop
from heatsim.run.simulation import Simulation
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.euler.ensemble_stepper import BodyEnsemble, EnsembleStepper
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.stabilized.ensemble import StabilizedEnsemble
from heatsim.study import folder as study_folder
from heatsim.study.definition import read
from heatsim.study.results import Results
from heatsim.study.run_group import run_group

OVERRIDES = ["solver.device=cuda", "solver.kernel=streamed", "output.every=4.0", "output.checkpoint_wall=1e-9"]
NUMBERS = range(1, 7)


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)], autouse=True)
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or the host in its role."""
    if request.param == "host":
        gpu.play_gpu(monkeypatch)


def prepared(at: Path, *overrides: str) -> Path:
    """The folder of a study without any run."""
    definition, _ = read(study_text.write(at), [*OVERRIDES, *overrides])
    (at / "out").mkdir()
    study_folder.write_study(at / "out", definition)
    return at / "out"


def group(out: Path, stop: Stop | None = None) -> list[str]:
    outcomes = run_group(out, NUMBERS, lambda number, step: None, stop or Stop())
    return [outcome.status for outcome in sorted(outcomes, key=lambda outcome: outcome.number)]


def outcomes(out: Path) -> list[object]:
    """The table without its times, and the files of every run."""
    Results(out, study_folder.read_study(out)).write()
    table = study_text.without_times(out / study_folder.RESULTS_CSV)
    return [table, *(runs.results(study_folder.run_path(out, number)) for number in NUMBERS)]


@pytest.fixture
def alone(tmp_path: Path) -> list[object]:
    return one_after_the_other(tmp_path / "alone")


def one_after_the_other(at: Path, *overrides: str) -> list[object]:
    """The results of a study whose runs are computed one after the other."""
    out = prepared(at, *overrides)
    definition = study_folder.read_study(out)
    for number in NUMBERS:
        Simulation.from_model(definition.scenario(number), study_folder.run_path(out, number)).run()
    return outcomes(out)


def test_composite_runs_of_a_group_are_advanced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heater = 'sources=[{name="heater", power=1.0, box={min=[0.0, 0.0, 0.0], max=[0.02, 0.02, 0.01]}}]'
    sizes: set[int] = set()
    advance = BodyEnsemble.advance

    def count(stepper: BodyEnsemble, batch: Sequence[tuple[CudaStepper, BodySteps]]) -> None:
        sizes.add(len(batch))
        advance(stepper, batch)

    monkeypatch.setattr(BodyEnsemble, "advance", count)
    out = prepared(tmp_path, heater)
    assert group(out) == ["done"] * len(NUMBERS)
    assert sizes == {len(NUMBERS)}
    assert outcomes(out) == one_after_the_other(tmp_path / "alone", heater)


@pytest.mark.slow
def test_runs_of_a_group_are_advanced_together(
    tmp_path: Path, alone: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: set[int] = set()
    advance = EnsembleStepper.advance

    def count(stepper: EnsembleStepper, turns: Sequence[tuple[Stepper, MemberSteps]]) -> None:
        sizes.add(len(turns))
        advance(stepper, turns)

    monkeypatch.setattr(EnsembleStepper, "advance", count)
    out = prepared(tmp_path)
    assert group(out) == 6 * ["done"]
    assert max(sizes) == 6
    assert outcomes(out) == alone


def test_a_study_stopped_during_an_ensemble_continues_to_the_same_table(
    tmp_path: Path, alone: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, then stopped when some runs are done and some have a checkpoint."""
    monkeypatch.setattr(batch_size, "BATCH_SECONDS", 0.0)
    out, advance = prepared(tmp_path), EnsembleStepper.advance
    for rounds, killed in ((5, True), (40, False)):
        stop, left = Stop(), rounds

        def advance_and_end(stepper: EnsembleStepper, turns: Sequence[tuple[Stepper, MemberSteps]]) -> None:
            nonlocal left
            advance(stepper, turns)
            left -= 1
            if left == 0 and killed:  # noqa: B023  (called within the turn of the loop)
                raise runs.Killed
            stop.requested = left == 0  # noqa: B023

        with monkeypatch.context() as patch:
            patch.setattr(EnsembleStepper, "advance", advance_and_end)
            with pytest.raises(runs.Killed) if killed else nullcontext():
                group(out, stop)
        assert left == 0
    assert group(out) == 6 * ["done"]
    assert outcomes(out) == alone


def test_stabilized_runs_advance_together_and_continue_to_the_same_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped, then killed, then stopped when some runs are done; each run has its own steps."""
    overrides = ("time.method=stabilized", "time.tolerance=0.2")
    out, advance = prepared(tmp_path, *overrides), StabilizedEnsemble.advance
    sizes: list[int] = []
    for rounds, killed in ((2, False), (3, True), (12, False)):
        stop, left = Stop(), rounds

        def advance_and_end(ensemble: StabilizedEnsemble, numbers: Iterable[int]) -> dict[int, Exception]:
            nonlocal left
            sizes.append(len(numbers := [*numbers]))
            failed = advance(ensemble, numbers)
            left -= 1
            if left == 0 and killed:  # noqa: B023  (called within the turn of the loop)
                raise runs.Killed
            stop.requested = left == 0  # noqa: B023
            return failed

        with monkeypatch.context() as patch:
            patch.setattr(StabilizedEnsemble, "advance", advance_and_end)
            with pytest.raises(runs.Killed) if killed else nullcontext():
                group(out, stop)
        assert left == 0
    assert group(out) == 6 * ["done"]
    assert max(sizes) == 6
    assert outcomes(out) == one_after_the_other(tmp_path / "alone", *overrides)
