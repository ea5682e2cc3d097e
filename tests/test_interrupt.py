"""What stops a run early: signals, NaN in the field, a full disk. Nothing written before is lost or wrong."""

import resource
import signal
import threading
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
from heatsim.run import timing
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage import checkpoint, folder, manifest, tables
from heatsim.storage.field_reader import FieldReader

# More than a second of work on any machine, in steps of a tenth of a millisecond.
LASTING = [
    "domain.cells=[16,16,16]",
    "time.end=600",
    "output.every=150",
    "output.probe_every=15",
    "solver.kernel=numpy",
]


def stopped(at: Path, number: signal.Signals, *arguments: str | Path) -> tuple[int, str, str]:
    """Start heatsim, send a signal as soon as it writes its fields, and wait for the end."""

    def written() -> int:
        return (at / folder.FIELDS).stat().st_mtime_ns if (at / folder.FIELDS).exists() else 0

    before = written()
    process = runs.start(*arguments)
    while written() == before:
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
        (signal.SIGHUP, ["resume", parts, "--quiet"]),
    ):
        code, out, err = stopped(parts, number, *arguments)
        assert (code, out) == (130, "")
        assert len(err.splitlines()) == 1
        assert f"a checkpoint is saved: continue with `heatsim resume '{parts}'`" in err
        saved, warnings = checkpoint.read_last_good(parts)
        assert saved is not None
        assert warnings == []
        reached.append(saved.values["step"])
        assert f"step {reached[-1]:,};" in err
    whole = runs.run(tmp_path, *LASTING)
    steps = Simulation.resume(whole).step
    assert 0 <= reached[0] <= reached[1] <= reached[2] < steps
    assert main(["resume", str(parts), "--quiet"]) == 0
    assert runs.results(parts) == runs.results(whole)


def test_a_signal_while_the_kernel_is_compiled_does_not_wait_for_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target, compiled = tmp_path / "run", threading.Event()
    scenario = runs.write(tmp_path)

    def prepare(stepper: Stepper) -> None:
        signal.raise_signal(signal.SIGINT)
        assert compiled.wait(30.0)

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "prepare", prepare)
        assert main(["run", str(scenario), "--output", str(target), "--quiet"]) == 130
    err = capsys.readouterr().err
    assert err.startswith(
        "heatsim: interrupted while the kernel was compiled, at step 0; continue with `heatsim resume "
    )
    assert not (target / folder.FIELDS).exists()
    compiled.set()
    assert main(["resume", str(target), "--quiet"]) == 0
    assert runs.results(target) == runs.results(runs.run(tmp_path))


def test_a_process_that_compiles_ends_cleanly_on_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nothing compiled yet"))
    target = tmp_path / "run"
    process = runs.start("run", runs.write(tmp_path), "--output", target, "--quiet")
    while not (target / folder.SCENARIO).exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert len([line for line in err.splitlines() if "warning" not in line]) == 1
    assert "at step 0; " in err
    assert f"heatsim resume {target}" in err


def test_an_error_of_the_compiler_is_raised_where_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(stepper: Stepper) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Stepper, "prepare", prepare)
    with pytest.raises(ZeroDivisionError):
        Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run").run()


def test_signals_mean_what_they_did_before_when_a_run_is_over(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    runs.run(tmp_path)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.each_value
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
        stepper.field.deviation[3, 2, 1] = value

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
    assert np.isfinite(energy[1:]).all()  # the first row has no heat flows
    with FieldReader(target / folder.FIELDS) as reader:
        assert reader.times.tolist() == runs.FIELD_TIMES[:2]
        assert all(np.isfinite(reader.read(i)).all() for i in range(len(reader)))
    assert not (target / folder.SUMMARY).exists()

    monkeypatch.undo()
    Simulation.resume(target).run()
    assert runs.results(target)["probes"] == runs.results(runs.run(tmp_path))["probes"]


def test_heat_beyond_all_numbers_is_seen_at_the_next_due_step(tmp_path: Path) -> None:
    # Each step adds 1.2e38 K to the cells at y_min, which is a float32; their sum soon is none.
    scenario = runs.write(tmp_path, runs.TEXT.replace("value = 5e3", "value = 1e30"))
    overrides = ["material.conductivity=1e-11", "time.end=1e14", "output.every=2.5e13", "output.probe_every=1.25e13"]
    simulation = Simulation.from_scenario(scenario, overrides, output=tmp_path / "run")
    with pytest.raises(NotFiniteError, match=r"seen at step \d+ \(t = "):
        simulation.run()


def test_a_blow_up_is_told_once_by_heatsim_itself(tmp_path: Path) -> None:
    """Opposite fluxes, so that the sum of the field is +∞ − ∞; NumPy's own warnings are none of the user's business."""
    text = runs.TEXT.replace('y_min = { type = "flux", value = 5e3 }', 'y_min = { type = "flux", value = 1e30 }')
    text = text.replace("[boundaries]", '[boundaries]\ny_max = { type = "flux", value = -1e30 }')
    settings = ["material.conductivity=1e-11", "time.end=1e14", "output.every=2.5e13", "output.probe_every=1.25e13"]
    settings += ["solver.kernel=numpy"]
    options = [option for setting in settings for option in ("--set", setting)]
    code, out, err = runs.command(runs.write(tmp_path, text), *options, "--output", tmp_path / "run")
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1, err
    assert err.startswith("heatsim: NaN or infinity in the field, seen at step ")


def test_a_flux_too_large_for_float32_is_refused_by_its_face(tmp_path: Path) -> None:
    scenario = runs.write(tmp_path, runs.TEXT.replace("value = 5e3", "value = 1e30"))
    settings = ["material.conductivity=1e-30", "material.density=1e-9", "time.end=1e3", "output.probe_every=100"]
    options = [option for setting in settings for option in ("--set", setting)]
    code, out, err = runs.command(scenario, *options, "--set", "output.every=100", "--output", tmp_path / "run")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    assert "boundaries.y_min: is not a finite, physical value at t = 0.0 s" in err


def test_a_face_without_a_finite_value_at_one_moment_spoils_no_row(tmp_path: Path) -> None:
    # The expression is tried out at many times when the file is read, but hardly at exactly 5 s.
    scenario = runs.write(tmp_path, runs.TEXT.replace("300 + 20*sin(t)", "300 + min(20, 1/abs(t-5) - 1/abs(t-5))"))
    target = tmp_path / "run"
    with pytest.raises(NotFiniteError, match=r'probe "warm, side" is nan K at t = 5\.0 s'):
        Simulation.from_scenario(scenario, output=target).run()
    for name, rows in ((folder.PROBES, 4), (folder.ENERGY, 4)):
        _, table = tables.read(target / name)
        assert np.isfinite(table[1:]).all()
        assert len(table) == rows


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file grows beyond ``size`` bytes, here and in processes started here: the system refuses as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


LARGE_FIELDS = ["domain.cells=[24,24,24]", "solver.precision=float64"]
MANY_ROWS = ["output.every=10", "output.probe_every=0.02", "output.checkpoint_wall=0.01"]


@pytest.mark.parametrize(
    ("overrides", "size", "name"),
    [
        ([], 0, manifest.NAME),
        ([], 1_200, folder.SCENARIO),
        pytest.param(LARGE_FIELDS, 2_000, folder.FIELDS, marks=pytest.mark.slow),
        (LARGE_FIELDS, 100_000, folder.FIELDS),
        pytest.param(LARGE_FIELDS, 500_000, folder.FIELDS, marks=pytest.mark.slow),
        (MANY_ROWS, 50_000, folder.ENERGY),
    ],
)
def test_a_full_disk_ends_the_run_with_advice_and_space_lets_it_go_on(
    tmp_path: Path,
    overrides: list[str],
    size: int,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "OBSERVING_WORTH_A_WARNING", 1e9)  # many rows on a busy machine
    whole = runs.run(tmp_path, *overrides)
    target = tmp_path / "run"
    options = [option for override in overrides for option in ("--set", override)]
    arguments = ["run", str(tmp_path / "mixed.toml"), "--output", str(target), *options, "--quiet"]
    with full_disk(size):
        assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith(f"heatsim: {target / name}: could not be written: ")
    assert "File too large" in err
    assert not (target / folder.SUMMARY).exists()

    if name not in (manifest.NAME, folder.SCENARIO):
        assert "(`ulimit -f`) or use another disk and run `heatsim resume" in err
        arguments = ["resume", str(target), "--quiet"]
    assert main(arguments) == 0
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
    # The room for fields was set aside when the run began; there is none for another checkpoint.
    with full_disk(len(before) // 2):
        assert main(["resume", str(target), "--quiet"]) == 1
    assert "raise the limit on the size of files" in capsys.readouterr().err
    assert (target / folder.CHECKPOINT).read_bytes() == before
    assert main(["resume", str(target), "--quiet"]) == 0
    assert runs.results(target) == runs.results(whole)
