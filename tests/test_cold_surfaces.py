"""Fluxes that would cool a surface below 0 K."""

import json
from pathlib import Path

import pytest

from heatsim import Simulation
from heatsim.errors import RunError, ScenarioError
from heatsim.storage import folder, run_tables, tables

# Half a cell conducts 2·30/0.002 = 30,000 W/(m² K).
BAR = {
    "domain": {"size": [0.02, 0.01, 0.01], "cells": [10, 1, 1]},
    "material": {"conductivity": 30.0, "density": 7800.0, "specific_heat": 600.0},
    "initial": {"temperature": 300.0},
    "solver": {"device": "cpu", "precision": "float64"},
    "output": {"figures": False, "fields": False, "probe_every": 0.01},
    "probes": [{"name": "coldest", "surface": "x_max", "statistic": "min"}],
}
METHODS = ("euler", "stabilized", "implicit")


def of_bar(at: Path, flux: object, method: str = "auto") -> Simulation:
    convection = {"type": "convection", "coefficient": 10.0, "ambient": 300.0, "flux": flux}
    document = {
        **BAR,
        "boundaries": {"x_max": convection},
        "time": {"method": method} if method == "steady" else {"end": 0.2, "method": method},
    }
    return Simulation.from_dict(document, at / "run")


@pytest.mark.parametrize("method", METHODS)
def test_a_flux_that_no_cell_is_hot_enough_for_is_refused_before_the_run(method: str, tmp_path: Path) -> None:
    """30,000·300 + 10·300 = 9.003e6 W/m² is what a surface at 0 K gets."""
    with pytest.raises(ScenarioError, match=r"x_max: a flux of -9\.1e\+06 W/m².* 303\.333 K colder.* at most 300 K"):
        of_bar(tmp_path, -9.1e6, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_ends_where_a_surface_falls_below_zero(method: str, tmp_path: Path) -> None:
    """At the start it has (30,000·300 + 3,000 − 8.9e6)/30,010 = 3.43 K; then its cell gets colder."""
    simulation = of_bar(tmp_path, -8.9e6, method)
    with pytest.raises(RunError, match=r"a surface is below 0 K: -\d.* at t = 0\.01 s.*boundaries\.x_max takes out"):
        simulation.run()
    first = tables.read(simulation.folder / folder.PROBES)[1][0, 1]
    assert first == pytest.approx((30_000.0 * 300.0 + 3_000.0 - 8.9e6) / 30_010.0, abs=1e-6)


def test_a_flux_alone_is_computed_with_a_warning(tmp_path: Path) -> None:
    """The body loses the heat as written, 1e-4 m² of it; its surface is 10e6/30,000 = 333 K colder than its cell."""
    document = BAR | {"boundaries": {"x_max": {"type": "flux", "value": -1e7}}, "time": {"end": 0.02}}
    simulation = Simulation.from_dict(document, tmp_path / "run")
    simulation.run()
    [warning] = json.loads((simulation.folder / folder.SUMMARY).read_text("utf-8"))["warnings"]
    assert "boundaries.x_max left its surface with -" in warning
    assert "at t = 0.02 s, below 0 K: the body has the heat as written" in warning
    energy = run_tables.read_energy(simulation.folder)
    assert energy is not None
    assert energy.in_unit("J")["stored"][-1] == pytest.approx(-1e7 * 1e-4 * 0.02, rel=1e-9)


def test_a_short_pulse_between_two_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"-1\.6e\+11 W/m².*below 0 K"):
        of_bar(tmp_path, "-1.6e11*exp(-((t - 0.0137)/1e-10)^2)")


@pytest.mark.parametrize(("set_to", "below"), [(-1e6, False), (-1e7, True)])
def test_a_range_that_a_program_may_not_use_is_not_refused(set_to: float, below: bool, tmp_path: Path) -> None:
    convection = {"type": "convection", "coefficient": 10.0, "ambient": 300.0, "flux": 0.0}
    changes = {"boundaries.x_max.flux": {"range": [-1e8, 0.0], "every": "0.01 s"}}
    document = BAR | {"boundaries": {"x_max": convection}, "time": {"end": 0.03}, "changes": changes}
    simulation = Simulation.from_dict(document, tmp_path / "run")
    simulation.advance(0.01)
    simulation.set("boundaries.x_max.flux", set_to)
    if below:
        with pytest.raises(RunError, match="a surface is below 0 K"):
            simulation.run()
    else:
        simulation.run()


def test_a_steady_surface_below_zero_is_refused(tmp_path: Path) -> None:
    """The film gives 10·(300 − T_s) = 3,100 W/m²: T_s = −10 K."""
    with pytest.raises(RunError, match=r"below 0 K: -10"):
        of_bar(tmp_path, -3.1e3, "steady").run()


def test_a_surface_slightly_above_zero_is_computed(tmp_path: Path) -> None:
    """A pulse of which the run's rows show the end: the surface falls to 3.4 K at its start."""
    flux = {"times": [0.0, 0.001, 0.001], "values": [-8.9e6, -8.9e6, 0.0]}
    simulation = of_bar(tmp_path, flux)
    simulation.run()
    assert tables.read(simulation.folder / folder.PROBES)[1][0, 1] == pytest.approx(3.43, abs=0.01)
