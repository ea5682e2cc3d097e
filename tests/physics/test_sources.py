"""Heat from sources: exact on the grid, averaged over each step."""

from math import exp, pi

import numpy as np
import pytest
from exact import scenario
from problem_text import problem

from heatsim.physics.sources import mean
from heatsim.scenario import Constant, Table

GRID = ((0.04, 0.03, 0.02), (20, 15, 10))
BEAM = (
    'beam = { face = "z_max", power = 50.0, absorptivity = 0.4, radius = %s, path = [[0.01, 0.01], [0.03, 0.02]], '
    "speed = 0.02, start = 0.1 }"
)


def derived(sources: str, end: float = 2.0, every: float = 0.5):  # type: ignore[no-untyped-def]
    text = scenario(*GRID, initial=300.0, end=end, every=every, k=20.0, rho=2000.0, cp=500.0) + sources
    return problem(text)


def power_of(body, times: np.ndarray, dt: float) -> np.ndarray:  # type: ignore[no-untyped-def,type-arg]
    """W that the cells get in each step."""
    return body.sources.heat(times, dt) @ (body.medium.counts * body.medium.cell_heat_capacity) / dt


@pytest.mark.parametrize(
    "place",
    [
        "",
        "sphere = { centre = [0.02, 0.015, 0.01], radius = 0.006 }",
        "box = { min = [0,0,0], max = [0.011, 0.007, 0.02] }",
    ],
    ids=["everywhere", "sphere", "box"],
)
def test_a_power_is_exact_whatever_the_cells(place: str) -> None:
    body = derived(f"[[sources]]\npower = 120.0\n{place}\n").body
    assert power_of(body, np.array([0.0, 1.0]), 1e-3) == pytest.approx([120.0] * 2, rel=1e-13)


def test_sources_add_up_where_they_overlap_and_densities_count_by_volume() -> None:
    body = derived(
        "[[sources]]\npower_density = 1e6\n[[sources]]\npower = -5.0\n"
        "box = { min = [0,0,0], max = [0.02, 0.03, 0.02] }\n"
    ).body
    assert power_of(body, np.zeros(1), 1e-3) == pytest.approx([0.04 * 0.03 * 0.02 * 1e6 - 5.0], rel=1e-13)
    assert len(body.medium.kinds) == 2


def test_a_source_is_on_during_its_interval_alone() -> None:
    found = derived("[[sources]]\npower = 8.0\nduring = [0.3, 1.1]\n")
    timeline, total = found.timeline, 0.0
    for interval, dt in enumerate(timeline.dts.tolist()):
        times = timeline.step_times(int(timeline.steps[interval]), int(timeline.steps[interval + 1]))
        power = power_of(found.body, times, dt)
        assert set(np.round(power, 9).tolist()) <= {0.0, 8.0}
        total += float(power.sum()) * dt
    assert total == pytest.approx(8.0 * 0.8, rel=1e-12)


def test_the_mean_of_a_table_is_exact() -> None:
    table = Table((0.0, 1.0, 3.0), (0.0, 2.0, -1.0))
    times = np.array([0.0, 0.5, 0.9, 2.5, 4.0])
    assert mean(table, times[:2], 1.0) == pytest.approx([1.0, (1.5 + 1.625) / 2.0], rel=1e-14)
    for dt in (0.3, 1.0, 7.0):
        assert mean(table, times, dt) == pytest.approx(_means(table, times, dt), abs=2e-5)


def test_the_mean_of_a_repeated_table_goes_over_its_jump() -> None:
    table = Table((0.0, 1.0, 2.0), (0.0, 4.0, 1.0), repeat=True)
    times = np.array([0.0, 1.9, 3.7, 17.3])
    for dt in (0.25, 1.0, 5.0):
        assert mean(table, times, dt) == pytest.approx(_means(table, times, dt), abs=2e-3)


def _means(table: Table, times: np.ndarray, dt: float) -> list[float]:  # type: ignore[type-arg]
    middles = (np.arange(20_000) + 0.5) / 20_000 * dt
    return [float(table.at(t + middles).mean()) for t in times]


def test_the_mean_of_a_constant_is_itself() -> None:
    assert mean(Constant(0.7), np.zeros(2), 0.1).tolist() == [0.7, 0.7]


@pytest.mark.parametrize("radius", [1e-4, 1e-3, 1e-2])
def test_a_beam_brings_what_it_absorbs_while_it_is_on(radius: float) -> None:
    """From finer than a cell to coarser than the face; on from 0.1 s for the length of its path, 0.0224 m."""
    body = derived("[[sources]]\n" + BEAM % radius + "\n").body
    dt = 0.013
    times = np.arange(150) * dt
    (rows,) = body.sources.beam_rows(times, dt)
    dx, dy, _ = body.medium.grid.spacing
    power = rows.weights[0].sum(axis=1) * rows.weights[1].sum(axis=1) * dx * dy
    stop = 0.1 + np.hypot(0.02, 0.01) / 0.02
    share = np.clip((np.minimum(times + dt, stop) - np.maximum(times, 0.1)) / dt, 0.0, 1.0)
    assert power == pytest.approx(20.0 * share, abs=1e-11)
    assert share.max() == 1.0
    count_u, count_v = rows.weights[0].shape[1], rows.weights[1].shape[1]
    assert (rows.first >= 0).all()
    assert (rows.first + np.array([count_u, count_v]) <= (20, 15)).all()


def test_a_beam_has_the_profile_of_a_gaussian() -> None:
    """2P/(πR²)·exp(−2r²/R²) where cells are small against the radius."""
    text = scenario((0.04, 0.03, 0.02), (160, 120, 1), initial=300.0, end=1.0, k=20.0, rho=2000.0, cp=500.0)
    text += '[[sources]]\nbeam = { face = "z_max", power = 50.0, radius = 3e-3, path = [[0.02, 0.015]] }\n'
    body = problem(text).body
    assert body is not None
    (rows,) = body.sources.beam_rows(np.zeros(1), 0.1)
    grid = body.medium.grid
    first_u, first_v = rows.first[0]
    x = grid.centres(0)[first_u : first_u + rows.weights[0].shape[1]]
    y = grid.centres(1)[first_v : first_v + rows.weights[1].shape[1]]
    r2 = (x[None, :] - 0.02) ** 2 + (y[:, None] - 0.015) ** 2
    exact = 2.0 * 50.0 / (pi * 3e-3**2) * np.exp(-2.0 * r2 / 3e-3**2)
    assert np.outer(rows.weights[1][0], rows.weights[0][0]) == pytest.approx(exact, abs=0.01 * exact.max())
    assert exact.max() > 0.9 * 2.0 * 50.0 / (pi * 3e-3**2) * exp(-0.1)
