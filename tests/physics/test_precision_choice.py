"""The precision that "auto" takes: float32 where its rounding is small beside the error of the run, else float64."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs

from heatsim.device import Device
from heatsim.errors import CapacityError
from heatsim.physics.estimates.precision_choice import PART, PrecisionChoice
from heatsim.physics.problem import HeatProblem
from heatsim.run.simulation import Simulation
from heatsim.scenario import parse_dict
from heatsim.storage import folder
from heatsim.study import folder as study_folder
from heatsim.study.definition import Definition, read

COOLED = {"default": {"type": "convection", "coefficient": 500.0, "ambient": 293.15}}
LOSES_NOTHING: dict[str, Any] = {"sources": [{"power_density": 1e5}]}


def document(end: float, precision: str = "auto", **tables: Any) -> dict[str, Any]:
    """A block of aluminium of 4³ cells; dt_limit is 1.07 s."""
    given: dict[str, Any] = {
        "domain": {"size": [0.1, 0.1, 0.1], "cells": [4, 4, 4]},
        "material": {"conductivity": 237.0, "density": 2700.0, "specific_heat": 900.0},
        "initial": {"temperature": 373.15},
        "time": {"end": end, "method": "euler"},
        "solver": {"device": "cpu", "precision": precision},
        "output": {"every": end, "probe_every": end, "figures": False},
    }
    return given | tables


def chosen(end: float, **tables: Any) -> PrecisionChoice:
    choice = HeatProblem.from_scenario(parse_dict(document(end, **tables))).precision_choice
    assert choice is not None
    return choice


def final(end: float, precision: str, **tables: Any) -> np.ndarray[Any, Any]:
    simulation = Simulation.from_dict(document(end, precision, **tables), in_memory=True)
    simulation.run()
    return simulation.temperature


# What changes slowly: 8,000 to 20,000 steps of euler.
SLOW: dict[str, dict[str, Any]] = {
    "heated, loses nothing": {"time": {"end": 2000.0, "dt": 0.25}, **LOSES_NOTHING},
    "heated by a flux": {"time": {"end": 2000.0, "dt": 0.2}, "boundaries": {"x_min": {"type": "flux", "value": 7e3}}},
    "cools to the end": {"time": {"end": 1000.0, "dt": 0.05}, "boundaries": COOLED},
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_body_that_changes_slowly_is_computed_in_float64(kind: str) -> None:
    """Float32 is off by more than a tenth of the error of the run, and by no more than the estimate."""
    end = SLOW[kind]["time"]["end"]
    choice, exact = chosen(end, **SLOW[kind]), final(end, "float64", **SLOW[kind])
    assert choice.precision == "float64"
    lost = float(np.abs(final(end, "float32", **SLOW[kind]) - exact).max())
    assert PART * choice.error < lost <= choice.rounding
    np.testing.assert_array_equal(final(end, "auto", **SLOW[kind]), exact)


FAST: dict[str, dict[str, Any]] = {
    "euler": {"time": {"end": 300.0, "method": "euler"}, "boundaries": COOLED},
    "heated, euler": {"time": {"end": 300.0, "method": "euler"}, **LOSES_NOTHING},
    "stabilized": {"time": {"end": 300.0, "method": "stabilized"}, "boundaries": COOLED},
    "implicit": {"time": {"end": 1e5, "method": "implicit"}, "boundaries": COOLED},
    "steady": {"time": {"method": "steady"}, "boundaries": COOLED, **LOSES_NOTHING},
}


@pytest.mark.quick("stabilized", "steady", "heated, euler", "euler")
@pytest.mark.parametrize("kind", FAST)
def test_other_bodies_are_computed_in_float32(kind: str) -> None:
    """Float32 is off by no more than a tenth of the error."""
    time: dict[str, Any] = FAST[kind]["time"]
    end = time.get("end", 1.0)
    choice = chosen(end, **FAST[kind])
    assert choice.precision == "float32"
    exact = final(end, "float64", **FAST[kind])
    assert float(np.abs(final(end, "auto", **FAST[kind]) - exact).max()) <= PART * choice.error
    assert choice.rounding <= PART * choice.error


def test_long_steps_of_stages_take_float64() -> None:
    """Their noise grows with the square of the stages; a long time without a jump has long steps. Implicit has none."""
    long = {"end": 1e5, "method": "stabilized"}
    assert chosen(1e5, time=long, boundaries=COOLED).precision == "float64"
    assert chosen(1e5, time=long | {"tolerance": 1.0}, boundaries=COOLED).precision == "float32"
    switched = COOLED["default"] | {"ambient": "where(sin(t/16) > 0, 293.15, 303.15)"}
    assert chosen(1e4, time=long | {"end": 1e4}, boundaries={"default": switched}).precision == "float32"


def test_what_float32_cannot_resolve_takes_float64() -> None:
    """Also where the method is left open: it would take euler in float32, or refuse the tolerance."""
    tables: dict[str, Any] = {"time": {"end": 300.0, "method": "auto", "tolerance": 1e-5}, "boundaries": COOLED}
    problem = HeatProblem.from_scenario(parse_dict(document(300.0, **tables)))
    assert problem.precision == problem.scenario.solver.precision == "float64"
    assert problem.asked.solver.precision == "auto"
    assert problem.choice is not None
    assert "cannot resolve" not in problem.choice.reason


def test_latent_heat_counts() -> None:
    """Contents reach further than temperatures by L/cp."""
    melting = {"conductivity": 237.0, "density": 2700.0, "specific_heat": 900.0}
    melting |= {"solidus": 320.0, "liquidus": 330.0}
    tables: dict[str, Any] = {"time": {"end": 300.0, "method": "euler"}, "boundaries": COOLED}
    more, less = (chosen(300.0, **tables, material=melting | {"latent_heat": L}).rounding for L in (9e5, 9e4))
    assert more / less == pytest.approx((80.0 + 1000.0) / (80.0 + 100.0))


def test_auto_stays_auto_and_a_resumed_run_keeps_what_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    Simulation.from_dict(document(20.0, boundaries=COOLED), out).run()
    assert tomllib.loads((out / folder.SCENARIO).read_text())["solver"]["precision"] == "auto"
    assert json.loads((out / folder.SUMMARY).read_text())["precision"] == "float32"
    other = PrecisionChoice("float64", 0.0, 0.0)
    monkeypatch.setattr("heatsim.physics.problem.choose_precision", lambda *given: other)
    assert Simulation.resume(out).plan.problem.precision == "float32"
    assert Simulation.from_dict(document(20.0), tmp_path / "new").plan.problem.precision == "float64"


STUDY = """
[study]
method = "grid"
[study.parameters]
"time.end" = [{ends}]
"""


def study(at: Path, ends: str, *overrides: str) -> tuple[Definition, dict[int, HeatProblem]]:
    path = runs.write(at, runs.TEXT + STUDY.format(ends=ends))
    return read(path, overrides)


def test_the_runs_of_a_study_have_one_precision(tmp_path: Path) -> None:
    """That of the run that needs float64; a study that is extended keeps what it has."""
    for ends, precision in (("5.0, 10.0", "float32"), ("5.0, 5e3", "float64")):
        definition, problems = study(tmp_path, ends)
        assert definition.precision == precision
        assert {problem.precision for problem in problems.values()} == {precision}
        assert definition.scenario(1).solver.precision == precision
    given = study(tmp_path, "5.0, 5e3", "solver.precision=float32")
    assert given[0].precision == ""
    assert {problem.precision for problem in given[1].values()} == {"float32"}
    out = tmp_path / "out"
    out.mkdir()
    study_folder.write_study(out, study(tmp_path, "5.0, 10.0")[0])
    (out / study_folder.RUNS).mkdir()
    extended = study_folder.check_study(out, study(tmp_path, "5.0, 10.0, 5e3")[0], extend=True)
    assert (extended.precision, len(extended.points)) == ("float32", 3)
    study_folder.write_study(out, extended)
    assert study_folder.read_study(out).scenario(3).solver.precision == "float32"


def test_a_run_that_does_not_fit_is_told_why_it_is_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = document(2000.0, **SLOW["heated, loses nothing"])
    simulation = Simulation.from_dict(slow, in_memory=True)
    monkeypatch.setattr(Device, "free_memory", lambda self: 0)
    with pytest.raises(CapacityError, match=r'precision "float32".*solver.precision is float64 because float32 may be'):
        simulation.plan.check_memory()
