"""Heat in the body and beams on grids whose cells differ: powers are exact; nearly equal cells are as equal ones."""

from collections.abc import Sequence
from math import exp, pi
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from problem_text import problem

from heatsim.grid import FACES, Grid
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.operator.balance import Balance
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import face_axes

SIZE = (0.04, 0.03, 0.02)
RANDOM = np.random.default_rng(5)
# Widths in parts of the domain: rising by half from cell to cell, falling, and at random from 1 to 100.
WIDTHS = (1.5 ** np.arange(9), 0.7 ** np.arange(8), np.exp(RANDOM.uniform(0.0, np.log(100.0), 12)))
HEAD = "[materials.steel]\nconductivity = 20.0\ndensity = 2000.0\nspecific_heat = 500.0\n"
REST = "[initial]\ntemperature = 300.0\n[time]\nend = 2.0\n"


def graded(body: str, widths: Sequence[NDArray[Any]] = WIDTHS) -> HeatProblem:
    """A problem with cells of these widths, in parts of the domain."""
    tables = "".join(
        f"[domain.{name}]\nwidths = {(of / of.sum() * size).tolist()}\n"
        for name, of, size in zip("xyz", widths, SIZE, strict=True)
    )
    return problem(f'domain.material = "steel"\n{tables}{HEAD}{REST}{body}')


def volumes(grid: Grid) -> NDArray[np.float64]:
    """The volumes of cells in m³, from their borders."""
    x, y, z = (np.diff(axis.borders) for axis in grid.axes)
    return np.asarray(z[:, None, None] * y[:, None] * x)


def density(body: HeatProblem, T: float = 300.0) -> NDArray[np.float64]:
    """The heat of sources without beam at t = 0 in W/m³, in the shape of the grid."""
    materials, start = body.materials, np.zeros(1)
    types = np.zeros(body.grid.shape, np.intp) if materials.uniform else materials.cells & CELL_TYPE
    found = (body.sources.heat(start, 1.0)[0] * materials.heat_capacity)[types]
    amounts = body.sources.amounts(start, 1e-9)[0, :-1] / 1e-9
    heat, _ = materials.heated.densities(amounts, (), np.full(len(materials.heated), T))
    found.reshape(-1)[materials.heated.cells] += heat
    return np.asarray(found)


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ("", 1.0),
        ("sphere = { centre = [0.02, 0.015, 0.01], radius = 0.008 }\n", None),
        ("box = { min = [0,0,0], max = [0.011, 0.007, 0.02] }\n", None),
    ],
    ids=["everywhere", "sphere", "box"],
)
@pytest.mark.parametrize("spread", ["", 'distribution = "1 + 50*x + (y/0.01)^2"\n'], ids=["even", "distributed"])
def test_a_power_is_exact(place: str, inside: float | None, spread: str) -> None:
    body = graded(f"[[sources]]\npower = 120.0\n{spread}{place}")
    heat = density(body)
    assert (heat * volumes(body.grid)).sum() == pytest.approx(120.0, rel=1e-12)
    assert inside is None or (heat > 0.0).all()
    if not spread:  # each cubic metre of the cells gets the same
        assert np.ptp(heat[heat > 0.0]) <= 1e-12 * heat.max()
        assert body.sources.heat_of_steps(body.sources.heat(np.zeros(1), 1.0), "float64") == pytest.approx(120.0)
    else:
        (power,) = body.sources.cell_powers(0.0, 1e-9, None).values()
        assert power.net == pytest.approx(120.0, rel=1e-12)


def test_densities_count_by_volume_and_are_integrated_over_each_cell() -> None:
    body = graded(
        '[[sources]]\npower_density = 1e6\n[[sources]]\npower_density = "2e6 + 3e9*x*y - 4e13*x*y*z^2 + 2e7*z/0.02"\n'
    )
    x, y, z = SIZE
    exact = 3e6 * x * y * z + 3e9 * (x * y) ** 2 / 4.0 * z - 4e13 * (x * y) ** 2 / 4.0 * z**3 / 3.0 + 1e7 * x * y * z
    assert (density(body) * volumes(body.grid)).sum() == pytest.approx(exact, rel=1e-12)
    narrow = graded('[[sources]]\npower_density = "1e9*exp(-((x - 0.0305)/2e-4)^2)"\n')
    exact = 1e9 * 2e-4 * pi**0.5 * y * z
    assert (density(narrow) * volumes(narrow.grid)).sum() == pytest.approx(exact, rel=1e-6)
    assert narrow.materials.heated.magnitudes == pytest.approx([exact], rel=1e-6)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("radius", [2e-4, 1.2e-3])
def test_a_moving_beam_brings_its_power_to_every_face(face: str, radius: float) -> None:
    """From narrower than most cells to wider than many."""
    u, v = (SIZE[axis] for axis in face_axes(face))
    path = [[0.3 * u, 0.4 * v], [0.7 * u, 0.4 * v], [0.7 * u, 0.6 * v]]
    beam = f'face = "{face}", power = 50.0, absorptivity = 0.4, radius = {radius}, path = {path}, speed = 0.01'
    body = graded(f"[[sources]]\nbeam = {{ {beam} }}\n")
    times = np.linspace(0.0, 1.0, 60)
    (rows,) = body.sources.beam_rows(times, 0.01)
    across_u, across_v = (np.diff(body.grid.axes[axis].borders) for axis in face_axes(face))
    flux = np.zeros((len(times), *body.grid.face_shape(rows.face)))
    for step in range(len(times)):
        rows.add_to(flux[step], step)
    assert (flux * across_v[:, None] * across_u).sum(axis=(1, 2)) == pytest.approx([20.0] * len(times), rel=1e-12)
    powers = [body.sources.absorbed_by(rows[step : step + 1]) for step in (0, 31, 59)]
    assert powers == pytest.approx([20.0] * 3, rel=1e-12)
    # The mean flux along u lies where the beam is.
    centre = (flux[0] * across_v[:, None] * across_u).sum(axis=0) @ body.grid.centres(face_axes(face)[0]) / 20.0
    assert abs(centre - 0.3 * u) < across_u.max()


def test_light_that_passes_the_end_of_a_periodic_axis_comes_back() -> None:
    periodic = '[boundaries]\nx_min = { type = "periodic" }\nx_max = { type = "periodic" }\n'
    beam = 'face = "z_max", power = 50.0, absorptivity = 1.0, radius = 3e-3, path = [[0.0005, 0.015], [0.039, 0.015]]'
    body = graded(f"{periodic}[[sources]]\nbeam = {{ {beam}, speed = 0.05 }}\n")
    times = np.linspace(0.0, 0.7, 9)
    (rows,) = body.sources.beam_rows(times, 0.01)
    powers = [body.sources.absorbed_by(rows[step : step + 1]) for step in range(len(times))]
    assert powers == pytest.approx([50.0] * len(times), rel=1e-12)


@pytest.mark.parametrize("side", ["min", "max"])
def test_light_is_absorbed_in_the_depth_of_conducting_cells(side: str) -> None:
    """Across a gap of void; each cell gets what the law of Beer and Lambert gives between its borders."""
    gap = 'name = "gap"\nmaterial = "void"\nbox = { min = [0.0, 0.0, %r], max = [0.04, 0.03, %r] }\n'
    tables = graded("").grid
    z = tables.axes[2].borders
    beam = f'face = "z_{side}", power = 50.0, absorptivity = 0.4, radius = 1e-3, path = [[0.02, 0.015]]'
    body = graded(
        f"[[regions]]\n{gap % (float(z[4]), float(z[7]))}[[sources]]\nbeam = {{ {beam}, absorption_depth = 4e-3 }}\n"
    )
    heated, (rows,) = body.materials.heated, body.sources.beam_rows(np.zeros(1), 0.01)
    widths = np.diff(z)
    depth = np.where((np.arange(12) >= 4) & (np.arange(12) < 7), 0.0, widths)
    ends = np.append(0.0, np.cumsum(depth if side == "min" else depth[::-1]))
    share = -np.diff(np.exp(-ends / 4e-3))
    share = share if side == "min" else share[::-1]
    heat = heated.weights * rows.fluxes(0, heated.spots)
    place = np.unravel_index(heated.cells, body.grid.shape)
    of_planes = np.bincount(place[0], heat * volumes(body.grid)[place], 12)
    assert of_planes == pytest.approx(20.0 * share, rel=1e-9)
    assert body.sources.absorbed_by(rows) == pytest.approx(20.0 * (1.0 - exp(-ends[-1] / 4e-3)), rel=1e-9)


def test_nearly_equal_cells_give_what_equal_cells_do() -> None:
    sources = (
        "[[sources]]\npower = 3.0\nbox = { min = [0,0,0], max = [0.02, 0.03, 0.01] }\n[[sources]]\npower_density = "
        '"1e6*exp(-((x - 0.0131)/2e-3)^2)*y"\n[[sources]]\nbeam = { face = "y_min", power = 5.0, absorptivity = 0.5, '
        "radius = 1.1e-3, path = [[0.01, 0.01], [0.03, 0.012]], speed = 0.02, absorption_depth = 3e-3 }\n"
    )
    counts = (20, 15, 10)
    nearly = graded(sources, tuple(1.0 + 1e-9 * RANDOM.uniform(-1.0, 1.0, count) for count in counts))
    domain = f'domain = {{ size = {list(SIZE)}, cells = {list(counts)}, material = "steel" }}\n'
    equal = problem(domain + HEAD + REST + sources)
    assert not nearly.grid.uniform
    assert equal.grid.uniform
    assert density(nearly) == pytest.approx(density(equal), rel=1e-7)
    (one,), (other,) = (body.sources.beam_rows(np.linspace(0.0, 1.0, 9), 0.01) for body in (nearly, equal))
    for step in range(9):
        fluxes = [np.zeros(equal.grid.face_shape(rows.face)) for rows in (one, other)]
        for flux, rows in zip(fluxes, (one, other), strict=True):
            rows.add_to(flux, step)
        np.testing.assert_allclose(fluxes[0], fluxes[1], atol=1e-7 * fluxes[1].max())


def test_heat_in_rings_is_that_of_the_whole_circle() -> None:
    """Around the axis: powers, and densities that vary with the radius."""
    domain = 'domain = { symmetry = "axial", size = [0.04, 0.02], cells = [5, 3], material = "steel" }\n'
    sources = (
        "[[sources]]\npower = 7.0\nbox = { min = [0, -1, 0], max = [0.02, 1, 0.02] }\n"
        '[[sources]]\npower = 5.0\ndistribution = "1 + (x/0.03)^2"\n'
        '[[sources]]\npower_density = "1e5 + 4e6*x - 1e9*x^3*z"\n'
    )
    body = problem(domain + HEAD + REST + sources)
    volumes_of_rings = body.grid.mean_volume * body.grid.volume_factors(np.arange(15))
    assert volumes_of_rings.sum() == pytest.approx(pi * 0.04**2 * 0.02, rel=1e-12)
    exact = 12.0 + pi * 0.04**2 * 0.02 * (1e5 + 4e6 * 2.0 / 3.0 * 0.04 - 1e9 * 2.0 / 5.0 * 0.04**3 * 0.01)
    assert density(body).reshape(-1) @ volumes_of_rings == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("face", ["z_max", "x_max"])
def test_patches_are_rings(face: str) -> None:
    """Their areas, also where they cover parts of cells; fluxes that vary with the radius; powers."""
    low, high = ("[0.003, -0.5]", "[0.0215, 0.5]") if face == "z_max" else ("[-0.5, 0.003]", "[0.5, 0.0175]")
    domain = 'domain = { symmetry = "axial", size = [0.04, 0.02], cells = [5, 3], material = "steel" }\n'
    patch = f'[[patches]]\nface = "{face}"\nrectangle = {{ min = {low}, max = {high} }}\ntype = "flux"\n'
    if face == "z_max":
        area, heat = pi * (0.0215**2 - 0.003**2), 2.0 * pi * 1e5 * (0.0215**3 - 0.003**3) / 3.0
    else:
        area = 2.0 * pi * 0.04 * 0.0145
        heat = 1e5 * 0.04 * area
    for value, expected in (('value = "1e5*x"', heat), ("power = 3.0", 3.0)):
        body = problem(domain + HEAD + REST + patch + value)
        (ring,) = body.scenario.patches
        assert ring.area(body.grid) == pytest.approx(area, rel=1e-12)
        assert ring.area_on_grid(body.grid) == pytest.approx(area, rel=1e-12)
        balance = Balance(body, 300.0)
        flows = balance.flows([np.zeros(()) for _ in balance.surfaces])
        assert flows.patches["patch 1"] == pytest.approx(expected, rel=1e-12)
