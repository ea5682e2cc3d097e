"""Steady states from a scenario to what is written: tables, refusals, notes, plan, studies, the command line."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import runs

import heatsim
from heatsim.errors import Interrupted, NotConvergedError, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run import step_times, work_time
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.run.step_times import measure_work
from heatsim.run.work_time import WorkTime
from heatsim.scenario import load
from heatsim.solver.euler.cpu_stepper import CpuStepper
from heatsim.solver.steady import newton as steady
from heatsim.solver.steady import steady_state
from heatsim.storage import folder, tables
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.summary_file import read_summary

WALL = """
title = "Wall of two layers"
[domain]
size = [0.8, 0.1, 0.1]
cells = [16, 2, 1]
material = "copper"
[materials.copper]
conductivity = 400.0
density = 8960.0
specific_heat = 385.0
[materials.iron]
conductivity = 80.0
density = 7870.0
specific_heat = 447.0
[[regions]]
name = "outer layer"
material = "iron"
box = { min = [0.4, 0.0, 0.0], max = [0.8, 0.1, 0.1] }
[[contacts]]
between = ["copper", "iron"]
resistance = 1e-3
[[sources]]
name = "heater"
box = { min = [0.0, 0.0, 0.0], max = [0.05, 0.1, 0.1] }
power = 20.0
[[patches]]
name = "window"
face = "x_max"
rectangle = { min = [0.0, 0.0], max = [0.05, 0.1] }
type = "convection"
coefficient = 50.0
ambient = 290.0
[boundaries]
x_max = { type = "convection", coefficient = 50.0, ambient = 290.0 }
[time]
method = "steady"
[solver]
device = "cpu"
[output]
figures = false
[[probes]]
name = "hot end"
point = [0.0, 0.05, 0.05]
[[probes]]
name = "cold end"
point = [0.8, 0.05, 0.05]
"""


def write(at: Path, text: str = WALL) -> Path:
    path = at / "wall.toml"
    path.write_text(text, encoding="utf-8")
    return path


def run(at: Path, *overrides: str, text: str = WALL, output: str = "out") -> heatsim.Simulation:
    simulation = heatsim.Simulation.from_scenario(write(at, text), overrides, output=at / output)
    simulation.run()
    return simulation


def refusal(at: Path, *overrides: str, text: str = WALL) -> str:
    with pytest.raises(ScenarioError) as caught:
        HeatProblem.from_scenario(load(write(at, text), overrides))
    return str(caught.value)


def test_a_run_writes_fields_and_tables_of_one_time(tmp_path: Path) -> None:
    simulation = run(tmp_path)
    out = tmp_path / "out"
    # 20 W over 0.01 m²: a film of 50 W/(m² K), 0.4 m of iron, the contact, 0.35 m of copper.
    cold = 290.0 + 2000.0 / 50.0
    hot = cold + 2000.0 * (0.4 / 80.0 + 1e-3 + 0.35 / 400.0)
    columns, rows = tables.read(out / folder.PROBES)
    assert columns == ["time (s)", "hot end (K)", "cold end (K)"]
    assert rows.shape == (1, 3)
    assert rows[0, 0] == 0.0
    # In the heated cell half of the flux flows on average; the face beside it has its cell's temperature.
    assert rows[0, 1] == pytest.approx(hot + 2000.0 * 0.025 / 400.0, abs=0.01)
    assert rows[0, 2] == pytest.approx(cold, abs=0.01)
    with FieldReader(out / folder.FIELDS) as reader:
        assert list(reader.times) == [0.0]
        np.testing.assert_array_equal(reader.read(0), simulation.temperature.astype("float32"))
    assert not (out / folder.CHECKPOINT).exists()


def test_heat_flows_are_told_in_watts_with_what_is_left(tmp_path: Path) -> None:
    run(tmp_path)
    columns, rows = tables.read(tmp_path / "out" / folder.ENERGY)
    row = dict(zip(columns, rows[0].tolist(), strict=True))
    faces = [f"{name} (W)" for name in ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max")]
    flows = ["source heater (W)", *faces, "window (W)"]
    gross = [f"{way} {name}" for way in ("in", "out") for name in flows]
    assert columns == ["time (s)", *flows, *gross, "imbalance (W)", "imbalance (%)"]
    assert row["source heater (W)"] == 20.0
    assert row["x_max (W)"] == pytest.approx(-20.0, rel=1e-4)
    assert row["window (W)"] == pytest.approx(-10.0, rel=1e-4)
    assert row["imbalance (W)"] == pytest.approx(20.0 + row["x_max (W)"], abs=1e-12)
    assert row["imbalance (%)"] == pytest.approx(100.0 * row["imbalance (W)"] / 20.0, rel=1e-3)


def test_the_summary_tells_how_it_was_found(tmp_path: Path) -> None:
    run(tmp_path)
    summary = read_summary(tmp_path / "out")
    assert summary["method"] == "steady"
    assert summary["newton_steps"] == 1
    assert summary["cycles"] >= 2
    assert summary["equivalent_applications"] > 0.0
    spread = summary["temperature"]["max"] - summary["temperature"]["min"]
    assert summary["tolerance"] == pytest.approx(1e-4 * spread, rel=0.01)
    assert summary["last_correction"] <= 0.1 * summary["tolerance"]
    assert summary["heat_flows"]["source heater (W)"] == 20.0


def test_the_resolved_scenario_gives_the_same_bits(tmp_path: Path) -> None:
    first = run(tmp_path, "time.tolerance=0.01")
    again = heatsim.Simulation.from_scenario(tmp_path / "out" / folder.SCENARIO, output=tmp_path / "again")
    again.run()
    np.testing.assert_array_equal(first.temperature, again.temperature)
    assert not again.warnings


def test_the_first_guess_does_not_matter(tmp_path: Path) -> None:
    first = run(tmp_path, "time.tolerance=1e-6", "solver.precision=float64")
    far = run(
        tmp_path,
        "time.tolerance=1e-6",
        "solver.precision=float64",
        'initial.temperature="900 + 100*sin(30*x)"',
        output="far",
    )
    assert np.abs(first.temperature - far.temperature).max() <= 2e-6


def test_one_material_and_one_cell(tmp_path: Path) -> None:
    text = """
    domain = { size = [0.1, 0.1, 0.1], cells = [1, 1, 1] }
    material = { conductivity = 1.0, density = 1.0, specific_heat = 1.0 }
    time = { method = "steady" }
    boundaries = { x_min = { type = "temperature", value = 350.0 }, x_max = { type = "flux", value = 100.0 } }
    output = { figures = false }
    solver = { device = "cpu" }
    """
    assert run(tmp_path, text=text).temperature.item() == pytest.approx(350.0 + 100.0 * 0.05, rel=1e-6)


def test_no_kernel_for_steps_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the choice tries kernels with the length of a step. A steady state has none."""

    def choose(self: CpuStepper) -> None:
        raise AssertionError("chosen")

    monkeypatch.setattr(CpuStepper, "choice", property(choose))
    run(tmp_path)


def test_values_in_time_are_those_of_the_start_and_it_is_said(tmp_path: Path) -> None:
    changing = (
        'boundaries.x_max.ambient="290 + 50*t"',
        "sources.0.during=[0.0, 5.0]",
        "time.end=9.0",
        "output.every=1.0",
    )
    simulation = run(tmp_path, *changing)
    known = run(tmp_path, output="known")
    np.testing.assert_array_equal(simulation.temperature, known.temperature)
    first, second = simulation.warnings
    assert "taken at t = 0: boundaries.x_max.ambient, sources.0.during (on)" in first
    assert "does not use time.end, output.every" in second
    assert not known.warnings
    off = run(tmp_path, "sources.0.during=[1.0, 5.0]", output="off")
    np.testing.assert_allclose(off.temperature, 290.0, atol=1e-3)


def _without_window(text: str) -> str:
    start = text.index("[[patches]]")
    return text[:start] + text[text.index("[boundaries]") :]


def test_a_body_with_given_fluxes_alone_is_refused(tmp_path: Path) -> None:
    text = _without_window(WALL).replace(
        'x_max = { type = "convection", coefficient = 50.0, ambient = 290.0 }',
        'x_max = { type = "flux", value = -2000.0 }',
    )
    said = refusal(tmp_path, text=text)
    assert "outer layer" in said
    assert "no steady temperature" in said


def test_a_part_that_nothing_touches_is_refused_by_its_region_s_name(tmp_path: Path) -> None:
    void = """
    [[regions]]
    name = "gap"
    material = "void"
    box = { min = [0.5, 0.0, 0.0], max = [0.6, 0.1, 0.1] }
    [boundaries]
    """
    said = refusal(tmp_path, text=WALL.replace("[boundaries]", void, 1))
    assert 'region "outer layer"' in said
    assert "copper" in said
    assert "touches no other part of the body" in said
    exchanging = WALL.replace(
        "[boundaries]", f'{void}\nvoid = {{ type = "radiation", emissivity = 0.8, ambient = 280.0 }}', 1
    )
    HeatProblem.from_scenario(load(write(tmp_path, exchanging)))


def test_a_beam_that_moves_is_refused(tmp_path: Path) -> None:
    beam = """
    [[sources]]
    beam = { face = "z_max", power = 5.0, radius = 0.02, path = [[0.1, 0.05], [0.7, 0.05]], speed = 0.1 }
    [boundaries]
    """
    said = refusal(tmp_path, text=WALL.replace("[boundaries]", beam, 1))
    assert "sources.1.beam.path" in said
    still = WALL.replace("[boundaries]", beam.replace(", [0.7, 0.05]", ""), 1)
    simulation = run(tmp_path, text=still)
    assert simulation.state.steady is not None
    assert simulation.state.steady.flows.faces["x_max"] == pytest.approx(-25.0, rel=1e-4)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("time.method=backward", ("time.method", '"backward"', '"euler"', '"steady"')),
        ("time.tolerance=0.0", ("time.tolerance", "greater than 0 K")),
        ("time.tolerance=0.1 degC", ("time.tolerance", "a temperature on a scale", "0.1 K")),
    ],
)
def test_refused_settings(tmp_path: Path, override: str, words: tuple[str, ...]) -> None:
    said = refusal(tmp_path, override)
    assert all(word in said for word in words), said
    if "method" not in override:
        # The first guess may still be left out.
        assert "initial" not in said


def test_a_tolerance_belongs_to_a_steady_state(tmp_path: Path) -> None:
    text = WALL + "[initial]\ntemperature = 300.0\n"
    said = refusal(tmp_path, "time.method=euler", "time.end=1.0", "time.tolerance=0.1", text=text)
    assert "time.tolerance" in said
    assert '"steady"' in said
    said = refusal(tmp_path, "time.method=euler")
    assert "time.end" in said
    assert "initial" in said


def test_a_search_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "MOST_CYCLES", 1)
    with pytest.raises(NotConvergedError, match="no steady state was found in 1 cycle;"):
        run(tmp_path, "time.tolerance=1e-6")


def test_an_interrupted_search_starts_over(tmp_path: Path) -> None:
    stop = Stop()
    stop.requested = True
    simulation = heatsim.Simulation.from_scenario(write(tmp_path), output=tmp_path / "out")
    with pytest.raises(Interrupted, match="resume"):
        simulation.run(stop=stop)
    again = heatsim.Simulation.resume(tmp_path / "out")
    assert not again.finished
    again.run()
    assert heatsim.Simulation.resume(tmp_path / "out").finished


def test_the_plan_tells_memory_and_time(tmp_path: Path) -> None:
    text = WALL.replace("cells = [16, 2, 1]", "cells = [64, 64, 64]")
    plan = Plan.of(HeatProblem.from_scenario(load(write(tmp_path, text))))
    said = describe(plan, {"steady": WorkTime(2470.0)})
    assert "steady state, to 0.01 %" in said
    assert "time         about 41 min of solving, from cycles timed now" in said
    assert "of solving" not in describe(plan)
    assert "dt" not in said.replace("dt ≤", "")
    # Conductances, sources and vectors, and what coarse levels add.
    linear = (plan.device_bytes - 2 * 4 * 64**3) / 64**3
    assert 44 <= linear <= 60
    radiating = text.replace("coefficient = 50.0,", "coefficient = 50.0, emissivity = 0.5,")
    plan = Plan.of(HeatProblem.from_scenario(load(write(tmp_path, radiating))))
    # Three arrays in float64 more to follow time where Newton's method finds nothing.
    assert 24 <= (plan.device_bytes - 2 * 4 * 64**3) / 64**3 - linear <= 60 + 3 * 8


@pytest.mark.parametrize("cells", [2**19, 300])
def test_the_time_of_a_search_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """A search is timed; with many cells on a coarser grid, and its time is scaled by the number of cells."""
    plan = Plan.of(HeatProblem.from_scenario(load(write(tmp_path, WALL.replace("[16, 2, 1]", "[16, 8, 4]")))))
    now, searched = 0.0, []

    def find(problem: HeatProblem, field: object, cells: object, stopped: Callable[[], bool]) -> None:
        nonlocal now
        searched.append(problem.grid.cell_count)
        for _ in range(10):
            now += 1.0 if len(searched) == 1 else 0.01 * problem.grid.cell_count
            if stopped():
                raise Interrupted("enough")

    monkeypatch.setattr(step_times, "SEARCH_CELLS", cells)
    monkeypatch.setattr(work_time, "LONGEST", 1e9)
    monkeypatch.setattr(steady_state, "find_steady_state", find)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    assert measure_work(plan).unit == pytest.approx(10 * 0.01 * plan.problem.grid.cell_count)
    assert searched == [512 if cells > 512 else 64] * 3
    # With time for three cycles only, the time of a cycle is multiplied by the usual number of cycles.
    monkeypatch.setattr(work_time, "LONGEST", 2.5 * 0.01 * searched[0])
    usual = steady_state.usual_cycles(plan.problem)
    assert measure_work(plan).unit == pytest.approx(usual * 0.01 * plan.problem.grid.cell_count)


def test_the_command_line_shows_flows_and_pictures(tmp_path: Path) -> None:
    path = write(tmp_path, WALL.replace("figures = false", "figures = true"))
    code, out, err = runs.command("run", path, "--output", tmp_path / "out", "--verbose")
    assert (code, err) == (0, "")
    assert "steady state" in out
    assert "imbalance" in out
    assert "heat flows in W" in out
    assert "over time" not in out
    assert (tmp_path / "out" / "figures" / "energy.png").exists()
    assert json.loads((tmp_path / "out" / folder.SUMMARY).read_text())["method"] == "steady"


def test_studies_run_steady_states(tmp_path: Path) -> None:
    text = (
        WALL
        + """
    [study]
    method = "grid"
    [study.parameters]
    "boundaries.x_max.coefficient" = [25.0, 50.0]
    "patches.0.coefficient" = [50.0]
    [[study.responses]]
    name = "hottest"
    probe = "hot end"
    statistic = "final"
    """
    )
    path = write(tmp_path, text)
    table = heatsim.Study.from_scenario(path, output=tmp_path / "study", workers=1).run()
    hottest = table.column("hottest").to_pylist()
    assert table.column("status").to_pylist() == ["done", "done"]
    assert hottest[0] > hottest[1] > 330.0


def test_a_study_of_steady_states_asks_for_no_time_of_passage(tmp_path: Path) -> None:
    text = (
        WALL
        + """
    [study]
    method = "grid"
    [study.parameters]
    "boundaries.x_max.coefficient" = [25.0, 50.0]
    [[study.responses]]
    name = "safe"
    probe = "hot end"
    statistic = "time_below"
    threshold = 330.0
    """
    )
    with pytest.raises(ScenarioError) as error:
        heatsim.Study.from_scenario(write(tmp_path, text), output=tmp_path / "study")
    said = str(error.value)
    assert all(word in said for word in ("study.responses.0.statistic", '"time_below"', '"steady"', '"final"')), said
