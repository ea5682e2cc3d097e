"""What a plan promises agrees with what a run does, and what cannot fit is refused before it begins."""

import io
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import runs
from cuda_host import gpu

from heatsim import Simulation, device
from heatsim.cli import main
from heatsim.commands import terminal
from heatsim.counts import counted
from heatsim.errors import CapacityError, Interrupted, ScenarioError
from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.temporal_composite import correction
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.run import adaptive_time, step_times, work_time
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe, precision_lines
from heatsim.run.step_times import measure_methods, measure_work
from heatsim.run.work_time import WorkTime, fitted, weighted_median
from heatsim.scenario import load
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage import checkpoint, folder, tables
from heatsim.storage.field_reader import FieldReader


def plan(at: Path, *overrides: str) -> Plan:
    return Plan.of(HeatProblem.from_scenario(load(runs.write(at), overrides)))


@pytest.mark.parametrize("cells", ["[7,5,6]", "[40,30,50]", "[100,1,60]"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_run_does_and_writes_what_was_planned(tmp_path: Path, cells: str, precision: str) -> None:
    overrides = (f"domain.cells={cells}", f"solver.precision={precision}", "time.end=2.7", "output.every=0.4")
    planned = plan(tmp_path, *overrides, "output.probe_every=0.1")
    simulation = Simulation.from_scenario(
        tmp_path / "mixed.toml", [*overrides, "output.probe_every=0.1"], output=tmp_path / "run"
    )
    field = simulation.state.field
    assert planned.device_bytes == field.deviation.nbytes + field.spare.nbytes + simulation.state.ledger.nbytes
    simulation.run()
    assert simulation.step == planned.problem.timeline.last_step
    with FieldReader(simulation.folder / folder.FIELDS) as fields:
        assert len(fields) == planned.fields == 8  # 0, 0.4, … 2.4 and the end
    _, rows = tables.read(simulation.folder / folder.PROBES)
    assert len(rows) == planned.rows == 28
    saved, _ = checkpoint.read_last_good(simulation.folder)
    assert saved is not None
    checkpoint.write(simulation.folder, saved)

    files = [name for name in folder.FILES if name not in (folder.REPORT, folder.NODES, folder.CHANGES, folder.KNOWN)]
    written = sum((simulation.folder / name).stat().st_size for name in files)
    one_more = (simulation.folder / folder.CHECKPOINT).stat().st_size
    assert written + one_more <= planned.disk_bytes <= 2 * written + 2**20
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text())
    assert summary["dt_limit"] == planned.problem.limit.dt
    assert summary["dt"] == list(planned.problem.timeline.step_lengths)


def test_checkpoints_of_implicit_steps_are_planned_with_all_that_they_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = ("domain.cells=[80,60,100]", "time.method=implicit", "output.fields=false", "output.figures=false")
    scenario = runs.write(tmp_path)
    runs.after_advance(monkeypatch, 2, runs.interrupt)
    with pytest.raises(Interrupted):
        Simulation.from_scenario(scenario, overrides, output=tmp_path / "run").run()
    held = (tmp_path / "run" / folder.CHECKPOINT).stat().st_size
    assert 3 * held <= plan(tmp_path, *overrides).disk_bytes <= 6 * held


def test_without_energy_and_probes_less_is_needed(tmp_path: Path) -> None:
    whole, bare = plan(tmp_path), plan(tmp_path, "output.energy=false", "probes=[]")
    assert bare.device_bytes == 2 * 4 * 7 * 5 * 6
    # Two faces of 5 × 6 cells and one of 7 × 6, each in whole blocks of 256 bytes.
    assert whole.device_bytes == bare.device_bytes + 256 + 256 + 512
    assert bare.disk_bytes < whole.disk_bytes


@pytest.mark.parametrize(
    ("kernel", "conductivity", "corrected"),
    [("temporal", "20.0", True), ("temporal", "'20 + 0.01*T'", False), ("naive", "20.0", False)],
)
def test_memory_for_mending_is_planned_where_there_is_mending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, conductivity: str, corrected: bool
) -> None:
    monkeypatch.setattr(device, "choose", lambda wanted: gpu.host_device())
    radiating = "boundaries.x_max={type='radiation', emissivity=0.5, ambient=300.0}"
    overrides = (radiating, f"material.conductivity={conductivity}", "solver.device=cuda")
    single, several = (plan(tmp_path, *overrides, f"solver.kernel={name}") for name in ("streamed", kernel))
    problem = several.problem
    boxes = correction.table_bytes(problem.materials, problem.open_faces) if corrected else 0
    assert several.device_bytes == single.device_bytes + boxes


def test_every_kernel_steps_one_material(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "choose", lambda wanted: gpu.host_device())
    for spec in (spec for spec in KERNELS if spec.backend == "cuda"):
        assert plan(tmp_path, "solver.device=cuda", f"solver.kernel={spec.name}").kernel == spec


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        ("boundaries.x_max={type='radiation', emissivity=0.5, ambient=300.0}", "a nonlinear condition on x_max"),
        ("material.conductivity='20 + 0.01*T'", "a material that changes with temperature"),
        (
            "patches=[{face='y_min', rectangle={min=[0, 0], max=[0.02, 0.03]}, type='insulated'}]",
            "several conditions on y_min",
        ),
        (
            "regions=[{name='gap', material='void', sphere={centre=[0.03, 0.02, 0.03], radius=0.02}}]",
            "cells of 2 types",
        ),
        ("sources=[{power=1.0}]", "sources"),
    ],
)
def test_kernels_for_one_material_refuse_composite_bodies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, feature: str
) -> None:
    """The message says what makes the body composite, and which kernels step it."""
    monkeypatch.setattr(device, "choose", lambda wanted: gpu.host_device())
    able = "naive, streamed, temporal, resident, bricked"
    for spec in (spec for spec in KERNELS if spec.backend == "cuda"):
        chosen = ("solver.device=cuda", f"solver.kernel={spec.name}")
        if spec.name in able:
            assert plan(tmp_path, *chosen, change).kernel == spec
            continue
        message = f'mixed.toml: solver.kernel: got "{spec.name}", .* this body has {feature}.*; choose auto, {able}$'
        with pytest.raises(ScenarioError, match=message):
            plan(tmp_path, *chosen, change)


def test_memory_that_is_not_there_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = plan(tmp_path).device_bytes
    target = tmp_path / "run"
    monkeypatch.setattr(device, "host_memory", lambda: needed - 1)
    with pytest.raises(CapacityError, match=f"needs {size(needed)} of memory on .* {size(needed - 1)} free"):
        Simulation.from_scenario(tmp_path / "mixed.toml", output=target)
    for command in ("run", "plan"):
        assert main([command, str(tmp_path / "mixed.toml"), "--output", str(target)]) == 2
        assert f"heatsim: {tmp_path / 'mixed.toml'}: needs " in capsys.readouterr().err
    assert not target.exists()

    monkeypatch.setattr(device, "host_memory", lambda: needed)
    Simulation.from_scenario(tmp_path / "mixed.toml", output=target)
    # Whole-array temporaries make NumPy need more.
    with pytest.raises(CapacityError, match="fewer cells"):
        Simulation.from_scenario(tmp_path / "mixed.toml", ["solver.kernel=numpy"], output=target)


def test_a_disk_that_is_too_small_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = plan(tmp_path).disk_bytes
    target = tmp_path / "not" / "there" / "yet"
    asked = []

    def usage(path: Path) -> shutil._ntuple_diskusage:
        asked.append(path)
        return shutil._ntuple_diskusage(2 * needed, needed + 1, needed - 1)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert main(["run", str(tmp_path / "mixed.toml"), "--output", str(target)]) == 2
    err = capsys.readouterr().err
    for fragment in (f"would write {size(needed)}", "5 fields", "9 rows", str(target), "output.every", "--output"):
        assert fragment in err
    assert asked == [tmp_path]
    assert not (tmp_path / "not").exists()


def test_a_run_that_goes_on_needs_no_room_for_what_it_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = ("domain.cells=[40,30,50]", "output.figures=false")
    target = tmp_path / "run"
    scenario = runs.write(tmp_path)
    with monkeypatch.context() as interruption:
        runs.after_step(interruption, 5, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(scenario, large, output=target).run()
    planned = plan(tmp_path, *large)
    there = folder.bytes_on_disk(target)
    # A field and a checkpoint.
    assert 2 * planned.problem.grid.cell_count * 4 < there < planned.disk_bytes
    free = planned.disk_bytes - there

    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(free, 0, free))
    Simulation.resume(target)
    Simulation.from_scenario(scenario, large, output=target, overwrite=True)
    with pytest.raises(CapacityError, match="are free;"):
        Simulation.from_scenario(scenario, large, output=tmp_path / "elsewhere")
    free -= 1
    with pytest.raises(
        CapacityError, match=r"are free in addition to the .* of the run in that folder; make output\.every"
    ):
        Simulation.resume(target)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (5 * 2**30, "5 GiB"), (2**50, "1024 TiB")],
)
def test_sizes_are_told_in_the_largest_unit_that_leaves_one(count: int, text: str) -> None:
    assert size(count) == text


def test_a_plan_lists_the_first_step_lengths_of_many(tmp_path: Path) -> None:
    text = describe(plan(tmp_path, "output.every=3.7", "output.probe_every=0.9"))
    lengths = plan(tmp_path, "output.every=3.7", "output.probe_every=0.9").problem.timeline.step_lengths
    assert len(lengths) > 4
    shown = [line for line in text.splitlines() if line.startswith("dt ")]
    assert shown == [f"dt           {dt!r} s, {counted(n, 'step')}" for dt, n in list(lengths.items())[:4]]
    assert f"and {len(lengths) - 4} more step lengths" in text


def test_a_plan_says_when_rounding_may_matter(tmp_path: Path) -> None:
    long = ("time.end=10000", "output.every=1000", "output.probe_every=1000")
    (line,) = precision_lines(plan(tmp_path, *long, "solver.precision=float32"))
    assert "auto would take float64 because float32 may be off by" in line
    assert precision_lines(plan(tmp_path, *long, "solver.precision=float64")) == []
    assert precision_lines(plan(tmp_path, "solver.precision=float32")) == []
    (line,) = precision_lines(plan(tmp_path, *long))
    assert line.startswith("precision    auto takes float64 because float32 may be off by")
    (line,) = precision_lines(plan(tmp_path))
    assert line.startswith("precision    auto takes float32 because its rounding, about")


def test_a_run_without_fields_needs_no_disk_for_them(tmp_path: Path) -> None:
    with_fields, without = plan(tmp_path), plan(tmp_path, "output.fields=false")
    assert (with_fields.fields, without.fields) == (5, 0)
    assert with_fields.disk_bytes - without.disk_bytes >= 5 * 4 * 7 * 5 * 6
    assert with_fields.rows == without.rows


PARTS = """
[domain]
size = [0.04, 0.03, 0.02]
cells = [8, 6, 4]
material = "copper"
[materials.copper]
conductivity = 400.0
density = 8960.0
specific_heat = 385.0
[materials.silicon]
conductivity = [148.0, 100.0, 50.0]
density = 2330.0
specific_heat = 700.0
[[regions]]
name = "die"
material = "silicon"
box = { min = [0.01, 0.01, 0.015], max = [0.03, 0.02, 0.02] }
[[regions]]
name = "hole"
material = "void"
box = { min = [0.0, 0.0, 0.0], max = [0.01, 0.01, 0.005] }
[initial]
temperature = 300.0
[time]
end = 1.0
"""


def test_a_material_that_changes_is_shown_with_its_ranges(tmp_path: Path) -> None:
    changing = ("material.conductivity=20 + 0.1*(T - 300)", "material.latent_heat=1e4")
    melting = ("material.solidus=310", "material.liquidus=320", "solver.device=cpu")
    planned = plan(tmp_path, *changing, *melting)
    text = describe(planned)
    enthalpy = planned.problem.materials.palette[0].enthalpy
    assert enthalpy is not None
    low, high = enthalpy.followed
    least, most = 20.0 + 0.1 * (low - 300.0), 20.0 + 0.1 * (high - 300.0)
    assert f"followed from {low:.6g} to {high:.6g} K: k = {least:.6g} … {most:.6g} W/(m K)" in text
    assert re.search(r" s: c0 = \S+ … \S+\n +c1 = c2 = c3 = c4 = c5 = c6 = \S+ … \S+$", text)


def test_materials_and_regions_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(PARTS)
    assert main(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert "copper: 180 cells; k = 400 W/(m K), ρ = 8960 kg/m³, cp = 385 J/(kg K)\n" in out
    assert "material     copper: alone dt ≤ 0.035933" in out
    assert "silicon: 8 cells; k = [148, 100, 50] W/(m K)" in out
    assert " s: c0 = 0.10228; c1 = c2 = c3 = c4 = c5 = c6 = 0.14962\n" in out
    assert " s: c0 = 0.52849; c1 = c2 = 0.117086; c3 = c4 = 0.0791124; c5 = c6 = 0.0395562\n" in out
    assert "void         4 cells" in out
    assert "region       die: 8 cells of silicon; painted as drawn, 20 × 10 × 5 mm: 4 × 2 × 1 cells" in out
    assert "region       hole: 4 cells of void" in out
    assert "hint         1 cell along z: die, hole; use 2 or more to see differences across" in out


MODEL = """
[[contacts]]
between = ["silicon", "copper"]
resistance = 2e-5
[[layers]]
name = "foil"
material = "copper"
thickness = "35 um"
plane = { axis = "z", at = 0.01 }
[boundaries]
default = { type = "convection", coefficient = 10.0, ambient = "20 degC", emissivity = 0.9, surroundings = "10 degC" }
x_min = { type = "temperature", value = { times = [0.0, 0.5], values = [280.0, 300.0] } }
x_max = { type = "temperature", value = "300 + 10*t" }
z_min = { type = "flux", value = "1e4*x" }
void = { type = "radiation", emissivity = 0.5, ambient = 300.0 }
[[patches]]
name = "heater"
face = "z_max"
rectangle = { min = [0.0, 0.0], max = [0.01, 0.01] }
type = "flux"
power = 5.0
[[surfaces]]
of = "die"
type = "convection"
coefficient = "5*abs(T - Tamb)^0.25"
ambient = 300.0
[[sources]]
name = "losses"
region = "die"
power = 12.0
during = [0.1, 0.5]
[[sources]]
name = "coil"
cylinder = { from = [0.03, 0.02, 0.0], to = [0.03, 0.02, 0.01], radius = 0.006 }
power_density = 2e6
scale = { times = [0.0, 1.0], values = [0.0, 1.0] }
[[sources]]
name = "laser"
beam = { face = "z_max", power = 50.0, absorptivity = 0.4, radius = 1e-3, path = [[0.02, 0.025],
  [0.03, 0.025]], speed = 0.02 }
[[probes]]
name = "hot"
region = "die"
statistic = "time_above"
threshold = 310.0
[[probes]]
name = "centre"
point = [0.02, 0.015, 0.01]
"""


def test_a_plan_lists_what_the_scenario_describes(tmp_path: Path) -> None:
    """Every condition, source, contact, layer and probe is a line."""
    path = runs.write(tmp_path, PARTS + MODEL)
    lines = describe(Plan.of(HeatProblem.from_scenario(load(path, ["output.temperature=degC"])))).splitlines()
    for expected in (
        "initial      26.85 °C",
        "contact      silicon and copper: 5 cm², 2e-05 m² K/W",
        "layer        foil: 35 µm of copper at z = 10 mm; 12 cm²",
        "face         x_min: temperature 6.85…26.85 °C (a table)",
        "face         x_max: temperature 26.85…36.85 °C (300 + 10*t)",
        "face         y_min, y_max, z_max: convection 10 W/(m² K) to 20 °C, emissivity 0.9, surroundings 10 °C",
        "face         z_min: flux 1e4*x",
        "patch        heater: flux 5 W in all; 1 cm² on z_max, 1 cm² on the grid",
        'surface      region "die" towards void: convection 5*abs(T - Tamb)^0.25 to 26.85 °C',
        "surface      other surfaces towards void: radiation to 26.85 °C, emissivity 0.5",
        'source       losses: 12 W in region "die", from 100 ms to 500 ms',
        "source       coil: 2e+06 W/m³ in a cylinder from (30, 20, 0) mm to (30, 20, 10) mm with radius 6 mm, times "
        "0…1 (a table)",
        "source       laser: beam of 50 W on z_max, 40 % absorbed, radius 1 mm, 10 mm at 20 mm/s from 0 s to 500 ms",
        'probe        hot: time_above 36.85 °C of region "die"',
        "probe        centre: at (20, 15, 10) mm",
    ):
        assert expected in lines, expected


@pytest.mark.parametrize(
    ("top", "cells", "part"),
    # 5 mm of cells: a centre at 17.5 mm and one at 12.5 mm.
    [(0.0151, "4 × 2 × 1", 5.0 / 4.9), (0.0174, "4 × 2 × 1", 5.0 / 2.6), (0.0124, "4 × 2 × 2", 10.0 / 7.6)],
)
def test_a_region_thicker_than_drawn_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], top: float, cells: str, part: float
) -> None:
    """A region from ``top`` to 20 mm has one or two whole cells of 5 mm."""
    path = runs.write(tmp_path, PARTS.replace("0.015]", f"{top}]"))
    assert main(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    drawn = 1e3 * (0.02 - top)
    assert f"drawn 20 × 10 × {drawn:.4g} mm, painted 20 × 10 × {5 * int(cells[-1])} mm: {cells} cells" in out
    told = f"die: {100.0 * (part - 1.0):.0f} % too thick along z"
    assert (told in out) == (part > 1.1)
    warnings = Simulation.from_scenario(path, output=tmp_path / "out").warnings
    assert any(f'"die" is {5 * int(cells[-1])} mm along z instead of {drawn:.4g} mm' in text for text in warnings) == (
        part > 1.1
    )


def test_long_lines_go_on_below_their_texts_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((40, 24)))
    line = "material     steel: 1,000 cells; k = 50 W/(m K), cp = 500 J/(kg K)"
    assert terminal.fitted(line, Terminal(), " " * 13).splitlines() == [
        "material     steel: 1,000 cells; k =",
        "             50 W/(m K), cp =",
        "             500 J/(kg K)",
    ]
    assert terminal.fitted(line, io.StringIO(), " ") == line


def test_a_region_that_cannot_be_painted_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(PARTS)
    assert (
        main(["plan", str(path), "--set", "regions.0.box.min=[1, 1, 1]", "--set", "regions.0.box.max=[2, 2, 2]"]) == 2
    )
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert f'{path}: regions.0.box: "die" reaches from (1, 1, 1) to (2, 2, 2) m and lies outside the domain' in err


def test_painted_regions_are_counted_as_memory(tmp_path: Path) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(PARTS)
    painted = Plan.of(HeatProblem.from_scenario(load(path, ["solver.device=cpu"])))
    bare = Plan.of(HeatProblem.from_scenario(load(path, ["solver.device=cpu", "regions=[]"])))
    assert painted.host_bytes - bare.host_bytes >= 2 * 8 * 6 * 4


def test_a_plan_shows_the_times_that_were_measured(tmp_path: Path) -> None:
    planned = plan(tmp_path)
    text = describe(planned, {"euler": WorkTime(2470.0 / runs.LAST_STEP)})
    assert f"euler        {runs.LAST_STEP} steps; {size(planned.device_bytes)} on the device; about 41 min" in text
    assert "times        of stepping, from steps and stages timed now" in text
    assert "times" not in describe(planned)


def test_times_are_those_of_all_methods_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_time, "SECONDS", 0.01)
    planned = plan(tmp_path, "time.end=2")
    times = measure_methods(planned.problem).times
    assert set(times) == {"euler", "stabilized", "implicit"}
    assert all(0.0 < time.unit + time.step < 60.0 for time in times.values())
    assert times["euler"].step == times["euler"].row == 0.0
    assert times["stabilized"].row > 0.0
    # What does not fit is not tried.
    monkeypatch.setattr(device.Device, "free_memory", lambda self: 0)
    assert measure_methods(planned.problem).times == {}


def test_steps_are_timed_at_all_parts_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = []

    def advance(stepper: Stepper, steps: int) -> None:
        timed.append(stepper.step)
        assert stepper.problem.timeline.interval_end(stepper.step) >= stepper.step + steps
        stepper.step += steps

    monkeypatch.setattr(Stepper, "advance", advance)
    monkeypatch.setattr(work_time, "SECONDS", 0.0)
    planned = plan(tmp_path, "solver.kernel=numpy")
    measure_methods(planned.problem)
    last = planned.problem.timeline.last_step
    assert {last * place // 8 for place in range(8)} <= set(timed)
    assert max(timed) < last


def test_a_short_run_is_timed_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first steps, with cold caches, have the same weight as in the run; compilation has none."""
    now, timed = 0.0, []

    def prepare(stepper: Stepper) -> None:
        nonlocal now
        now += 5.0

    def advance(stepper: Stepper, steps: int) -> None:
        nonlocal now
        now += 0.01 if stepper.step == 0 else 0.001 * steps
        timed.append(stepper.step)
        stepper.step += steps

    monkeypatch.setattr(Stepper, "prepare", prepare)
    monkeypatch.setattr(Stepper, "advance", advance)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    planned = plan(tmp_path)
    assert measure_work(planned).unit == pytest.approx((0.01 + 0.001 * (runs.LAST_STEP - 1)) / runs.LAST_STEP)
    assert timed.count(0) == 1


def test_long_steps_of_a_fine_grid_are_timed_on_a_coarser_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(tmp_path, "time.method=implicit", "time.end=2", "solver.device=cpu")
    cells = planned.problem.grid.cell_count
    taken = []

    def stages(state: RunState) -> Iterator[float]:
        taken.append(state.problem.grid.cell_count)
        yield 1.0

    monkeypatch.setattr(adaptive_time, "_tried_steps", stages)
    monkeypatch.setattr(adaptive_time, "_measure_row", lambda state: 0.5)
    monkeypatch.setattr(adaptive_time, "fitted", lambda units, seconds: WorkTime(2.0, 3.0))
    assert measure_work(planned) == WorkTime(2.0, 3.0, 0.5)
    monkeypatch.setattr(step_times, "_MOST_CELLS", cells - 1)
    found, factor = measure_work(planned), cells / taken[-1]
    assert (found.unit, found.step, found.row) == pytest.approx((2.0 * factor, 3.0 * factor, 0.5 * factor))
    assert taken[0] == cells
    assert cells // 8 <= taken[-1] < cells


def test_code_compiled_before_and_on_the_way_does_not_change_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def stages(state: RunState) -> Iterator[float]:
        nonlocal now
        for step in range(30):
            units = 6.0 + step // 2
            # Compilation, and one interruption by another process.
            now += 0.002 + 0.001 * units + 9.0 * (step == 0) + 2.0 * (step == 2) + 0.1 * (step == 11)
            yield units

    monkeypatch.setattr(adaptive_time, "_tried_steps", stages)
    monkeypatch.setattr(adaptive_time, "_measure_row", lambda state: 0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    found = measure_work(plan(tmp_path, "time.method=stabilized", "time.end=2"))
    assert (found.unit, found.step) == pytest.approx((0.001, 0.002), rel=0.02)


def test_a_step_and_its_stages_have_their_own_times() -> None:
    units = np.array([6.0, 6.0, 10.0, 14.0, 22.0, 30.0])
    found = fitted(units, 0.3 + 0.01 * units)
    assert (found.unit, found.step) == pytest.approx((0.01, 0.3))
    # Steps with equal numbers of stages do not tell the two times apart.
    assert fitted(np.array([6.0, 6.0, 6.5]), np.array([0.6, 0.6, 0.65])) == WorkTime(pytest.approx(0.1))


def test_half_of_the_weight_decides_a_median() -> None:
    assert weighted_median(np.array([9.0, 2.0, 3.0]), np.array([1.0, 4.0, 4.0])) == 3.0
    assert weighted_median(np.array([5.0]), np.array([2.0])) == 5.0
    assert weighted_median(np.array([1.0, 100.0, 1.5]), np.array([30.0, 1.0, 20.0])) == 1.0


def test_the_limit_names_the_material_and_region_of_its_cell(tmp_path: Path) -> None:
    # Copper has the larger diffusivity: its inner cells lose the largest part of their heat in a step.
    text = """
title = "Copper in steel"
domain = { size = [0.6, 0.6, 0.6], cells = [6, 6, 6], material = "steel" }
materials.steel = { conductivity = 16.0, density = 7900.0, specific_heat = 500.0 }
materials.copper = { conductivity = 390.0, density = 8960.0, specific_heat = 385.0 }
initial.temperature = 300.0
time.end = 100.0
[[regions]]
name = "insert"
material = "copper"
box = { min = [0.0, 0.0, 0.0], max = [0.6, 0.6, 0.3] }
"""
    (tmp_path / "insert.toml").write_text(text)
    planned = Plan.of(HeatProblem.from_scenario(load(tmp_path / "insert.toml")))
    # An inner cell of a cubic grid: dt = d²/(6α).
    limit = 0.1**2 / (6.0 * 390.0 / (8960.0 * 385.0))
    assert planned.problem.limit.dt == pytest.approx(limit, rel=1e-12)
    assert f'limit        dt ≤ {limit:.6g} s, set by cell [1, 1, 1], material "copper", region "insert"' in describe(
        planned
    )


HALF = """
domain = { size = [0.04, 0.02, 0.01], cells = [40, 20, 10], material = "steel" }
materials.steel = { conductivity = 20.0, density = 7800.0, specific_heat = 500.0 }
materials.foil = { conductivity = 400.0, density = 8900.0, specific_heat = 385.0 }
layers = [{ material = "foil", thickness = "35 um", plane = { axis = "z", at = 0.005 } }]
regions = [{ name = "lid", material = "steel", box = { min = [0, 0.01, 0], max = [0.04, 0.02, 0.005] } }]
contacts = [{ between = ["lid", "steel"], resistance = 1e-5 }]
initial.temperature = 300.0
sources = [{ beam = { face = "z_max", power = 100.0, absorptivity = 0.5, radius = 1e-3, path = [PATH], speed = 0.01 } }]
time.end = 1.0
"""


def test_a_plan_hints_at_what_a_first_user_overlooks(tmp_path: Path) -> None:
    """Half of a beam on a symmetry plane; a material without cells; flows through contacts."""
    text = HALF.replace("PATH", "[0.01, 0.0], [0.03, 0.0]")
    lines = describe(Plan.of(HeatProblem.from_scenario(load(runs.write(tmp_path, text))))).splitlines()
    assert any(
        line.endswith("; half-way the body absorbs 25 of 50 W, the rest misses it or leaves it") for line in lines
    )
    assert any(line.startswith("material     foil: of layers, without cells; k = 400") for line in lines)
    hint = "hint         output.region_heat = true adds the flow through each contact and the heat of each region"
    assert hint in lines
    late = HALF.replace("PATH], speed = 0.01 }", "[0.01, 0.01]] }, during = [0.5, 0.7]")
    lines = describe(Plan.of(HeatProblem.from_scenario(load(runs.write(tmp_path, late))))).splitlines()
    assert not any("half-way" in line for line in lines)
    text = HALF.replace("PATH", "[0.01, 0.01], [0.03, 0.01]") + "output.region_heat = true\n"
    lines = describe(Plan.of(HeatProblem.from_scenario(load(runs.write(tmp_path, text))))).splitlines()
    assert not any("half-way" in line for line in lines)
    assert hint not in lines
