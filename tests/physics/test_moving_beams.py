"""The mean of a moving beam over a step: its spots against the exact distribution, and its power.

A spot has σ = R/2, and its parts of the way have at most h = σ. At an end of a straight way a midpoint rule misses
h²/24·φ'(x) − 7h⁴/5760·φ"'(x), at most 1.2 % of the flux on a long way; inside it misses 5e-9. Four times as much is
the bound where ends and turns add up.
"""

from math import erf, exp, pi, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from problem_text import problem

from heatsim.grid import FACES
from heatsim.parallel.slab import slabs
from heatsim.physics.drives.drives import Drives
from heatsim.physics.operator.face_cells import beam_flux
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.heat_flux import heat_flux
from heatsim.physics.readings.surface_temperature import SurfacePoint, SurfaceTemperatures, acting_at
from heatsim.physics.slab_problem import on_slab
from heatsim.physics.sources.error_function import error_function
from heatsim.physics.sources.spots import MOST_SPOTS
from heatsim.physics.time.tolerance import Tolerance
from heatsim.scenario import face_axes

Array = NDArray[np.float64]
SPEED, POWER, RADIUS = 0.1, 50.0, 2e-3
LINE = [[0.01, 0.01], [0.03, 0.01]]
SLANTED = [[0.01, 0.004], [0.03, 0.017]]
TURNS = [[0.01, 0.005], [0.02, 0.005], [0.02, 0.01], [0.01, 0.01]]
ZIGZAG = [[0.01 + 0.0002 * n, 0.01 + 0.0003 * (n % 2)] for n in range(60)]
END = 0.242 / 24.0 + 7.0 / 5760.0 * 1.38  # the error at the end of a way, in parts of the flux on a long way


def body(path: list[list[float]] = LINE, more: str = "", beam: str = "", face: str = "z_max") -> HeatProblem:
    """A plate of 80 x 40 cells on each side, twice as fine as the spot, with a beam that is on from t = 0."""
    sizes, cells = [0.002] * 3, [2] * 3
    for axis, (size, count) in zip(face_axes(face), ((0.04, 80), (0.02, 40)), strict=True):
        sizes[axis], cells[axis] = size, count
    return problem(
        f"""
domain = {{ size = {sizes}, cells = {cells} }}
material = {{ conductivity = 15.0, density = 8000.0, specific_heat = 500.0 }}
initial = {{ temperature = 300.0 }}
time = {{ end = 10.0, method = "stabilized" }}
[[sources]]
beam = {{ face = "{face}", power = {POWER}, radius = {RADIUS}, path = {path}, speed = {SPEED} {beam} }}
{more}
"""
    )


def flux_of(derived: HeatProblem, first: float, last: float) -> Array:
    """The mean flux in W/m² on the face of the beam between two times."""
    (rows,) = derived.sources.beam_rows(np.array([first]), last - first)
    return beam_flux([rows], derived.grid.face_shape(rows.face))


def exact_flux(derived: HeatProblem, first: float, last: float, scale: str = "1") -> Array:
    """The same by a midpoint rule of 4,000 moments."""
    source, grid = derived.scenario.sources[0], derived.grid
    assert source.beam is not None
    points = np.array(source.beam.path)
    lengths = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
    t = first + (last - first) * (np.arange(4000) + 0.5) / 4000
    on = t * SPEED <= lengths[-1]
    if source.during is not None:
        on &= (t > source.during[0]) & (t < source.during[1])
    factor = on * eval(scale, {"t": t, "sin": np.sin, "where": np.where}) / len(t)
    along = []
    for number, axis in enumerate(face_axes(source.beam.face)):
        edges = grid.origin[axis] + grid.spacing[axis] * np.arange(grid.cells[axis] + 1)
        place = np.interp(t * SPEED, lengths, points[:, number])
        along.append(np.diff(error_function(sqrt(2.0) / RADIUS * (edges - place[:, None])) / 2.0) / grid.spacing[axis])
    return POWER * along[1].T @ (along[0] * factor[:, None])


def on_a_long_way(dt: float) -> float:
    """The flux in W/m² in the middle of a long straight way, averaged over a step."""
    return POWER / (SPEED * dt) / (sqrt(pi / 2.0) * RADIUS)


@pytest.mark.parametrize(
    ("path", "first", "last", "ends"),
    [
        (LINE, 0.02, 0.12, 1.0),
        (LINE, 0.0, 1.0, 1.0),  # the whole path in one step
        (SLANTED, 0.02, 0.12, 1.0),
        (TURNS, 0.0, 0.3, 4.0),
        (ZIGZAG, 0.01, 0.15, 4.0),
        (LINE, 0.15, 0.25, 1.0),  # it ends in the step
        (LINE, 0.02, 0.0299, 4.0),  # one spot
    ],
)
def test_the_spots_of_a_step_are_the_mean_of_the_moving_spot(
    path: list[list[float]], first: float, last: float, ends: float
) -> None:
    derived = body(path)
    found, exact = flux_of(derived, first, last), exact_flux(derived, first, last)
    assert np.abs(found - exact).max() <= ends * END * on_a_long_way(last - first)
    assert found.sum() == pytest.approx(exact.sum(), rel=1e-3 if last > 0.2 else 1e-7)


@pytest.mark.parametrize("face", ["x_max", "y_min", "z_max"])
def test_steps_that_follow_each_other_leave_an_even_track(face: str) -> None:
    """Between the ends it is that of a line: P/v times a Gaussian across and the rise of Φ along."""
    derived = body(SLANTED, face=face)
    whole = np.hypot(0.02, 0.013) / SPEED
    for count in (1, 7, 40, 400):  # from 24 spots a step to 17 steps a spot
        times = whole / count * np.arange(count)
        (rows,) = derived.sources.beam_rows(times, whole / count)
        flux = np.zeros(derived.grid.face_shape(FACES.index(face)))
        for step in range(count):
            rows.add_to(flux, step)
        flux *= whole / count
        fine = exact_flux(derived, 0.0, whole) * whole
        middle = np.s_[17:26, 38:43]  # 4 radii from both ends
        np.testing.assert_allclose(flux[middle], fine[middle], rtol=2e-6)
        assert np.abs(flux - fine).max() <= END * on_a_long_way(1.0)


@pytest.mark.parametrize(
    ("scale", "during"),
    [
        ("1 + sin(50*t)", None),
        ("where(t % 0.011 < 0.003, 1, 0)", None),
        ("where(t % 0.05 < 0.02, 1, 0)", None),
        ("where(t % 0.05 < 0.02, -1, 1)", None),
        ("1 + 0*t", (0.033, 0.071)),
        ("t", (0.033, 0.071)),
    ],
)
def test_power_that_changes_along_the_way_is_where_it_is(scale: str, during: tuple[float, float] | None) -> None:
    more = f'scale = "{scale}"\n' + (f"during = {list(during)}\n" if during else "")
    derived = body(more=more)
    found, exact = flux_of(derived, 0.0, 0.2), exact_flux(derived, 0.0, 0.2, scale)
    assert np.abs(found - exact).max() <= 4.0 * END * on_a_long_way(0.2) * (2.0 if "-1" in scale else 1.0)
    assert found.sum() == pytest.approx(exact.sum(), rel=1e-3)


def test_a_pulse_within_a_part_of_the_way_heats_the_place_where_the_spot_is_then() -> None:
    """A pulse of 1 ms while the spot moves half a radius in a step of 10 ms; its middle is 2.5 ms after the start."""
    derived = body(more='scale = "where(t > 0.102, where(t < 0.103, 1, 0), 0)"')
    (rows,) = derived.sources.beam_rows(np.array([0.1]), 0.01)
    assert rows.spots.tolist() == [1]
    still = body([[0.01 + SPEED * 0.1025, 0.01]], beam="").sources.beam_rows(np.array([0.1]), 0.01)
    expected = 0.1 * beam_flux(still, derived.grid.face_shape(5))
    # The pulse is h = R/20 long: (h/σ)²/24 of the peak.
    np.testing.assert_allclose(
        beam_flux([rows], expected.shape), expected, rtol=0.0, atol=0.1**2 / 24.0 * expected.max()
    )


def bar(beam: str, more: str = "") -> HeatProblem:
    """A bar of 20 mm x 0.5 mm x 2 mm in void, 5 mm below the face through which the light comes."""
    return problem(
        f"""
domain = {{ size = [0.04, 0.0035, 0.01], cells = [40, 7, 10], material = "void" }}
materials = {{ steel = {{ conductivity = 15.0, density = 8000.0, specific_heat = 500.0 }} }}
regions = [{{ name = "bar", material = "steel", box = {{ min = [0.01, 0.0015, 0.003], max = [0.03, 0.002, 0.005] }} }}]
initial = {{ temperature = 300.0 }}
time = {{ end = 1.0, method = "stabilized" }}
{more}
[[sources]]
beam = {{ face = "z_max", power = {POWER}, radius = {RADIUS}, speed = {SPEED}, {beam} }}
"""
    )


@pytest.mark.parametrize("depth", [None, 0.5e-3])
@pytest.mark.parametrize(
    "condition", ["", 'boundaries.void = { type = "convection", coefficient = 10.0, ambient = 300.0 }']
)
def test_a_bar_in_void_that_is_narrower_than_the_spot_takes_its_part(depth: float | None, condition: str) -> None:
    """The whole way lies in one step or in 13: P·(length of the bar)/v, times the part of the spot on its width."""
    way = "path = [[0.0, 0.00175], [0.04, 0.00175]]"
    derived = bar(f"{way}, absorption_depth = {depth}" if depth else way, condition)
    exact = POWER * 0.02 / SPEED * erf(sqrt(2.0) * 0.25e-3 / RADIUS) * (1.0 if depth is None else 1.0 - exp(-4.0))
    for count in (1, 13):
        dt = 0.4 / count
        rows = derived.sources.beam_rows(dt * np.arange(count), dt)[0]
        taken = sum(derived.sources.absorbed_by(rows[step : step + 1]) for step in range(count)) * dt
        assert taken == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("periodic", [False, True])
def test_the_power_of_a_step_is_exact(periodic: bool) -> None:
    """Along a way round a periodic plate, or one beside which nothing falls: P times the part of the step."""
    ends = '[boundaries]\nx_min = { type = "periodic" }\nx_max = { type = "periodic" }\n' if periodic else ""
    start, stop = (0.0, 0.04) if periodic else (0.009, 0.031)
    path = [[start, 0.009], [stop, 0.009], [stop, 0.011], [start, 0.011]]
    derived = body(path, more=ends, beam=", start = 0.0123")
    area = derived.grid.cell_volume / derived.grid.spacing[2]
    whole = (2.0 * (stop - start) + 0.002) / SPEED
    for times, dt in ((np.arange(30) * 0.05, 0.05), (np.array([0.0]), 2.0), (np.arange(1000) * 1e-3, 1e-3)):
        share = np.clip((np.minimum(times + dt, 0.0123 + whole) - np.maximum(times, 0.0123)) / dt, 0.0, 1.0)
        (rows,) = derived.sources.beam_rows(times, dt)
        u, v = (weights.sum(axis=2) for weights in rows.weights)
        np.testing.assert_allclose((u * v).sum(axis=1) * area, POWER * share, rtol=1e-12, atol=1e-11)


def test_a_step_has_as_many_spots_as_its_way_needs() -> None:
    derived = body(beam=", start = 0.05")
    (rows,) = derived.sources.beam_rows(np.array([0.0, 0.05, 0.06, 0.24, 0.26]), 0.03)
    assert rows.spots.tolist() == [0, 3, 3, 1, 0]
    assert rows.first.shape == (5, 3, 2)
    assert not rows.weights[0][[0, 4]].any()


def test_a_step_of_a_method_with_a_tolerance_has_at_most_the_most_spots() -> None:
    fast = body([[0.0, 0.01], [0.04, 0.01], [0.0, 0.01], [0.04, 0.01]], beam=", start = 0.05")
    drives, tolerance = Drives.of(fast), Tolerance(1e6, 0.0, 300.0, 300.0)
    for time in (0.0, 0.05, 0.3):
        step = drives.longest(time, 5.0, tolerance)
        (rows,) = fast.sources.beam_rows(np.array([time, time]), np.array([step, 1.001 * step]))
        assert rows.spots.tolist() == [MOST_SPOTS, MOST_SPOTS + 1]
    assert drives.longest(1.3, 5.0, tolerance) == 5.0


def test_ranks_have_their_part_of_each_spot() -> None:
    whole = body(TURNS, face="x_max")
    times, dt = np.arange(3) * 0.1, 0.1
    (all_of_it,) = whole.sources.beam_rows(times, dt)
    for slab in slabs(2 * 20, 2, periodic=False):
        own = on_slab(whole, slab)
        (part,) = own.sources.beam_rows(times, dt)
        for step in range(3):
            flux, of_whole = np.zeros(own.grid.face_shape(1)), np.zeros(whole.grid.face_shape(1))
            part.add_to(flux, step)
            all_of_it.add_to(of_whole, step)
            np.testing.assert_array_equal(flux, of_whole[slab.place])


def test_rows_show_the_flux_of_all_spots_of_a_step_of_eulers_method() -> None:
    """T_s − T = flux/(2k/d), and half the flux passes the centre of the cell, in a body of one temperature."""
    derived = body().with_method("euler")
    step = 2
    flux = flux_of(derived, derived.timeline.time(step), derived.timeline.time(step + 1))
    cells = [(x, 20, 1) for x in range(0, 80, 7)]
    points = [SurfacePoint(5, cell, (0.0, 0.0, 0.002)) for cell in cells]
    T = SurfaceTemperatures(derived, points).of(np.full(len(cells), 300.0), acting_at(derived, step))
    own = np.array([flux[y, x] for x, y, _ in cells])
    assert own.max() > 0.1 * flux.max()
    np.testing.assert_allclose(T - 300.0, own / (2.0 * 15.0 / 1e-3), rtol=1e-12, atol=1e-9)
    planes = np.full((1, 40, 80), 300.0)
    (vectors,) = heat_flux(derived, step, 1, lambda first, end: planes[: end - first], 1)
    np.testing.assert_allclose(vectors[..., 2], -flux / 2.0, rtol=1e-12)
