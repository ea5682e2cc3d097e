"""What stops a run early: signals, NaN in the field, a full disk. Nothing written before is lost or wrong."""

import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import NotFiniteError
from heatsim.stepper import Stepper
from heatsim.storage import checkpoint, folder, tables
from heatsim.storage.vtkhdf import FieldReader

# Seconds of work on any machine, in steps of a tenth of a millisecond.
LASTING = [
    "domain.cells=[16,16,16]",
    "time.end=2000",
    "output.every=500",
    "output.probe_every=50",
    "solver.kernel=numpy",
]


def stopped(process: "subprocess.Popen[str]", at: Path, number: signal.Signals) -> tuple[int, str, str]:
    """Send a signal as soon as the run writes there, and wait for the end."""
    while not (at / folder.FIELDS).exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_signals_stop_a_run_early_and_resume_completes_it(tmp_path: Path) -> None:
    scenario, parts = runs.write(tmp_path), tmp_path / "my parts"
    options = [option for override in LASTING for option in ("--set", override)]
    reached = []
    for number, arguments in (
        (signal.SIGINT, ["run", scenario, "--output", parts, *options, "--quiet"]),
        (signal.SIGTERM, ["resume", parts, "--quiet"]),
    ):
        code, out, err = stopped(runs.start(*arguments), parts, number)
        assert (code, out) == (130, "")
        assert len(err.splitlines()) == 1
        assert f"a checkpoint is saved: go on with `heatsim resume '{parts}'`" in err
        saved, warnings = checkpoint.read_last_good(parts)
        assert saved is not None
        assert warnings == []
        reached.append(saved.values["step"])
        assert f"step {reached[-1]:,};" in err
    whole = runs.run(tmp_path, *LASTING)
    steps = Simulation.resume(whole).step
    assert 0 <= reached[0] <= reached[1] < steps
    assert main(["resume", str(parts), "--quiet"]) == 0
    assert runs.results(parts) == runs.results(whole)


def test_signals_mean_what_they_did_before_when_a_run_is_over(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    runs.run(tmp_path)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wall", ["1e-9", "60"], ids=["checkpoints", "no checkpoint"])
def test_a_value_that_is_not_finite_stops_the_run_and_is_written_nowhere(
    tmp_path: Path,
    value: float,
    wall: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "run"
    scenario = runs.write(tmp_path)

    def spoil(stepper: Stepper) -> None:
        stepper._field.deviation[3, 2, 1] = value

    # In the middle of an interval; the next due step is 8, t = 5 s.
    runs.after_step(monkeypatch, 7, spoil)
    arguments = ["run", str(scenario), "--output", str(target), "--set", f"output.checkpoint_wall={wall}", "--quiet"]
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("heatsim: NaN or infinity in the field, seen at step ")
    assert "Traceback" not in err

    saved, warnings = checkpoint.read_last_good(target)
    if wall == "60":
        assert "step 8" in err
        assert saved is None
    else:
        assert "step 7" in err
        assert saved is not None
        assert saved.values["step"] == 6
        assert warnings == []
        assert all(np.isfinite(array).all() for array in saved.arrays.values())
    _, probes = tables.read(target / folder.PROBES)
    _, energy = tables.read(target / folder.ENERGY)
    assert len(probes) == len(energy) == 4
    assert np.isfinite(probes).all()
    assert np.isfinite(energy).all()
    with FieldReader(target / folder.FIELDS) as reader:
        assert reader.times.tolist() == runs.FIELD_TIMES[:2]
        assert all(np.isfinite(reader.read(i)).all() for i in range(len(reader)))
    assert not (target / folder.SUMMARY).exists()

    monkeypatch.undo()
    Simulation.resume(target).run()
    assert runs.results(target)["probes"] == runs.results(runs.run(tmp_path))["probes"]


def test_heat_beyond_all_numbers_is_seen_at_the_next_due_step(tmp_path: Path) -> None:
    scenario = runs.write(tmp_path, runs.TEXT.replace("value = 5e3", "value = 1e29"))
    # In float32 f = 1e31 … a few steps of that fit, but the sum over a face's cells is doubled by each of many.
    simulation = Simulation.from_scenario(
        scenario, ["solver.rounding=nearest", "material.density=1e-24"], output=tmp_path / "run"
    )
    with pytest.raises(NotFiniteError, match=r"seen at step \d+ \(t = "):
        simulation.run()


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Files cannot grow beyond ``size`` bytes: the system refuses as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("size", [2_000, 20_000, 40_000, 70_000, 80_000, 85_000, 90_000])
def test_a_full_disk_ends_the_run_with_advice_and_space_lets_it_go_on(
    tmp_path: Path, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = runs.run(tmp_path)
    assert max(path.stat().st_size for path in whole.iterdir()) > size
    target = tmp_path / "run"
    with full_disk(size):
        code = main(["run", str(tmp_path / "mixed.toml"), "--output", str(target), "--quiet"])
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "could not be written: File too large; free some disk space and run `heatsim resume" in err
    assert str(target) in err
    assert not (target / folder.SUMMARY).exists()

    assert main(["resume", str(target), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert runs.results(target) == runs.results(whole)


def test_a_full_disk_ends_a_resumed_run_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = runs.run(tmp_path)
    target = tmp_path / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 5, runs.interrupt)
        assert main(["run", str(tmp_path / "mixed.toml"), "--output", str(target), "--quiet"]) == 130
    before = (target / folder.CHECKPOINT).read_bytes()
    capsys.readouterr()
    with full_disk(80_000):
        assert main(["resume", str(target), "--quiet"]) == 1
    assert "free some disk space" in capsys.readouterr().err
    assert (target / folder.CHECKPOINT).read_bytes() == before
    assert main(["resume", str(target), "--quiet"]) == 0
    assert runs.results(target) == runs.results(whole)
