"""Errors of every kind as the user sees them: location, value received, allowed values, and what to do."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import (
    CapacityError,
    DeviceError,
    FolderError,
    HeatsimError,
    InputError,
    Interrupted,
    Mistake,
    NotFiniteError,
    RunError,
    ScenarioError,
    StorageError,
)
from heatsim.storage import checkpoint, folder

# The replaced text of the scenario, its replacement, and fragments of the message.
SCENARIO_MISTAKES = [
    ("size = [0.07,", "size = [-0.07,", ["domain.size.0", "-0.07", "greater than 0 m"]),
    ("cells = [7,", "cells = [0,", ["domain.cells.0", "got 0", "from 1"]),
    ("cells = [7, 5, 6]", "cells = [7, 5]", ["domain.cells", "[7, 5]", "three"]),
    ("density = 2000.0", 'density = "2 kW"', ["material.density", '"2 kW"', "kg/m^3"]),
    ("density = 2000.0", "", ["material.density", "missing", "density = 2700.0"]),
    ("specific_heat = 500.0", "specific_heat = true", ["material.specific_heat", "true", "as a number"]),
    ("320 + 30*sin(60*x)*cos(40*y)", "320 + 30*sine(x)", ["initial.temperature", "sine", 'did you mean "sin"?']),
    (
        "320 + 30*sin(60*x)*cos(40*y)",
        "100 - 9000*x",
        ["initial.temperature", "-485 K at (0.065, 0.005, 0.005) m", "at least"],
    ),
    ("320 + 30*sin(60*x)*cos(40*y)", "9^9^9^9", ["initial.temperature", "inf", "finite"]),
    ('"flux", value = 5e3', '"fluxx", value = 5e3', ["boundaries.y_min.type", '"fluxx"', 'did you mean "flux"?']),
    ('z_max = { type = "periodic" }', "", ["boundaries.z_max", "insulated", "boundaries.z_min", "periodic", "both"]),
    ("values = [100.0, 900.0]", "values = [100.0]", ["boundaries.x_max.coefficient", "100.0"]),
    ("times = [0.0, 5.0]", "times = [5.0, 0.0]", ["boundaries.x_max.coefficient.times.1", "0.0 after 5.0"]),
    ("ambient = 280.0", "ambient = nan", ["boundaries.x_max.ambient", "nan", "finite"]),
    ("end = 10.0", 'end = "10 m"', ["time.end", '"10 m"', "s"]),
    ("end = 10.0", "end = 10.0\ndt = 1.25", ["time.dt", "1.25 s", "stability limit 0.8", "cell [0, 1, 0]", '"auto"']),
    ("end = 10.0", "end = 10.0\ndt = 0.3", ["time.dt", "0.3 s", "does not divide the 1.25 s", "nearest", "0.25 s"]),
    ("every = 2.5", "every = 1e-9", ["time.end", "1e-09 s", "due times", "output.every"]),
    ('device = "cpu"', 'device = "gpu"', ["solver.device", '"gpu"', '"auto", "cuda", "cpu"']),
    ('device = "cpu"', 'device = "cpu"\nkernel = "numbra"', ["solver.kernel", '"numbra"', 'did you mean "numba"?']),
    ('device = "cpu"', 'device = "cpu"\nkernel = "naive"', ["solver.kernel", '"naive"', "cuda", "auto, numpy, numba"]),
    ("probe_every =", "probes_every =", ["output.probes_every", "1.25", 'did you mean "probe_every"?']),
    ("[output]", "[ouput]", ["ouput", 'did you mean "output"?']),
    ("[output]", "[output", ["not readable as TOML", "line "]),
    ('name = "inside"', 'name = "time"', ["probes.0.name", '"time"', "choose another"]),
    ("point = [0.031, 0.02", "point = [0.071, 0.02", ["probes.0.point.0", "0.071", "from 0.0 to 0.07 m along x"]),
]


@pytest.mark.parametrize(
    ("old", "new", "fragments"), SCENARIO_MISTAKES, ids=[new[:30] for _, new, _ in SCENARIO_MISTAKES]
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_mistake_in_a_scenario(
    tmp_path: Path, old: str, new: str, fragments: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs.TEXT.count(old) == 1
    scenario = runs.write(tmp_path, runs.TEXT.replace(old, new))
    assert main([command, str(scenario), "--output", str(tmp_path / "run")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "solver.kernel" in err or err.startswith(f"heatsim: {scenario}: ")
    for fragment in fragments:
        assert fragment in err
    assert not (tmp_path / "run").exists()


def test_all_mistakes_of_a_file_are_told_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = runs.TEXT.replace("density = 2000.0", "density = 0").replace('"flux", value', '"fluxx", value')
    scenario = runs.write(tmp_path, text.replace("end = 10.0", "end = -1"))
    assert main(["run", str(scenario), "--set", "output.evry=1"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"heatsim: {scenario}: 4 mistakes\n")
    for key in ("material.density: ", "boundaries.y_min.type: ", "time.end: ", "output.evry: "):
        assert err.count(f"\n  {key}") == 1
    assert "(from --set)" in err


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A folder of a run interrupted twice."""
    target = tmp_path / "run"
    for step, begin in (
        (3, lambda: Simulation.from_scenario(runs.write(tmp_path), output=target)),
        (9, lambda: Simulation.resume(target)),
    ):
        with pytest.MonkeyPatch.context() as monkeypatch:
            runs.after_step(monkeypatch, step, runs.interrupt)
            with pytest.raises(Interrupted):
                begin().run()
    return target


def damage_checkpoints(run: Path) -> None:
    runs.damage(run / folder.CHECKPOINT)
    runs.damage(run / folder.PREVIOUS)


def change(run: Path, old: str, new: str) -> None:
    path = run / folder.SCENARIO
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


UNFINISHED_MISTAKES: list[tuple[Callable[[Path], object], int, list[str]]] = [
    (lambda run: (run / folder.SCENARIO).unlink(), 2, ["is not the folder of a heatsim run", "scenario.toml"]),
    (lambda run: shutil.rmtree(run), 2, ["is not there", "heatsim run"]),
    (
        lambda run: change(run, "cells = [7, 5, 6]", "cells = [8, 5, 6]"),
        2,
        ["domain.cells is [8, 5, 6], was [7, 5, 6]"],
    ),
    (
        lambda run: change(run, 'precision = "auto"', 'precision = "float64"'),
        2,
        ['solver.precision is "float64", was "float32"', "put it"],
    ),
    (lambda run: change(run, "end = 10.0", "end = 20.0"), 2, ["time.end is 20.0, was 10.0", "--output"]),
    (lambda run: change(run, "value = 5000.0", "value = 1.0"), 2, ["boundaries.y_min.value is 1.0, was 5000.0"]),
    (lambda run: change(run, "20*sin(t)", "9*sin(t)"), 2, ['x_min.value is "300 + 9*sin(t)", was "300 + 20*sin(t)"']),
    (lambda run: change(run, "320 +", "310 +"), 2, ['initial.temperature is "310 +', 'was "320 +']),
    (lambda run: change(run, 'name = "inside"', 'name = "in"'), 2, ['probes.0.name is "in", was "inside"']),
    (lambda run: change(run, "density = 2000.0", "density = -1.0"), 2, ["material.density", "-1.0"]),
    (damage_checkpoints, 1, ["checkpoint.h5 is damaged", "checkpoint.previous.h5 is damaged", "--overwrite"]),
    (lambda run: (run / folder.PROBES).unlink(), 1, ["probes.csv", "is missing", "rows", "--overwrite"]),
    (
        lambda run: os.truncate(run / folder.ENERGY, 30 + (run / folder.ENERGY).read_bytes().index(b"\n")),
        1,
        ["energy.csv", "holds ", "--overwrite"],
    ),
    (lambda run: os.truncate(run / folder.FIELDS, 1000), 1, ["fields.vtkhdf", "could not be read"]),
    (lambda run: (run / folder.FIELDS).unlink(), 1, ["fields.vtkhdf", "is missing", "times"]),
]


@pytest.mark.parametrize(("mistake", "code", "fragments"), UNFINISHED_MISTAKES)
def test_a_folder_that_cannot_be_resumed(
    unfinished: Path,
    mistake: Callable[[Path], object],
    code: int,
    fragments: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    mistake(unfinished)
    assert main(["resume", str(unfinished)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith(f"heatsim: {unfinished}")
    for fragment in fragments:
        assert fragment in err


@pytest.mark.parametrize("command", ["render", "export"])
def test_a_folder_that_cannot_be_looked_at(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"heatsim: {tmp_path}: is not the folder of a heatsim run")
    assert "heatsim run" in err


def test_a_name_that_the_system_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = str(runs.write(tmp_path))
    for arguments in (["resume", "a" * 300], ["run", scenario, "--output", "a" * 300], ["run", "a" * 300]):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "a" * 300 in err
        assert "Traceback" not in err


def test_another_process_writes_to_the_folder(unfinished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with folder.claim(unfinished):
        assert main(["resume", str(unfinished)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"heatsim: {unfinished}: another heatsim process is writing there; wait for it")


def test_memory_and_disk_that_do_not_suffice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = str(runs.write(tmp_path))
    many = ["--set", "domain.cells=[100000,100000,100]", "--set", "time.end=1e-6", "--set", "output.every=1e-7"]
    assert main(["run", scenario, *many, "--output", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    for fragment in (scenario, "needs at least 7.27", "TiB", "free", "fewer cells"):
        assert fragment in err
    assert not (tmp_path / "run").exists()


def test_memory_that_ends_during_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(*arguments: object, **options: object) -> None:
        raise MemoryError("Unable to allocate 5 TiB")

    monkeypatch.setattr(np, "broadcast_to", exhausted)
    assert main(["run", str(runs.write(tmp_path)), "--output", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert "Unable to allocate 5 TiB" in err
    assert "fewer cells" in err


def test_exit_codes_are_those_of_the_tree_of_errors() -> None:
    codes = {
        InputError: 2,
        ScenarioError: 2,
        FolderError: 2,
        DeviceError: 2,
        CapacityError: 2,
        RunError: 1,
        NotFiniteError: 1,
        StorageError: 1,
        Interrupted: 130,
    }
    assert {error: error.exit_code for error in codes} == codes
    assert all(issubclass(error, HeatsimError) for error in codes)


def test_a_run_that_goes_on_with_another_backend_is_told_about_its_bits(
    unfinished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, _ = checkpoint.read_last_good(unfinished)
    assert saved is not None
    checkpoint.write(unfinished, checkpoint.Checkpoint(saved.arrays, {**saved.values, "backend": "cuda"}, saved.files))
    assert main(["resume", str(unfinished), "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert 'heatsim: warning: the run began on device "cuda" and continues on "cpu"' in err
    assert "not to the bit" in err


def test_a_hundred_problems_are_enough_to_begin_with() -> None:
    error = ScenarioError("a.toml", [Mistake(f"probes.{number}", "missing") for number in range(1000)])
    assert len(error.mistakes) == 1000
    lines = str(error).splitlines()
    assert (lines[0], lines[100], lines[-1]) == ("a.toml: 1000 mistakes", "  probes.99: missing", "  … and 900 more")
