"""`heatsim verify`: its output for right and wrong answers, and that every case is right on this machine."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heatsim import verification
from heatsim.cli import main
from heatsim.errors import DeviceError, InputError, NotFiniteError, ScenarioError
from heatsim.physics.operator.steady_notes import notes_on_steady
from heatsim.physics.problem import HeatProblem
from heatsim.run.simulation import Simulation
from heatsim.scenario import load
from heatsim.verification import CASES, Case, choose, verdict, verify
from heatsim.verification.case import FOLDER, Comparison, EndState, one_temperature
from heatsim.verification.exact import held_series

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = "order_held"
# Other tests have their physics.
LONG = (
    *("flux_within_cells", "room_through_a_day", "moving_beam", "absorbed_beam", "counterflow", "cooled_sphere"),
    *("iso_10211_3", "iso_10211_4"),
)
KEYS = {
    *("name", "source", "scenario", "reference", "computed", "error", "tolerance", "order", "least_order", "passed"),
    *("failure", "device", "kernel", "precision", "cells", "steps", "seconds", "method", "step_tolerance", "stages"),
    "end_state",
}


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    return folder


def name_of(case: Case) -> str:
    return case.name


def change(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: object) -> None:
    """Replace attributes of a case of the catalog."""
    changed = tuple(replace(case, **attributes) if case.name == name else case for case in CASES)  # type: ignore[arg-type]
    monkeypatch.setattr(verification, "CASES", changed)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_case_is_right(whole: bool, empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that take longer than all others together are among all."""
    cases = [case for case in CASES if whole or case.name not in LONG]
    words = [] if whole else [case.name for case in cases]
    report = empty_folder / "report.json"
    assert main(["verify", *words, "--device", "cpu", "--json", str(report)]) == 0, capsys.readouterr().out
    found = json.loads(report.read_text(encoding="utf-8"))["verdicts"]
    assert [of_case["name"] for of_case in found if not of_case["end_state"]] == [case.name for case in cases]
    ends = [of_case["name"] for of_case in found if of_case["end_state"]]
    assert ends == [case.name for case in cases if isinstance(case.end, EndState)]
    for of_case in found:
        assert set(of_case) == KEYS
        assert of_case["passed"]
        assert of_case["error"] <= of_case["tolerance"]
        assert abs(of_case["computed"] - of_case["reference"]) == of_case["error"]
    out = capsys.readouterr().out
    table, said = out.split(" passed in ")
    assert all(len(line) <= 80 for line in table.splitlines())
    assert ("No end state, because the beam moves: moving_beam" in said) == whole
    assert out.count(" pass") == len(cases) + len(ends) + 1
    for case in cases:
        assert re.search(rf"^ {case.name} .* pass", out, re.MULTILINE)
        assert all(len(word) <= 11 for word in case.source.split())
    assert [path.name for path in empty_folder.iterdir()] == ["report.json"]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_wave_is_of_second_order_in_both_precisions(precision: str) -> None:
    (found,) = verify(["order_convection"], [f"solver.precision={precision}", "solver.device=cpu"])
    assert found.passed
    assert found.precision == precision
    assert found.order == pytest.approx(2.0, abs=0.02)
    assert found.cells == (32, 1, 1)


def test_every_transient_case_says_what_it_ends_in_or_why_in_nothing() -> None:
    for case in CASES:
        assert bool(case.end) != load(case.path).steady, case.name


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case.end, str) and case.end], ids=name_of)
def test_a_case_without_an_end_state_has_none(case: Case) -> None:
    """It is refused as a steady state, or something in it changes in time."""
    try:
        scenario = load(case.path, ['time={ method = "steady" }'])
        HeatProblem.from_scenario(scenario)
    except ScenarioError:
        return
    assert "values that change in time" in " ".join(notes_on_steady(scenario))


def test_end_states_are_solved_for_alone(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["verify", "nafems_t4", "order_held", "moving_beam", "--method", "steady"]
    assert main([*chosen, "--json", "report.json"]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 passed" in out
    assert "No end state, because conditions change in time: order_held" in out
    (found,) = json.loads(Path("report.json").read_text(encoding="utf-8"))["verdicts"]
    assert (found["method"], found["kernel"], found["steps"]) == ("steady", "multigrid", 0)
    # 0.1 K of the grid, and 0.01 % of less than 100 K.
    assert 0.1 < found["tolerance"] <= 0.11
    assert main(["verify", "moving_beam", "--method", "steady"]) == 2
    assert "answers none of these cases (moving_beam: the beam moves)" in capsys.readouterr().err


def test_an_end_state_that_is_wrong_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells of the slab must have the temperature of the fluid, to the tolerance of the solver alone."""
    change(monkeypatch, "slab_bi_1", end=one_temperature(393.152))
    transient, end = verify(["slab_bi_1"], ["solver.device=cpu"])
    assert transient.passed
    assert not end.passed
    assert 0.0 < end.tolerance < 1e-4  # all temperatures are equal, so the rounding of the field is left


@pytest.mark.quick("slab_bi_10", "order_contact", "heater_patch", "radiating_body", "warming_block")
@pytest.mark.parametrize(
    "name",
    [
        *("slab_bi_10", "order_flux", "order_contact", "order_radiation", "radiating_body"),
        *("heater_patch", "warming_block"),
        pytest.param("order_varying", marks=pytest.mark.slow),
    ],
)
def test_a_case_is_right_with_stabilized_steps(name: str) -> None:
    """A case of each kind of condition and material; the command runs all of them."""
    (found,) = verify([name], ["solver.device=cpu"], "stabilized")
    assert found.passed
    assert found.method == "stabilized"
    assert found.step_tolerance is not None
    assert found.step_tolerance <= 0.1 * found.tolerance
    assert found.stages is not None
    assert found.stages >= 6 * found.steps


@pytest.mark.slow
def test_the_error_of_stabilized_steps_is_the_error_in_space() -> None:
    """It follows from the sines of the grid and their rates; Euler's steps take away most of it."""
    n = 16
    (found,) = verify(["held_cube"], ["solver.device=cpu", f"domain.cells=[{n}, {n}, {n}]"], "stabilized")
    assert found.error == pytest.approx(held_cube_in_space(n), rel=0.02)
    assert held_cube_in_space(40) == pytest.approx(0.0571, abs=5e-5)  # of the case


def held_cube_in_space(n: int) -> float:
    """The largest error in K that n cells an axis of the case have in space."""
    fourier = 0.04
    x, modes = (np.arange(n) + 0.5) / n, np.arange(1, n, 2)
    rates = (2.0 * n * np.sin(modes * np.pi / (2 * n))) ** 2
    amplitudes = 2.0 / n / np.sin(modes * np.pi / (2 * n))
    on_grid = (amplitudes * np.exp(-rates * fourier)) @ np.sin(np.pi * np.outer(modes, x))
    exact = held_series(x, fourier)
    cubes = (np.einsum("i,j,k", along, along, along) for along in (on_grid, exact))
    return float(100.0 * np.abs(np.subtract(*cubes)).max())


def test_cases_that_only_euler_answers_are_left_out_with_the_reason(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["verify", "discrete_cosine", "steady_plate", "order_held", "--method"]
    assert main([*chosen, "stabilized", "--json", "report.json"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 passed" in out
    assert "Did not run with --method stabilized, because the answer is that of Euler's steps" in out
    wave, steady = json.loads(Path("report.json").read_text(encoding="utf-8"))["verdicts"]
    assert (wave["method"], steady["method"]) == ("stabilized", "steady")
    assert steady["stages"] is None
    assert main(["verify", "discrete_cosine", "--method", "stabilized"]) == 2
    assert "answers none of these cases (discrete_cosine: the answer" in capsys.readouterr().err


def test_the_method_euler_is_that_of_the_cases() -> None:
    as_it_is, euler = (verify([QUICK], ["solver.device=cpu"], method)[0] for method in (None, "euler"))
    assert (euler.error, euler.order, euler.steps) == (as_it_is.error, as_it_is.order, as_it_is.steps)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_case_says_where_its_answer_is_from_and_allows_little(case: Case) -> None:
    comment = case.path.read_text(encoding="utf-8").split("\n\n")[0]
    assert re.search(r"^# Source: ", comment, re.MULTILINE)
    assert re.search(r"^# Compared: ", comment, re.MULTILINE)
    assert case.source
    for precision in ("float32", "float64"):
        assert 0.0 < case.allowed(precision, "stabilized") <= 0.005 * case.range
        # Euler's dt follows stability, not an error.
        assert 0.0 < case.allowed(precision, "euler") <= 0.015 * case.range
    scenario = load(case.path)
    assert not case.order or scenario.steady or scenario.time.dt != "auto"


def test_every_scenario_belongs_to_a_case() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(case.name for case in CASES)


def test_a_wrong_answer_fails_the_command(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(monkeypatch, QUICK, tolerance=1e-7)
    assert main(["verify", QUICK, "order_flux", "--json", "report.json"]) == 1
    out, err = capsys.readouterr()
    assert re.search(rf"^ {QUICK} .* FAIL", out, re.MULTILINE)
    assert re.search(r"^ order_flux .* pass", out, re.MULTILINE)
    assert "1 of 2 passed" in out
    assert err.endswith(f"heatsim: 1 of 2 cases failed: {QUICK}\n")
    wrong, right = json.loads(Path("report.json").read_text(encoding="utf-8"))["verdicts"]
    assert (wrong["passed"], right["passed"]) == (False, True)
    assert wrong["order"] > 1.9


@pytest.mark.parametrize(
    ("name", "conductivity"),
    [("slab_bi_10", 0.1), ("nafems_t3", 35.0), ("nafems_t4", 52.0), ("order_flux", 4.0), ("order_convection", 4.0)],
)
def test_a_conductivity_that_is_wrong_by_one_per_cent_is_noticed(name: str, conductivity: float) -> None:
    found, *_ = verify([name], [f"material.conductivity={1.01 * conductivity!r}", "solver.device=cpu"])
    assert not found.passed


def test_too_low_an_order_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "LEAST_ORDER", 2.5)
    (found,) = verify([QUICK])
    assert not found.passed
    assert found.error is not None
    assert found.error <= found.tolerance


def test_a_run_that_fails_is_reported(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def overflow(self: Simulation) -> None:
        raise NotFiniteError("the field overflowed")

    monkeypatch.setattr(Simulation, "run", overflow)
    assert main(["verify", QUICK]) == 1
    out = capsys.readouterr().out
    assert re.search(rf"^ {QUICK} .* – .* FAIL", out, re.MULTILINE)
    assert re.search(rf"^{QUICK}: the field overflowed$", out, re.MULTILINE)


def test_not_a_number_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(simulation: Simulation) -> Comparison:
        return Comparison(np.zeros(2), np.array([0.0, np.nan]))

    change(monkeypatch, QUICK, quantity=lost, order=False)
    (found,) = verify([QUICK])
    assert not found.passed


def test_names_are_looked_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert [case.name for case in choose(["nafems_t3", "slab_bi_1"])] == ["slab_bi_1", "nafems_t3"]
    with pytest.raises(InputError, match=r'no case is named "heldcube"; .* did you mean "held_cube"'):
        choose(["heldcube"])
    assert main(["verify", "heldcube"]) == 2
    with pytest.raises(DeviceError, match="fastest"):
        verify([QUICK], ["solver.kernel=fastest", "solver.device=cpu"])


def test_the_list_names_scenario_files(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--list"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in lines] == [case.name for case in CASES]
    for _, path in lines:
        load(path)
    assert not list(empty_folder.iterdir())


def test_a_json_file_that_cannot_be_written_is_refused_at_once(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--json", "nowhere/report.json"]) == 2
    assert "there is no folder nowhere" in capsys.readouterr().err
