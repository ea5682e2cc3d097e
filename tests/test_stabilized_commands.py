"""The commands, messages and files of runs with time.method = "stabilized"."""

import json
import re
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import RunError
from heatsim.observers import progress
from heatsim.storage import folder, tables

pytestmark = pytest.mark.usefixtures("one_thread")

STABILIZED = ("--set", "time.method=stabilized")


def test_a_run_tells_its_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, target = runs.write(tmp_path), tmp_path / "run"
    assert main(["run", str(scenario), "--output", str(target), *STABILIZED, "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert [line for line in err.splitlines() if line != progress.COMPILING] == []
    summary = json.loads((target / folder.SUMMARY).read_text())
    assert summary["method"] == "stabilized"
    assert 0 < summary["tolerance"] < 0.1
    assert 0 < summary["steps"] < summary["stages"]
    assert summary["rejected"] >= 0
    assert not {"dt", "coefficients"} & summary.keys()
    words = " ".join(out.split())
    assert f"{summary['steps']} stabilized steps to 10 s, {summary['stages']} stages" in words
    assert f"{summary['rejected']} steps rejected at a tolerance of {summary['tolerance']:.3g} K" in words


def test_quiet_says_nothing_and_a_finished_run_is_not_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, target = runs.write(tmp_path), tmp_path / "run"
    assert main(["run", str(scenario), "--output", str(target), *STABILIZED, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    before = runs.results(target)
    assert main(["resume", str(target)]) == 0
    assert "the run is complete; nothing to resume" in capsys.readouterr().out
    assert runs.results(target) == before


def test_a_line_of_progress_has_time_steps_and_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count(0, 3)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    Simulation.from_scenario(runs.write(tmp_path), [STABILIZED[1]], output=tmp_path / "run").run(progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    line = r"t = ([\d.]+) of 10 s, (\d+) steps of (\d+) stages, [\d.]+ (?:c|[kMG]C)ells/s"
    line += r"(?:, (?:about [\d.]+ (?:s|min)|less than 1 s) left)?"
    found = [re.fullmatch(line, text) for text in err.splitlines()]
    assert all(found), err
    times = [float(match[1]) for match in found if match]
    assert len(times) > 2
    assert times == sorted(times)


def test_an_interruption_names_time_steps_and_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, target = runs.write(tmp_path), tmp_path / "run"
    runs.after_advance(monkeypatch, 5, runs.interrupt)
    assert main(["run", str(scenario), "--output", str(target), *STABILIZED, "--quiet"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(
        rf"heatsim: interrupted at t = [\d.]+ s, after [\d,]+ steps of [\d,]+ stages; "
        rf"a checkpoint is saved: continue with `heatsim resume '?{re.escape(str(target))}'?`\n",
        err,
    )


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        ("time.tolerance=1e-9", (1, 2), ["time.tolerance", "1e-09 K", "time.tolerance", "float64"]),
        ('initial.temperature="300 + 0*log(x - 0.02)"', (2,), ["initial.temperature", "is nan K at (0.005, "]),
        ('boundaries.x_min.value="300 + 20*(sin(1e6*t) > 0)"', (2,), ["boundaries.x_min.value", '"euler"']),
        ("time.dt=0.1", (2,), ["time.dt", "time.tolerance"]),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], override: str, code: tuple[int, ...], words: list[str]
) -> None:
    scenario, target = runs.write(tmp_path), tmp_path / "run"
    arguments = [*STABILIZED, "--precision", "float32", "--set", override, "--quiet"]
    assert main(["run", str(scenario), "--output", str(target), *arguments]) in code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("heatsim: ")
    assert len(err.splitlines()) == 1
    for word in words:
        assert word in err
    assert not (target / folder.SUMMARY).exists()


def test_heat_beyond_all_numbers_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = [
        "boundaries.y_min.value=1e30",
        "boundaries.x_min.value=300",
        "material.conductivity=1e-11",
        "time.end=1e14",
    ]
    overrides += ["output.every=2.5e13", "output.probe_every=1.25e13"]
    options = [option for override in overrides for option in ("--set", override)]
    scenario, target = runs.write(tmp_path), tmp_path / "run"
    assert main(["run", str(scenario), "--output", str(target), *STABILIZED, *options, "--quiet"]) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "NaN or infinity in the field after t = 0.0 s" in err
    assert "float64" in err


def test_a_face_without_a_value_at_one_moment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = runs.TEXT.replace("300 + 20*sin(t)", "300 + min(20, 1/abs(t-5) - 1/abs(t-5))")
    target = tmp_path / "run"
    assert main(["run", str(runs.write(tmp_path, text)), "--output", str(target), *STABILIZED, "--quiet"]) == 2
    assert "boundaries.x_min.value" in capsys.readouterr().err
    assert not target.exists()


def test_a_value_that_is_not_finite_is_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that a fault spoils between two steps ends the run; the checkpoint before is good."""
    target = tmp_path / "run"
    options = ["time.method=stabilized", "output.checkpoint_wall=1e-9"]

    def spoil(stepper) -> None:  # type: ignore[no-untyped-def]
        stepper.substeps._last.T[3, 2, 1] = float("nan")

    with monkeypatch.context() as patch:
        runs.after_advance(patch, 7, spoil)
        with pytest.raises(RunError):
            Simulation.from_scenario(runs.write(tmp_path), options, output=target).run()
    for name in (folder.PROBES, folder.ENERGY):
        assert np.isfinite(tables.read(target / name)[1][1:]).all()
    Simulation.resume(target).run()
    found, whole = runs.results(target), runs.results(runs.run(tmp_path, "time.method=stabilized"))
    assert found["probes"] == whole["probes"]
