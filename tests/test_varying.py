"""Runs of materials that change with temperature: energy, extremes, what is written, resuming."""

import json
from itertools import product
from math import fsum
from pathlib import Path

import numpy as np
import pytest
import runs
from bodies import EVERYTHING
from covering import mostly_slow
from runs import after_step, interrupt, results, write

from heatsim.errors import Interrupted
from heatsim.grid import FACES
from heatsim.physics.estimates.initial import InitialField
from heatsim.run.simulation import Simulation
from heatsim.scenario import load
from heatsim.storage import folder
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.tables import read

pytestmark = pytest.mark.usefixtures("one_thread")


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


ALL_VARYING = changed(
    EVERYTHING,
    ("conductivity = 400.0", 'conductivity = "400 - 0.07*(T - 300)"\ntemperature_range = [200.0, 1200.0]'),
    ("specific_heat = 385.0", 'specific_heat = "385 + 0.1*(T - 300)"'),
    ("conductivity = 150.0", "conductivity = { temperatures = [250.0, 400.0], values = [190.0, 100.0] }"),
    ("density = 2500.0", "density = 2500.0\nlatent_heat = 1e5\nsolidus = 315.0\nliquidus = 318.0"),
)
SLAB = """
title = "Slab"
domain = { size = [0.1, 0.1, 0.1], cells = [16, 2, 1] }
initial = { temperature = "300 + 2000*x" }
time = { end = 0.05 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false }
[material]
conductivity = "10*(1 + 0.002*(T - 300))"
density = 10.0
specific_heat = "1 + 0.003*(T - 300)"
[boundaries]
x_min = { type = "temperature", value = 300.0 }
x_max = { type = "temperature", value = 500.0 }
[[probes]]
name = "surface"
point = [0.1, 0.05, 0.05]
[[probes]]
name = "middle"
point = [0.05, 0.05, 0.05]
"""


def simulate(at: Path, text: str, *overrides: str, name: str = "run") -> Simulation:
    simulation = Simulation.from_scenario(write(at, text), overrides, output=at / name)
    simulation.run()
    return simulation


@pytest.mark.parametrize(
    ("kernel", "precision"),
    mostly_slow(product(("numpy", "numba"), ("float32", "float64")), ("numpy", "float64"), ("numba", "float32")),
)
def test_energy_closes_with_everything_on(tmp_path: Path, kernel: str, precision: str) -> None:
    simulate(tmp_path, ALL_VARYING, f"solver.kernel={kernel}", f"solver.precision={precision}")
    row = runs.energy_rows(tmp_path / "run")[-1]
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())
    assert abs(row["residual"]) <= summary["energy_bound"]
    turned_over = fsum(abs(row[name]) for name in ("stored", "sources", "void", *FACES))
    assert summary["energy_bound"] < (1e-9 if precision == "float64" else 1e-2) * turned_over
    assert summary["scheme"] == "increments"


def test_cpu_kernels_write_the_same_files(tmp_path: Path) -> None:
    for kernel in ("numpy", "numba"):
        simulate(tmp_path, ALL_VARYING, f"solver.kernel={kernel}", "output.heat_flux=true", name=kernel)
    for file in (folder.ENERGY, folder.PROBES):
        assert (tmp_path / "numpy" / file).read_text() == (tmp_path / "numba" / file).read_text()


def test_float32_agrees_with_float64(tmp_path: Path) -> None:
    """Contents span some 60 K with the latent heat; a unit in the last place of that, summed over a thousand steps."""
    exact = simulate(tmp_path, ALL_VARYING, name="exact")
    found = simulate(tmp_path, ALL_VARYING, "solver.precision=float32", name="found")
    assert np.nanmax(np.abs(found.temperature - exact.temperature)) < 2e-3


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ALL_VARYING.replace("end = 0.2", "end = 0.2\nstop_below = 1e-3")
    simulate(tmp_path, text, name="whole")
    with monkeypatch.context() as patch:
        after_step(patch, 37, interrupt)
        broken = Simulation.from_scenario(write(tmp_path, text), output=tmp_path / "broken")
        with pytest.raises(Interrupted):
            broken.run()
    Simulation.resume(tmp_path / "broken").run()
    assert results(tmp_path / "broken") == results(tmp_path / "whole")


def test_what_is_written_are_temperatures(tmp_path: Path) -> None:
    simulation = simulate(tmp_path, ALL_VARYING, "output.every=0.1")
    T = simulation.temperature
    problem = simulation.plan.problem
    conducts = (problem.materials.cells & 127) != problem.materials.void
    with FieldReader(tmp_path / "run" / folder.FIELDS) as reader:
        start = np.concatenate([slab for _, slab in InitialField.from_scenario(load(tmp_path / "mixed.toml")).slabs()])
        np.testing.assert_allclose(reader.read(0), start, rtol=1e-12)
        np.testing.assert_array_equal(reader.read(len(reader) - 1)[conducts], T[conducts])
    assert np.isnan(T[~conducts]).all()
    summary = json.loads((tmp_path / "run" / folder.SUMMARY).read_text())["temperature"]
    assert (summary["min"], summary["max"]) == (T[conducts].min(), T[conducts].max())
    last = runs.probe_rows(tmp_path / "run")[-1]
    parts = problem.parts
    assert parts is not None
    die, lens = (parts.owner == 2) & conducts, (parts.owner == 3) & conducts
    assert last["hottest of the die"] == pytest.approx(T[die].max(), rel=1e-12)
    assert last["lens"] == pytest.approx(T[lens].mean(), rel=1e-12)


def test_the_potential_of_a_steady_slab_is_a_straight_line(tmp_path: Path) -> None:
    """Kirchhoff: the flux is 10·(200 + 0.001·200²)/0.1 W/m²; tables have a precision of 1e-6."""
    simulation = simulate(tmp_path, SLAB, "output.heat_flux=true")
    flux = 10.0 * (200.0 + 0.001 * 200.0**2) / 0.1
    with FieldReader(tmp_path / "run" / folder.FIELDS) as reader:
        vectors = reader.read_heat_flux(len(reader) - 1)
    np.testing.assert_allclose(vectors[..., 0], -flux, rtol=1e-5)
    np.testing.assert_allclose(vectors[..., 0], vectors[0, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(vectors[..., 1:], 0.0, atol=1e-9)
    u = simulation.temperature[0, 0] - 300.0
    np.testing.assert_allclose(np.diff(u + 0.001 * u**2), flux * 0.1 / 16 / 10.0, rtol=1e-5)
    columns, rows = read(tmp_path / "run" / folder.PROBES)
    assert columns == ["time (s)", "surface (K)", "middle (K)"]
    assert rows[-1][1] == pytest.approx(500.0, abs=1e-9)


def test_two_materials_that_change_agree_on_the_heat_between_them(tmp_path: Path) -> None:
    """Steady, with a contact: the same flux through both; exact where each half cell's k is that of its own centre."""
    text = changed(
        SLAB,
        ("cells = [16, 2, 1] }", 'cells = [16, 2, 1], material = "left" }'),
        ("[material]", "[materials.left]"),
        (
            "[boundaries]",
            """[materials.right]
conductivity = { temperatures = [300.0, 500.0], values = [40.0, 10.0] }
density = 5.0
specific_heat = 1.5
[[regions]]
name = "right"
material = "right"
box = { min = [0.05, 0.0, 0.0], max = [0.1, 0.1, 0.1] }
[[contacts]]
between = ["left", "right"]
resistance = 1e-3
[boundaries]""",
        ),
    )
    simulation = simulate(tmp_path, text, "output.heat_flux=true")
    with FieldReader(tmp_path / "run" / folder.FIELDS) as reader:
        vectors = reader.read_heat_flux(len(reader) - 1)[..., 0]
    np.testing.assert_allclose(vectors, vectors[0, 0, 0], rtol=1e-5)
    T = simulation.temperature[0, 0]
    k_left, k_right = 10.0 * (1.0 + 0.002 * (T[7] - 300.0)), 40.0 - 0.15 * (T[8] - 300.0)
    d = 0.1 / 16.0
    assert (T[8] - T[7]) / (d / 2.0 / k_left + 1e-3 + d / 2.0 / k_right) == pytest.approx(-vectors[0, 0, 0], rel=1e-4)


@pytest.mark.quick("0")
@pytest.mark.parametrize("seed", mostly_slow(range(4), 0, 1))
def test_no_new_extremes_at_the_limit(tmp_path: Path, seed: int) -> None:
    """A conductivity that jumps by a factor of ten, a heat capacity that falls, melting: at the largest dt allowed."""
    rng = np.random.default_rng(seed)
    np.save(tmp_path / "start.npy", rng.uniform(250.0, 450.0, (4, 5, 6)))
    text = """
title = "Limit"
domain = { size = [0.06, 0.05, 0.04], cells = [6, 5, 4], material = "changing" }
initial = { temperature = { file = "start.npy" } }
time = { end = 20.0, safety = 1.0 }
solver = { device = "cpu", precision = "float64", kernel = "numpy" }
output = { figures = false, probe_every = 0.25 }
[materials.changing]
conductivity = { temperatures = [300.0, 301.0, 400.0], values = [5.0, 50.0, 20.0] }
density = 1000.0
specific_heat = { temperatures = [300.0, 350.0, 351.0], values = [900.0, 1500.0, 300.0] }
latent_heat = 1e4
solidus = 380.0
liquidus = 381.0
[materials.constant]
conductivity = 30.0
density = 2000.0
specific_heat = 500.0
[[regions]]
name = "core"
material = "constant"
box = { min = [0.02, 0.01, 0.01], max = [0.05, 0.04, 0.03] }
[boundaries]
x_min = { type = "temperature", value = 260.0 }
y_max = { type = "convection", coefficient = 2000.0, ambient = 440.0 }
z_max = { type = "radiation", emissivity = 1.0, ambient = 445.0 }
[[probes]]
name = "hot"
region = "core"
statistic = "max"
"""
    simulation = simulate(tmp_path, text)
    T = simulation.temperature
    start = np.load(tmp_path / "start.npy")
    assert simulation.plan.problem.timeline.last_step > 50
    assert start.min() <= T.min() <= T.max() <= start.max()
    _, rows = read(tmp_path / "run" / folder.PROBES)
    assert max(row[1] for row in rows) <= start.max()
