"""Runs with time.method = "implicit": the same answers as other methods, rows that close, restart to the bit."""

import json
from contextlib import suppress
from pathlib import Path

import bodies
import numpy as np
import pytest
import runs
from covering import mostly_slow, pairwise

from heatsim import Simulation
from heatsim.errors import Interrupted
from heatsim.observers import energy
from heatsim.run.capacity import size
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.storage import folder

IMPLICIT = "time.method=implicit"
_PATCH = {"min": [0.00927, 0.01632], "max": [0.02417, 0.02801]}
_CLUMP = {"min": [0.0161, 0.0149], "max": [0.029, 0.0319]}
# A plate that is heated by pulses, with a table of surroundings that has kinks, and wax that melts.
MELTING = """
title = "Wax between two plates"
domain = { size = [0.012, 0.004, 0.006], cells = [12, 4, 6], material = "wax" }
solver = { device = "cpu", precision = "PRECISION" }
initial = { temperature = 320.0 }
time = { method = "implicit", end = 300.0, tolerance = 0.1 }
output = { probe_every = 30.0, figures = false }
[materials.wax]
conductivity = { temperatures = [300.0, 400.0], values = [0.3, 0.2] }
density = 800.0
specific_heat = 2000.0
latent_heat = 5e4
solidus = 325.0
liquidus = 330.0
[materials.steel]
conductivity = 20.0
density = 7800.0
specific_heat = 470.0
[[regions]]
name = "plate"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.002, 0.004, 0.006] }
[[sources]]
region = "plate"
power = 1.0
during = [50.0, 120.0]
[boundaries.x_min]
type = "convection"
coefficient = 300.0
ambient = { times = [0.0, 80.0, 300.0], values = [320.0, 350.0, 340.0] }
emissivity = 0.8
[[probes]]
name = "wax"
point = [0.004, 0.002, 0.003]
"""


def melting(precision: str) -> str:
    return MELTING.replace("PRECISION", precision)


def rows_close(path: Path) -> None:
    """Every row of energy.csv closes within the bound at the end, which only grows."""
    summary = json.loads((path / folder.SUMMARY).read_text())
    assert all(abs(row["residual"]) <= summary["energy_bound"] for row in runs.energy_rows(path))


@pytest.mark.quick("float64-melting")
@pytest.mark.parametrize(("precision", "kind"), [("float32", "everything"), ("float64", "melting")])
def test_a_run_ends_where_stabilized_steps_end(precision: str, kind: str, tmp_path: Path) -> None:
    """Each step may be off by the tolerance; errors of the methods decay, and add up to a few of it."""
    text = bodies.EVERYTHING.replace('"float64"', f'"{precision}"') if kind == "everything" else melting(precision)
    path, tolerance = runs.write(tmp_path, text), 0.1
    found = []
    for method in ("stabilized", "implicit"):
        changes = [f"time.method={method}", f"time.tolerance={tolerance}"]
        simulation = Simulation.from_scenario(path, changes, output=tmp_path / method)
        simulation.run()
        found.append(simulation.temperature)
        rows_close(tmp_path / method)
    assert np.nanmax(found[0]) - np.nanmin(found[0]) > 10.0
    assert np.nanmax(np.abs(found[1] - found[0])) <= 2.0 * tolerance
    summary = json.loads((tmp_path / "implicit" / folder.SUMMARY).read_text())
    assert summary["kernel"] == "multigrid"
    assert summary["tolerance"] == tolerance
    assert summary["stages"] == 2 * (summary["steps"] + summary["rejected"])
    assert summary["cycles"] >= summary["newton_steps"] >= summary["stages"]
    assert summary["applications"] > summary["cycles"]
    assert summary["imbalance_part"] < 1e-3
    assert summary["imbalance"] <= energy.bound(simulation.state)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_rows_within_the_first_step_close_to_rounding(precision: str, tmp_path: Path) -> None:
    """They contain the rate at the start, which is calculated from the field."""
    text = f"""
domain = {{ size = [5.0, 1.0, 3.0], cells = [5, 1, 3] }}
material = {{ conductivity = 1.0, density = 1.0, specific_heat = 1.0 }}
initial = {{ temperature = "300 + 40*sin(1.4*x) + 20*cos(z)" }}
boundaries = {{ x_min = {{ type = "convection", coefficient = 1.0, ambient = 320.0 }} }}
time = {{ method = "implicit", end = 1.0, tolerance = 0.02 }}
solver = {{ device = "cpu", precision = "{precision}" }}
output = {{ probe_every = 0.05, figures = false, fields = false }}
"""
    Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "run").run()
    rows_close(tmp_path / "run")


@pytest.mark.quick("float32-opposite", "float64-narrow")
@pytest.mark.parametrize(
    ("precision", "drive"),
    mostly_slow(
        pairwise(("float64", "float32"), ("narrow", "opposite", "falling", "film")),
        *(("float64", "narrow"), ("float32", "opposite"), ("float32", "falling"), ("float64", "film")),
    ),
)
def test_rows_behind_a_jump_of_any_width_close_to_rounding(precision: str, drive: str, tmp_path: Path) -> None:
    """A step of 1e-11 of the run finds a jump, and steps of a second follow: K₂ of the short one is all rounding."""
    window = "where(abs(t - 31.0317) < WIDTH, 1, 0)"
    insulated, up, down, film = (
        '{ type = "insulated" }',
        f'{{ type = "temperature", value = "410 + 50*{window}" }}',
        f'{{ type = "temperature", value = "410 - 50*{window}" }}',
        f'{{ type = "convection", coefficient = "20 + 2e4*{window}", ambient = 450.0 }}',
    )
    faces = {"narrow": (up, insulated), "opposite": (up, down), "falling": (down, down), "film": (film, up)}
    x_min, x_max = faces[drive]
    text = f"""
domain = {{ size = [0.05, 0.03, 0.01], cells = [5, 3, 1] }}
material = {{ conductivity = 20.0, density = 5000.0, specific_heat = 500.0 }}
initial = {{ temperature = "400 + 30*sin(60*x)" }}
boundaries = {{ x_min = {x_min}, x_max = {x_max} }}
time = {{ method = "implicit", end = 42.18107, tolerance = 0.05 }}
solver = {{ device = "cpu", precision = "{precision}" }}
output = {{ probe_every = 0.7, figures = false, fields = false }}
"""
    for width in ("1e-6", "2.3786e-2", "0.71"):
        out = tmp_path / width
        Simulation.from_scenario(runs.write(tmp_path, text.replace("WIDTH", width)), output=out).run()
        rows_close(out)


@pytest.mark.quick("float32-everything-11")
@pytest.mark.parametrize(
    ("precision", "kind", "turn"),
    mostly_slow(
        pairwise(("float64", "float32"), ("everything", "melting"), (3, 11)),
        *(("float64", "melting", 11), ("float32", "everything", 11)),
    ),
)
def test_a_run_that_was_interrupted_ends_with_the_same_bits(
    precision: str, kind: str, turn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a step's rows too: then the step is done once more."""
    runs.step_by_step(monkeypatch)
    text = bodies.EVERYTHING.replace('"float64"', f'"{precision}"') if kind == "everything" else melting(precision)
    end = "time.end=0.1" if kind == "everything" else "time.end=150"
    path, changes = runs.write(tmp_path, text), [IMPLICIT, "time.tolerance=0.2", end]
    whole = tmp_path / "whole"
    Simulation.from_scenario(path, changes, output=whole).run()
    stop, turns, advance = Stop(), 0, AdaptiveStepper.advance

    def watched(self: AdaptiveStepper, steps: int) -> None:
        nonlocal turns
        advance(self, steps)
        turns += 1
        stop.requested = turns == turn

    monkeypatch.setattr(AdaptiveStepper, "advance", watched)
    parts = tmp_path / "parts"
    with pytest.raises(Interrupted, match="a checkpoint is saved"):
        Simulation.from_scenario(path, changes, output=parts).run(stop=stop)
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(whole)


# Each step goes from one kink to the next. All steps have the same length, and slopes that differ little.
WAVES = """
domain = { size = [0.1, 0.1, 0.1], cells = [6, 1, 1] }
material = { conductivity = 2.0, density = 2000.0, specific_heat = 900.0 }
initial = { temperature = 300.0 }
time = { method = "implicit", end = 800.0, tolerance = 2.0 }
solver = { device = "cpu", precision = "float64" }
output = { every = 800.0, probe_every = 50.0, figures = false }
[boundaries.x_min]
type = "convection"
coefficient = 20.0
ambient = { times = [0, 100, 200, 300, 400, 500, 600, 700], values = [300, 302, 300, 303, 300, 301, 300, 302] }
emissivity = 0.9
[[probes]]
name = "surface"
point = [0.0, 0.05, 0.05]
"""


def test_a_step_does_not_depend_on_the_operator_of_the_step_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step may use an operator that differs by 2 % from the exact one. A checkpoint does not contain it."""
    runs.step_by_step(monkeypatch)
    path, parts, advance = runs.write(tmp_path, WAVES), tmp_path / "parts", AdaptiveStepper.advance
    Simulation.from_scenario(path, output=tmp_path / "whole").run()
    stop = Stop()

    def watched(self: AdaptiveStepper, steps: int) -> None:
        advance(self, steps)
        stop.requested = not self.step % 3

    monkeypatch.setattr(AdaptiveStepper, "advance", watched)
    simulation, pieces = Simulation.from_scenario(path, output=parts), 0
    while not simulation.state.finished:
        with suppress(Interrupted):
            simulation.run(stop=stop)
        simulation, stop.requested, pieces = Simulation.resume(parts), False, pieces + 1
    assert pieces > 4
    assert runs.results(parts) == runs.results(tmp_path / "whole")


def test_a_signal_drops_the_step_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver looks for signals after each cycle."""
    runs.step_by_step(monkeypatch)
    simulation = Simulation.from_scenario(runs.write(tmp_path), [IMPLICIT], output=tmp_path / "run")
    stepper = simulation.execution.stepper()
    stepper.prepare()
    stepper.advance(1)
    assert isinstance(stepper, AdaptiveStepper)
    before, counts, dropped = stepper.work, dict(stepper.counts), 0
    while stepper.work == before:
        assert stepper.counts == counts  # those of the step under way are dropped too
        looks = iter([False] * dropped)
        stepper.stopped = lambda looks=looks: next(looks, True)
        stepper.advance(1)
        dropped += 1
    assert dropped > 4  # signals came in both stages


def test_thin_layers_cost_no_more_steps(tmp_path: Path) -> None:
    """The limit of Euler's method falls by 100 with the thickness of a layer; steps follow the solution alone."""
    steps = []
    for cells in (8, 80):
        path = runs.write(
            tmp_path,
            f"""
            title = "Foil"
            domain = {{ size = [0.1, 0.1, 0.002], cells = [10, 10, {cells}] }}
            solver = {{ device = "cpu" }}
            material = {{ conductivity = 200.0, density = 2700.0, specific_heat = 900.0 }}
            initial = {{ temperature = 350.0 }}
            time = {{ method = "implicit", end = 2000.0, tolerance = 0.05 }}
            output = {{ fields = false, probe_every = 2000.0, figures = false }}
            boundaries = {{ default = {{ type = "convection", coefficient = 20.0, ambient = 300.0 }} }}
            """,
        )
        simulation = Simulation.from_scenario(path, output=tmp_path / str(cells))
        simulation.run()
        assert simulation.state.method is not None
        steps.append(simulation.state.method.work.steps)
    assert abs(steps[1] - steps[0]) <= 0.35 * steps[0]


@pytest.mark.quick("float32")
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_part_that_exchanges_little_heat_with_the_rest_has_its_temperature(precision: str) -> None:
    """A thick layer of copper in a foam, whose temperatures multigrid hardly corrects, in a state that is steady."""
    text = {
        "domain": {"size": [0.04758, 0.049447, 0.042187], "cells": [8, 4, 4], "material": "foam"},
        "solver": {"device": "cpu", "precision": precision},
        "materials": {
            "foam": {"conductivity": 0.212, "density": 6400.0, "specific_heat": 1063.0},
            "copper": {"conductivity": 390.0, "density": 8960.0, "specific_heat": 385.0},
        },
        "regions": [
            {
                "name": "hole",
                "material": "void",
                "box": {"min": [0.011895, 0.02472, 0.0], "max": [0.05, 0.0371, 0.0211]},
            }
        ],
        "layers": [
            {"material": "copper", "thickness": 0.00432, "plane": {"axis": "y", "at": 0.049447, "rectangle": _PATCH}},
            {"material": "copper", "thickness": 0.00767, "plane": {"axis": "z", "at": 0.0210935, "rectangle": _CLUMP}},
        ],
        "initial": {"temperature": 300.0},
        "boundaries": {
            "x_min": {"type": "temperature", "value": 306.5},
            "z_max": {
                "type": "convection",
                "coefficient": "111.4*(1 + 0.4*cos(49.3*y))",
                "ambient": 324.4,
                "emissivity": 0.457,
            },
            "void": {"type": "temperature", "value": 297.1},
        },
        "sources": [
            {"power": 3.45, "box": {"min": [0.0066, 0.0162, 0.014], "max": [0.0484, 0.036, 0.0419]}},
            {"power": 1.66, "box": {"min": [0.0041, 0.0051, -0.0034], "max": [0.0231, 0.0249, 0.0135]}},
        ],
    }
    found = []
    for time in ({"method": "steady", "tolerance": 1e-4}, {"method": "implicit", "tolerance": 0.02, "end": 3e6}):
        simulation = Simulation.from_dict({**text, "time": time}, in_memory=True)
        simulation.run()
        found.append(simulation.temperature)
    assert np.nanmax(np.abs(found[1] - found[0])) < 0.004
    assert simulation.state.method is not None
    assert simulation.state.method.work.steps < 150


def test_a_kernel_that_is_not_used_is_named(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(
        runs.write(tmp_path), [IMPLICIT, "solver.kernel=numpy"], output=tmp_path / "run"
    )
    assert simulation.warnings == ["implicit steps do not use solver.kernel"]


def test_plan_shows_memory_and_applications(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path), [IMPLICIT], output=tmp_path / "run")
    text = describe(Plan.of(simulation.plan.problem))
    assert "for an error of the run in time of 0.02 %" in text
    assert "steps end    at 1 kink of conditions or sources" in text
    assert f"applications of the operator; {size(simulation.plan.device_bytes)} on the device\n" in text
    euler = Simulation.from_scenario(runs.write(tmp_path), [], output=tmp_path / "euler")
    assert simulation.plan.device_bytes > 4 * euler.plan.device_bytes


def test_a_run_of_any_length_needs_few_steps(tmp_path: Path) -> None:
    """In steps of 1e18 Euler limits h times the rounding of flows is kelvins: it is no error of the temperatures."""
    document = {
        "domain": {"size": [0.1, 0.1, 0.1], "cells": [4, 4, 4]},
        "material": {"conductivity": 237.0, "density": 2700.0, "specific_heat": 900.0},
        "initial": {"temperature": 373.15},
        "boundaries": {"x_min": {"type": "convection", "coefficient": 500.0, "ambient": 293.15}},
        "time": {"end": 1e20, "method": "implicit"},
        "solver": {"device": "cpu", "precision": "float64"},
        "output": {"probe_every": 3e18, "figures": False, "fields": False},
    }
    simulation = Simulation.from_dict(document, tmp_path / "run")
    simulation.run()
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    rows_close(tmp_path / "run")
    assert summary["steps"] < 200
    assert np.abs(simulation.state.field.temperature() - 293.15).max() < summary["tolerance"]
