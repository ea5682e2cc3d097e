"""Runs with time.method = "stabilized" on a GPU, and on the host in the part of one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from bodies import EVERYTHING
from cuda_host import gpu

from heatsim import Simulation
from heatsim.errors import Interrupted
from heatsim.kernels import autotune, cuda_graphs
from heatsim.kernels.launch_shapes import Choice, Task
from heatsim.storage import folder, tables

LINEAR = ("output.probe_every=0.5", "output.every=5", "time.tolerance=0.05")
GENERAL = ("domain.cells=[10,8,6]", "time.end=0.1", "output.probe_every=0.02")
VARYING = ("materials.silicon.specific_heat={temperatures=[250, 400], values=[650, 800]}",)
BODIES = {"linear": (runs.TEXT, LINEAR), "general": (EVERYTHING, GENERAL), "varying": (EVERYTHING, GENERAL + VARYING)}
WORK = ("steps", "stages", "rejected")


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or the host in its part, with runs short enough for few stages to be recorded."""
    monkeypatch.setattr(cuda_graphs, "RUNS", (4, 2))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)


def begin(at: Path, name: str, body: str, *overrides: str) -> Simulation:
    text, own = BODIES[body]
    options = ("time.method=stabilized", "solver.device=cuda", "solver.precision=float64", *own, *overrides)
    return Simulation.from_scenario(runs.write(at, text), options, output=at / name)


def simulate(at: Path, name: str, body: str, *overrides: str) -> Simulation:
    simulation = begin(at, name, body, *overrides)
    simulation.run()
    return simulation


def work(simulation: Simulation) -> list[int]:
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text())
    assert abs(summary["energy"]["residual"]) <= summary["energy_bound"]
    return [summary[key] for key in WORK]


@pytest.mark.quick("host-general-streamed", "host-linear-temporal")
@pytest.mark.parametrize(("body", "kernel"), [("linear", "temporal"), ("general", "streamed"), ("varying", "naive")])
def test_a_run_agrees_with_the_cpu(body: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps, and fields and rows within rounding."""
    on_gpu = simulate(tmp_path, "gpu", body, f"solver.kernel={kernel}")
    rows = [tables.read(on_gpu.folder / name)[1] for name in (folder.PROBES, folder.ENERGY)]
    T, done = on_gpu.temperature, work(on_gpu)
    monkeypatch.undo()
    on_cpu = simulate(tmp_path, "cpu", body, "solver.device=cpu", "solver.kernel=numpy")
    assert done == work(on_cpu)
    np.testing.assert_allclose(T, on_cpu.temperature, rtol=1e-11)
    for mine, name in zip(rows, (folder.PROBES, folder.ENERGY), strict=True):
        theirs = tables.read(on_cpu.folder / name)[1]
        np.testing.assert_allclose(mine[:, :-1], theirs[:, :-1], rtol=1e-8, atol=1e-8)


def test_interrupted_runs_go_on_to_the_same_bits(tmp_path: Path) -> None:
    body, options = "general", ("solver.kernel=streamed", "solver.precision=float32")
    whole = simulate(tmp_path, "whole", body, *options)
    simulation = begin(tmp_path, "parts", body, *options)
    for number in (1, 2, 9):
        with pytest.MonkeyPatch.context() as patch:
            runs.after_advance(patch, number, runs.interrupt)
            with pytest.raises(Interrupted):
                simulation.run()
        simulation = Simulation.resume(tmp_path / "parts")
    simulation.run()
    assert runs.results(tmp_path / "parts") == runs.results(whole.folder)


def test_trying_out_kernels_changes_nothing_in_a_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials write to a buffer that holds the start of the stages when a run goes on within a smooth interval."""
    options = ("solver.kernel=auto", "solver.precision=float32")
    whole = simulate(tmp_path, "whole", "linear", *options)
    simulation = begin(tmp_path, "parts", "linear", *options)
    with monkeypatch.context() as patch:
        runs.after_advance(patch, 3, runs.interrupt)
        with pytest.raises(Interrupted):
            simulation.run()
    choose = autotune.choose

    def try_out(task: Task, steps: float, T: Any, T_new: Any, coefficients: Any) -> Choice:
        T_new[...] = 1e3
        return choose(task, steps, T, T_new, coefficients)

    monkeypatch.setattr(autotune, "choose", try_out)
    Simulation.resume(tmp_path / "parts").run()
    assert runs.results(tmp_path / "parts") == runs.results(whole.folder)
