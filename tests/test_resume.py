"""A run that is interrupted, killed or finds its newest checkpoint damaged goes on to the same bits."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import FolderError, Interrupted, StorageError
from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.report.page import write_report
from heatsim.storage import checkpoint, folder, tables
from heatsim.storage.field_reader import FieldReader

MID_INTERVAL, DUE, FIELD_DUE = 3, 6, 8
EVERY_KERNEL = [
    pytest.param(kernel, id=kernel.name, marks=pytest.mark.gpu if kernel.backend == "cuda" else ())
    for kernel in KERNELS
]


def interrupted(target: Path, step: int, begin: Callable[[], Simulation]) -> None:
    """Begin or go on, and interrupt when ``step`` steps are queued: on a GPU the last one may be dropped."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, step, runs.interrupt)
        with pytest.raises(Interrupted, match=f"step ({step - 1}|{step}); .*heatsim resume {target}"):
            begin().run()
    assert not (target / folder.SUMMARY).exists()


@pytest.mark.each_value
@pytest.mark.parametrize("kernel", EVERY_KERNEL)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_three_interruptions_change_no_bit_on_any_kernel(tmp_path: Path, kernel: KernelSpec, precision: str) -> None:
    overrides = [
        f"solver.device={kernel.backend}",
        f"solver.kernel={kernel.name}",
        f"solver.precision={precision}",
    ]
    whole = runs.run(tmp_path, *overrides)
    parts = tmp_path / "parts"
    scenario = runs.write(tmp_path)
    interrupted(parts, MID_INTERVAL, lambda: Simulation.from_scenario(scenario, overrides, output=parts))
    interrupted(parts, DUE, lambda: Simulation.resume(parts))
    interrupted(parts, FIELD_DUE, lambda: Simulation.resume(parts))
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(whole)


@pytest.mark.parametrize("step", [0, 1, MID_INTERVAL, DUE, FIELD_DUE, runs.LAST_STEP - 1])
def test_files_go_on_without_a_gap_or_a_repeated_row_wherever_the_run_stopped(tmp_path: Path, step: int) -> None:
    parts = tmp_path / "parts"
    scenario = runs.write(tmp_path)
    interrupted(parts, step, lambda: Simulation.from_scenario(scenario, output=parts))
    saved, _ = checkpoint.read_last_good(parts)
    assert saved is not None
    assert saved.values["step"] == step

    Simulation.resume(parts).run()
    rows = np.arange(0.0, 11.25, 1.25)
    for name in (folder.PROBES, folder.ENERGY):
        _, table = tables.read(parts / name)
        assert table[:, 0].tolist() == rows.tolist()
    with FieldReader(parts / folder.FIELDS) as reader:
        assert reader.times.tolist() == runs.FIELD_TIMES
    assert runs.results(parts) == runs.results(runs.run(tmp_path))


def test_an_interruption_at_the_last_step_finds_a_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.after_step(monkeypatch, runs.LAST_STEP, runs.interrupt)
    target = runs.run(tmp_path)
    assert (target / folder.SUMMARY).exists()
    assert Simulation.resume(target).finished


def test_without_a_checkpoint_the_run_begins_anew(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, FIELD_DUE + 1, runs.kill)
        with pytest.raises(runs.Killed):
            Simulation.from_scenario(runs.write(tmp_path), output=parts).run()
    simulation = Simulation.resume(parts)
    assert simulation.step == 0
    simulation.run()
    assert runs.results(parts) == runs.results(runs.run(tmp_path))


@pytest.mark.parametrize("name", [folder.REPORT, folder.SUMMARY, folder.FAILURE, folder.ENERGY])
def test_in_the_folder_of_a_killed_run_a_file_of_the_user_stays(tmp_path: Path, name: str) -> None:
    """Only what the run has begun to write is heatsim's."""
    parts, without = tmp_path / "parts", ["output.energy=false"] if name == folder.ENERGY else []
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, MID_INTERVAL, runs.kill)
        with pytest.raises(runs.Killed):
            Simulation.from_scenario(runs.write(tmp_path), without, output=parts).run()
    assert not (parts / name).exists()
    (parts / name).write_text("mine")
    with pytest.raises(FolderError, match=rf"not from heatsim, or were changed since \({name}\); nothing was removed"):
        Simulation.from_scenario(runs.write(tmp_path), output=parts, overwrite=True).run()
    if name == folder.SUMMARY:
        with pytest.raises(FolderError, match=r"summary\.json is not as heatsim wrote it, and was kept"):
            Simulation.resume(parts).run()
    elif name == folder.REPORT:
        assert main(["resume", str(parts), "--quiet"]) == 0
        with pytest.raises(FolderError, match=r"report\.html is not as heatsim wrote it, and was kept"):
            write_report(parts)
    assert (parts / name).read_text() == "mine"


@pytest.mark.parametrize("left", [folder.PROBES, folder.ENERGY, folder.FIELDS, folder.SUMMARY])
def test_checkpoints_that_were_removed_are_missed_aloud(
    left: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = runs.run(tmp_path)
    before = runs.results(target)
    for name in {*folder.FILES} - {folder.SCENARIO, "manifest.json", left}:
        (target / name).unlink(missing_ok=True)
    assert main(["resume", str(target), "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    told = f"{target}: its files go to t = 10 s, but no checkpoint is left; it starts over"
    assert err == f"heatsim: warning: {told}\n"
    assert runs.results(target) == before


def test_killed_before_the_summary_only_the_summary_is_made(tmp_path: Path) -> None:
    parts = tmp_path / "parts"

    def kill(*arguments: object) -> None:
        raise runs.Killed

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("heatsim.run.execution.write_summary", kill)
        with pytest.raises(runs.Killed):
            Simulation.from_scenario(runs.write(tmp_path), output=parts).run()
    simulation = Simulation.resume(parts)
    assert simulation.step == runs.LAST_STEP
    assert not simulation.finished
    simulation.run()
    assert simulation.finished
    assert runs.results(parts) == runs.results(runs.run(tmp_path))


def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = tmp_path / "parts"
    scenario = runs.write(tmp_path)
    interrupted(parts, MID_INTERVAL, lambda: Simulation.from_scenario(scenario, output=parts))
    interrupted(parts, DUE, lambda: Simulation.resume(parts))
    runs.damage(parts / folder.CHECKPOINT)
    assert Simulation.resume(parts).step == MID_INTERVAL

    assert main(["resume", str(parts), "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{parts / folder.CHECKPOINT} is damaged" in err
    assert f"using {folder.PREVIOUS}" in err
    assert runs.results(parts) == runs.results(runs.run(tmp_path))


def test_with_all_checkpoints_damaged_the_files_are_left_alone(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    scenario = runs.write(tmp_path)
    interrupted(parts, MID_INTERVAL, lambda: Simulation.from_scenario(scenario, output=parts))
    interrupted(parts, DUE, lambda: Simulation.resume(parts))
    for name in (folder.CHECKPOINT, folder.PREVIOUS):
        runs.damage(parts / name)
    before = {path.name: path.read_bytes() for path in parts.iterdir()}
    with pytest.raises(StorageError, match="damaged"):
        Simulation.resume(parts)
    assert {path.name: path.read_bytes() for path in parts.iterdir()} == before


def test_what_decides_no_bit_may_be_changed_before_going_on(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    scenario = runs.write(tmp_path)
    interrupted(parts, MID_INTERVAL, lambda: Simulation.from_scenario(scenario, output=parts))
    path = parts / folder.SCENARIO
    text = path.read_text(encoding="utf-8")
    for old, new in (
        ("Every kind of face", "A name"),
        ('kernel = "auto"', 'kernel = "numpy"'),
        ("checkpoint_wall = 60.0", "checkpoint_wall = 1e9"),
        ("figures = false", "figures = true"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    Simulation.resume(parts).run()
    found, whole = runs.results(parts), runs.results(runs.run(tmp_path))
    for name in ("fields", "probes", "energy", "checkpoint"):
        assert found[name] == whole[name]


def test_killed_at_random_moments_again_and_again(tmp_path: Path) -> None:
    lasting = ["domain.cells=[16,16,16]", "time.end=600", "output.every=150", "output.probe_every=15"]
    overrides = [*lasting, "solver.kernel=numpy", "output.checkpoint_wall=0.02"]
    whole = runs.run(tmp_path, *overrides)
    options = [option for override in overrides for option in ("--set", override)]
    parts = tmp_path / "parts"
    moments = random.Random(20).sample(range(1, 300), 3)
    arguments = ["run", str(tmp_path / "mixed.toml"), "--output", str(parts), *options]
    killed = 0
    for moment in moments:
        process = runs.start(*arguments, "--quiet")
        while not (parts / folder.CHECKPOINT).exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(moment / 1000.0)
        process.kill()
        process.communicate()
        killed += process.returncode < 0
        arguments = ["resume", str(parts)]
    assert killed
    code, out, err = runs.command("resume", parts, "--quiet")
    assert (code, out, err) == (0, "", "")
    assert runs.results(parts) == runs.results(whole)
