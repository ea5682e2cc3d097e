"""The energy balance: every row of energy.csv closes, and the heats are the right ones.

How large a residual may be: tests/test_energy_bound.py.
"""

import json
from math import fsum, pi
from pathlib import Path

import bodies
import h5py
import numpy as np
import pytest
import runs
from conftest import Simulate
from covering import pairwise
from exact import INSULATED, PERIODIC, convection, flux, held, scenario
from numpy.typing import NDArray

from heatsim.errors import Interrupted, RunError
from heatsim.grid import FACES
from heatsim.run.simulation import Simulation
from heatsim.storage import folder, tables

pytestmark = pytest.mark.usefixtures("one_thread")

UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
K, RHO, CP = (30.0, 20.0, 10.0), 2000.0, 500.0
SIZE = (0.1, 0.08, 0.06)
COLUMNS = ["time", "stored", "sources", *FACES, "residual"]
RAMP = "{ times = [0.0, 3.0, 7.0], values = [300.0, 420.0, 350.0] }"

FACES_OF = {
    "all different": f"x_min = {held(380.0)}\nx_max = {flux(3000.0)}\ny_min = {convection(120.0, 290.0)}\n"
    f"y_max = {INSULATED}\nz_min = {convection(800.0, 410.0)}\nz_max = {flux(-2000.0)}",
    "in time": f'x_min = {{ type = "temperature", value = {RAMP} }}\nx_max = {flux("4000*sin(2*pi*t/5)")}\n'
    f"y_min = {convection('50 + 40*cos(t)', '300 + 5*t')}\ny_max = {held(310.0)}\nz_max = {flux('1000*exp(-t)')}",
    "periodic": f"x_min = {PERIODIC}\nx_max = {PERIODIC}\nz_min = {PERIODIC}\nz_max = {PERIODIC}\n"
    f"y_min = {held(330.0)}\ny_max = {convection(200.0, 300.0)}",
    "closed": f"x_min = {PERIODIC}\nx_max = {PERIODIC}",
    "strong": f"default = {convection(1e7, 500.0)}",
    "weak": f"default = {convection(1e-3, 500.0)}",
}
CELLS = {"box": (12, 9, 7), "plate": (12, 9, 1), "bar": (1, 1, 15), "cell": (1, 1, 1)}
START = "300 + 60*sin(40*x)*cos(50*y) + 200*z"


def case(faces: str, cells: tuple[int, int, int], end: float = 10.0) -> str:
    text = scenario(
        SIZE, cells, initial=START, end=end, boundaries=faces, k=K, rho=RHO, cp=CP, every=end / 8.0, safety=0.8
    )
    # Fields at the times of the rows, from which the bound is worked out.
    return text.replace("probe_every", f"every = {end / 8.0!r}, probe_every")


def rows_of(simulation: Simulation) -> list[dict[str, float]]:
    rows = runs.energy_rows(simulation.folder)
    assert list(rows[0]) == COLUMNS
    return rows


def fields_of(simulation: Simulation) -> NDArray[np.float64]:
    with h5py.File(simulation.folder / folder.FIELDS, "r") as file:
        return np.asarray(file["VTKHDF/CellData/temperature"], np.float64)


@pytest.mark.each_pair
@pytest.mark.parametrize(
    ("faces", "cells", "precision"),
    pairwise(FACES_OF, CELLS, ("float64", "float32")),
)
def test_every_row_closes(faces: str, cells: str, precision: str, simulate: Simulate) -> None:
    simulation = simulate(case(FACES_OF[faces], CELLS[cells]), f"solver.precision={precision}")
    problem = simulation.plan.problem
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text(encoding="utf-8"))
    capacity = RHO * CP * float(np.prod(SIZE)) / problem.grid.cell_count
    rows, fields = rows_of(simulation), fields_of(simulation)
    assert len(rows) == len(fields) == 9
    for row, T in zip(rows, fields, strict=True):
        heats = [row[face] for face in FACES]
        assert row["sources"] == 0.0
        assert row["residual"] == pytest.approx(row["stored"] - fsum(heats), abs=1e-15 * fsum(map(abs, heats)))
        assert abs(row["residual"]) <= summary["energy_bound"], f"t = {row['time']}"
        # What is stored is what the field says, as exactly as the file holds its temperatures.
        gained = capacity * (T - fields[0]).sum()
        resolution = 2.0 * UNIT_ROUNDOFF[precision] * 700.0 * capacity * T.size
        assert row["stored"] == pytest.approx(gained, abs=resolution + 1e-11 * abs(gained))
    assert rows[0] == {**dict.fromkeys(COLUMNS, 0.0)}
    for index, face in enumerate(FACES):
        assert all(row[face] == 0.0 for row in rows) is not problem.boundary.exchanging(index)


def test_a_body_that_has_warmed_and_cooled_again_was_rounded_when_it_was_warm(
    simulate: Simulate, tmp_path: Path
) -> None:
    """Held at 500 K for 5 s, then at the 300 K of the start until next to nothing of the heat is left."""
    faces = 'default = { type = "temperature", value = "where(t < 5, 500, 300)" }'
    text = scenario(
        SIZE,
        (8, 6, 5),
        initial=300.0,
        end=300.0,
        boundaries=faces,
        k=[10.0 * k for k in K],
        rho=RHO,
        cp=CP,
        every=2.5,
        probes=[(0.05, 0.04, 0.03)],
    )
    settings = ("solver.precision=float32",)
    simulation = simulate(text, *settings)
    capacity = RHO * CP * float(np.prod(SIZE))
    left = np.abs(simulation.temperature - 300.0).mean() * capacity
    rows = rows_of(simulation)
    warmest = max(row["stored"] for row in rows)
    assert left < 1e-3 * warmest
    assert warmest > 50.0 * capacity
    residual = abs(rows[-1]["residual"])
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text(encoding="utf-8"))
    roundings = 30.0 * simulation.step * UNIT_ROUNDOFF["float32"]
    assert roundings * left < residual <= summary["energy_bound"] < roundings * warmest

    # Interrupted while it cools, the run knows how warm it was.
    parts = tmp_path / "parts"
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, simulation.step // 2, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(simulation.folder / folder.SCENARIO, output=parts).run()
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(simulation.folder)


def test_what_flows_through_for_long_closes_as_well(simulate: Simulate) -> None:
    """A rod, hot at one end, cooled along a side and at the other end; thousands of times its heat flows through it.

    Added up step after step in one sum for each cell, the heats were wrong by twice the bound.
    """
    text = scenario(
        (8.0, 1.0, 1.0),
        (8, 1, 1),
        initial=300.0,
        end=60000.0,
        boundaries=f"x_min = {held(400.0)}\ny_min = {convection(0.05, 300.0)}\nx_max = {convection(0.3, 300.0)}",
        k=[1.0, 1.0, 1.0],
        rho=1.0,
        cp=1.0,
        every=20000.0,
        dt=0.2,
    )
    simulation = simulate(text, "solver.precision=float64", "solver.device=cpu")
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text(encoding="utf-8"))
    assert summary["steps"] == 300_000
    assert summary["energy"]["x_min"] > 1000.0 * summary["energy"]["stored"]
    assert abs(summary["energy"]["residual"]) <= 0.5 * summary["energy_bound"]


@pytest.mark.parametrize("text", [runs.TEXT, bodies.EVERYTHING])
def test_heat_is_carried_over_without_loss_and_wherever_the_run_was_interrupted(
    text: str, simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = simulate(text, "solver.device=cpu")
    columns, expected = tables.read(at_once.folder / folder.ENERGY)
    monkeypatch.setattr("heatsim.solver.euler.stepper.STEPS_TO_CARRY", 5)
    carried = simulate(text, "solver.device=cpu")
    assert carried.step > 10
    _, rows = tables.read(carried.folder / folder.ENERGY)
    total = np.abs(expected[1:, 1:]).max()
    assert "residual (J)" in columns
    np.testing.assert_allclose(rows, expected, rtol=0.0, atol=1e-13 * total)

    parts = tmp_path / "parts"
    with pytest.MonkeyPatch.context() as inner:
        runs.after_step(inner, carried.step // 2 + 1, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(carried.folder / folder.SCENARIO, output=parts).run()
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(carried.folder)


def test_two_runs_give_the_same_digits(simulate: Simulate) -> None:
    text = case(FACES_OF["in time"], CELLS["box"])
    settings = ("solver.precision=float32", "solver.device=cpu")
    first, second, oracle = (simulate(text, *settings, f"solver.kernel={name}") for name in ("numba", "numba", "numpy"))
    expected = (first.folder / folder.ENERGY).read_bytes()
    assert expected.count(b"\n") == 10
    assert (second.folder / folder.ENERGY).read_bytes() == expected
    assert (oracle.folder / folder.ENERGY).read_bytes() == expected


def test_a_batch_of_steps_is_no_part_of_the_result(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    text = case(FACES_OF["in time"], CELLS["box"])
    expected = (simulate(text).folder / folder.ENERGY).read_bytes()
    monkeypatch.setattr("heatsim.run.batch_size.BATCH_SECONDS", 1e-9)
    assert (simulate(text).folder / folder.ENERGY).read_bytes() == expected


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("face", FACES)
def test_a_constant_flux_brings_its_flux_times_area_times_time(face: str, precision: str, simulate: Simulate) -> None:
    """In float32 the flux is rounded, and the coefficient it is multiplied with to a multiple of 2⁻²⁵."""
    q = 2500.0
    simulation = simulate(case(f"{face} = {flux(q)}", CELLS["box"]), f"solver.precision={precision}")
    axis = FACES.index(face) // 2
    area = float(np.prod(SIZE)) / SIZE[axis]
    smallest = min(coefficients.exchange[axis] for coefficients in simulation.plan.problem.coefficients.values())
    accuracy = {"float64": 1e-12, "float32": 2.0**-24 + 2.0**-26 / smallest}[precision]
    for row in rows_of(simulation):
        assert row[face] == pytest.approx(q * area * row["time"], rel=accuracy)
        assert all(row[other] == 0.0 for other in FACES if other != face)


def test_an_oscillating_flux_brings_its_integral_over_whole_periods(simulate: Simulate) -> None:
    """Values at the starts of equal steps sum a sine over a period to nothing, exactly."""
    q = "1000 + 5000*sin(2*pi*t/2.5) - 700*cos(4*pi*t/2.5)"
    text = scenario(
        SIZE,
        (6, 5, 4),
        initial=300.0,
        end=10.0,
        dt=0.125,
        every=2.5,
        k=K,
        rho=RHO,
        cp=CP,
        boundaries=f"y_min = {flux(q)}",
    )
    for row in rows_of(simulate(text)):
        assert row["y_min"] == pytest.approx(1000.0 * SIZE[0] * SIZE[2] * row["time"], rel=1e-12, abs=1e-12)


def test_a_flux_in_time_counts_with_its_mean_over_each_step(simulate: Simulate) -> None:
    """The integral of a parabola is exact; the value at the start of each step would miss 4 % of it."""
    dt, steps = 0.125, 16
    text = scenario(
        (1.0, 1.0, 1.0),
        (4, 1, 1),
        initial=300.0,
        end=dt * steps,
        dt=dt,
        rho=1000.0,
        boundaries=f"x_min = {flux('10 + 3*t^2')}",
    )
    end = dt * steps
    (_, last) = rows_of(simulate(text))
    assert last["x_min"] == pytest.approx(10.0 * end + end**3, rel=1e-14)


TRAIN = '"where(t % 0.7 < 0.2, 1, 0)"'
TABLE = "{ times = [0.0, 0.2, 0.2, 0.7], values = [1.0, 1.0, 0.0, 0.0], repeat = true }"


@pytest.mark.parametrize("steps", [30, 210])
@pytest.mark.parametrize("pulses", [TRAIN, TABLE], ids=["expression", "table"])
def test_pulses_bring_their_energy_whatever_the_step(pulses: str, steps: int, simulate: Simulate) -> None:
    """20 s on of 70 s: a flux, a source and a beam, in steps of 2.3 s and of 0.33 s."""
    face = (
        '{ type = "flux", value = ' + pulses.replace("1, 0)", "100, 0)").replace("[1.0, 1.0,", "[100.0, 100.0,") + " }"
    )
    text = scenario(
        (0.1, 0.1, 0.1),
        (4, 4, 4),
        initial=300.0,
        end=70.0,
        dt=70.0 / steps,
        rho=1e4,
        cp=1e3,
        k=100.0,
        boundaries=f"x_min = {face}",
    )
    (_, plain) = rows_of(simulate(text))
    assert plain["x_min"] == pytest.approx(100.0 * 0.01 * 20.0, rel=1e-10)
    text += f"[[sources]]\npower = 3.0\nscale = {pulses}\n[[sources]]\nscale = {pulses}\n"
    text += '[sources.beam]\nface = "z_max"\npower = 4.0\nradius = 0.005\npath = [[0.05, 0.05]]\n'
    (_, last) = rows_of(simulate(text))
    assert last["x_min"] == pytest.approx(100.0 * 0.01 * 20.0, rel=1e-10)
    assert last["sources"] == pytest.approx(7.0 * 20.0, rel=1e-10)


def test_a_lumped_body_takes_what_its_temperature_says(simulate: Simulate) -> None:
    """One cell with convection on two faces: ρ·cp·V·(T − T0), half of it through each."""
    h = 500.0
    faces = f"z_min = {convection(h, 350.0)}\nz_max = {convection(h, 350.0)}"
    text = scenario(SIZE, (1, 1, 1), initial=300.0, end=4000.0, boundaries=faces, k=K, rho=RHO, cp=CP, every=50.0)
    simulation = simulate(text, "output.every=50.0")
    heat_capacity = RHO * CP * float(np.prod(SIZE))
    for row, T in zip(rows_of(simulation), fields_of(simulation)[:, 0, 0, 0], strict=True):
        assert row["z_min"] == row["z_max"]
        assert row["z_min"] + row["z_max"] == pytest.approx(heat_capacity * (T - 300.0), rel=1e-10, abs=1e-9)
    assert row["stored"] == pytest.approx(heat_capacity * 50.0, rel=1e-9)


def test_heat_through_a_steady_wall_is_the_same_on_both_sides(simulate: Simulate) -> None:
    """k·A·ΔT/L, once the wall has warmed up."""
    faces = f"x_min = {held(400.0)}\nx_max = {held(300.0)}"
    text = scenario(
        (0.2, 0.5, 0.5),
        (8, 1, 1),
        initial="400 - 500*x",
        end=100.0,
        every=50.0,
        k=2.0,
        rho=100.0,
        cp=100.0,
        boundaries=faces,
    )
    for row in rows_of(simulate(text)):
        flow = 2.0 * 0.25 * 100.0 / 0.2
        assert row["x_min"] == pytest.approx(flow * row["time"], rel=1e-12)
        assert row["x_max"] == pytest.approx(-flow * row["time"], rel=1e-12)


def test_a_closed_box_keeps_its_heat_while_it_levels_out(simulate: Simulate) -> None:
    """A cosine that loses 95 % of its height; nothing may come or go but rounding of what was there."""
    text = scenario((1.0, 1.0, 1.0), (32, 32, 8), initial=f"300 + 50*cos({pi!r}*x)*cos({pi!r}*y)", end=0.15, every=0.05)
    for precision in ("float64", "float32"):
        simulation = simulate(text, f"solver.precision={precision}")
        steps = simulation.step
        for row in rows_of(simulation):
            assert abs(row["stored"]) <= steps * UNIT_ROUNDOFF[precision] * 50.0
            assert row["stored"] == row["residual"]


@pytest.mark.parametrize("extra", ["", "[[sources]]\npower = 0.0\n"])
def test_more_heat_taken_out_than_there_is_is_told(extra: str, simulate: Simulate) -> None:
    """From 300 K, 1 kJ/K robbed of 600 kJ."""
    faces = "x_min = " + flux(-1000.0)
    text = scenario((1.0, 1.0, 1.0), (2, 1, 1), initial=300.0, end=600.0, boundaries=faces, k=1e3, rho=1.0, cp=1000.0)
    with pytest.raises(RunError, match="falls below 0 K: -30"):
        simulate(text + extra)
    assert not simulate(text.replace("end = 600.0", "end = 200.0") + extra).warnings
