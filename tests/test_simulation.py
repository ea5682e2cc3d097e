"""heatsim as a Python library."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import runs
from PIL import Image

import heatsim
from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import FolderError, Interrupted, NotFiniteError, ScenarioError
from heatsim.observers.observer import Observer
from heatsim.observers.snapshots import Snapshots
from heatsim.observers.state import RunState
from heatsim.run.interrupt import Stop
from heatsim.scenario import load
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage import folder


def test_a_simulation_runs_and_gives_temperatures_in_kelvin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    simulation = heatsim.Simulation.from_scenario(runs.write(tmp_path))
    assert simulation.folder == Path("outputs/mixed")
    assert not simulation.folder.exists()
    assert simulation.temperature.shape == (6, 5, 7)
    assert simulation.temperature.dtype == np.float64
    x = simulation.plan.problem.grid.centres(0)
    y = simulation.plan.problem.grid.centres(1)
    start = 320.0 + 30.0 * np.sin(60.0 * x)[None, None, :] * np.cos(40.0 * y)[None, :, None]
    np.testing.assert_allclose(simulation.temperature, np.broadcast_to(start, (6, 5, 7)), rtol=1e-7)
    assert (simulation.step, simulation.time, simulation.finished) == (0, 0.0, False)

    simulation.run()
    assert (simulation.step, simulation.time, simulation.finished) == (runs.LAST_STEP, 10.0, True)
    assert simulation.folder.exists()
    final = simulation.temperature
    assert not np.array_equal(final, np.broadcast_to(start, (6, 5, 7)))

    # Again there is nothing to do.
    before = (simulation.folder / folder.SUMMARY).stat().st_mtime_ns
    simulation.run()
    assert (simulation.folder / folder.SUMMARY).stat().st_mtime_ns == before
    np.testing.assert_array_equal(simulation.temperature, final)


def test_the_summary_says_what_was_done(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path), ["solver.precision=float64"], output=tmp_path / "run")
    simulation.run()
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    problem = simulation.plan.problem
    assert summary["title"] == "Every kind of face"
    assert summary["device"] == simulation.plan.device.name
    assert (summary["backend"], summary["kernel"], summary["precision"]) == ("cpu", "numba", "float64")
    assert summary["cells"] == [7, 5, 6]
    assert (summary["time"], summary["steps"]) == (10.0, runs.LAST_STEP)
    assert summary["coefficients_of"] is None  # one material
    (coefficients,) = summary["coefficients"]
    assert coefficients == {
        "dt": 0.625,
        "steps": runs.LAST_STEP,
        **{f"c{i}": c for i, c in enumerate(problem.coefficients[0.625].c)},
    }
    # α·dt/d² with α = k/(ρ·cp), and c0 what is left.
    for name, conductivity in (("c1", 20.0), ("c2", 20.0), ("c3", 12.0), ("c4", 12.0), ("c5", 16.0), ("c6", 16.0)):
        assert coefficients[name] == pytest.approx(conductivity / 1e6 * 0.625 / 0.01**2, rel=1e-12)
    assert sum(coefficients[f"c{i}"] for i in range(7)) == 1.0
    assert summary["temperature"]["min"] == simulation.temperature.min()
    assert summary["temperature"]["max"] == simulation.temperature.max()
    assert summary["temperature"]["mean"] == pytest.approx(simulation.temperature.mean(), rel=1e-14)
    assert abs(summary["energy"]["residual"]) <= summary["energy_bound"]
    assert summary["cells_per_second"] > 0.0
    assert summary["wall_time"] >= summary["stepping_time"] > 0.0
    assert {"heatsim", "python", "numpy", "h5py", "numba"} <= set(summary["versions"])


def test_an_interrupted_simulation_goes_on_when_it_is_run_again(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run")
    for step in (5, 9):
        with pytest.MonkeyPatch.context() as monkeypatch:
            runs.after_step(monkeypatch, step, runs.interrupt)
            with pytest.raises(Interrupted):
                simulation.run()
        assert simulation.step == step
    simulation.run()
    assert runs.results(tmp_path / "run") == runs.results(runs.run(tmp_path))


def test_a_failed_simulation_does_not_go_on_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(stepper: Stepper) -> None:
        stepper.field.deviation[0, 0, 0] = np.nan

    simulation = Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run")
    runs.after_step(monkeypatch, 5, spoil)
    with pytest.raises(NotFiniteError):
        simulation.run()
    before = {path.name: path.read_bytes() for path in simulation.folder.iterdir()}
    with pytest.raises(FolderError, match=r"failed at step 6; .*heatsim resume"):
        simulation.run()
    assert {path.name: path.read_bytes() for path in simulation.folder.iterdir()} == before


def test_a_simulation_can_run_in_a_thread_that_gets_no_signals(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "thread")
    thread = threading.Thread(target=simulation.run)
    thread.start()
    thread.join()
    assert runs.results(tmp_path / "thread") == runs.results(runs.run(tmp_path))


def test_the_resolved_scenario_gives_the_same_bits(tmp_path: Path) -> None:
    first = runs.run(tmp_path, "time.safety=0.7")
    Simulation.from_scenario(first / folder.SCENARIO, output=tmp_path / "again").run()
    assert runs.results(tmp_path / "again") == runs.results(first)


@pytest.mark.parametrize("kind", ["array", "image"])
def test_input_files_travel_with_the_results(tmp_path: Path, kind: str) -> None:
    pixels = np.random.default_rng(4).integers(0, 255, (6, 5, 7), dtype=np.uint8)
    if kind == "array":
        np.save(tmp_path / "start.npy", 300.0 + pixels)
        value = '{ file = "start.npy" }'
    else:
        Image.fromarray(pixels[0]).save(tmp_path / "photo.png")
        value = '{ image = "photo.png", range = [300.0, 400.0] }'
    target = runs.run(tmp_path, f"initial.temperature={value}")
    expected = 300.0 + pixels if kind == "array" else 300.0 + 100.0 * (pixels[:1, ::-1] / 255.0)
    (tmp_path / ("start.npy" if kind == "array" else "photo.png")).unlink()

    again = Simulation.from_scenario(target / folder.SCENARIO, output=tmp_path / "again")
    np.testing.assert_allclose(again.temperature, np.broadcast_to(expected, (6, 5, 7)), rtol=1e-6)
    again.run()
    assert runs.results(tmp_path / "again") == runs.results(target)
    # Interrupted at the start, the copy is all there is to resume from.
    os.remove(target / folder.CHECKPOINT)
    os.remove(target / folder.SUMMARY)
    Simulation.resume(target).run()
    assert runs.results(tmp_path / "again") == runs.results(target)


def test_a_run_does_not_remove_its_own_input(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", np.full((6, 5, 7), 300.0))
    target = runs.run(tmp_path, 'initial.temperature={ file = "start.npy" }')
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    with pytest.raises(FolderError, match=r"start\.npy"):
        Simulation.from_scenario(target / folder.SCENARIO, output=target).run()
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before


def test_a_face_that_is_unphysical_for_a_moment_is_refused(tmp_path: Path) -> None:
    text = runs.TEXT.replace("300 + 20*sin(t)", "where(abs(t - 6.25) < 1e-9, -5, 300)")
    with pytest.raises(ScenarioError, match=r"boundaries\.x_min\.value: .* is -5.0 at t = 6\.2"):
        Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "run")


def test_a_face_that_turns_unphysical_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path, runs.TEXT), output=tmp_path / "run")
    runs.make_unphysical(monkeypatch, simulation.plan.problem.boundary, "boundaries.x_min", 6.25)
    with pytest.raises(ScenarioError, match=r"mixed\.toml: boundaries\.x_min: .* at t = 6\.25 s"):
        simulation.run()
    assert np.isfinite(simulation.temperature).all()


def test_a_run_without_fields_can_be_interrupted_resumed_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = runs.run(tmp_path), tmp_path / "parts"
    scenario = load(runs.write(tmp_path), ["output.fields=false"])
    stop, seen = Stop(), Looks()
    with monkeypatch.context() as patch:
        runs.after_step(patch, 7, lambda stepper: setattr(stop, "requested", True))
        simulation = heatsim.Simulation.from_model(scenario, parts)
        with pytest.raises(Interrupted, match="step 7"):
            simulation.run(watchers=[seen], stop=stop)
    assert seen.steps == [1, 2, 3, 4, 5, 6, 7]
    heatsim.Simulation.resume(parts).run()
    for name in (folder.PROBES, folder.ENERGY):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    assert not (parts / folder.FIELDS).exists()
    heatsim.Simulation.from_model(scenario, parts).run()
    assert heatsim.Simulation.resume(parts).finished


class Looks(Observer):
    """Notes each step at which it may look at the clock."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def poll(self, state: RunState) -> None:
        self.steps.append(state.step)


@pytest.mark.parametrize(
    ("stepping", "observing", "told"), [(20.0, 30.0, True), (1.0, 9.0, False), (30.0, 20.0, False)]
)
def test_writing_that_takes_longer_than_stepping_is_worth_a_warning(
    tmp_path: Path,
    stepping: float,
    observing: float,
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By a clock that only goes on while fields are written and steps are done."""
    seconds = 0.0

    def lasting(function: Callable[..., None], each: float) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            nonlocal seconds
            function(*arguments)
            seconds += each

        return call

    runs.step_by_step(monkeypatch)
    clock = SimpleNamespace(perf_counter=lambda: seconds)
    monkeypatch.setattr("heatsim.run.simulation.time", clock)
    monkeypatch.setattr("heatsim.run.timing.time", clock)
    monkeypatch.setattr("heatsim.device.time", clock)
    monkeypatch.setattr(Stepper, "advance", lasting(Stepper.advance, stepping / runs.LAST_STEP))
    # The first field belongs to the start, whatever it takes.
    monkeypatch.setattr(Snapshots, "start", lasting(Snapshots.start, 100.0))
    monkeypatch.setattr(Snapshots, "handle", lasting(Snapshots.handle, observing / (len(runs.FIELD_TIMES) - 1)))
    assert main(["run", str(runs.write(tmp_path)), "--output", str(tmp_path / "run"), "--quiet"]) == 0
    expected = f"warning: the steps took {stepping:.3g} s, what was written between them {observing:.3g} s;"
    out, err = capsys.readouterr()
    assert out == ""
    assert (expected in err) is told
    assert bool(err) is told
