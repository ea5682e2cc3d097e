"""`heatsim converge`: the error of each value, from other grids, smaller steps and float64."""

import json
from collections.abc import Sequence
from math import prod
from pathlib import Path

import converge_errors
import numpy as np
import pytest
import runs
import study_text
import tomli_w

from heatsim.converge.convergence import first_points
from heatsim.converge.estimate import ROUGH, SAME, SMOOTH, TWO, space_error
from heatsim.converge.factors import Factors
from heatsim.errors import InputError
from heatsim.grid import AXES
from heatsim.physics.estimates.other_grids import GridChoice
from heatsim.scenario import load, parse
from heatsim.study.points import identity
from heatsim.verification import choose

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize("ratios", [(2.0, 2.0), (1.5, 2.0), (4.0 / 3.0, 1.5)])
@pytest.mark.parametrize(("order", "factor"), [(2.0, 1.25), (1.6, 1.25), (1.0, 3.0)])
def test_values_with_an_order_are_extrapolated_and_have_their_safety_factor(
    ratios: tuple[float, float], order: float, factor: float
) -> None:
    sizes = np.array([1.0, ratios[0], ratios[0] * ratios[1]])
    values = (350.0 + 0.3 * sizes**order).tolist()
    found = space_error(values, ratios, 0, 1e-9)
    assert found.verdict == SMOOTH
    assert found.order == pytest.approx(order, abs=1e-6)
    assert found.extrapolated == pytest.approx(350.0, abs=1e-6)
    assert found.error >= factor * 0.3 * (1.0 - 1e-6)
    if order == 2.0:
        assert found.error == pytest.approx(factor * 0.3)
    # The coarsest grid errs by its distance from the finest too.
    coarse = space_error(values, ratios, 2, 1e-9)
    assert coarse.finest == found.error
    assert coarse.error == pytest.approx(found.error + values[2] - values[0])
    assert coarse.error >= values[2] - 350.0


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((350.0, 350.2, 350.1), ROUGH),
        ((350.0, 350.2, 350.25), ROUGH),  # diverges towards finer grids
        ((350.0, 350.0004, 349.9997), SAME),
        ((350.0, 350.2), TWO),
    ],
)
def test_values_without_an_order_say_so_and_have_an_error_of_about_their_spread(
    values: Sequence[float], verdict: str
) -> None:
    found = space_error(values, [2.0] * (len(values) - 1), 0, 1e-3)
    assert (found.verdict, found.order if verdict != ROUGH else None) == (verdict, None)
    assert found.error >= 0.75 * (max(values) - min(values))


def text_with(boxes: Sequence[tuple[Sequence[int], Sequence[int]]], cells: Sequence[int]) -> dict[str, object]:
    """A scenario of unit cells with boxes between planes of cells."""
    return {
        "domain": {"size": [float(n) for n in cells], "cells": list(cells), "material": "m"},
        "materials": {"m": {"conductivity": 1.0, "density": 1.0, "specific_heat": 1.0}},
        "regions": [
            {"name": str(n), "material": "m", "box": {"min": list(map(float, low)), "max": list(map(float, high))}}
            for n, (low, high) in enumerate(boxes)
        ],
        "boundaries": {"x_min": {"type": "temperature", "value": 300.0}},
        "time": {"method": "steady"},
    }


@pytest.mark.parametrize("seed", range(12))
def test_all_parts_keep_their_planes_on_each_grid(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cells = draw.choice([8, 12, 16, 24], 3)
    corners = [np.sort(draw.choice(n // 2 + 1, 2, replace=False)) * 2 for n in cells]
    boxes = [tuple(zip(*(corner.tolist() for corner in corners), strict=True))]
    choice = GridChoice.of(parse(text_with(boxes, cells.tolist()), Path("boxes.toml")))
    grids = choice.three(2**21)
    assert len(grids) == 3
    assert tuple(cells) in grids
    assert [choice.ratio(grid) for grid in grids] == sorted(choice.ratio(grid) for grid in grids)
    for grid in grids:
        for axis, (low, high) in enumerate(corners):
            places = np.array([low, high]) * grid[axis] / cells[axis]
            assert places == pytest.approx(np.round(places)), (AXES[axis], grid)


def test_grids_are_coarser_where_parts_allow_it_and_finer_where_not() -> None:
    whole = GridChoice.of(parse(text_with([((4, 4, 4), (8, 8, 8))], (16, 16, 16)), Path("a.toml")))
    assert whole.three(2**21) == [(16, 16, 16), (8, 8, 8), (4, 4, 4)]
    half = GridChoice.of(parse(text_with([((2, 2, 2), (8, 8, 8))], (16, 16, 16)), Path("a.toml")))
    assert half.three(2**21) == [(24, 24, 24), (16, 16, 16), (8, 8, 8)]
    odd = GridChoice.of(parse(text_with([((3, 4, 4), (8, 8, 8))], (16, 16, 16)), Path("a.toml")))
    assert odd.three(2**21) == [(48, 48, 48), (32, 32, 32), (16, 16, 16)]
    assert odd.three(32**3) == [(32, 32, 32), (16, 16, 16)]
    assert odd.three(1) == [(16, 16, 16)]
    # An insulated axis of one cell is exact; one that passes heat is not.
    flat = {**text_with([], (16, 1, 1)), "regions": []}
    assert GridChoice.of(parse(flat, Path("a.toml"))).three(2**21) == [(16, 1, 1), (8, 1, 1), (4, 1, 1)]
    lossy = {"x_min": {"type": "temperature", "value": 300.0}, "z_max": {"type": "flux", "value": 1.0}}
    grids = GridChoice.of(parse({**flat, "boundaries": lossy}, Path("a.toml"))).three(2**21)
    assert {grid[2] for grid in grids} == {1, 2, 4}
    board = GridChoice.of(load(SCENARIOS / "circuit_board.toml"))
    assert board.steps[2] == 15  # its layers lie between cells


def test_a_scenario_with_one_value_for_each_cell_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", np.full((4, 4, 8), 300.0))
    base = study_text.BASE.replace("temperature = 400.0", 'temperature = { file = "start.npy" }')
    path = study_text.write(tmp_path, "", base.replace("cells = [8, 4, 1]", "cells = [8, 4, 4]"))
    code, out, err = runs.command("converge", path, "--output", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "the field in initial.temperature.file has one value for each cell" in err
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError):
        GridChoice.of(load(path))


def test_the_command_finds_errors_once_and_refines_until_they_are_small(tmp_path: Path) -> None:
    path, out = study_text.write(tmp_path), tmp_path / "out"
    arguments = ("converge", path, "--output", out, "--workers", "1", "--set", "domain.cells=[16, 8, 1]")
    code, text, err = runs.command(*arguments, "--set", "output.figures=true")
    assert code == 0, err
    found = json.loads((out / "converge.json").read_text())
    assert found["grids"] == [[16, 8, 1], [8, 4, 1], [4, 2, 1]]
    middle = next(value for value in found["values"] if value["name"] == "middle")
    assert middle["order"] == pytest.approx(2.0, abs=0.5)
    assert middle["error"] == pytest.approx(sum(middle["errors"].values()))
    assert "cooled" in [value["name"] for value in found["values"]]  # a response of the study
    assert {"heat from x_min", "heat from x_max"} <= {value["name"] for value in found["values"]}
    assert "middle" in text
    page = (out / "report.html").read_text()
    assert "How sure it is" in page
    assert (out / "figures" / "convergence.png").exists()
    summaries = {each: each.stat().st_mtime_ns for each in out.glob("runs/*/summary.json")}
    assert len(summaries) == 5
    code, _, _ = runs.command(*arguments, "--until", f"{1.01 * middle['error']} K")
    assert code == 0
    assert {each: each.stat().st_mtime_ns for each in out.glob("runs/*/summary.json")} == summaries
    errors = middle["errors"]
    wanted = errors["time"] + errors["rounding"] + 0.5 * errors["space"]
    code, _, err = runs.command(*arguments, "--until", f"{wanted} K", "--quiet")
    finer = json.loads((out / "converge.json").read_text())
    assert prod(finer["answer"]) > prod(found["answer"])
    refined = next(value for value in finer["values"] if value["name"] == "middle")
    assert refined["errors"]["space"] < middle["errors"]["space"]
    assert (code, refined["error"] <= wanted) == (0, True), err
    code, _, err = runs.command(*arguments, "--until", "1e-12 K")
    assert code == 1
    assert "it takes" in err
    code, _, err = runs.command("render", out)
    assert code == 2
    assert "`heatsim converge" in err
    assert runs.command(*arguments, "--until", "20 degC")[0] == 2


@pytest.mark.parametrize(("name", "method"), [("order_convection", "euler"), ("steady_kirchhoff", None)])
def test_an_exact_answer_lies_within_the_stated_error(name: str, method: str | None) -> None:
    (case,) = choose([name])
    samples = list(converge_errors.samples_of_case(case, method))
    assert len(samples) == 6
    assert all(sample.holds for sample in samples), samples


def test_a_finer_grid_of_a_random_body_lies_within_the_stated_error() -> None:
    samples = list(converge_errors.of_body(0, curved=False))
    assert len(samples) > 8
    assert np.mean([sample.holds for sample in samples]) >= 0.9


def test_a_temperature_that_is_the_same_in_all_runs_is_listed_too(tmp_path: Path) -> None:
    body = {**text_with([], (8, 1, 1)), "probes": [{"name": "there", "point": [4.3, 0.5, 0.5]}]}
    del body["regions"]
    path = tmp_path / "held.toml"
    path.write_text(tomli_w.dumps(body))
    (value,) = (value for value in converge_errors.converged(path, []).values if value.name == "there")
    assert value.value == pytest.approx(300.0)
    assert value.total is not None
    assert value.total < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("curved", "count", "least"), [(False, 40, 0.9), (True, 20, 0.8)])
def test_finer_grids_of_random_bodies_lie_within_the_stated_errors(curved: bool, count: int, least: float) -> None:
    samples = [sample for number in range(count) for sample in converge_errors.of_body(number, curved)]
    assert np.mean([sample.holds for sample in samples]) >= least


@pytest.mark.slow
def test_exact_answers_of_all_cases_lie_within_the_stated_errors() -> None:
    samples = list(converge_errors.of_cases())
    assert len(samples) > 600
    assert np.mean([sample.holds for sample in samples]) >= 0.95
    assert np.median([sample.ratio for sample in samples if sample.ratio is not None]) <= 4.0


def test_a_run_that_auto_computes_in_float64_needs_no_other_for_its_rounding(tmp_path: Path) -> None:
    for precision, runs_of_grid in (("auto", {"float64"}), ("float32", {"float32", "float64"})):
        path = runs.write(tmp_path, study_text.BASE.replace('"numpy"', '"auto"'))
        factors = Factors.read(path, [f"solver.precision={precision}", "time.end=4000", "output.probe_every=50"])
        points = first_points(factors, [factors.choice.given])
        assert {str(point["solver.precision"]) for point in points} == runs_of_grid
        assert len({identity(factors.double), identity(factors.given)}) == len(runs_of_grid)
