"""Recorded runs of sweeps do what single launches do, to the bit, whatever changes from step to step.

On the host in the part of a GPU, and on a GPU: whole runs of a scenario with every kind of face.
"""

from pathlib import Path

import numpy as np
import pytest
import runs
from cuda_host import gpu

from heatsim.errors import Interrupted
from heatsim.kernels import cuda_graphs
from heatsim.run.simulation import Simulation
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.make_stepper import make_stepper

KERNELS = ("naive", "streamed", "temporal", "boxed")
# Rows of whole vectors and columns of whole patches, as all kernels take them; steps that the runs do not divide.
OVERRIDES = ("domain.cells=[8,4,5]", "solver.device=cuda", "time.safety=0.27", "output.every=5.0")


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU, or the host in its part, with runs short enough for few steps."""
    monkeypatch.setattr(cuda_graphs, "RUNS", (4, 2))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)
    return request.param


def simulate(folder: Path, *overrides: str) -> Simulation:
    simulation = Simulation.from_scenario(runs.write(folder.parent), (*OVERRIDES, *overrides), output=folder)
    simulation.run()
    return simulation


def whole_run(folder: Path, *overrides: str) -> dict[str, bytes]:
    """What a run leaves: the field to the bit, and its tables."""
    simulation = simulate(folder, *overrides)
    files = {name: (folder / name).read_bytes() for name in ("energy.csv", "probes.csv")}
    return {**files, "field": simulation.temperature.tobytes()}


@pytest.mark.quick("host-streamed", "host-temporal")
@pytest.mark.parametrize("kernel", KERNELS)
def test_recorded_runs_give_the_same_bits(
    some_gpu: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ledger on, faces that vary in time, a periodic axis and, between due times, two lengths of step."""
    overrides = (f"solver.kernel={kernel}", "output.probe_every=1.7", "time.safety=0.09")
    recorded = whole_run(tmp_path / "recorded", *overrides)
    if some_gpu == "host":
        graphs = gpu.HostStream.graphs
        assert sum(graph.launches for graph in graphs) > len(graphs) > 0
    monkeypatch.setattr(cuda_graphs, "LARGEST_GRID", 0)
    assert whole_run(tmp_path / "single", *overrides) == recorded


@pytest.mark.slow
def test_every_kernel_runs_a_scenario_to_the_same_bits(some_gpu: str, tmp_path: Path) -> None:
    first, *others = [whole_run(tmp_path / kernel, f"solver.kernel={kernel}") for kernel in KERNELS]
    assert all(other == first for other in others)


def test_a_run_on_a_gpu_agrees_with_one_on_the_cpu(
    some_gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu = simulate(tmp_path / "gpu", "solver.precision=float64")
    monkeypatch.undo()
    on_cpu = simulate(tmp_path / "cpu", "solver.precision=float64", "solver.device=cpu")
    np.testing.assert_allclose(on_gpu.temperature, on_cpu.temperature, rtol=0.0, atol=1e-9)


@pytest.mark.quick("host-streamed")
@pytest.mark.parametrize("kernel", ["streamed", "boxed"])
def test_an_interrupted_run_goes_on_to_the_same_bits(
    some_gpu: str, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted at a step that no sweep and no recorded run begins at."""
    whole = whole_run(tmp_path / "whole", f"solver.kernel={kernel}")
    advance, interrupted = Stepper.advance, 23

    def advance_and_stop(stepper: Stepper, steps: int) -> None:
        advance(stepper, min(steps, max(interrupted - stepper.step, 1)))
        if stepper.step > interrupted:  # the steps ahead of it, which are dropped
            runs.interrupt(stepper)

    monkeypatch.setattr(Stepper, "advance", advance_and_stop)
    folder = tmp_path / "parts"
    with pytest.raises(Interrupted):
        simulate(folder, f"solver.kernel={kernel}")
    monkeypatch.setattr(Stepper, "advance", advance)
    resumed = Simulation.resume(folder)
    assert resumed.step == interrupted < resumed.plan.problem.timeline.last_step
    resumed.run()
    assert resumed.temperature.tobytes() == whole["field"]
    assert (folder / "energy.csv").read_bytes() == whole["energy.csv"]


@pytest.mark.parametrize("some_gpu", ["host"], indirect=True)
def test_graphs_are_recorded_once_and_not_kept_without_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, some_gpu: str
) -> None:
    """A run with a new length of step in every interval records again and forgets the oldest."""
    monkeypatch.setattr(cuda_graphs, "_MOST_GRAPHS", 3)
    simulation = simulate(tmp_path / "run", "solver.kernel=streamed", "output.probe_every=1.3")
    assert len(simulation.plan.problem.timeline.step_lengths) > 3
    stepper = make_stepper(
        simulation.plan.problem, simulation.state.field, simulation.state.ledger, simulation.plan.kernel
    )
    gpu.HostStream.graphs.clear()
    interval = int(simulation.plan.problem.timeline.steps[1])
    for _ in range(3):
        stepper.step = 0
        stepper.advance(interval // 2 * 2)
    lengths = [len(graph.works) for graph in gpu.HostStream.graphs]
    assert lengths
    assert len(lengths) == len(set(lengths))
