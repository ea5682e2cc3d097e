"""Patches off the grid: their area, their power, and the cells that they share with other conditions."""

from math import fsum
from pathlib import Path

import numpy as np
import pytest
import runs
from covering import pairwise
from exact import convection, flux, held, scenario
from runs import after_step, interrupt, results, write

from heatsim import device
from heatsim.errors import Interrupted, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.run.simulation import Simulation
from heatsim.scenario import load
from heatsim.solver import device_bytes
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.storage import folder
from heatsim.storage.tables import read

RHO_CP = 2.4e6
PROBE = '[[probes]]\nname = "top"\npoint = [0.03, 0.025, 0.01]\n'


def patch(face: str, low: tuple[float, float], high: tuple[float, float], condition: str, name: str) -> str:
    rectangle = f"{{ min = {list(low)}, max = {list(high)} }}"
    keys = condition.strip("{} ").replace(", ", "\n")
    return f'[[patches]]\nname = "{name}"\nface = "{face}"\nrectangle = {rectangle}\n{keys}\n'


def plate(cells: tuple[int, int, int], *patches: str, boundaries: str = "", end: float = 2.0) -> str:
    size, material = (0.06, 0.05, 0.01), {"k": 200.0, "rho": 2400.0, "cp": 1000.0}
    return scenario(size, cells, initial=300.0, end=end, boundaries=boundaries, **material) + "".join(patches)  # type: ignore[arg-type]


def run(at: Path, text: str, *overrides: str, name: str = "run") -> tuple[Simulation, dict[str, float]]:
    simulation = Simulation.from_scenario(write(at, text), overrides, output=at / name)
    simulation.run()
    return simulation, runs.energy_rows(at / name)[-1]


@pytest.mark.parametrize(
    ("kernel", "cells", "face"),
    pairwise(("numpy", "numba"), [(1, 1, 1), (3, 2, 1), (7, 5, 2), (16, 13, 3)], FACES),
)
def test_a_patch_brings_its_power_at_any_resolution(
    tmp_path: Path, face: str, cells: tuple[int, int, int], kernel: str
) -> None:
    """5 W through a rectangle whose edges lie in cells, for two seconds."""
    low, high = (0.0021, 0.0007), (0.0093, 0.0088)
    area = (high[0] - low[0]) * (high[1] - low[1])
    text = plate(cells, patch(face, low, high, flux(5.0 / area), "heater"))
    simulation, row = run(tmp_path, text, f"solver.kernel={kernel}", "solver.device=cpu")
    assert row["heater"] == pytest.approx(10.0, rel=1e-11)
    assert row[face] == pytest.approx(10.0, rel=1e-11)
    assert simulation.temperature.mean() - 300.0 == pytest.approx(10.0 / (RHO_CP * 0.06 * 0.05 * 0.01), rel=1e-9)


@pytest.mark.parametrize("varying", [False, True])
def test_a_shared_cell_takes_the_sum_of_its_parts(tmp_path: Path, varying: bool) -> None:
    """One cell, three parts: 0.3 of its face with convection, 0.5 held, the rest with the flux of the face."""
    parts = (
        patch("z_max", (0.0, 0.0), (0.018, 0.05), convection(800.0, 350.0), "film"),
        patch("z_max", (0.03, 0.0), (0.06, 0.05), held(320.0), "held"),
    )
    text = plate((1, 1, 1), *parts, boundaries=f"z_max = {flux(1e4)}", end=1e-3)
    if varying:
        text = text.replace(
            "conductivity = 200.0", 'conductivity = "200 + T - 300", temperature_range = [200.0, 500.0]'
        )
    _, row = run(tmp_path, text)
    area, half = 0.06 * 0.05, 200.0 / 0.005
    known = (
        area * 0.3 * 50.0 / (1.0 / 800.0 + 1.0 / half) * 1e-3,
        area * 0.5 * half * (20.0 + varying * 0.5 * 20.0**2 / 200.0) * 1e-3,
    )
    # The cell warms by a thousandth of what drives heat meanwhile.
    assert (row["film"], row["held"]) == pytest.approx(known, rel=2e-2)
    assert row["z_max"] - row["film"] - row["held"] == pytest.approx(area * 0.2 * 1e4 * 1e-3, rel=1e-11)


def test_one_step_of_a_half_covered_cell_by_hand(tmp_path: Path) -> None:
    """The first of four cells is half covered by a film, the other half has the film of the face."""
    film = patch("z_max", (0.0, 0.0), (0.0075, 0.05), convection(1000.0, 400.0), "film")
    text = plate((4, 1, 1), film, boundaries=f"z_max = {convection(200.0, 320.0)}", end=0.01)
    simulation, row = run(tmp_path, text.replace(", safety = 0.9", ""), "time.dt=0.01")
    cell, half = 0.015 * 0.05, 200.0 / 0.005
    through = [1.0 / (1.0 / 1000.0 + 1.0 / half) * 100.0, 1.0 / (1.0 / 200.0 + 1.0 / half) * 20.0]
    gained = [cell * 0.01 * heat / (RHO_CP * cell * 0.01) for heat in (np.mean(through), through[1])]
    np.testing.assert_allclose(simulation.temperature[0, 0] - 300.0, [gained[0], *[gained[1]] * 3], rtol=1e-9)
    assert row["film"] == pytest.approx(0.5 * cell * through[0] * 0.01, rel=1e-11)
    assert row["z_max"] == pytest.approx(0.5 * cell * (through[0] + 7.0 * through[1]) * 0.01, rel=1e-11)


def test_patches_that_meet_within_a_cell_leave_nothing_to_the_face(tmp_path: Path) -> None:
    parts = (
        patch("y_min", (0.0, 0.0), (0.031, 0.01), flux(1e4), "left"),
        patch("y_min", (0.031, 0.0), (0.06, 0.01), flux(-3e3), "right"),
    )
    simulation, row = run(tmp_path, plate((7, 5, 2), *parts, boundaries=f"y_min = {held(500.0)}"))
    assert (row["left"], row["right"]) == pytest.approx((1e4 * 0.031 * 0.02, -3e3 * 0.029 * 0.02), rel=1e-11)
    assert row["y_min"] == pytest.approx(row["left"] + row["right"], rel=1e-11)
    numbers = {int(number) for number in simulation.plan.problem.boundary.on_face(2)}
    assert numbers == {6, 7}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_energy_closes_with_beams_on_shared_cells(tmp_path: Path, precision: str) -> None:
    spot = 'face = "z_max", power = 30.0, absorptivity = 0.5, radius = 0.01, path = [[0.02, 0.02]]'
    beam = f"[[sources]]\nbeam = {{ {spot} }}\n"
    parts = (
        patch("z_max", (0.0104, 0.0111), (0.0307, 0.0409), convection(500.0, 290.0), "film"),
        patch("z_max", (0.0307, 0.0), (0.047, 0.0333), held(310.0), "held"),
        patch("z_max", (0.05, 0.0), (0.0585, 0.05), '{ type = "radiation", emissivity = 0.9, ambient = 900.0 }', "hot"),
    )
    text = plate((13, 11, 3), *parts, beam, boundaries=f"z_max = {flux(2e3)}")
    simulation, row = run(tmp_path, text, f"solver.precision={precision}")
    turned_over = fsum(map(abs, row.values()))
    assert abs(row["residual"]) < (1e-12 if precision == "float64" else 1e-4) * turned_over
    scenario = simulation.plan.problem.scenario
    free = 0.06 * 0.05 - sum(each.area(scenario.grid) for each in scenario.patches)
    rest = row["z_max"] - row["film"] - row["held"] - row["hot"]
    assert rest == pytest.approx(2e3 * free * 2.0, rel=1e-10 if precision == "float64" else 1e-4)


def test_an_interrupted_run_keeps_the_heat_of_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plate((7, 5, 2), patch("x_max", (0.0011, 0.001), (0.037, 0.008), flux(4e3), "heater"), PROBE)
    run(tmp_path, text, name="whole")
    with monkeypatch.context() as interruption:
        after_step(interruption, 5, interrupt)
        broken = Simulation.from_scenario(write(tmp_path, text), output=tmp_path / "broken")
        with pytest.raises(Interrupted):
            broken.run()
    Simulation.resume(tmp_path / "broken").run()
    assert results(tmp_path / "broken") == results(tmp_path / "whole")


def test_plan_tells_every_patchs_area(tmp_path: Path) -> None:
    text = plate((7, 5, 2), patch("z_max", (0.0011, 0.0), (0.0317, 0.05), flux(4e3), "heater"))
    shown = describe(Plan.of(HeatProblem.from_scenario(load(write(tmp_path, text)))))
    assert "patch        heater: flux 4000 W/m²; 15.3 cm² on z_max, 15.3 cm² on the grid" in shown


def test_a_patch_too_narrow_for_a_held_temperature_is_refused(tmp_path: Path) -> None:
    narrow = patch("z_max", (0.001, 0.0), (0.004, 0.05), held(310.0), "strip")
    with pytest.raises(ScenarioError, match=r'"strip" has a fixed temperature and is narrower than half a cell'):
        load(write(tmp_path, plate((7, 5, 2), narrow)))
    load(write(tmp_path, plate((14, 5, 2), narrow)))


def test_shared_cells_bear_the_step_that_the_mean_of_their_conditions_allows(tmp_path: Path) -> None:
    """One cell, two thirds of one side with a strong film: dt = ρ·cp·d / (2/3·h_with_half_cell)."""
    film = patch("z_max", (0.0, 0.0), (0.04, 0.05), convection(1e4, 300.0), "film")
    limit = HeatProblem.from_scenario(load(write(tmp_path, plate((1, 1, 1), film)))).limit.dt
    assert limit == pytest.approx(RHO_CP * 0.01 * (1.0 / 1e4 + 0.005 / 200.0) / (2.0 / 3.0), rel=1e-12)


def test_a_probe_on_a_shared_cell_sees_the_condition_at_its_point(tmp_path: Path) -> None:
    """One cell; a probe half way to the surface too, and one where a film, not the face, lies beside the heater."""
    parts = patch("z_max", (0.0, 0.0), (0.035, 0.05), flux(4e4), "heater")
    film = patch("z_max", (0.04, 0.0), (0.06, 0.05), convection(1e4, 400.0), "film")
    points = [(0.03, 0.01), (0.038, 0.01), (0.05, 0.01), (0.03, 0.0075)]
    probes = "".join(f'[[probes]]\nname = "{x}-{z}"\npoint = [{x}, 0.025, {z}]\n' for x, z in points)
    _, row = run(tmp_path, plate((1, 1, 1), parts, film, probes), "time.end=1e-6")
    _, rows = read(tmp_path / "run" / folder.PROBES)
    heated, half = 4e4 * 0.005 / 200.0, 0.005 / 200.0
    expected = [300.0 + heated, 300.0, 300.0 + 100.0 * half / (half + 1e-4), 300.0 + heated / 2.0]
    assert rows[0][1:] == pytest.approx(expected, rel=1e-12)
    assert row["heater"] == pytest.approx(4e4 * 0.035 * 0.05 * 1e-6, rel=1e-11)


def test_the_ledger_counts_the_memory_of_parts(tmp_path: Path) -> None:
    text = plate((7, 5, 2), patch("z_max", (0.0011, 0.0011), (0.0317, 0.0317), flux(4e3), "heater"))
    derived = HeatProblem.from_scenario(load(write(tmp_path, text)))
    cpu = device.choose("cpu")
    Field(cpu, derived.grid, "float64", 300.0)
    ledger = Ledger(cpu, derived, True)
    heats = ledger.sums.heats
    exchanging = sum(sums.nbytes for sums in (*heats.faces, heats.parts))
    assert exchanging <= ledger.nbytes == device_bytes.of_run(derived).ledger <= exchanging + 8 * 9 * 32
    assert len(heats.parts) == 2 * len(derived.boundary.mixed.places)
