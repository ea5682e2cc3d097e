"""The error of a run in space, from a run on a coarser grid: `output.error`."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
import study_text
import tomli_w

from heatsim.counts import plain
from heatsim.errors import CapacityError, Interrupted
from heatsim.physics.estimates.other_grids import GridChoice
from heatsim.physics.problem import HeatProblem
from heatsim.render.choice import PictureChoice
from heatsim.render.curves.curves import error_bands
from heatsim.render.run_pictures import find_pictures
from heatsim.report.page import build
from heatsim.run.error import coarser_run
from heatsim.run.error.foreseen import foreseen_error
from heatsim.run.error.values import read_values
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.run.simulation import Simulation
from heatsim.run.work_time import WorkTime
from heatsim.scenario import load
from heatsim.storage.run_tables import read_probes
from heatsim.storage.summary_file import read_summary, write_summary
from heatsim.study import folder as study_folder
from heatsim.study.page import build as build_study
from heatsim.study.report import error_tables
from heatsim.study.results import Results

RESPONSES = "cooled (s)", "warmest (K)"
TWICE = "domain.cells=[6,4,4]"  # the cells are twice as large
PLATE: dict[str, Any] = {
    "title": "Heated block on a plate",
    "domain": {"size": [0.12, 0.08, 0.08], "cells": [12, 8, 8], "material": "plate"},
    "materials": {
        "plate": {"conductivity": 20.0, "density": 2000.0, "specific_heat": 500.0},
        "block": {"conductivity": 5.0, "density": 1000.0, "specific_heat": 800.0},
    },
    "regions": [{"name": "block", "material": "block", "box": {"min": [0.04, 0.02, 0.04], "max": [0.08, 0.06, 0.08]}}],
    "sources": [{"name": "heater", "region": "block", "power": 40.0, "during": [0.0, 40.0]}],
    "boundaries": {"z_min": {"type": "convection", "coefficient": 300.0, "ambient": 300.0}},
    "initial": {"temperature": 300.0},
    "time": {"end": 100.0, "method": "euler"},
    "solver": {"device": "cpu"},
    "output": {"probe_every": 1.0, "figures": False},
    "probes": [
        {"name": "top", "point": [0.06, 0.04, 0.08]},
        {"name": "axis", "line": {"from": [0.06, 0.04, 0.0], "to": [0.06, 0.04, 0.08], "count": 5}},
        {"name": "block, mean", "region": "block", "statistic": "mean"},
    ],
}


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of the tests are too short for the clock to decide."""
    monkeypatch.setattr(coarser_run, "PART", 1e9)


def written(at: Path, changes: Mapping[str, Any] | None = None, base: Mapping[str, Any] = PLATE) -> Path:
    path = at / "plate.toml"
    path.write_text(tomli_w.dumps({**base, **(changes or {})}))
    return path


def ran(path: Path, name: str, *overrides: str) -> Path:
    target = path.parent / name
    Simulation.from_scenario(path, overrides, output=target).run()
    return target


def errors_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())["error_in_space"]
    return found


def values_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {value["name"]: value for value in errors_of(folder)["values"]}


@pytest.mark.quick("euler", "steady")
@pytest.mark.parametrize("method", ["euler", "stabilized", "steady"])
def test_errors_are_the_differences_to_a_run_on_the_coarser_grid(tmp_path: Path, method: str) -> None:
    time = PLATE["time"] if method != "steady" else {}
    path = written(tmp_path, {"time": {**time, "method": method}})
    fine, coarse = ran(path, "fine"), ran(path, "coarse", TWICE, "output.error=none")
    found, others = errors_of(fine), read_values(coarse)
    assert (found["cells"], found["ratio"]) == ([6, 4, 4], 2.0)
    assert found["largest"] in values_of(fine)
    for (name, unit), value in read_values(fine).items():
        if name.startswith("axis[") or (unit == "W" and value == others[name, unit]):
            continue
        stated = values_of(fine)[name]
        # The same run to the bit, in memory instead of on disk.
        assert stated["coarser"] == others[name, unit], name
        assert stated["error"] == abs(value - others[name, unit])
    # Of a line the point with the largest error; a region without a probe has its mean too.
    worst = max(abs(read_values(fine)[f"axis[{n}]", "K"] - others[f"axis[{n}]", "K"]) for n in range(5))
    (line,) = (value for name, value in values_of(fine).items() if name in {f"axis[{n}]" for n in range(5)})
    assert line["error"] == worst
    of_probe, of_region = (values_of(fine)[name] for name in ("block, mean", "mean of block"))
    assert of_region["error"] == pytest.approx(of_probe["error"], rel=1e-9)
    assert "heat from z_min" in values_of(fine) or method == "steady"  # set by the power
    assert {path.name for path in fine.iterdir()} == {path.name for path in coarse.iterdir()}
    if method == "steady":
        assert found["bands"] is None
        return
    table, other = read_probes(fine), read_probes(coarse)
    assert table is not None
    assert other is not None
    apart = np.abs(table.columns["top", "K"] - other.columns["top", "K"])
    assert list(found["bands"]["errors"]) == ["top", "block, mean"]
    band = error_bands({"error_in_space": found}, table)["top"]
    assert len(found["bands"]["times"]) == 64
    np.testing.assert_array_less(apart, 0.5 * (band.high - band.low) + 1e-12)
    assert 0.5 * (band.high - band.low).max() == pytest.approx(apart.max())


def test_the_report_the_terminal_and_the_pictures_have_the_errors(tmp_path: Path) -> None:
    path = written(tmp_path, {"output": {**PLATE["output"], "fields": False, "temperature": "degF"}})
    out = tmp_path / "out"
    code, text, err = runs.command("run", path, "--output", out, "--verbose")
    assert code == 0, err
    assert "a run with 6 × 4 × 4 cells shows the error in space" in err
    largest = values_of(out)[errors_of(out)["largest"]]
    error, name = f"±{1.8 * largest['error']:.2g} °F", f'"{largest["name"]}", the largest'
    page = build(out).replace("&quot;", '"')
    assert f"error {error} in space" in " ".join(text.split())
    assert f'<td>{error}</td><td class="words">{name}' in page
    for shown in (" ".join(text.split()), page):
        assert "the difference to a run with 6 × 4 × 4 cells 2 times as large; two grids show no order" in shown
        assert "heat from z_min (W)" in shown
    of_top = plain(1.8 * values_of(out)["top"]["error"], 2)
    assert re.search(rf"<td[^>]*>top \(°F\)</td><td>[^<]+</td><td>{of_top}</td>", page)
    assert "Probes with their errors in space" in page
    assert page.count("<polygon") == 2
    # Around its curve.
    around, curve = (re.search(rf'<{shape} points="([^"]+)"', page) for shape in ("polygon", "polyline"))
    assert around is not None
    assert curve is not None
    heights = [np.mean([float(point.split(",")[1]) for point in found[1].split()]) for found in (around, curve)]
    assert heights[0] == pytest.approx(heights[1], abs=0.5)
    with ExitStack() as stack:
        (picture,) = (each for each in find_pictures(out, stack, PictureChoice()).curves if each.name == "probes")
        picture.draw(tmp_path / "probes.svg")
        with_bands = (tmp_path / "probes.svg").read_text()
        assert "probes with their errors in space" in with_bands
    # In the unit of the picture, around the curve.
    table = read_probes(out)
    assert table is not None
    band = error_bands({"error_in_space": errors_of(out)}, table)["top"]
    np.testing.assert_allclose(0.5 * (band.low + band.high), table.columns["top", "K"])


def test_less_than_twice_as_large_cells_count_with_an_order_of_one(tmp_path: Path) -> None:
    body = {**PLATE, "domain": {**PLATE["domain"], "cells": [9, 6, 6], "size": [0.09, 0.06, 0.06]}, "regions": []}
    del body["sources"]
    body["probes"] = [{"name": "there", "point": [0.045, 0.03, 0.03]}]
    body["initial"] = {"temperature": "300 + 1000*x"}
    path = written(tmp_path, base=body)
    assert GridChoice.of(load(path)).coarser()[0] == (6, 4, 4)
    there = values_of(ran(path, "fine"))["there"]
    assert there["error"] == pytest.approx(2.0 * abs(there["value"] - there["coarser"]))


def test_a_resumed_run_has_the_same_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    whole = errors_of(ran(path, "whole"))
    with monkeypatch.context() as patch:
        runs.after_step(patch, 20, runs.interrupt)
        with pytest.raises(Interrupted):
            ran(path, "parts", "output.error=none")
    # A resumed run may change the key.
    resolved = tmp_path / "parts" / "scenario.toml"
    resolved.write_text(resolved.read_text().replace('error = "none"', 'error = "auto"'))
    assert not (tmp_path / "parts" / "summary.json").exists()
    assert runs.command("resume", tmp_path / "parts")[0] == 0
    assert {**errors_of(tmp_path / "parts"), "seconds": 0.0} == {**whole, "seconds": 0.0}


ODD = {"min": [0.01, 0.01, 0.01], "max": [0.05, 0.05, 0.05]}  # planes that only finer grids keep
CURVED = [{"name": "block", "material": "block", "sphere": {"centre": [0.06, 0.04, 0.04], "radius": 0.031}}]
THIN = [{"name": "block", "material": "block", "sphere": {"centre": [0.065, 0.045, 0.045], "radius": 0.008}}]


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"regions": [{"name": "block", "material": "block", "box": ODD}]}, "no coarser grid keeps the planes"),
        ({"regions": THIN}, "contains no centre of a cell"),
        ({"initial": {"temperature": {"file": "start.npy"}}}, "has one value for each cell"),
    ],
)
def test_without_a_coarser_run_the_reason_and_the_command_are_named(
    tmp_path: Path, changes: dict[str, Any], missing: str
) -> None:
    np.save(tmp_path / "start.npy", np.full((8, 8, 12), 300.0))
    path = written(tmp_path, changes)
    code, text, _ = runs.command("run", path, "--output", tmp_path / "out")
    text = " ".join(text.split())
    assert code == 0
    reason = errors_of(tmp_path / "out")["missing"]
    assert missing in reason
    assert "\n" not in reason
    assert "values" not in errors_of(tmp_path / "out")
    assert "one value for each cell" in text or f"find it with `heatsim converge {tmp_path / 'out'}" in text


def test_curved_parts_have_errors_too(tmp_path: Path) -> None:
    unwatched = {"name": "foot", "material": "plate", "box": {"min": [0.0, 0.0, 0.0], "max": [0.12, 0.08, 0.02]}}
    path = written(tmp_path, {"regions": [unwatched, *CURVED]})
    simulation = Simulation.from_scenario(path, output=tmp_path / "fine")
    simulation.run()
    mean = values_of(tmp_path / "fine")["mean of block"]
    assert mean["error"] > 0.0
    # The statistics of the run are as before.
    assert simulation.probe("block, mean") == pytest.approx(mean["value"], rel=1e-12)


def test_the_folder_of_a_steady_state_does_not_have_the_means_of_regions(tmp_path: Path) -> None:
    fine = ran(written(tmp_path, {"time": {"method": "steady"}}), "fine")
    whole, summary = values_of(fine), read_summary(fine)
    del summary["error_in_space"]
    write_summary(fine, summary)
    assert runs.command("resume", fine)[0] == 0
    assert "mean of block" in whole
    assert values_of(fine) == {name: value for name, value in whole.items() if name != "mean of block"}


def test_no_error_is_asked_for(tmp_path: Path) -> None:
    fine = ran(written(tmp_path), "fine", "output.error=none")
    assert "error_in_space" not in json.loads((fine / "summary.json").read_text())
    code, _, err = runs.command("run", tmp_path / "plate.toml", "--set", "output.error=all")
    assert code == 2
    assert "output.error" in err


def test_an_interruption_of_the_coarser_run_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stop, plan_on = written(tmp_path), Stop(), coarser_run.plan_on
    simulation = Simulation.from_scenario(path, output=tmp_path / "out")

    def stopped(*arguments: Any) -> Any:
        stop.requested = True
        return plan_on(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(coarser_run, "plan_on", stopped)
        with pytest.raises(Interrupted, match="is complete, but its error in space is not known"):
            simulation.run(stop=stop)
    assert simulation.finished
    before = read_values(tmp_path / "out")
    code, _, err = runs.command("resume", tmp_path / "out", "--quiet")
    assert (code, err) == (0, "")
    assert "values" in errors_of(tmp_path / "out")
    assert read_values(tmp_path / "out") == before
    assert runs.command("resume", tmp_path / "out")[1].startswith(f"{tmp_path / 'out'}: the run is complete")


def test_a_coarser_run_without_memory_leaves_the_run_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> Any:
        raise CapacityError("plate.toml: needs 3 GiB,\nof which 1 GiB are free")

    monkeypatch.setattr(coarser_run, "plan_on", full)
    fine = ran(written(tmp_path), "fine")
    assert errors_of(fine) == {"missing": "plate.toml: needs 3 GiB, of which 1 GiB are free"}


def test_a_coarser_run_that_is_not_cheap_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarser_run, "PART", 1e-6)
    monkeypatch.setattr(coarser_run, "plan_on", None)
    fine = ran(written(tmp_path), "fine")
    assert errors_of(fine) == {"missing": "a run with 6 × 4 × 4 cells takes more than a tenth of the time"}


def write_tetrahedron(path: Path) -> None:
    corners = np.array([[0.02, 0.02, 0.02], [0.1, 0.02, 0.02], [0.02, 0.07, 0.02], [0.02, 0.02, 0.07]])
    faces = [corners[list(face)] for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    loops = ("".join(f"vertex {x} {y} {z}\n" for x, y, z in face) for face in faces)
    text = "".join(f"facet normal 0 0 0\nouter loop\n{loop}endloop\nendfacet\n" for loop in loops)
    path.write_text(f"solid\n{text}endsolid\n")


@pytest.mark.parametrize(
    ("times", "ranks", "stl", "begins"),
    [
        # A tenth of 100 s is 10 s; a grid with cells twice as large has 8 times fewer cells, steps take 32 times less.
        # All this may take 1.75 times longer.
        ({"stepping_time": 180.0}, 1, False, True),
        ({"stepping_time": 186.0}, 1, False, False),
        ({"stepping_time": 180.0}, 2, False, False),  # one of two ranks does it
        ({"observing_time": 16.0}, 1, False, True),
        ({"observing_time": 17.0}, 1, False, False),  # half of it depends on no grid
        ({}, 1, False, True),
        ({}, 1, True, False),  # triangles take 20 s on any grid
        ({"stages": 1, "steps": 10_100}, 1, False, False),  # 10.1 s for the steps, whatever they do
        ({"stages": 110_000, "steps": 1}, 1, False, False),
    ],
)
def test_the_time_of_a_coarser_run_is_expected_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: dict[str, float], ranks: int, stl: bool, begins: bool
) -> None:
    def begun(*arguments: Any) -> Any:
        raise CapacityError("begun")

    write_tetrahedron(tmp_path / "part.stl")
    regions = [{"name": "block", "material": "block", "stl": "part.stl"}] if stl else PLATE["regions"]
    folder = ran(written(tmp_path, {"regions": regions}), "fine", "output.error=none", "time.end=10")
    clock = {"wall_time": 100.0, "stepping_time": 0.0, "observing_time": 0.0, "preparing_time": 99.0}
    write_summary(folder, {**read_summary(folder), **clock, "rejected": 0, "tolerance": 1.0, **times})
    monkeypatch.setattr(coarser_run, "PART", 0.1)
    monkeypatch.setattr(coarser_run, "plan_on", begun)
    monkeypatch.setattr(GridChoice, "coarser", lambda choice: [(6, 4, 4)])
    set_up = 0.0 if times else 20.0
    run = coarser_run.FinishedRun(load(tmp_path / "plate.toml"), folder, ranks=ranks, set_up=set_up)
    coarser_run.state_error(run, Stop())
    assert (errors_of(folder)["missing"] == "begun") == begins


@pytest.mark.parametrize("method", ["euler", "steady"])
def test_a_coarser_run_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The estimate is far too small: it takes more than a thousandth."""
    monkeypatch.setattr(coarser_run, "cheap_grid", lambda choice, *others: choice.coarser()[0])
    monkeypatch.setattr(coarser_run, "PART", 1e-3)
    fine = ran(written(tmp_path, {"time": {**PLATE["time"], "method": method}}), "fine")
    assert "more than a tenth" in errors_of(fine)["missing"]


def test_the_work_on_other_grids_is_that_of_the_method(tmp_path: Path) -> None:
    """8 to 32 times less on a grid with cells twice as large."""
    path = written(tmp_path)
    for overrides, factor in (
        ([], 32.0),
        (["time.dt=0.5"], 8.0),
        (["time.method=stabilized"], 16.0),
        (["time.method=implicit"], 8.0),
    ):
        scenario = load(path, overrides)
        assert GridChoice.of(scenario).work((6, 4, 4), scenario) == pytest.approx(1.0 / factor)


def texts(lines: Sequence[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def test_a_plan_says_whether_the_error_will_be_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    monkeypatch.setattr("heatsim.run.error.foreseen.PART", 1e9)
    code, text, _ = runs.command("plan", path)
    assert code == 0
    assert texts(text.splitlines(), "error ").startswith(
        "error        ± in space, by a run with 6 × 4 × 4 cells after this one"
    )
    monkeypatch.setattr("heatsim.run.error.foreseen.PART", 1e-9)
    (line,) = foreseen_error(Plan.of(HeatProblem.from_scenario(load(path))), {"euler": WorkTime(1e-3)})
    assert line.startswith("error        in space not stated: a run with 6 × 4 × 4 cells takes more than a tenth")
    assert f"`heatsim converge {path}` finds it in about" in line


def test_a_study_states_the_errors_of_its_extreme_runs(tmp_path: Path) -> None:
    path, out = study_text.write(tmp_path), tmp_path / "out"
    arguments = ("study", path, "--output", out, "--workers", "1", "--set", "domain.cells=[16,8,1]", "--verbose")
    code, shown, err = runs.command(*arguments)
    assert code == 0, err
    folders = sorted((out / "runs").iterdir())
    stated = [folder for folder in folders if "error_in_space" in json.loads((folder / "summary.json").read_text())]
    rows = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    extremes = {}
    for name in RESPONSES:
        known = [row for row in rows if row[name]]
        for which, sign in (("smallest", 1.0), ("largest", -1.0)):
            extreme = min(known, key=lambda row: (sign * float(row[name]), int(row["run"])))
            extremes[name.replace(" (", f", {which} (").replace("(K)", "(°C)")] = extreme["run"]
    assert {int(folder.name) for folder in stated} == {*map(int, extremes.values())}
    assert len(stated) < len(folders)
    for folder in stated:
        value = values_of(folder)["warmest"]
        assert value["error"] == abs(value["value"] - value["coarser"])
        assert {"cooled", "middle", "heat from x_max"} <= values_of(folder).keys()
    definition = study_folder.read_study(out)
    table_rows = Results(out, definition).rows()
    (table,) = error_tables(out, definition, table_rows)
    assert {name: run for name, run, *_ in table.rows} == extremes
    page = build_study(out, definition, table_rows)
    for text in (shown, page):
        assert "Errors in space" in text
        assert "warmest, largest (°C)" in text
    before = [(folder / "summary.json").stat().st_mtime_ns for folder in folders]
    assert runs.command(*arguments)[0] == 0
    assert [(folder / "summary.json").stat().st_mtime_ns for folder in folders] == before
