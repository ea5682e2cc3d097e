"""A run with time.method = "stabilized" that is interrupted or killed goes on to the same bits."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import runs
from bodies import EVERYTHING
from covering import mostly_slow

from heatsim import Simulation
from heatsim.errors import FolderError, Interrupted
from heatsim.solver.kernels.stage_kernels import StageKernels
from heatsim.storage import checkpoint, folder, tables

pytestmark = pytest.mark.usefixtures("one_thread")

STABILIZED = "time.method=stabilized"
# A kink of a table at a time that floats do not hold, jumps of a source, and an expression; rows within steps.
SWITCHED = runs.TEXT.replace("times = [0.0, 5.0]", "times = [0.0, 1.1, 5.7]").replace(
    "values = [100.0, 900.0]", "values = [100.0, 900.0, 300.0]"
) + "[[sources]]\npower_density = 2e6\nduring = [0.3, 6.1]\n"  # fmt: skip
CASES = {
    "rows within steps": (SWITCHED, ("output.probe_every=0.25",)),
    "steps within rows": (SWITCHED, ("output.probe_every=10", "output.every=10", "time.tolerance=0.05 K")),
    "several materials": (EVERYTHING, ("domain.cells=[10,8,6]", "solver.precision=float32", "output.probe_every=0.02")),
}


def begin(at: Path, text: str, *overrides: str, name: str = "parts") -> Simulation:
    return Simulation.from_scenario(runs.write(at, text), [STABILIZED, *overrides], output=at / name)


def whole(at: Path, text: str, *overrides: str) -> Path:
    begin(at, text, *overrides, name="whole").run()
    return at / "whole"


def interrupted_after(simulation: Simulation, number: int) -> bool:
    """Whether the run was interrupted after ``number`` steps or rows, or came to its end before."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_advance(monkeypatch, number, runs.interrupt)
        try:
            simulation.run()
        except Interrupted:
            return True
    return False


@pytest.mark.quick("several materials", "steps within rows")
@pytest.mark.parametrize("case", CASES)
def test_interrupted_after_every_few_steps_and_rows(tmp_path: Path, case: str) -> None:
    """Before the first row, within a step whose rows are not all written, at jumps and kinks, after the last row."""
    text, overrides = CASES[case]
    simulation, parts = begin(tmp_path, text, *overrides), 0
    while interrupted_after(simulation, (1, 2, 3, 11)[parts % 4]):
        parts += 1
        simulation = Simulation.resume(tmp_path / "parts")
    assert parts > 4
    assert runs.results(tmp_path / "parts") == runs.results(whole(tmp_path, text, *overrides))


def test_the_same_object_goes_on(tmp_path: Path) -> None:
    text, overrides = CASES["rows within steps"]
    simulation, parts = begin(tmp_path, text, *overrides), 0
    while interrupted_after(simulation, 7):
        parts += 1
    assert parts > 2
    assert runs.results(tmp_path / "parts") == runs.results(whole(tmp_path, text, *overrides))


@pytest.mark.quick("40")
@pytest.mark.parametrize("stage", mostly_slow([1, 20, 40], 1, 40))
def test_a_signal_within_a_step_drops_the_step(tmp_path: Path, stage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text, overrides = CASES["several materials"]
    advance, calls = StageKernels.advance, iter(range(1 << 30))

    def signalled(self, *arguments, **options):  # type: ignore[no-untyped-def]
        if next(calls) == stage:
            signal.raise_signal(signal.SIGINT)
        return advance(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(StageKernels, "advance", signalled)
        with pytest.raises(Interrupted):
            begin(tmp_path, text, *overrides).run()
    Simulation.resume(tmp_path / "parts").run()
    assert runs.results(tmp_path / "parts") == runs.results(whole(tmp_path, text, *overrides))


@pytest.mark.quick("several materials")
@pytest.mark.parametrize("case", ["steps within rows", "several materials"])
def test_killed_with_a_checkpoint_after_every_step(tmp_path: Path, case: str) -> None:
    """What was written after the checkpoint is cut off again. Two kills, the second soon after the first."""
    text, overrides = CASES[case]
    often = "output.checkpoint_wall=1e-9"
    simulation = begin(tmp_path, text, *overrides, often)
    for number in (9, 3):
        with pytest.MonkeyPatch.context() as monkeypatch:
            runs.after_advance(monkeypatch, number, runs.kill)
            with pytest.raises(runs.Killed):
                simulation.run()
        simulation = Simulation.resume(tmp_path / "parts")
    simulation.run()
    assert runs.results(tmp_path / "parts") == runs.results(whole(tmp_path, text, *overrides))


def test_a_folder_copied_at_a_checkpoint_goes_on(tmp_path: Path) -> None:
    text, overrides = CASES["rows within steps"]
    assert interrupted_after(begin(tmp_path, text, *overrides), 12)
    shutil.copytree(tmp_path / "parts", tmp_path / "copy")
    _, rows = tables.read(tmp_path / "copy" / folder.PROBES)
    for name in ("parts", "copy"):
        Simulation.resume(tmp_path / name).run()
    _, all_rows = tables.read(tmp_path / "copy" / folder.PROBES)
    assert len(rows) < len(all_rows)
    np.testing.assert_array_equal(rows, all_rows[: len(rows)])
    expected = runs.results(whole(tmp_path, text, *overrides))
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "copy") == expected


def test_only_the_summary_is_missing(tmp_path: Path) -> None:
    text, overrides = CASES["several materials"]
    target = whole(tmp_path, text, *overrides)
    before = runs.results(target)
    (target / folder.SUMMARY).unlink()
    Simulation.resume(target).run()
    assert runs.results(target) == before


def test_without_a_checkpoint_the_run_starts_over(tmp_path: Path) -> None:
    target = whole(tmp_path, SWITCHED)
    before = runs.results(target)
    for name in (folder.SUMMARY, folder.CHECKPOINT, folder.PREVIOUS):
        (target / name).unlink(missing_ok=True)
    Simulation.resume(target).run()
    assert runs.results(target) == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tolerance = 0.1", "tolerance = 0.2", "time.tolerance is 0.2, was 0.1"),
        ("tolerance = 0.1\n", "", "time.tolerance is not given, was 0.1"),
        (
            'method = "stabilized"\nend = 10.0\ntolerance = 0.1',
            "end = 10.0",
            "time.tolerance is not given, was 0.1",  # without a method, that of the checkpoint goes on
        ),
    ],
)
def test_a_changed_method_or_tolerance_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert interrupted_after(begin(tmp_path, SWITCHED, "time.tolerance=0.1 K"), 3)
    path = tmp_path / "parts" / folder.SCENARIO
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(FolderError, match="was changed since the run began") as error:
        Simulation.resume(tmp_path / "parts")
    assert words in str(error.value)


def test_another_device_is_told(tmp_path: Path) -> None:
    assert interrupted_after(begin(tmp_path, SWITCHED), 3)
    saved, _ = checkpoint.read_last_good(tmp_path / "parts")
    assert saved is not None
    saved.values["backend"] = "cuda"
    simulation = Simulation.resume(tmp_path / "parts")
    from heatsim.run.initial_state import warnings_on_resume

    (warning,) = warnings_on_resume(simulation.plan, saved)
    assert 'began on device "cuda" and continues on "cpu"' in warning


def test_the_numpy_kernel_may_go_on(tmp_path: Path) -> None:
    """The kernels of one device give the same bits."""
    assert interrupted_after(begin(tmp_path, SWITCHED), 12)
    path = tmp_path / "parts" / folder.SCENARIO
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('kernel = "auto"', 'kernel = "numpy"'), encoding="utf-8")
    Simulation.resume(tmp_path / "parts").run()
    found, expected = runs.results(tmp_path / "parts"), runs.results(whole(tmp_path, SWITCHED))
    for name in ("fields", "probes", "energy", "checkpoint"):
        assert found[name] == expected[name]
    work = json.loads((tmp_path / "parts" / folder.SUMMARY).read_text())
    assert {work[key] for key in ("steps", "stages", "rejected")} == {
        expected["summary"][key] for key in ("steps", "stages", "rejected")
    }
