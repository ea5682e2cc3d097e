"""float32 at its best: how near it stays to float64 in long runs.

Temperatures range over 100 K. The bound is the one that the program promises.
"""

import tomllib
from functools import cache

import numpy as np
import pytest
from exact import held, scenario
from numpy.typing import NDArray

from heatsim import device
from heatsim.kernels import catalog
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.precision_choice import PART, choose_precision
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.make_stepper import make_stepper

pytestmark = pytest.mark.usefixtures("one_thread")

PROMISED = 2e-2  # K


def heated(cells: tuple[int, int, int], size: tuple[float, float, float], steps: int, fraction: float = 0.9) -> str:
    """A body at 300 K, one face suddenly held at 400 K, for so many steps of a fraction of the limit."""
    rx, ry, rz = ((n / length) ** 2 if n > 1 else 0.0 for n, length in zip(cells, size, strict=True))
    dt = fraction / (3.0 * rx + 2.0 * ry + 2.0 * rz)
    return scenario(size, cells, initial=300.0, end=steps * dt, dt=dt, boundaries=f"x_min = {held(400.0)}")


@cache
def run(text: str, precision: str) -> tuple[HeatProblem, NDArray[np.float64]]:
    """The problem, and the temperatures in K at the end, by the CPU's fast kernel."""
    solver = f'solver = {{ device = "cpu", precision = "{precision}" }}'
    document = tomllib.loads(text.replace('solver = { precision = "float64" }', solver))
    problem = HeatProblem.from_scenario(parse(document, "case.toml"))
    cpu = device.choose("cpu")
    start = InitialField.from_scenario(problem.scenario)
    field = Field(cpu, problem.grid, precision, start.reference)
    field.load_temperatures(start.slabs())
    ledger = Ledger(cpu, problem, enabled=False)
    make_stepper(problem, field, ledger, catalog.choose("auto", "cpu")).advance(problem.timeline.last_step)
    return problem, field.temperature()


CUBE = heated((32, 32, 32), (1.0, 1.0, 1.0), 20_000)
LONG_RUNS = {
    "32³ cells, 20,000 steps": CUBE,
    "256 cells, 100,000 steps": heated((256, 1, 1), (1.0, 1.0, 1.0), 100_000),
    "1,024 cells, 100,000 steps": heated((1024, 1, 1), (1.0, 1.0, 1.0), 100_000),
}
# Heat flows along the long side of the cells.
FLAT_CELLS = {
    "cells 20:1": heated((16, 24, 1), (16.0, 1.2, 1.0), 20_000),
    "cells 100:1": heated((8, 24, 1), (8.0, 0.24, 1.0), 40_000),
    "cells 100:1 along z": heated((8, 1, 24), (800.0, 1.0, 24.0), 40_000),
}


def largest_difference(text: str) -> float:
    """Between float32 and float64, in K."""
    _, exact = run(text, "float64")
    _, rounded = run(text, "float32")
    assert exact.max() - 300.0 > 50.0, "nothing has happened"
    return float(np.abs(rounded - exact).max())


@pytest.mark.quick("1,024 cells, 100,000 steps", "256 cells, 100,000 steps")
@pytest.mark.parametrize("case", LONG_RUNS)
def test_long_runs_stay_near_float64(case: str) -> None:
    assert largest_difference(LONG_RUNS[case]) <= PROMISED


@pytest.mark.parametrize("case", FLAT_CELLS)
def test_flat_cells_keep_their_diffusivity(case: str) -> None:
    """Rounded to 2⁻²⁵ the small coefficient would be off by up to 1e-3; increments are summed instead."""
    text = FLAT_CELLS[case]
    problem, _ = run(text, "float32")
    assert problem.scheme == "increments"
    assert largest_difference(text) <= PROMISED


def test_a_time_step_far_below_the_limit_keeps_the_diffusivity() -> None:
    """The coefficient, 3.3e-5, would be rounded by 4e-4 of itself, and the field be off by 1e-2 K."""
    text = heated((64, 1, 1), (1.0, 1.0, 1.0), 50_000, 1e-4)
    problem, _ = run(text, "float32")
    assert problem.scheme == "increments"
    assert largest_difference(text) <= PROMISED


def test_the_estimate_bounds_the_rounding_of_a_body_that_changes_slowly() -> None:
    """A small body that cools and is heated: each step changes it by a few units in the last place.

    Conduction cannot level what rounding adds, so it is more than slabs lose.
    """
    room = 'z_max = { type = "convection", coefficient = 20.0, ambient = 290.0, emissivity = 0.8 }'
    body: dict[str, float] = {"k": 30.0, "rho": 3500.0, "cp": 1000.0, "safety": 0.01}
    text = scenario((0.01, 0.01, 0.01), (1, 1, 1), initial=1200.0, end=2000.0, boundaries=room, **body)
    text += "[[sources]]\npower_density = 5e4\n"
    problem, exact = run(text, "float64")
    lost = float(np.abs(run(text, "float32")[1] - exact).max())
    chosen = choose_precision(problem, "euler")
    assert chosen.precision == "float64"
    assert PART * chosen.error < lost <= chosen.rounding
