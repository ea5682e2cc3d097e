"""A program that sets the whole field during a run."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from covering import mostly_slow
from test_changes import METHODS, POWER_OF_HEATER, document

import heatsim
from heatsim import Simulation
from heatsim.errors import InputError, ScenarioError

FIELD = "initial.temperature"
RESETS = {"range": ["0 degC", "200 degC"], "every": "5 s"}


def settable(method: str = "euler", **tables: Any) -> dict[str, Any]:
    """The bar with a heater, in float64, whose field and power may be set."""
    changes = {FIELD: RESETS, POWER_OF_HEATER: {"range": [0, 100], "every": 1}}
    tables["solver"] = {"precision": "float64", **tables.get("solver", {})}
    found = document(method, changes={FIELD: RESETS}, **tables)
    return {**found, "changes": changes}


def wave(at: float) -> Any:
    """A field of the bar in K, shape (2, 3, 10)."""
    return at + 20.0 * np.sin(np.arange(60.0)).reshape(2, 3, 10)


@pytest.mark.quick("euler", "implicit")
@pytest.mark.parametrize("method", METHODS)
def test_a_new_field_acts_as_an_initial_one(method: str, tmp_path: Path) -> None:
    """At 10 s a run with a new field is one that begins with it, and nothing but the field changes."""
    np.save(tmp_path / "start.npy", wave(350.0))
    tables: dict[str, Any] = {"time": {"tolerance": 1e-3}} if method != "euler" else {}
    fresh = settable(method, initial={"temperature": {"file": "start.npy"}}, **tables)
    fresh["time"] = {**fresh["time"], "end": 20.0}
    begun = Simulation.from_dict(fresh, in_memory=True, folder=tmp_path)
    begun.set(POWER_OF_HEATER, 40.0)
    begun.run()
    simulation = Simulation.from_dict(settable(method, **tables), tmp_path / "out")
    simulation.set(POWER_OF_HEATER, "40 W")
    simulation.advance(10.0)
    simulation.set_temperature(wave(350.0))
    np.testing.assert_allclose(simulation.temperature, wave(350.0), rtol=1e-12)
    simulation.advance(30.0)
    allowed = 1e-9 if method == "euler" else 5e-3
    np.testing.assert_allclose(simulation.temperature, begun.temperature, atol=allowed, rtol=0.0)


@pytest.mark.quick("euler")
@pytest.mark.parametrize("method", mostly_slow(METHODS, "euler", "stabilized"))
def test_the_balance_says_what_was_put_in(method: str, tmp_path: Path) -> None:
    simulation = Simulation.from_dict(settable(method), tmp_path / "out")
    simulation.set_temperature(330.0)  # before the run begins
    simulation.set(POWER_OF_HEATER, 30)
    simulation.advance(10.0)
    before = simulation.temperature
    simulation.set_temperature(wave(340.0))
    simulation.set_temperature(wave(350.0))
    simulation.advance(30.0)
    rows = list(csv.reader((tmp_path / "out/changes.csv").read_text().splitlines()))
    assert rows[0][1:] == ["sources.heater.power (W)", "initial.temperature (J)"]
    put_in = {float(row[0]): float(row[2]) for row in rows[1:] if float(row[2]) != 0.0}
    capacity = 7800.0 * 500.0 * 0.1 * 0.02 * 0.02 / 60  # J/K of a cell
    assert list(put_in) == [0.0, 10.0]
    assert put_in[0.0] == pytest.approx(60 * capacity * (330.0 - 293.15), rel=1e-12)
    assert put_in[10.0] == pytest.approx(capacity * (wave(350.0) - before).sum(), rel=1e-12)
    energy = heatsim.open(tmp_path / "out").energy
    assert energy["residual (J)"].abs().max() < 1e-6 * put_in[0.0]
    stored = capacity * (simulation.temperature - 293.15).sum() - sum(put_in.values())
    assert energy["stored (J)"].iloc[-1] == pytest.approx(stored, rel=1e-9)
    assert energy["stored (J)"].diff().abs().max() < 200.0


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", METHODS)
def test_a_set_field_survives_a_resume(method: str, tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        simulation = Simulation.from_dict(settable(method), tmp_path / name)
        simulation.advance(15.0)
        simulation.set_temperature(wave(400.0))
        simulation.set(POWER_OF_HEATER, 50.0)
        if name == "parts":
            simulation.close()
            simulation = Simulation.resume(tmp_path / name)
            assert simulation.state.put_in.keys() == {15.0}
        simulation.run()
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "whole")
    assert (tmp_path / "parts/changes.csv").read_text() == (tmp_path / "whole/changes.csv").read_text()


@pytest.mark.parametrize("method", mostly_slow(METHODS, "implicit"))
def test_void_and_latent_heat(method: str) -> None:
    """A material that melts, beside void whose temperature does not matter."""
    found = settable(
        method,
        material={"latent_heat": 5e4, "solidus": 320.0, "liquidus": 330.0},
        boundaries={"void": {"type": "convection", "coefficient": 20.0, "ambient": 290.0}},
    )
    found["regions"] = [{"name": "hole", "material": "void", "box": {"min": [0.04, 0, 0], "max": [0.06, 0.01, 0.02]}}]
    simulation = Simulation.from_dict(found, in_memory=True)
    simulation.advance(5.0)
    field = np.where(np.isnan(simulation.temperature), np.nan, wave(340.0))
    simulation.set_temperature(field)
    np.testing.assert_allclose(simulation.temperature, field, rtol=1e-9)
    simulation.run()
    assert np.nanmax(simulation.temperature) < 360.0
    assert np.isnan(simulation.temperature).sum() == np.isnan(field).sum() > 0


def test_what_cannot_be_set_is_refused() -> None:
    simulation = Simulation.from_dict(settable("stabilized"), in_memory=True)
    with pytest.raises(InputError, match=r"shape \(3,\); \(2, 3, 10\) is expected, or one number"):
        simulation.set_temperature([1.0, 2.0, 3.0])
    for value in (500.0, np.nan):
        field = wave(300.0)
        field[1, 2, 3] = value
        with pytest.raises(InputError, match=rf"got {value} K in cell \[3, 2, 1\]; .* is 273.15 to 473.15 K"):
            simulation.set_temperature(field)
    simulation.advance(2.0)
    with pytest.raises(InputError, match=r"the field may change at the multiples of 5.0 s .* is at 2.0 s"):
        simulation.set_temperature(300.0)
    none = Simulation.from_dict(document(), in_memory=True)
    with pytest.raises(InputError, match=r"the scenario does not allow it; write changes = { \"initial.temperature\""):
        none.set_temperature(300.0)
    for tables, message in (
        ({"changes": {FIELD: {**RESETS, "recorded": 300.0}}}, "a field cannot be repeated from a table"),
        ({"changes": {FIELD: {**RESETS, "range": [300, 300]}}}, "the second value must be the larger one"),
        ({"output": {"region_heat": True}}, "output.region_heat: .* a new field breaks"),
    ):
        with pytest.raises(ScenarioError, match=message):
            Simulation.from_dict({**settable(), **tables}, in_memory=True)
