"""`domain.accuracy`: a run finds cells on which its stated error is below it, and so is its true error."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heatsim import Simulation
from heatsim.commands.convergence import converge
from heatsim.errors import InputError, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.report.certainty import error_facts
from heatsim.run.error.coarser_run import run_in_memory
from heatsim.run.error.refinement import Refinement, refine
from heatsim.run.error.values import Values
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.run.plan_model import describe_model
from heatsim.scenario import Scenario, load, parse
from heatsim.scenario.tables.domain import AxisCells
from heatsim.storage.folder import KNOWN
from heatsim.storage.run_tables import read_probes
from heatsim.storage.summary_file import read_known, read_summary
from heatsim.study.definition import read
from heatsim.temperature_units import KELVIN

PLAIN = "material = { conductivity = 1.0, density = 1000.0, specific_heat = 1000.0 }\n"
# The corner of a house, cooled outside and heated inside: the flux is singular at its inner edge.
EDGE = """
time.method = "steady"
materials.brick = { conductivity = 0.7, density = 1800.0, specific_heat = 900.0 }
domain = { size = [1.0, 1.0, 1.0], cells = "auto", material = "brick", accuracy = "0.1 K" }
regions = [{ name = "room", material = "void", box = { min = [0.3, 0.0, 0.3], max = [1.0, 1.0, 1.0] } }]
probes = [{ name = "corner", point = [0.3, 0.5, 0.3] }]

[boundaries]
x_min = { type = "convection", coefficient = 25.0, ambient = "-10 degC" }
z_min = { type = "convection", coefficient = 25.0, ambient = "-10 degC" }
void = { type = "convection", coefficient = 4.0, ambient = "20 degC" }
"""
SPOT = f"""{PLAIN}
time.method = "steady"
domain = {{ size = [0.1, 0.1, 0.05], cells = "auto", accuracy = "0.5 K" }}
boundaries.z_min = {{ type = "temperature", value = 300.0 }}
probes = [{{ name = "under", point = [0.05, 0.05, 0.048] }}, {{ name = "beside", point = [0.06, 0.05, 0.05] }}]

[[patches]]
name = "spot"
face = "z_max"
rectangle = {{ min = [0.045, 0.045], max = [0.055, 0.055] }}
type = "flux"
power = 0.1
"""
AXIAL = f"""{PLAIN}
time.method = "steady"
domain = {{ size = [0.1, 0.2], cells = "auto", symmetry = "axial", accuracy = "0.1 K" }}
boundaries.x_max = {{ type = "convection", coefficient = 50.0, ambient = "20 degC" }}
boundaries.z_min = {{ type = "temperature", value = "80 degC" }}
probes = [{{ name = "axis", point = [0.0, 0.0, 0.05] }}, {{ name = "rim", point = [0.095, 0.0, 0.01] }}]
"""
# A source narrower than the cells that follow from its formula alone.
SOURCE = f"""{PLAIN}
time.method = "steady"
domain = {{ size = [0.1, 0.001, 0.1], cells = "auto", accuracy = "0.5 K" }}
boundaries.default = {{ type = "temperature", value = 300.0 }}
boundaries.y_min.type = "insulated"
boundaries.y_max.type = "insulated"
sources = [{{ power_density = "1e8*exp(-((x - 0.03)^2 + (z - 0.06)^2)/1e-6)" }}]
probes = [{{ name = "peak", point = [0.03, 0.0005, 0.06] }}, {{ name = "near", point = [0.04, 0.0005, 0.06] }}]
"""
IN_TIME = SOURCE.replace(
    'time.method = "steady"', "time.end = 20.0\ninitial.temperature = 300.0\noutput.probe_every = 10.0"
)
CASES = {"edge of a wall": EDGE, "spot": SPOT, "axial": AXIAL, "narrow source": SOURCE}
QUIET = "output.figures = false\noutput.fields = false\n"


def scenario(text: str) -> Scenario:
    return parse(tomllib.loads(text), "accuracy.toml")


def probes_on_parts(found: Scenario, count: int) -> Values:
    """The values of a scenario on cells that are a part of the given ones."""
    tables = {
        name: AxisCells(widths=tuple(np.repeat(axis.widths / count, count).tolist()))
        for name, axis, n in zip("xyz", found.grid.axes, found.grid.cells, strict=True)
        if n > 1
    }
    cells = tuple(n * count if n > 1 else 1 for n in found.grid.cells)
    finer = found.model_copy(update={"domain": found.domain.model_copy(update={"cells": cells, **tables})})
    return run_in_memory(Plan.of(HeatProblem.from_scenario(finer)), Stop()).values


def stated(refinement: Refinement) -> dict[tuple[str, str], dict[str, Any]]:
    return {(value["name"], value["unit"]): value for value in refinement.error_in_space["values"]}


@pytest.mark.parametrize("name", CASES)
def test_the_true_error_is_below_the_accuracy(name: str) -> None:
    given = scenario(CASES[name])
    found, refinement = refine(given)
    assert refinement.missed == ""
    assert refinement.rounds[0].error > refinement.accuracy >= refinement.rounds[-1].error
    assert refinement.rounds[-1].cells == found.grid.cells
    assert found.domain.accuracy is None
    exact, values = probes_on_parts(found, 3), stated(refinement)
    for probe in given.probes:
        value = values[probe.name, "K"]
        assert abs(value["value"] - exact[probe.name, "K"]) <= refinement.accuracy
        assert value["error"] <= refinement.accuracy
    for axis in found.grid.axes:
        assert np.exp(np.abs(np.diff(np.log(axis.widths)))).max(initial=1.0) <= 1.5


def test_cells_are_small_where_the_error_arises() -> None:
    """With as many equal cells, the error is several times larger."""
    found, refinement = refine(scenario(EDGE))
    x = found.grid.axes[0]
    assert abs(x.borders[np.argmin(x.widths)] - 0.3) < 0.01
    equal = tomllib.loads(EDGE)
    equal["domain"] = {"size": [1.0, 1.0, 1.0], "cells": list(found.grid.cells), "material": "brick"}
    plain = run_in_memory(Plan.of(HeatProblem.from_scenario(parse(equal, "equal.toml"))), Stop()).values
    exact = probes_on_parts(found, 3)["corner", "K"]
    assert abs(plain["corner", "K"] - exact) > 4.0 * abs(stated(refinement)["corner", "K"]["value"] - exact)


def test_a_run_that_needs_more_cells_than_allowed_says_so(tmp_path: Path) -> None:
    document = tomllib.loads(QUIET + EDGE)
    document["domain"]["most"] = 500
    simulation = Simulation.from_dict(document, tmp_path / "run")
    simulation.run()
    summary = read_summary(tmp_path / "run")
    (missed,) = [text for text in simulation.warnings if "domain.accuracy" in text]
    assert "domain.most = 500" in missed
    assert missed in summary["warnings"]
    assert missed == summary["refinement"]["missed"]
    rounds = summary["refinement"]["rounds"]
    (line,) = [line for name, line in error_facts(summary, KELVIN, tmp_path / "run") if name == "accuracy"]
    assert line == "±0.1 K in space: not reached, with 22 × 1 × 22 cells, after 16 × 1 × 16"
    assert rounds[-1]["cells"] == summary["cells"]
    assert 256 < np.prod(summary["cells"]) <= 500
    assert 0.1 < rounds[-1]["error"] < rounds[0]["error"]
    # The number of cells that it names is about right.
    cells = simulation.plan.problem.scenario.domain.cells
    needed = float(missed.split("about ")[1].split(" cells")[0].replace(",", ""))
    assert refine(scenario(EDGE))[0].grid.cell_count == pytest.approx(needed, rel=0.4)
    assert needed > np.prod(cells)


def test_a_resumed_run_keeps_its_cells_and_states_the_same_error(tmp_path: Path) -> None:
    text = QUIET + IN_TIME.replace("0.5 K", "2 K")
    whole = Simulation.from_dict(tomllib.loads(text), tmp_path / "whole")
    whole.run()
    begun = Simulation.from_dict(tomllib.loads(text), tmp_path / "cut")
    begun.advance(until=10.0)
    begun.close()
    resolved = load(tmp_path / "cut" / "scenario.toml")
    assert (resolved.domain.accuracy, resolved.domain.x is None) == (None, False)
    resumed = Simulation.resume(tmp_path / "cut")
    resumed.run()
    one, other = (read_summary(tmp_path / name) for name in ("whole", "cut"))
    assert len(one["refinement"]["rounds"]) > 1
    assert {**one["refinement"], "seconds": 0.0} == {**other["refinement"], "seconds": 0.0}
    assert one["error_in_space"]["values"] == other["error_in_space"]["values"]
    assert (tmp_path / "whole" / "probes.csv").read_bytes() == (tmp_path / "cut" / "probes.csv").read_bytes()
    # What is stated are the values of the run.
    probes = read_probes(tmp_path / "cut")
    assert probes is not None
    ends = {value["name"]: value["value"] for value in other["error_in_space"]["values"]}
    columns = probes.in_unit("K")
    assert {name: ends[name] for name in columns} == {name: float(values[-1]) for name, values in columns.items()}


@pytest.mark.parametrize("text", ["", "[]", "\x00", '{"refinement": 1}', '{"warnings": ["a"]}', "[" * 100_000])
def test_of_a_damaged_file_nothing_is_known(tmp_path: Path, text: str) -> None:
    assert read_known(tmp_path) == {}
    (tmp_path / KNOWN).write_text(text)
    assert read_known(tmp_path) == {}


def test_the_scenario_of_a_run_runs_again_without_other_grids(tmp_path: Path) -> None:
    Simulation.from_dict(tomllib.loads(QUIET + EDGE), tmp_path / "run").run()
    again = Simulation.from_scenario(tmp_path / "run" / "scenario.toml", output=tmp_path / "again")
    again.run()
    one, other = (read_summary(tmp_path / name) for name in ("run", "again"))
    assert (one["cells"], one["heat_flows"]) == (other["cells"], other["heat_flows"])
    assert "refinement" not in other


def test_a_plan_says_that_the_grid_depends_on_the_run() -> None:
    (line,) = [line for line in describe_model(HeatProblem.from_scenario(scenario(SPOT))) if "accuracy " in line]
    assert line.startswith("accuracy     ±0.5 K in space: a run tries these cells first")


def test_studies_and_converge_refuse_it(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(SPOT + '\n[study]\nmethod = "grid"\nparameters = { "patches.0.power" = [0.1, 0.2] }\n')
    with pytest.raises(ScenarioError, match="cells of a study are known before its runs"):
        read(path)
    with pytest.raises(InputError, match="converge compares grids"):
        converge(path)


def test_smaller_cells_that_cannot_be_used_end_the_search() -> None:
    """A given time step is too long for smaller cells."""
    text = IN_TIME.replace("time.end = 20.0", "time.end = 20.0\ntime.dt = 0.04")
    found, refinement = refine(scenario(text))
    assert "smaller cells cannot be used: time.dt" in refinement.missed
    assert found.grid.cells == refinement.rounds[-1].cells


def test_a_body_without_a_coarser_grid_is_refused() -> None:
    """Cells beside a layer are at least as wide as it is thick."""
    text = f"""{PLAIN.replace("material =", "materials.a =")}
time.method = "steady"
materials.foil = {{ conductivity = 100.0, density = 1000.0, specific_heat = 1000.0 }}
domain = {{ size = [0.1, 0.1, 0.004], cells = "auto", accuracy = "1 mK", material = "a" }}
layers = [{{ name = "foil", material = "foil", thickness = "1.5 mm", plane = {{ axis = "z", at = 0.002 }} }}]
boundaries.z_min = {{ type = "convection", coefficient = 10.0, ambient = "300 + 1000*x" }}
"""
    with pytest.raises(InputError, match="no coarser grid keeps the planes of all parts"):
        refine(scenario(text))
