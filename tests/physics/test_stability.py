"""The largest time step: by hand, and as the point where one step stops being an average of what was there."""

from itertools import product
from math import inf

import numpy as np
import pytest
from exact import INSULATED, PERIODIC, convection, flux, held, scenario
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from problem_text import problem

from heatsim.errors import ScenarioError
from heatsim.grid import FACES
from heatsim.kernels.cpu.oracle import advance_numpy
from heatsim.physics.conditions.surface_balance import linear_terms
from heatsim.physics.matter.coefficients import derive
from heatsim.physics.problem import HeatProblem

NOTHING = (INSULATED,) * 6
HELD = held(300.0)
WEAK = convection(2.0 / 3.0, 300.0)  # of a cell of 1 m with k = 1 W/(m K): 1/(1/h + d/2k) = k/2d


def limit(
    cells: tuple[int, int, int],
    rates: tuple[float, float, float],
    faces: tuple[str, ...] = NOTHING,
) -> tuple[float, tuple[int, int, int]]:
    """The limit of cells of 1 m with ρ·cp = 1 J/(m³ K)."""
    boundaries = "\n".join(f"{name} = {condition}" for name, condition in zip(FACES, faces, strict=True))
    size = (float(cells[0]), float(cells[1]), float(cells[2]))
    found = problem(scenario(size, cells, initial=300.0, end=1.0, boundaries=boundaries, k=rates)).limit
    return found.dt, found.cell


def test_a_cell_inside_gives_to_six_neighbours() -> None:
    dt, cell = limit((5, 5, 5), (1.0, 2.0, 3.0))
    assert dt == pytest.approx(1.0 / 12.0, rel=1e-15)
    assert cell == (1, 1, 1)


def test_a_cell_at_a_held_face_gives_three_times() -> None:
    """One neighbour, and the face at half the distance."""
    dt, cell = limit((5, 1, 1), (1.0, 1.0, 1.0), (HELD, *NOTHING[1:]))
    assert dt == pytest.approx(1.0 / 3.0, rel=1e-15)
    assert cell == (0, 0, 0)
    dt, cell = limit((5, 5, 5), (1.0, 1.0, 1.0), (INSULATED, HELD, *NOTHING[2:4], HELD, INSULATED))
    assert dt == pytest.approx(1.0 / (3.0 + 2.0 + 3.0), rel=1e-15)
    assert cell == (4, 1, 0)


def test_weak_convection_leaves_the_limit_to_the_cells_inside() -> None:
    dt, cell = limit((5, 1, 1), (1.0, 1.0, 1.0), (WEAK, WEAK, *NOTHING[2:]))
    assert dt == pytest.approx(0.5, rel=1e-15)
    assert cell == (1, 0, 0)


def test_strong_convection_is_a_held_face() -> None:
    """1/(1/h + d/2k) tends to 2k/d."""
    text = scenario((1.0, 1.0, 1.0), (5, 1, 1), initial=300.0, end=1.0, boundaries=f"x_min = {convection(1e12, 300.0)}")
    assert problem(text).limit.dt == pytest.approx(0.04 / 3.0, rel=1e-9)


def test_two_cells_along_an_axis_give_to_one_neighbour() -> None:
    assert limit((2, 1, 1), (1.0, 1.0, 1.0))[0] == pytest.approx(1.0, rel=1e-15)
    assert limit((2, 1, 1), (1.0, 1.0, 1.0), (PERIODIC, PERIODIC, *NOTHING[2:]))[0] == pytest.approx(0.5, rel=1e-15)


def test_one_cell_gives_only_through_its_faces() -> None:
    assert limit((1, 1, 1), (1.0, 1.0, 1.0))[0] == inf
    assert limit((1, 1, 1), (1.0, 1.0, 1.0), (PERIODIC,) * 6)[0] == inf
    dt, cell = limit((1, 1, 1), (1.0, 1.0, 1.0), (HELD, HELD, INSULATED, WEAK, *NOTHING[4:]))
    assert dt == pytest.approx(1.0 / 4.5, rel=1e-15)
    assert cell == (0, 0, 0)


def test_without_any_conduction_nothing_limits() -> None:
    derived = problem(scenario((1.0, 1.0, 1.0), (1, 1, 1), initial=300.0, end=7.0, boundaries=f"x_min = {flux(1.0)}"))
    assert derived.limit.dt == inf
    assert derived.timeline.last_step == 1


def one_step_matrix(derived: HeatProblem, dt: float) -> NDArray[np.float64]:
    """What one step makes of the cells, as a matrix: column j is the step of a field that is 1 in cell j."""
    grid, n = derived.grid, derived.grid.cell_count
    c = derive(grid, derived.rates, dt, "float64", "increments")
    g = np.zeros(6)
    for face in range(6):
        row, share = derived.boundary.rows(np.zeros(1), 0.0)[:, face], 2.0 * c.exchange[face // 2]
        g[face] = linear_terms(row, float(1.0 / derived.materials.half[face // 2, 0]), share, share, "float64")[1][0]
    matrix = np.empty((n, n))
    for j in range(n):
        T = np.zeros(grid.shape)
        T.ravel()[j] = 1.0
        T_new = np.empty_like(T)
        ledger = [np.empty((0, 0))] * 6
        advance_numpy(T, T_new, derived.periodic, np.array(c.c), np.zeros(6), g, ledger, "seven_term")
        matrix[:, j] = T_new.ravel()
    return matrix


AXIS_PAIRS = [
    (PERIODIC, PERIODIC),
    *product((INSULATED, held(300.0), flux(1.0), convection(2.0, 300.0), convection(80.0, 300.0)), repeat=2),
]


@settings(max_examples=60)
@given(
    cells=st.tuples(*[st.integers(1, 4)] * 3),
    conductivity=st.tuples(*[st.floats(0.1, 10.0)] * 3),
    pairs=st.tuples(*[st.sampled_from(AXIS_PAIRS)] * 3),
)
def test_at_the_limit_a_step_is_just_still_an_average(
    cells: tuple[int, int, int], conductivity: tuple[float, float, float], pairs: tuple[tuple[str, str], ...]
) -> None:
    faces = [condition for pair in pairs for condition in pair]
    boundaries = "\n".join(f"{name} = {condition}" for name, condition in zip(FACES, faces, strict=True))
    derived = problem(scenario((1.0, 2.0, 1.5), cells, initial=300.0, end=1.0, boundaries=boundaries, k=conductivity))
    if derived.limit.dt == inf:
        assert (one_step_matrix(derived, 1.0) >= 0.0).all()
        return
    nx, ny, _ = cells
    x, y, z = derived.limit.cell
    worst = (z * ny + y) * nx + x
    at_limit = one_step_matrix(derived, derived.limit.dt)
    assert at_limit.min() >= -1e-13
    assert at_limit.sum(axis=1).max() <= 1.0 + 1e-13
    # Periodic axes of one or two cells give a cell some of its own heat back by their wrapped neighbours.
    own = np.diag(at_limit)
    assert own[worst] == pytest.approx(own.min(), abs=1e-13)
    assert own[worst] == pytest.approx(0.0, abs=1e-13)
    beyond = one_step_matrix(derived, 1.01 * derived.limit.dt)
    assert beyond[worst, worst] < -1e-3
    assert beyond.min() == pytest.approx(beyond[worst, worst], abs=1e-13)


def test_the_limit_looks_ahead_to_the_strongest_convection() -> None:
    def of(coefficient: float | str) -> float:
        boundaries = f"x_min = {convection(coefficient, 300.0)}"
        return problem(scenario((1.0, 1.0, 1.0), (5, 1, 1), initial=300.0, end=4.0, boundaries=boundaries)).limit.dt

    assert of("100*t/4") == pytest.approx(of(100.0), rel=1e-12)
    assert of("100*sin(pi*t/4)^2") == pytest.approx(of(100.0), rel=1e-3)
    assert of(100.0) < of(1.0)


@pytest.mark.parametrize(("factor", "stable"), [(1.0, True), (1.0 + 1e-10, True), (1.0 + 1e-8, False), (1.5, False)])
def test_a_given_dt_is_refused_beyond_the_limit(factor: float, stable: bool) -> None:
    dt = 0.02 * factor  # 5 cells of 0.2 m: 1/(2·25)
    text = scenario((1.0, 1.0, 1.0), (5, 1, 1), initial=300.0, end=50 * dt, dt=dt)
    if stable:
        assert problem(text).timeline.last_step == 50
        return
    with pytest.raises(
        ScenarioError, match=r"time\.dt: .* beyond the stability limit 0\.02 s \(set by cell \[1, 0, 0\]\)"
    ):
        problem(text)


def test_faces_read_from_a_scenario_keep_their_order() -> None:
    boundaries = "\n".join(f"{name} = {convection(float(i + 1), 300.0)}" for i, name in enumerate(FACES))
    derived = problem(scenario((1.0, 1.0, 1.0), (1, 1, 1), initial=300.0, end=1.0, boundaries=boundaries))
    assert derived.boundary.largest_films(1.0)[:6].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    total = sum(1.0 / (1.0 / h + 0.5) for h in range(1, 7))
    assert derived.limit.dt == pytest.approx(1.0 / total, rel=1e-14)
