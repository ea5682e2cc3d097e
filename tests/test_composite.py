"""Runs of composite bodies against exact answers, and their energy with everything on."""

import json
from itertools import product
from math import erf, fsum, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
import runs
from bodies import EVERYTHING, WALL
from covering import mostly_slow
from runs import after_step, interrupt, results, write

from heatsim.errors import Interrupted
from heatsim.grid import FACES
from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN
from heatsim.run.simulation import Simulation
from heatsim.storage import folder
from heatsim.storage.field_reader import FieldReader

pytestmark = pytest.mark.usefixtures("one_thread")

UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}


def simulate(at: Path, text: str, *overrides: str, name: str = "run") -> Simulation:
    simulation = Simulation.from_scenario(write(at, text), overrides, output=at / name)
    simulation.run()
    return simulation


def test_a_composite_wall_is_exact(tmp_path: Path) -> None:
    """Incropera §3.1: 0.4 m of copper and of iron, 600 K and 0 K held; in the steady state 500 K between them."""
    T = simulate(tmp_path, WALL).temperature[0, 0]
    x = (np.arange(16) + 0.5) * 0.05
    exact = np.where(x < 0.4, 600.0 - 100.0 * x / 0.4, 500.0 - 500.0 * (x - 0.4) / 0.4)
    np.testing.assert_allclose(T, exact, atol=1e-6)
    assert (401.0 * T[7] + 80.2 * T[8]) / (401.0 + 80.2) == pytest.approx(500.0, abs=1e-6)


def test_a_contact_has_the_jump_of_its_resistance(tmp_path: Path) -> None:
    """q = ΔT/(L/k + R + L/k), the jump q·R."""
    resistance = 2e-3
    contact = f'[[contacts]]\nbetween = ["iron", "copper"]\nresistance = {resistance}\n'
    T = simulate(tmp_path, WALL.replace("[initial]", contact + "[initial]"), "time.end=120000.0").temperature[0, 0]
    q = 600.0 / (0.4 / 401.0 + resistance + 0.4 / 80.2)
    x = (np.arange(16) + 0.5) * 0.05
    exact = np.where(x < 0.4, 600.0 - q * x / 401.0, q * (0.8 - x) / 80.2)
    np.testing.assert_allclose(T, exact, atol=1e-6)


def test_a_small_body_cools_by_radiation_as_its_ode_says(tmp_path: Path) -> None:
    """ρ·cp·L·dT/dt = −εσT⁴ of a thin plate that radiates into nothing: T = (T0⁻³ + 3εσt/(ρ·cp·L))^(−1/3)."""
    text = """
title = "Radiating plate"
domain = { size = [0.001, 1.0, 1.0], cells = [2, 1, 1] }
material = { conductivity = 10.0, density = 1000.0, specific_heat = 100.0 }
initial = { temperature = 1500.0 }
time = { end = 10.0 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, probe_every = 1.0 }
[boundaries]
x_min = { type = "radiation", emissivity = 0.7, ambient = 0.0 }
[[probes]]
name = "surface"
point = [0.0, 0.5, 0.5]
"""
    simulation = simulate(
        tmp_path, text.replace("dt = 1e-4", 'dt = "auto", safety = 0.9').replace("1000.0, density", "10.0, density")
    )
    exact = (1500.0**-3 + 3.0 * 0.7 * STEFAN_BOLTZMANN * 10.0 / (1000.0 * 100.0 * 0.001)) ** (-1.0 / 3.0)
    # The plate is nearly of one temperature: the drop across it is εσT⁴·L/2k, below 0.2 K at the end.
    assert simulation.temperature.mean() == pytest.approx(exact, rel=2e-3)
    surface = float((tmp_path / "run" / folder.PROBES).read_text().splitlines()[-1].split(",")[1])
    drop = 0.7 * STEFAN_BOLTZMANN * surface**4 * 0.25e-3 / 10.0
    assert surface == pytest.approx(simulation.temperature[0, 0, 0] - drop, rel=1e-9)


def test_a_beam_that_stays_heats_as_a_gaussian_on_a_half_space(tmp_path: Path) -> None:
    """Carslaw & Jaeger §10.5, as an integral over the time since the heat was set free."""
    k, alpha, radius, power, end = 20.0, 1e-5, 2e-3, 5.0, 0.2
    text = f"""
title = "Spot"
domain = {{ size = [0.016, 0.016, 0.008], cells = [32, 32, 16] }}
material = {{ conductivity = {k}, density = 4000.0, specific_heat = 500.0 }}
initial = {{ temperature = 300.0 }}
time = {{ end = {end} }}
solver = {{ device = "cpu", precision = "float64" }}
output = {{ figures = false }}
[[sources]]
beam = {{ face = "z_max", power = {power}, radius = {radius}, path = [[0.008, 0.008]] }}
[[probes]]
name = "spot"
point = [0.008, 0.008, 0.008]
"""
    simulate(tmp_path, text)
    found = float((tmp_path / "run" / folder.PROBES).read_text().splitlines()[-1].split(",")[1]) - 300.0
    # A Gaussian of variance σ² = R²/4 on the face widens by 2αt each way: ∫ 2P/(ρ·cp)·(4παt)^(-1/2)/(2π(σ²+2αt)) dt.
    times = (np.arange(200_000) + 0.5) / 200_000 * sqrt(end)
    kernel = (
        2.0 * power * alpha / k / np.sqrt(4.0 * pi * alpha) / (2.0 * pi * (radius**2 / 4.0 + 2.0 * alpha * times**2))
    )
    exact = float((2.0 * kernel).mean()) * sqrt(end)
    assert erf(0.008 / sqrt(4.0 * alpha * end)) > 0.999  # the box is as good as a half-space
    assert found == pytest.approx(exact, rel=0.02)


@pytest.mark.quick("numba-float32")
@pytest.mark.parametrize(
    ("kernel", "precision"),
    mostly_slow(product(("numpy", "numba"), ("float32", "float64")), ("numpy", "float64"), ("numba", "float32")),
)
def test_energy_closes_with_everything_on(tmp_path: Path, kernel: str, precision: str) -> None:
    simulation = simulate(tmp_path, EVERYTHING, f"solver.kernel={kernel}", f"solver.precision={precision}")
    row = runs.energy_rows(tmp_path / "run")[-1]
    assert list(row) == ["time", "stored", "sources", *FACES, "patch 1", "cold strip", "void", "residual"]
    faces = [row[name] for name in FACES]
    assert row["residual"] == pytest.approx(row["stored"] - row["sources"] - fsum(faces) - row["void"], abs=1e-9)
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert abs(row["residual"]) <= summary["energy_bound"]
    turned_over = fsum(map(abs, (row["stored"], row["sources"], row["void"], *faces)))
    if precision == "float64":
        assert summary["energy_bound"] < 1e-9 * turned_over
    # 0.1 s of 5 W; 1 MW/m³ of all that conducts times 1 + sin 30t; 20 W of a beam for the length of its path, of which
    # some falls beside the face: at its end the spot is 1.5 radii from y_max.
    counts = simulation.plan.problem.materials
    volume = float(counts.counts[counts.heat_capacity > 0.0].sum()) * counts.grid.cell_volume
    scale = 0.2 + (1.0 - np.cos(6.0)) / 30.0
    along = (np.arange(1000) + 0.5) / 1000.0
    spots = ((0.005 + 0.01 * along, 0.02), (0.01 + 0.002 * along, 0.015))
    on_face = [
        [(erf(2.0**0.5 * at / 2e-3) + erf(2.0**0.5 * (length - at) / 2e-3)) / 2.0 for at in centres.tolist()]
        for centres, length in spots
    ]
    beam = 20.0 * float(np.prod(on_face, axis=0).mean()) * np.hypot(0.01, 0.002) / 0.1
    expected = 0.5 + 1e6 * volume * scale + beam
    assert row["sources"] == pytest.approx(expected, rel=1e-6)
    assert row["patch 1"] == pytest.approx(2e4 * 25e-6 * 0.2, rel=1e-6)
    assert row["void"] != 0.0


def test_cpu_kernels_write_the_same_files(tmp_path: Path) -> None:
    for kernel in ("numpy", "numba"):
        simulate(tmp_path, EVERYTHING, f"solver.kernel={kernel}", name=kernel)
    for file in (folder.ENERGY, folder.PROBES):
        assert (tmp_path / "numpy" / file).read_text() == (tmp_path / "numba" / file).read_text()


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(tmp_path, EVERYTHING, "time.method=euler", name="whole")
    with monkeypatch.context() as patch:
        after_step(patch, 37, interrupt)
        path = write(tmp_path, EVERYTHING)
        broken = Simulation.from_scenario(path, ["time.method=euler"], output=tmp_path / "broken")
        with pytest.raises(Interrupted):
            broken.run()
    Simulation.resume(tmp_path / "broken").run()
    assert results(tmp_path / "broken") == results(tmp_path / "whole")


def test_heat_flux_vectors_stand_beside_the_temperature(tmp_path: Path) -> None:
    """In the steady state of the wall the same flux everywhere; VTK's own reader finds three components."""
    simulation = simulate(tmp_path, WALL, "output.heat_flux=true", "output.every=30000.0")
    q = 600.0 / (0.4 / 401.0 + 0.4 / 80.2)
    with FieldReader(tmp_path / "run" / folder.FIELDS) as reader:
        assert len(reader) == 3
        flux = reader.read_heat_flux(2)
    assert flux.shape == (1, 1, 16, 3)
    np.testing.assert_allclose(flux[0, 0, :, 0], q, rtol=1e-8)
    np.testing.assert_allclose(flux[..., 1:], 0.0, atol=1e-9)
    assert simulation.finished
    vtk = pytest.importorskip("vtkmodules.vtkIOHDF")
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(tmp_path / "run" / folder.FIELDS))
    reader.Update()
    vectors = reader.GetOutput().GetCellData().GetArray("heat_flux")
    assert vectors.GetNumberOfComponents() == 3
    assert vectors.GetNumberOfTuples() == 16


def test_a_run_ends_when_nothing_changes_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same bits when it was interrupted on the way; what is written ends there too."""
    settings = ("time.stop_below=1e-3", "time.method=euler", "output.probe_every=500.0", "output.every=20000.0")
    simulation = simulate(tmp_path, WALL.replace('"600 - 750*x"', "300.0"), *settings, name="whole")
    assert simulation.state.stopped
    assert 5000.0 < simulation.time < 60000.0
    rows = np.loadtxt(tmp_path / "whole" / folder.ENERGY, delimiter=",", skiprows=1)
    assert rows[-1, 0] == simulation.time
    with FieldReader(tmp_path / "whole" / folder.FIELDS) as reader:
        assert reader.times[-1] == simulation.time
    # Before the end some cell changed faster.
    plain = simulate(
        tmp_path, WALL.replace('"600 - 750*x"', "300.0"), f"time.end={simulation.time}", *settings[1:], name="plain"
    )
    np.testing.assert_array_equal(simulation.temperature, plain.temperature)
    with monkeypatch.context() as patch:
        after_step(patch, 137, interrupt)
        path = write(tmp_path, WALL.replace('"600 - 750*x"', "300.0"))
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, settings, output=tmp_path / "broken").run()
    resumed = Simulation.resume(tmp_path / "broken")
    resumed.run()
    assert results(tmp_path / "broken") == results(tmp_path / "whole")
    assert Simulation.resume(tmp_path / "broken").finished
