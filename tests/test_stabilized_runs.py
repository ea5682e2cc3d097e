"""Whole runs with time.method = "stabilized", against exact solutions and against Euler's method with short steps."""

import json
import re
from math import inf, pi
from pathlib import Path

import numpy as np
import pytest
import runs
from bodies import EVERYTHING, WALL
from conftest import Simulate
from covering import SLOW, mostly_slow
from exact import HELD_STEP, PERIODIC, PUBLISHED, QUENCHED_BLOCK, SLABS, ExactSolution, convection, flux, held
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.observers import energy
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.storage import folder, tables
from heatsim.storage.field_reader import FieldReader

pytestmark = pytest.mark.usefixtures("one_thread", "each_row_at_once")

STABILIZED = "time.method=stabilized"
METAL = "conductivity = 20.0, density = 2000.0, specific_heat = 500.0"
Array = NDArray[np.float64]


class Balance(Observer):
    """Compares the residual of each row with its bound."""

    def __init__(self) -> None:
        self.rows = 0

    def due(self, state: RunState) -> NDArray[np.int64]:
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def handle(self, state: RunState) -> None:
        self.rows += 1
        residual, bound = abs(energy.balance(state)["residual"]), energy.bound(state)
        assert residual <= bound, f"{residual} J > {bound} J at {state.time} s"


def run(at: Path, text: str, *overrides: str) -> Simulation:
    """Run a scenario; every row of its energy balance closes within the bound."""
    number = len([*at.iterdir()])
    path, watch = at / f"case_{number}.toml", Balance()
    path.write_text(text, encoding="utf-8")
    simulation = Simulation.from_scenario(path, overrides, output=at / f"run_{number}")
    simulation.run(watchers=[watch])
    assert watch.rows == len(tables.read(simulation.folder / folder.ENERGY)[1])
    return simulation


def probes(simulation: Simulation) -> Array:
    return tables.read(simulation.folder / folder.PROBES)[1]


def summary(simulation: Simulation) -> dict[str, float]:
    found: dict[str, float] = json.loads((simulation.folder / folder.SUMMARY).read_text())
    return found


def body(
    *boundaries: str,
    initial: str = "300.0",
    cells: tuple[int, int, int] = (6, 5, 4),
    size: tuple[float, float, float] = (0.06, 0.05, 0.04),
    material: str = METAL,
    end: float = 20.0,
    every: float = 1.0,
    more: str = "",
) -> str:
    """A scenario on the CPU in float64, with probes in the body and on a face."""
    faces = "\n".join(boundaries)
    point = [0.4 * size[0], 0.3 * size[1], 0.6 * size[2]]
    return f"""
domain = {{ size = {list(size)}, cells = {list(cells)} }}
material = {{ {material} }}
initial = {{ temperature = {initial} }}
time = {{ end = {end!r} }}
solver = {{ device = "cpu", precision = "float64" }}
output = {{ figures = false, fields = false, error = "none", probe_every = {every!r} }}
[boundaries]
{faces}
{more}
[[probes]]
name = "inside"
point = {point}
[[probes]]
name = "face"
point = [0.0, {point[1]}, {point[2]}]
"""


AIR = f"default = {convection(500.0, 300.0)}"
BEAM = (
    '[[sources]]\nbeam = { face = "z_max", power = 50.0, radius = 4e-3, speed = 0.01, start = 1.0, '
    "path = [[0.01, 0.01], [0.05, 0.01], [0.05, 0.04]] }"
)
SWITCHED = "[[sources]]\npower_density = 2e6\nduring = [3.3, 7.7]"
TABLE = "{ times = [0.0, 4.3, 4.7, 12.1], values = [300.0, 400.0, 350.0, 380.0] }"
VARYING = (
    'conductivity = "20 + 0.1*(T - 300)", density = 2e3, '
    "specific_heat = { temperatures = [250.0, 500.0], values = [500.0, 1500.0] }"
)
WAX = "conductivity = 0.2, density = 800.0, specific_heat = 2e3, latent_heat = 2e5, solidus = 320.0, liquidus = 325.0"
# A ball of steel on a foot of glass in void: surfaces at an angle, a contact, and a patch that ends within cells.
BALL = """
domain = { size = [0.04, 0.04, 0.04], cells = [10, 10, 10], material = "void" }
initial = { temperature = 400.0 }
time = { end = 20.0 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false, error = "none", probe_every = 1.0 }
contacts = [{ between = ["steel", "glass"], resistance = 1e-3 }]
[materials]
steel = { conductivity = 15.0, density = 7900.0, specific_heat = 500.0 }
glass = { conductivity = 1.0, density = 2500.0, specific_heat = 800.0 }
[boundaries]
void = { type = "convection", coefficient = 300.0, ambient = 300.0, emissivity = 0.9 }
[[patches]]
face = "z_min"
rectangle = { min = [0.0107, 0.0113], max = [0.0291, 0.0277] }
type = "temperature"
value = 320.0
[[regions]]
name = "ball"
material = "steel"
sphere = { centre = [0.02, 0.02, 0.02], radius = 0.017 }
[[regions]]
name = "foot"
material = "glass"
box = { min = [0.01, 0.01, 0.0], max = [0.03, 0.03, 0.006] }
[[probes]]
name = "top"
point = [0.02, 0.02, 0.035]
[[probes]]
name = "ball"
region = "ball"
statistic = "mean"
"""
CASES = {
    "convection": body(AIR, initial="400.0"),
    "held": body(f"x_min = {held(350.0)}", f"y_max = {held(280.0)}"),
    "flux": body(f"x_min = {flux(2e4)}", f"y_max = {convection(200.0, 310.0)}"),
    "radiation": body('default = { type = "radiation", emissivity = 0.9, ambient = 900.0 }', every=5.0, end=99.0),
    "insulated": body(initial='"300 + 50*cos(60*x)*cos(70*y)"'),
    "periodic": body(f"x_min = {PERIODIC}", f"x_max = {PERIODIC}", initial=f'"300 + 50*sin({pi / 0.03}*x)"'),
    "anisotropic": body(AIR, initial="400.0", material=METAL.replace("20.0", "[20.0, 100.0, 4.0]")),
    "one axis": body(f"x_min = {held(300.0)}", initial="400.0", cells=(25, 1, 1)),
    "one cell": body(AIR, initial="400.0", cells=(1, 1, 1)),
    "flat cells": body(AIR, initial="400.0", cells=(6, 5, 2), size=(0.06, 0.05, 4e-4), end=0.5, every=0.1),
    "varying": body(AIR, initial="500.0", material=VARYING),
    "latent heat": body(f"x_min = {held(350.0)}", cells=(15, 1, 1), material=WAX, end=2e4, every=2e3),
    "table of the ambient": body(
        f"x_min = {convection(500.0, 300.0)}".replace("ambient = 300.0", f"ambient = {TABLE}")
    ),
    "jump of the film": body(f"x_min = {convection('where(t < 5, 20, 800)', 300.0)}", initial="400.0"),
    "jumps of a flux": body(f"x_min = {flux('1e4*where(t % 5 < 2, 1, 0)')}"),
    "wave": body(f"x_min = {held('300 + 50*sin(3*t)')}"),
    "switched source": body(f"x_min = {convection(200.0, 300.0)}", more=SWITCHED),
    "sink": body(AIR, more="[[sources]]\npower_density = -1e6\nduring = [0.0, 5.5]"),
    "beam": body(AIR, cells=(12, 10, 4), more=BEAM),
    "composite wall": WALL.replace("end = 60000.0", "end = 3000.0"),
    "ball": BALL,
    "everything": EVERYTHING.replace("cells = [12, 9, 12]", "cells = [10, 8, 6]"),
}

IN_FLOAT32 = ("held", "radiation", "anisotropic", "varying", "latent heat", "jumps of a flux", "everything")


# Those in which the terms of several others come together are slow.
@pytest.mark.parametrize(
    "case", mostly_slow(CASES, *(case for case in CASES if case not in ("ball", "varying", "wave")))
)
def test_the_error_is_of_the_size_of_the_tolerance(tmp_path: Path, case: str) -> None:
    """At the end in every cell, and in every row of the probes, interpolated between the ends of steps.

    It is the sum of the errors of some steps, each damped by the steps after it: three times the tolerance is
    allowed. The estimate is a mean over 2 × 2 × 2 cells, so a single cell at a surface may be off by more than it says.
    The reference is extrapolated from two runs of Euler's method on the same grid, whose error is of first order; half
    of what that changes is allowed on top.
    """
    text = CASES[case]
    # Euler's method takes at least one step to each row, which is far below the limit of a single cell.
    coarse = 0.02 if case == "one cell" else 0.2
    long, short = (run(tmp_path, text, f"time.safety={safety}") for safety in (coarse, coarse / 2.0))
    found = run(tmp_path, text, STABILIZED)
    tolerance = summary(found)["tolerance"]
    pairs = [(long.temperature, short.temperature, found.temperature)]
    pairs.append((probes(long), probes(short), probes(found)))
    for first, second, ours in pairs:
        error = np.abs(ours - (2.0 * second - first))
        assert np.nanmax(error) <= 3.0 * tolerance + 0.5 * np.nanmax(np.abs(second - first))
    if not SLOW and case not in IN_FLOAT32:
        return
    single = run(tmp_path, text, STABILIZED, "solver.precision=float32")
    assert np.nanmax(np.abs(single.temperature - found.temperature)) <= 2.0 * tolerance
    assert summary(single)["stages"] <= 1.1 * summary(found)["stages"] + 20


@pytest.mark.parametrize("solution", [*SLABS, HELD_STEP, QUENCHED_BLOCK], ids=lambda solution: solution.name)
def test_exact_solutions(tmp_path: Path, solution: ExactSolution, simulate: Simulate) -> None:
    """To what Euler's method is allowed at the same grid, plus the tolerance."""
    text = without_steps(solution.scenario)
    simulation = simulate(text, STABILIZED)
    grid = simulation.plan.problem.grid
    x, y, z = (grid.centres(axis) for axis in range(3))
    expected = solution.T(x[None, None, :], y[None, :, None], z[:, None, None], simulation.time)
    assert np.abs(simulation.temperature - expected).max() <= 1e-3 * solution.range + summary(simulation)["tolerance"]


def without_steps(text: str) -> str:
    return re.sub(r', dt = "auto", safety = [0-9.]+', "", text)


@pytest.mark.parametrize("published", [PUBLISHED[-2], PUBLISHED[-1]], ids=lambda case: case.name)
def test_published_values(published, simulate: Simulate) -> None:  # type: ignore[no-untyped-def]
    """A face that follows a sine, and rows at times within steps."""
    simulation = simulate(without_steps(published.scenario), STABILIZED)
    rows = {row[0]: row[1:] for row in probes(simulation)}
    allowed = 5e-4 * published.range + published.digits + summary(simulation)["tolerance"]
    for time, expected in published.values.items():
        np.testing.assert_allclose(rows[time], expected, rtol=0, atol=allowed)


@pytest.mark.slow
def test_the_error_follows_the_tolerance(tmp_path: Path) -> None:
    """The error of a step is C·h³, and its tolerance that of the run to the power 3/2: steps grow as tol^(−1/2)."""
    text, ours = CASES["convection"], []
    reference = run(tmp_path, text, STABILIZED, "time.tolerance=3e-5")
    for tolerance in (0.064, 0.001):
        found = run(tmp_path, text, STABILIZED, f"time.tolerance={tolerance}")
        error = float(np.abs(probes(found) - probes(reference)).max())
        assert error <= tolerance
        ours.append((error, summary(found)["steps"]))
    (coarse, few), (fine, many) = ours
    assert 30.0 < coarse / fine < 120.0
    assert 5.0 < many / few < 9.0


def test_rows_do_not_change_the_run(tmp_path: Path) -> None:
    """Steps do not end at rows: the same steps and end state, and rows at the same times with the same values."""
    text = CASES["everything"]
    few, many = (run(tmp_path, text, STABILIZED, f"output.probe_every={every}") for every in (0.05, 0.005))
    for key in ("steps", "stages", "rejected"):
        assert summary(few)[key] == summary(many)[key]
    assert few.temperature.tobytes() == many.temperature.tobytes()
    assert runs.probe_rows(few.folder) == runs.probe_rows(many.folder)[::10]
    # Heats are added up from row to row; ten sums instead of one round differently.
    few_heats, many_heats = ([list(row.values()) for row in runs.energy_rows(of.folder)] for of in (few, many))
    np.testing.assert_allclose(few_heats, many_heats[::10], rtol=1e-14, atol=1e-14 * np.abs(few_heats).max())


def test_fields_are_those_at_their_times(tmp_path: Path) -> None:
    """A field within a step is off by twice the tolerance at most, as rows are; steps of the reference are shorter."""
    text = CASES["convection"].replace("fields = false", "fields = true, every = 0.7")
    found, fine = (run(tmp_path, text, STABILIZED, f"time.tolerance={tolerance}") for tolerance in (0.02, 2e-4))
    with FieldReader(found.folder / folder.FIELDS) as ours, FieldReader(fine.folder / folder.FIELDS) as others:
        assert ours.times.tolist() == [pytest.approx(0.7 * n) for n in range(29)] + [20.0]
        for number in range(len(ours)):
            assert np.abs(ours.read(number) - others.read(number)).max() <= 0.04


def test_rows_of_a_cooling_body_fall(tmp_path: Path) -> None:
    """No row between the ends of steps is above the row before, or outside of the range."""
    found = run(tmp_path, CASES["convection"], STABILIZED, "output.probe_every=0.05")
    rows = probes(found)
    assert (rows[0, 1:] >= 300.0).all()
    assert (np.diff(rows[:, 1]) <= 1e-9).all()
    assert (rows[:, 1:] >= 300.0).all()
    assert (rows[:, 1:] <= 400.0 + 1e-9).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_nothing_happens(tmp_path: Path, precision: str) -> None:
    found = run(tmp_path, body(), STABILIZED, f"solver.precision={precision}")
    assert (found.temperature == 300.0).all()
    assert (probes(found)[:, 1:] == 300.0).all()
    assert summary(found)["steps"] == 1
    assert summary(found)["energy_bound"] == 0.0


def test_opposite_heats_that_change_slowly_need_few_steps(tmp_path: Path) -> None:
    """Two cells follow their heats at once through 3,000 times their limit: steps are many times as long."""
    halves = [
        f"[[sources]]\npower = {power}\nbox = {{ min = [{low}, 0, 0], max = [{high}, 0.01, 0.01] }}\n"
        'scale = "sin(1e-3*t)"'
        for power, low, high in ((10.0, 0.0, 0.01), (-10.0, 0.01, 0.02))
    ]
    long = body(cells=(2, 1, 1), size=(0.02, 0.01, 0.01), end=15e3, every=1e3, more="\n".join(halves))
    found = run(tmp_path, long, STABILIZED, "time.tolerance=0.05")
    assert found.plan.problem.limit.dt == pytest.approx(5.0)
    assert summary(found)["steps"] < 3000 / 6


@pytest.mark.quick("float32-stabilized", "float64-implicit")
@pytest.mark.parametrize("method", ["stabilized", "implicit"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_opposite_heats_that_come_and_go_between_two_rows_count(tmp_path: Path, method: str, precision: str) -> None:
    """A third of a body takes 4 kJ from the rest, and gives them back: the balance closes within its bound."""
    parts = [
        f"[[sources]]\npower = {sign}16000.0\nbox = {{ min = [{low}, 0, 0], max = [{high}, 0.05, 0.04] }}\n"
        'scale = "(t - 10)/0.5*exp(-((t - 10)/0.5)^2)"'
        for sign, low, high in (("", 0.0, 0.02), ("-", 0.02, 0.06))
    ]
    material = "conductivity = 1e-4, density = 2000.0, specific_heat = 500.0"
    text = body(material=material, more="\n".join(parts), every=7.0)
    run(tmp_path, text, f"time.method={method}", f"solver.precision={precision}", "time.tolerance=0.01")


@pytest.mark.parametrize("source", ["", SWITCHED.replace("[3.3, 7.7]", "[3.0, 7.0]")], ids=["none", "source"])
def test_a_cell_that_exchanges_nothing_has_no_limit(tmp_path: Path, source: str) -> None:
    found = run(tmp_path, body(cells=(1, 1, 1), more=source), STABILIZED)
    assert found.plan.problem.limit.dt == inf
    expected = 300.0 + np.clip(probes(found)[:, 0] - 3.0, 0.0, 4.0) * (2.0 if source else 0.0)
    np.testing.assert_allclose(probes(found)[:, 1], expected, rtol=0, atol=1e-9)
    assert summary(found)["steps"] <= 3


@pytest.mark.parametrize("every", [1e-4, 1e3])
def test_an_end_far_below_the_limit(tmp_path: Path, every: float) -> None:
    text = body(AIR, initial="400.0", end=1e-3, every=every)
    found, euler = run(tmp_path, text, STABILIZED), run(tmp_path, text, "time.safety=0.001")
    assert summary(found)["steps"] == 1
    assert probes(found).shape == probes(euler).shape
    np.testing.assert_allclose(found.temperature, euler.temperature, rtol=0, atol=1e-5)
    assert (probes(found)[0] == probes(euler)[0]).all()


def test_a_source_alone_gives_the_exact_temperature(tmp_path: Path) -> None:
    """Sources are averaged over stages, so the heat of a body that nothing else drives is exact in every row."""
    source = '[[sources]]\npower_density = 1e6\nscale = "1 + sin(2*t)"'
    rows = probes(run(tmp_path, body(more=source), STABILIZED))
    t = rows[:, 0]
    np.testing.assert_allclose(rows[-1, 1], 320.0 + 0.5 * (1.0 - np.cos(40.0)), rtol=0, atol=1e-6)
    # Within steps the cubic between both ends is off by no more than the tolerance of 1 mK.
    np.testing.assert_allclose(rows[:, 1], 300.0 + t + 0.5 * (1.0 - np.cos(2.0 * t)), rtol=0, atol=1e-3)


@pytest.mark.quick("varying", "convection")
@pytest.mark.parametrize("case", ["convection", "everything", "varying"])
def test_cpu_kernels_agree(tmp_path: Path, case: str) -> None:
    text = CASES[case]
    few = ["time.end=0.1"] if case == "everything" else []
    one, other = (run(tmp_path, text, STABILIZED, f"solver.kernel={kernel}", *few) for kernel in ("numpy", "numba"))
    for key in ("steps", "stages", "rejected"):
        assert summary(one)[key] == summary(other)[key]
    np.testing.assert_allclose(one.temperature, other.temperature, rtol=1e-12)


def test_without_an_energy_balance(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASES["everything"], encoding="utf-8")
    fields = []
    for ledger in ("true", "false"):
        overrides = [STABILIZED, f"output.energy={ledger}"]
        simulation = Simulation.from_scenario(path, overrides, output=tmp_path / ledger)
        simulation.run()
        fields.append(simulation.temperature.tobytes())
    assert fields[0] == fields[1]


def test_a_run_that_ends_when_nothing_changes(tmp_path: Path) -> None:
    """It ends at a row within a step. A checkpoint holds that row's field: a summary made from it is the same."""
    text = body(f"x_min = {convection(500.0, 300.0)}", initial="400.0", end=2e4, every=10.0)
    simulation = run(tmp_path, text, STABILIZED, "time.stop_below=1e-4")
    before = summary(simulation)
    assert before["end_state"].startswith("steady at t = ")  # type: ignore[attr-defined]
    assert before["time"] < 2e4
    (simulation.folder / folder.SUMMARY).unlink()
    resumed = Simulation.resume(simulation.folder)
    resumed.run()
    assert resumed.temperature.tobytes() == simulation.temperature.tobytes()
    after = summary(resumed)
    assert {key: after[key] for key in before if key not in runs.TIMES} == {
        key: before[key] for key in before if key not in runs.TIMES
    }
