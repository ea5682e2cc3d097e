"""Runs of a composite body on a GPU, and on the host in the part of one: the loop around the kernels."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bodies import EVERYTHING
from cuda_host import gpu
from cuda_host.host_cupy import host_device
from cuda_host.multigrid import sweeps_on_host
from runs import after_step, interrupt, results, write

from heatsim.device import Device
from heatsim.errors import Interrupted
from heatsim.kernels import autotune, compiled, cuda_graphs, fitting, launch, launch_shapes
from heatsim.kernels.temporal_composite import correction
from heatsim.run.simulation import Simulation
from heatsim.solver.implicit import field_stages
from heatsim.solver.steady import steady_state
from heatsim.storage import folder, tables

FEW_CELLS = (
    *("domain.cells=[10,8,6]", "time.end=0.1", "time.method=euler"),
    *("solver.device=cuda", "output.heat_flux=true"),
)
# Materials that change with temperature, one of them melting, and a face that lets nothing through.
CHANGING = (
    'boundaries.y_max={type="insulated"}',
    "materials.copper.conductivity=400 - 0.07*(T - 300)",
    "materials.copper.temperature_range=[200, 1200]",
    "materials.silicon.specific_heat={temperatures=[250, 400], values=[650, 800]}",
    "materials.glass.latent_heat=1e5",
    "materials.glass.solidus=315",
    "materials.glass.liquidus=318",
)

# Regions and what probes ask of them.
CHOSEN = [("die", "mean"), ("die", "max"), ("lens", "min"), ("lens", "mean"), ("lens", "liquid_fraction")]


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GPU, or the host in its part, with runs short enough for few steps to be recorded."""
    monkeypatch.setattr(cuda_graphs, "RUNS", (4, 2))
    if request.param == "host":
        gpu.play_gpu(monkeypatch)
    return request.param


def simulate(at: Path, name: str, *overrides: str) -> Simulation:
    simulation = Simulation.from_scenario(write(at, EVERYTHING), (*FEW_CELLS, *overrides), output=at / name)
    simulation.run()
    return simulation


@pytest.mark.quick("host-streamed-overrides3", "host-temporal-overrides2")
@pytest.mark.parametrize(
    ("kernel", "overrides"), [("naive", ()), ("streamed", ()), ("temporal", ()), ("streamed", CHANGING)]
)
def test_a_run_agrees_with_the_cpu(
    kernel: str, overrides: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_gpu = simulate(tmp_path, "gpu", f"solver.kernel={kernel}", *overrides)
    rows = [line.split(",") for line in (tmp_path / "gpu" / folder.ENERGY).read_text().splitlines()]
    monkeypatch.undo()
    on_cpu = simulate(tmp_path, "cpu", "solver.device=cpu", "solver.kernel=numpy", *overrides)
    np.testing.assert_allclose(on_gpu.temperature, on_cpu.temperature, rtol=1e-12)
    others = [line.split(",") for line in (tmp_path / "cpu" / folder.ENERGY).read_text().splitlines()]
    assert rows[0] == others[0]
    mine, theirs = (np.array(table[1:], dtype=np.float64)[:, :-1] for table in (rows, others))
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("law", [pytest.param("25", marks=pytest.mark.slow), "2*abs(T - Tamb)^0.25 + 5"])
def test_implicit_steps_agree_with_the_cpu(
    law: str, some_gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With radiation, conditions that vary in space, a law, and sources that depend on the temperature."""
    if some_gpu == "host":
        sweeps, _ = sweeps_on_host(host_device().xp, monkeypatch)
        for module in (steady_state, field_stages):
            monkeypatch.setattr(module, "make_sweeps", lambda field: sweeps)
    overrides = (
        "time.method=implicit",
        "time.end=0.005",
        "solver.precision=float64",
        f'boundaries.void={{type="convection", coefficient="{law}", ambient="300 + 2000*x", emissivity=0.8}}',
        'sources=[{name="heater", region="die", power_density="1e6*(1 + (T - 300)/200)"}]',
    )
    on_gpu = simulate(tmp_path, "gpu", *overrides)
    monkeypatch.undo()
    on_cpu = simulate(tmp_path, "cpu", "solver.device=cpu", *overrides)
    rise = np.nanmax(on_cpu.temperature) - np.nanmin(on_cpu.temperature)
    np.testing.assert_allclose(on_gpu.temperature, on_cpu.temperature, atol=1e-4 * rise)
    assert rise > 0.1


def correct_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """On so few cells boxes are all of them."""
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))


def test_several_steps_a_sweep_give_the_bits_of_single_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several_cells = "domain.cells=[16,8,8]"
    single = simulate(tmp_path, "single", several_cells, "solver.kernel=naive")
    correct_anything(monkeypatch)
    several = simulate(tmp_path, "several", several_cells, "solver.kernel=temporal")
    assert json.loads((tmp_path / "several" / folder.SUMMARY).read_text())["kernel"] == "temporal"
    assert several.temperature.tobytes() == single.temperature.tobytes()
    for file in (folder.ENERGY, folder.PROBES):
        assert (tmp_path / "several" / file).read_bytes() == (tmp_path / "single" / file).read_bytes()


@pytest.mark.quick("host-seconds0-temporal")
@pytest.mark.parametrize(("seconds", "fastest"), [((1.0, 9.0), "temporal"), ((9.0, 1.0), "streamed")])
def test_auto_takes_what_is_faster_and_keeps_the_bits(
    seconds: tuple[float, float], fastest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several_cells = "domain.cells=[16,8,8]"
    plain = simulate(tmp_path, "plain", several_cells, "solver.kernel=streamed")
    correct_anything(monkeypatch)
    monkeypatch.setattr(fitting, "tables_fit", lambda *needs: False)  # else 09 is taken on so small a grid
    monkeypatch.setattr(launch_shapes, "LARGE_GRID", 0)
    monkeypatch.setattr(autotune, "is_worth_trying", lambda cells, steps: True)
    clock = iter(seconds)

    def run_and_tell(device: Device, work: Callable[[], None]) -> float:
        work()
        return next(clock)

    monkeypatch.setattr(autotune, "seconds", run_and_tell)
    auto = simulate(tmp_path, "auto", several_cells, "solver.kernel=auto")
    launched = json.loads((tmp_path / "auto" / folder.SUMMARY).read_text())["launch"]
    assert (launched["kernel"], launched["chosen"]) == (fastest, "tried")
    assert auto.temperature.tobytes() == plain.temperature.tobytes()
    assert (tmp_path / "auto" / folder.ENERGY).read_bytes() == (tmp_path / "plain" / folder.ENERGY).read_bytes()


def test_auto_does_not_take_what_gives_other_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def correct_half(kernel: launch.CudaKernel, launches: list[launch.Launch], T: Any, T_new: Any, *rest: Any) -> None:
        correct(kernel, launches, T, T_new, *rest)
        if kernel.after is not None:
            T_new[3, 4, 5] += 1e-3

    correct = launch.CudaKernel.__call__
    monkeypatch.setattr(launch.CudaKernel, "__call__", correct_half)
    correct_anything(monkeypatch)
    monkeypatch.setattr(fitting, "tables_fit", lambda *needs: False)  # else 09 is taken on so small a grid
    monkeypatch.setattr(launch_shapes, "LARGE_GRID", 0)
    monkeypatch.setattr(autotune, "is_worth_trying", lambda cells, steps: True)
    simulate(tmp_path, "auto", "domain.cells=[16,8,8]", "solver.kernel=auto")
    launched = json.loads((tmp_path / "auto" / folder.SUMMARY).read_text())["launch"]
    assert (launched["kernel"], launched["chosen"]) == ("streamed", "tried")


def test_recorded_runs_and_single_launches_give_the_same_bits(
    some_gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = simulate(tmp_path, "recorded", "solver.kernel=streamed")
    if some_gpu == "host":
        assert sum(graph.launches for graph in gpu.HostStream.graphs) > 0
    monkeypatch.setattr(cuda_graphs, "LARGEST_GRID", 0)
    launched = simulate(tmp_path, "launched", "solver.kernel=streamed")
    assert recorded.temperature.tobytes() == launched.temperature.tobytes()
    for file in (folder.ENERGY, folder.PROBES):
        assert (tmp_path / "recorded" / file).read_bytes() == (tmp_path / "launched" / file).read_bytes()


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(tmp_path, "whole", "time.stop_below=1e-3")
    with monkeypatch.context() as patch:
        after_step(patch, 7, interrupt)
        with pytest.raises(Interrupted):
            simulate(tmp_path, "broken", "time.stop_below=1e-3")
    Simulation.resume(tmp_path / "broken").run()
    assert results(tmp_path / "broken") == results(tmp_path / "whole")


def test_rows_agree_with_the_cpu_and_take_few_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics and heat of regions, contacts and patches, of materials of which some change with temperature."""
    wanted = [
        *({"name": f"{region} {statistic}", "region": region, "statistic": statistic} for region, statistic in CHOSEN),
        {"name": "body", "statistic": "mean"},
        {"name": "liquid", "statistic": "liquid_fraction"},
        {"name": "point", "point": [0.015, 0.0075, 0.007]},
    ]
    probes = f"probes=[{', '.join(map(inline_table, wanted))}]"
    liquidus = "materials.glass.liquidus=330"
    overrides = (
        *CHANGING,
        "output.error=none",
        liquidus,
        probes,
        "output.region_heat=true",
        "initial.temperature=300 + 30*x/0.02",
    )
    launches, compile_function = [], compiled.function

    def counted(source: str, name: str, *arguments: Any) -> Any:
        function = compile_function(source, name, *arguments)

        def launch(*its: Any) -> None:
            launches.append(name)
            function(*its)

        return launch

    monkeypatch.setattr(compiled, "function", counted)
    simulate(tmp_path, "gpu", *overrides)
    found = [tables.read(tmp_path / "gpu" / name) for name in (folder.PROBES, folder.ENERGY)]
    rows = len(found[0][1])
    monkeypatch.undo()
    simulate(tmp_path, "cpu", *overrides, "solver.device=cpu", "solver.kernel=numpy")
    for (names, on_gpu), name in zip(found, (folder.PROBES, folder.ENERGY), strict=True):
        expected_names, on_cpu = tables.read(tmp_path / "cpu" / name)
        assert names == expected_names
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-11, atol=1e-9)
    liquid = found[0][1][:, found[0][0].index("liquid (1)")]
    assert 0.0 < liquid.max() < 1.0
    # Each due time takes one pass over the field, one over the ledger and one for all points. One due time has a field
    # but no row. New records of temperature also search for their cells.
    due = rows + 1
    assert launches.count("look") == 2 * due
    assert launches.count("gather") == due
    assert set(launches) == {"look", "gather", "find"}


def inline_table(values: dict[str, Any]) -> str:
    """A table of TOML on one line."""
    return f"{{{', '.join(f'{key} = {json.dumps(value)}' for key, value in values.items())}}}"
