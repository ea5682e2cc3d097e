"""Heat from sources: exact on the grid, averaged over each step."""

from math import erf, exp, pi, sqrt

import numpy as np
import pytest
from exact import PERIODIC, scenario
from problem_text import problem

from heatsim.grid import FACES
from heatsim.physics.operator.face_cells import beam_flux
from heatsim.physics.sources.beam_rows import BeamRows
from heatsim.scenario import face_axes

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
    power = body.sources.heat(times, dt) @ (body.materials.counts * body.materials.cell_heat_capacity) / dt
    return np.broadcast_to(power, len(times))


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
    body = derived(f"[[sources]]\npower = 120.0\n{place}\n")
    assert power_of(body, np.array([0.0, 1.0]), 1e-3) == pytest.approx([120.0] * 2, rel=1e-13)


def test_sources_add_up_where_they_overlap_and_densities_count_by_volume() -> None:
    body = derived(
        "[[sources]]\npower_density = 1e6\n[[sources]]\npower = -5.0\n"
        "box = { min = [0,0,0], max = [0.02, 0.03, 0.02] }\n"
    )
    assert power_of(body, np.zeros(1), 1e-3) == pytest.approx([0.04 * 0.03 * 0.02 * 1e6 - 5.0], rel=1e-13)
    assert len(body.materials.types) == 2


def test_a_source_is_on_during_its_interval_alone() -> None:
    found = derived("[[sources]]\npower = 8.0\nduring = [0.3, 1.1]\n")
    timeline, total = found.timeline, 0.0
    for interval, dt in enumerate(timeline.dts.tolist()):
        times = timeline.step_times(int(timeline.steps[interval]), int(timeline.steps[interval + 1]))
        power = power_of(found, times, dt)
        assert set(np.round(power, 9).tolist()) <= {0.0, 8.0}
        total += float(power.sum()) * dt
    assert total == pytest.approx(8.0 * 0.8, rel=1e-12)


@pytest.mark.parametrize("radius", [1e-4, 1e-3, 2.4e-3])
def test_a_beam_brings_what_it_absorbs_while_it_is_on(radius: float) -> None:
    """From finer than a cell to one that reaches the edge; on from 0.1 s for the length of its path, 0.0224 m."""
    body = derived("[[sources]]\n" + BEAM % radius + "\n")
    dt = 0.013
    times = np.arange(150) * dt
    (rows,) = body.sources.beam_rows(times, dt)
    dx, dy, _ = body.materials.grid.spacing
    power = brought(rows) * dx * dy
    stop = 0.1 + np.hypot(0.02, 0.01) / 0.02
    share = np.clip((np.minimum(times + dt, stop) - np.maximum(times, 0.1)) / dt, 0.0, 1.0)
    assert power == pytest.approx(20.0 * share, abs=1e-11)
    assert share.max() == 1.0
    count_u, count_v = rows.weights[0].shape[2], rows.weights[1].shape[2]
    assert (rows.first >= 0).all()
    assert (rows.first + np.array([count_u, count_v]) <= (20, 15)).all()


def brought(rows: BeamRows) -> np.ndarray:  # type: ignore[type-arg]
    """The sum over cells of the flux in each step, in W/m²."""
    u, v = (weights.sum(axis=2) for weights in rows.weights)
    return np.asarray((u * v).sum(axis=1))


def absorbed(body, times: np.ndarray, dt: float = 1e-3) -> np.ndarray:  # type: ignore[no-untyped-def,type-arg]
    """W that all beams bring to their faces."""
    power = np.zeros(len(times))
    for rows in body.sources.beam_rows(times, dt):
        u, v = (body.materials.grid.spacing[axis] for axis in face_axes(FACES[rows.face]))
        power += brought(rows) * u * v
    return power


def beam_on(face: str, spot: tuple[float, float], radius: float, extra: str = "") -> str:
    return (
        f'[[sources]]\nbeam = {{ face = "{face}", power = 8.0, radius = {radius!r}, path = [{list(spot)}] }}\n{extra}'
    )


@pytest.mark.parametrize("radius", [2e-4, 1.5e-3, 4e-3, 0.05, 10.0])
@pytest.mark.parametrize("spot", [(0.0, 0.015), (0.0, 0.0), (0.04, 0.03), (0.001, 0.029)])
def test_what_falls_beside_the_face_misses_it(spot: tuple[float, float], radius: float) -> None:
    """Half the power on an edge and a quarter on a corner while the other sides are far; else the error function."""
    body = derived(beam_on("z_max", spot, radius))

    def share(at: float, length: float) -> float:
        return (erf(sqrt(2.0) * (length - at) / radius) + erf(sqrt(2.0) * at / radius)) / 2.0

    expected = 8.0 * share(spot[0], 0.04) * share(spot[1], 0.03)
    assert absorbed(body, np.zeros(1)) == pytest.approx([expected], rel=1e-12)
    if spot == (0.0, 0.0) and radius < 2e-3:
        assert absorbed(body, np.zeros(1)) == pytest.approx([2.0], rel=1e-13)


@pytest.mark.parametrize("face", ["x_min", "y_max", "z_min"])
def test_a_half_model_on_a_symmetry_plane_absorbs_half_the_heat_of_the_whole(face: str) -> None:
    """Cell by cell: the weights of the half are those of the whole body's upper half."""

    def rows(length: float, cells: int, middle: float):  # type: ignore[no-untyped-def]
        size, grid = [length] * 3, [cells] * 3
        text = scenario(tuple(size), tuple(grid), initial=300.0, end=1.0, k=20.0, rho=2000.0, cp=500.0)
        return problem(text + beam_on(face, (middle, middle), 1.3e-3))

    whole, quarter = rows(0.02, 20, 0.01), rows(0.01, 10, 0.0)
    dt, start = 1e-2, np.zeros(1)
    (all_of_it,), (part,) = whole.sources.beam_rows(start, dt), quarter.sources.beam_rows(start, dt)
    fluxes, found = beam_flux([all_of_it], (20, 20)), beam_flux([part], (10, 10))
    np.testing.assert_allclose(found, fluxes[10:, 10:], rtol=1e-12, atol=1e-9 * fluxes.max())


def test_a_beam_that_travels_over_the_edge_fades_as_its_spot_leaves() -> None:
    radius, speed = 2e-3, 0.02
    text = (
        f'[[sources]]\nbeam = {{ face = "z_max", power = 8.0, radius = {radius}, '
        f"path = [[0.02, 0.015], [0.04, 0.015]], speed = {speed} }}\n"
    )
    body, dt = derived(text), 0.01
    times = np.arange(100) * dt
    distance = 0.02 - speed * (times + dt / 2.0)
    expected = [4.0 * (1.0 + erf(sqrt(2.0) * left / radius)) for left in distance]
    assert absorbed(body, times, dt) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("radius", [1e-3, 6e-3, 0.03, 1.0])
def test_over_the_end_of_a_periodic_axis_a_spot_goes_on_at_the_other(radius: float) -> None:
    text = scenario(
        *GRID,
        initial=300.0,
        end=2.0,
        boundaries=f"x_min = {PERIODIC}\nx_max = {PERIODIC}",
        k=20.0,
        rho=2000.0,
        cp=500.0,
    )
    body = problem(text + beam_on("z_max", (0.0, 0.015), radius))
    expected = 8.0 * erf(sqrt(2.0) * 0.015 / radius)
    assert absorbed(body, np.zeros(1)) == pytest.approx([expected], rel=1e-12)
    (rows,) = body.sources.beam_rows(np.zeros(1), 1e-3)
    along = rows.weights[0][0, 0]
    assert len(along) == 20
    np.testing.assert_allclose(along, along[::-1], rtol=1e-10)  # symmetric about the seam


def test_a_beam_has_the_profile_of_a_gaussian() -> None:
    """2P/(πR²)·exp(−2r²/R²) where cells are small against the radius."""
    text = scenario((0.04, 0.03, 0.02), (160, 120, 1), initial=300.0, end=1.0, k=20.0, rho=2000.0, cp=500.0)
    text += '[[sources]]\nbeam = { face = "z_max", power = 50.0, radius = 3e-3, path = [[0.02, 0.015]] }\n'
    body = problem(text)
    (rows,) = body.sources.beam_rows(np.zeros(1), 0.1)
    grid = body.materials.grid
    r2 = (grid.centres(0)[None, :] - 0.02) ** 2 + (grid.centres(1)[:, None] - 0.015) ** 2
    exact = 2.0 * 50.0 / (pi * 3e-3**2) * np.exp(-2.0 * r2 / 3e-3**2)
    assert beam_flux([rows], (120, 160)) == pytest.approx(exact, abs=0.01 * exact.max())
    assert exact.max() > 0.9 * 2.0 * 50.0 / (pi * 3e-3**2) * exp(-0.1)


SCALES = (
    "1.0",
    "0.0",
    "{ times = [0.2, 0.2, 0.3, 0.3, 1.0, 1.1, 1.2], values = [0.0, 1.0, 1.0, 0.0, 0.0, -1.0, 0.0] }",
    "{ times = [0.0, 0.0, 1.5, 1.9], values = [1.0, 0.0, 0.0, 2.0] }",
    "{ times = [0.0, 0.1, 0.1, 0.4], values = [1.0, 1.0, 0.0, 0.0], repeat = true }",
    '"where(t%0.5 < 0.1, 1, 0)"',
    '"max(0, sin(9*t))"',
    '"where(t > 0.7, exp(-((t - 0.7)/0.1)^2), 0)"',
    '"where((1000*t)%1 < 0.5, 0, 1)"',
)


def test_no_beam_that_brings_something_is_left_out() -> None:
    """Against all beams, one by one; also for times before which, after which and between which they are on."""
    beam = 'beam = { face = "z_max", power = 5.0, radius = 0.002, path = [[0.02, 0.01]] }'
    text = "".join(f"[[sources]]\nscale = {scale}\n{beam}\n" for scale in SCALES)
    text += f"[[sources]]\nduring = [0.5, 0.9]\nscale = {SCALES[5]}\n{beam}\n"
    sources, random = derived(text + f"[[sources]]\n{beam.replace('5.0', '0.0')}\n").sources, np.random.default_rng(0)
    counts = set()
    for _ in range(100):
        lengths = 10.0 ** random.uniform(-4.0, -0.5, random.integers(1, 4))
        times = np.minimum(random.uniform(0.0, 2.0) + np.append(0.0, np.cumsum(lengths)[:-1]), 2.0)
        each = [sources.rows_of(number, times, lengths) for number in range(len(SCALES) + 2)]
        found = sources.beam_rows(times, lengths)
        assert [rows.number for rows in found] == [rows.number for rows in each if rows is not None]
        counts.add(len(found))
    assert len(counts) >= 5
