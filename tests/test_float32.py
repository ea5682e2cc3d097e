"""float32 at its best: how near it stays to float64 in long runs, and what its deterministic rounding is worth.

Temperatures range over 100 K. The bounds are those the program promises: 1e-4 K with stochastic rounding, 2e-2 K with
rounding to nearest.
"""

import tomllib
from functools import cache
from itertools import product

import numpy as np
import pytest
from exact import held, scenario
from numpy.typing import NDArray

from heatsim import device
from heatsim.kernels import catalog
from heatsim.kernels.cpu.oracle import advance_numpy
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.problem import HeatProblem
from heatsim.report.facts import most_rounding
from heatsim.scenario import parse
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.make_stepper import make_stepper

pytestmark = pytest.mark.usefixtures("one_thread")

PROMISED = {"stochastic": 1e-4, "nearest": 2e-2}


def heated(cells: tuple[int, int, int], size: tuple[float, float, float], steps: int, fraction: float = 0.9) -> str:
    """A body at 300 K, one face suddenly held at 400 K, for so many steps of a fraction of the limit."""
    rx, ry, rz = ((n / length) ** 2 if n > 1 else 0.0 for n, length in zip(cells, size, strict=True))
    dt = fraction / (3.0 * rx + 2.0 * ry + 2.0 * rz)
    return scenario(size, cells, initial=300.0, end=steps * dt, dt=dt, boundaries=f"x_min = {held(400.0)}")


@cache
def run(text: str, precision: str, rounding: str = "nearest") -> tuple[HeatProblem, NDArray[np.float64]]:
    """The problem, and the temperatures in K at the end, by the CPU's fast kernel."""
    solver = f'solver = {{ device = "cpu", precision = "{precision}", rounding = "{rounding}" }}'
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


def largest_difference(text: str, rounding: str) -> float:
    """Between float32 and float64, in K."""
    _, exact = run(text, "float64")
    _, rounded = run(text, "float32", rounding)
    assert exact.max() - 300.0 > 50.0, "nothing has happened"
    return float(np.abs(rounded - exact).max())


@pytest.mark.parametrize("rounding", ["stochastic", "nearest"])
@pytest.mark.parametrize("case", LONG_RUNS)
def test_long_runs_stay_near_float64(case: str, rounding: str) -> None:
    assert largest_difference(LONG_RUNS[case], rounding) <= PROMISED[rounding]


@pytest.mark.parametrize("rounding", ["stochastic", "nearest"])
@pytest.mark.parametrize("case", FLAT_CELLS)
def test_flat_cells_keep_their_diffusivity(case: str, rounding: str) -> None:
    """Rounded to 2⁻²⁵ the small coefficient would be off by up to 1e-3; increments are summed instead."""
    text = FLAT_CELLS[case]
    problem, _ = run(text, "float32", rounding)
    assert problem.scheme == ("increments" if rounding == "nearest" else "stochastic")
    assert largest_difference(text, rounding) <= PROMISED[rounding]


@pytest.mark.parametrize("rounding", ["stochastic", "nearest"])
def test_a_time_step_far_below_the_limit_keeps_the_diffusivity(rounding: str) -> None:
    """The coefficient, 3.3e-5, would be rounded by 4e-4 of itself, and the field be off by 1e-2 K.

    Stochastic rounding makes a noise here that conduction has little time to level out: a step adds a variance of
    u²/6, u a unit in the last place of 100 K, of which 1/√(8πcj) is left in a cell after j steps more.
    """
    steps, fraction = 50_000, 1e-4
    text = heated((64, 1, 1), (1.0, 1.0, 1.0), steps, fraction)
    problem, _ = run(text, "float32", rounding)
    assert problem.scheme == ("increments" if rounding == "nearest" else "stochastic")
    c = fraction / 3.0
    noise = np.spacing(np.float32(100.0)) / np.sqrt(6.0) * np.sqrt(2.0 * np.sqrt(steps / (8.0 * np.pi * c)))
    assert largest_difference(text, rounding) <= 5.0 * noise < 2e-3


def test_what_a_plan_states_bounds_the_rounding_of_a_body_that_changes_slowly() -> None:
    """A small body that cools and is heated: each step changes it by a few units in the last place.

    Conduction cannot level what rounding adds, so it is more than slabs lose.
    """
    room = 'z_max = { type = "convection", coefficient = 20.0, ambient = 290.0, emissivity = 0.8 }'
    body: dict[str, float] = {"k": 30.0, "rho": 3500.0, "cp": 1000.0, "safety": 0.01}
    text = scenario((0.01, 0.01, 0.01), (1, 1, 1), initial=1200.0, end=2000.0, boundaries=room, **body)
    text += "[[sources]]\npower_density = 5e4\n"
    problem, exact = run(text, "float64")
    lost = float(np.abs(run(text, "float32")[1] - exact).max()) * 100.0 / (1200.0 - 290.0)  # per 100 K
    assert PROMISED["nearest"] < lost <= most_rounding(problem.timeline.last_step)


def test_the_same_run_gives_the_same_bits() -> None:
    text = heated((16, 16, 16), (1.0, 1.0, 1.0), 500)
    _, first = run(text, "float32", "stochastic")
    run.cache_clear()
    _, second = run(text, "float32", "stochastic")
    assert first.tobytes() == second.tobytes()


# The dither, seen from outside: every cell is given a fraction of a unit in the last place and takes it or not.


def taken(fraction: float, step: int, cells: tuple[int, int, int]) -> NDArray[np.float64]:
    """1 where the rounding went up, 0 where it went down; one axis of ``cells`` has one cell."""
    nx, ny, nz = cells
    T = np.full((nz, ny, nx), 1.5, np.float32)
    T_new = np.empty_like(T)
    unit = np.spacing(np.float32(1.5))
    f = np.zeros(6, np.float32)
    f[2 * cells.index(1)] = fraction * float(unit)
    zeros = np.zeros(7, np.float32)
    ledger = [np.empty((0, 0))] * 6
    advance_numpy(T, T_new, (False,) * 3, zeros, f, zeros[:6], step, ledger, "stochastic")
    up = (T_new.astype(np.float64) - 1.5) / float(unit)
    assert set(np.unique(up)) <= {0.0, 1.0}
    return up.squeeze()


@pytest.mark.parametrize("cells", [(256, 256, 1), (256, 1, 256), (1, 256, 256)])
@pytest.mark.parametrize("fraction", [0.01, 0.125, 0.3, 0.5, 0.77, 0.99])
def test_a_fraction_of_a_unit_is_taken_by_that_fraction_of_the_cells(
    fraction: float, cells: tuple[int, int, int]
) -> None:
    for step in (0, 1, 12_345, 2**31 + 7, 2**40):
        up = taken(fraction, step, cells)
        assert abs(up.mean() - fraction) < 5.0 * np.sqrt(fraction * (1.0 - fraction) / up.size)


def test_over_many_steps_no_cell_is_favoured() -> None:
    steps = 4000
    mean = sum(taken(0.5, step, (24, 24, 1)) for step in range(steps)) / steps
    # 576 cells: five standard deviations leave one chance in 3,000
    assert np.abs(mean - 0.5).max() < 5.0 * np.sqrt(0.25 / steps)
    # and their spread is that of chance: neither more regular nor less
    assert np.std(mean) * np.sqrt(steps / 0.25) == pytest.approx(1.0, abs=5.0 / np.sqrt(2.0 * mean.size))


def correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """In standard deviations of what independent cells would give; values are 0 or 1 with equal chance."""
    return float(((2.0 * a - 1.0) * (2.0 * b - 1.0)).mean() * np.sqrt(a.size))


@pytest.mark.parametrize("cells", [(512, 512, 1), (512, 1, 512), (1, 512, 512)])
def test_neighbours_are_rounded_independently(cells: tuple[int, int, int]) -> None:
    up = taken(0.5, 77, cells)
    for i, j in product(range(5), range(-4, 5)):
        if (i, j) > (0, 0):
            height, width = up.shape
            first = up[: height - i, max(0, -j) : width - max(0, j)]
            second = up[i:, max(0, j) : width + min(0, j)]
            assert abs(correlation(first, second)) < 5.0, f"cells {i}, {j} apart"


def test_steps_are_rounded_independently() -> None:
    steps = [taken(0.5, step, (256, 256, 1)) for step in range(1000, 1017)]
    for lag in range(1, 17):
        assert abs(correlation(steps[0], steps[lag])) < 5.0, f"{lag} steps apart"
        # also not shifted by a cell: a pattern that moves would carry its error along
        for i, j in product((-1, 0, 1), repeat=2):
            shifted = np.roll(steps[lag], (i, j), (0, 1))
            assert abs(correlation(steps[0], shifted)) < 5.0, f"{lag} steps and {i}, {j} cells apart"
