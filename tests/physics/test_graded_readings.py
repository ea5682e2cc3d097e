"""Readings on cells of several widths: exact in walls, of second order in smooth fields."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from problem_text import problem

from heatsim.converge.factors import Factors
from heatsim.grid import AXES
from heatsim.observers.edges.surface_edges import SurfaceEdges
from heatsim.physics.estimates.other_grids import GridChoice
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.contact_links import contact_links, flow_through
from heatsim.physics.readings.heat_flux import heat_flux
from heatsim.physics.readings.interpolation import Interpolation
from heatsim.physics.readings.surface_cells import SurfaceCells
from heatsim.run.error.coarser_run import plan_on
from heatsim.run.simulation import Simulation
from heatsim.storage import run_tables
from heatsim.study.definition import derive

Array = NDArray[np.float64]
Field = Callable[[Array, Array, Array], Array]

# Of three materials, and a contact between the first two; a film in front, a flux behind.
CONDUCTIVITIES, CONTACT, FILM, AMBIENT, FLUX = (0.04, 50.0, 1.0), 0.3, 8.0, 270.0, -500.0
WIDTHS = (0.02, 0.001, 0.003, 0.1, 0.02, 0.02, 0.001, 0.05, 0.2)
MATERIAL = (0, 0, 0, 1, 1, 2, 2, 2, 2)


def probed(derived: HeatProblem, points: Sequence[Sequence[float]], T: Array) -> Array:
    """What probes at points read of a field, shape (points,)."""
    interpolation = Interpolation(derived, [(x, y, z) for x, y, z in points])
    x, y, z = interpolation.cells
    return interpolation.of(T[z, y, x][None], [0])[0]


def field_of(derived: HeatProblem, field: Field) -> Array:
    x, y, z = (derived.grid.centres(axis) for axis in range(3))
    return np.broadcast_to(field(x[None, None, :], y[None, :, None], z[:, None, None]), derived.grid.shape)


def wall(axis: int, cells: str) -> HeatProblem:
    """A composite wall across an axis, whose cells are ``cells``."""
    name, total = AXES[axis], sum(WIDTHS)
    borders, size, counts = np.cumsum(WIDTHS), [0.3, 0.3, 0.3], [2, 2, 2]
    size[axis], counts[axis] = total, len(WIDTHS)
    regions = ""
    for number in (1, 2):
        low, high = [0.0, 0.0, 0.0], list(size)
        low[axis] = float(borders[MATERIAL.index(number) - 1])
        regions += f'[[regions]]\nname = "r{number}"\nmaterial = "m{number}"\nbox = {{ min = {low}, max = {high} }}\n'
    materials = "".join(
        f"[materials.m{number}]\nconductivity = {k}\ndensity = 1.0\nspecific_heat = 1.0\n"
        for number, k in enumerate(CONDUCTIVITIES)
    )
    return problem(f"""
domain = {{ size = {size}, cells = {counts}, material = "m0", {name} = {cells} }}
contacts = [{{ between = ["m0", "m1"], resistance = {CONTACT} }}]
initial.temperature = 300.0
boundaries.{name}_min = {{ type = "convection", coefficient = {FILM}, ambient = {AMBIENT} }}
boundaries.{name}_max = {{ type = "flux", value = {FLUX} }}
time.end = 1.0
output.region_heat = true
{regions}{materials}""")


@pytest.mark.parametrize("axis", range(3))
def test_a_composite_wall_of_any_widths_is_read_exactly(axis: int) -> None:
    """Steady: linear in each material, with a jump at the contact. Every probe, surface, flux and contact is exact."""
    derived = wall(axis, f"{{ widths = {list(WIDTHS)} }}")
    ends = np.concatenate(([0.0], np.cumsum(WIDTHS)))
    drops = FLUX * np.array([width / CONDUCTIVITIES[of] for width, of in zip(WIDTHS, MATERIAL, strict=True)])
    jumps = np.where(np.diff(MATERIAL, prepend=0) * (np.array(MATERIAL) == 1), FLUX * CONTACT, 0.0)
    start = AMBIENT + FLUX / FILM

    def exact(place: float) -> float:
        cell = int(np.clip(np.searchsorted(ends, place, side="right") - 1, 0, len(WIDTHS) - 1))
        passed = start + drops[:cell].sum() + jumps[: cell + 1].sum()
        return float(passed + drops[cell] * (place - ends[cell]) / WIDTHS[cell])

    T = np.moveaxis(
        np.broadcast_to([exact(place) for place in derived.grid.centres(axis)], (2, 2, len(WIDTHS))), 2, 2 - axis
    )
    places = np.sort(np.concatenate((ends, np.random.default_rng(axis).uniform(0.0, ends[-1], 60))))
    points = [[place if along == axis else 0.1 for along in range(3)] for place in places]
    assert probed(derived, points, T) == pytest.approx([exact(place) for place in places], rel=1e-10)
    q = heat_flux(derived, 0, 0, lambda first, end: T[first:end], len(T))
    assert q[..., axis] == pytest.approx(np.full(T.shape, -FLUX), rel=1e-9)
    surface = SurfaceCells(derived, f"{AXES[axis]}_max", None)
    x, y, z = surface.own_places
    assert surface.of(T[z, y, x], 0) == pytest.approx(np.full(4, exact(ends[-1])), rel=1e-10)
    (links,) = contact_links(derived)
    flow = flow_through(derived, links, (T[tuple(links.first)], T[tuple(links.second)]))
    assert flow == pytest.approx(-FLUX * 0.09, rel=1e-9)


def graded(n: int) -> HeatProblem:
    """A box with smoothly graded cells: narrow near one end along x, in the middle along y, equal along z."""
    s = np.linspace(0.0, 1.0, n + 1)
    x, y = np.expm1(2.0 * s) / np.expm1(2.0), s + 0.1 * np.sin(2.0 * np.pi * s)
    widths = [np.diff(along).tolist() for along in (x, y)]
    boundaries = ""
    for face, at in (("x_min", 0.0), ("x_max", 1.0)):
        slope = float(np.cos(1.5 * at + 0.3)) * 1.5 * (-1.0 if at else 1.0)
        ambient = f"300 + 50*(sin(1.5*{at} + 0.3) - {slope!r}*2/5)*cos(2*y)*cos(z)"
        boundaries += f'boundaries.{face} = {{ type = "convection", coefficient = 5.0, ambient = "{ambient}" }}\n'
    return problem(f"""
domain = {{ size = [1, 1, 1], cells = [{n}, {n}, {n}], x = {{ widths = {widths[0]} }}, y = {{ widths = {widths[1]} }} }}
material = {{ conductivity = 2.0, density = 1.0, specific_heat = 1.0 }}
initial.temperature = 300.0
{boundaries}
time.end = 1.0
""")


def smooth(x: Array, y: Array, z: Array) -> Array:
    return 300.0 + 50.0 * np.sin(1.5 * x + 0.3) * np.cos(2.0 * y) * np.cos(z)


def test_readings_of_a_smooth_field_have_second_order() -> None:
    """Probes inside and on x_min and x_max, fluxes within, the mean of a surface whose cells have different areas."""
    errors = []
    for n in (24, 48):
        derived, inner = graded(n), (slice(n // 8, -n // 8),) * 3
        T = field_of(derived, smooth)
        points = np.random.default_rng(7).uniform(0.12, 0.88, (300, 3))
        points[:60, 0] = np.arange(60) % 2
        at_points = np.abs(probed(derived, points.tolist(), T) - smooth(*points.T)).max()
        q = heat_flux(derived, 0, 0, lambda first, end, T=T: T[first:end], n)[inner]
        x, y, z = (derived.grid.centres(axis)[inner[0]] for axis in range(3))
        x, y, z = x[None, None, :], y[None, :, None], z[:, None, None]
        along = -2.0 * 50.0 * 1.5 * np.cos(1.5 * x + 0.3) * np.cos(2.0 * y) * np.cos(z)
        across = 2.0 * 50.0 * 2.0 * np.sin(1.5 * x + 0.3) * np.sin(2.0 * y) * np.cos(z)
        of_fluxes = [np.abs(q[..., axis] - exact).max() for axis, exact in enumerate((along, across))]
        surface = SurfaceCells(derived, "x_max", None)
        x, y, z = surface.own_places
        mean = np.average(surface.of(T[z, y, x], 0), weights=surface.own_areas)
        exact_mean = 300.0 + 50.0 * np.sin(1.8) * np.sin(2.0) / 2.0 * np.sin(1.0)
        errors.append([at_points, *of_fluxes, abs(mean - exact_mean)])
    assert np.sum(SurfaceCells(derived, "x_max", None).own_areas) == pytest.approx(1.0)
    orders = np.log2(np.divide(*errors))
    assert (orders > 1.8).all(), orders  # 1.9 from 32 to 64 cells: the widths themselves are smooth only to first order


@pytest.mark.parametrize("axial", [False, True])
def test_fluxes_of_a_source_are_exact_beside_jumps_of_the_width(axial: bool) -> None:
    """Steady: the heat of each m³ leaves at one end. A field that the balance of each cell makes has the exact flux."""
    widths, k, power = [0.1, 0.01, 0.01, 0.3, 0.02, 0.5], 2.0, 400.0
    others = 'symmetry = "axial", size = [1], cells = [1]' if axial else "size = [1, 1], cells = [1, 1]"
    derived = problem(f"""
domain = {{ {others}, x = {{ widths = {widths} }} }}
material = {{ conductivity = {k}, density = 1.0, specific_heat = 1.0 }}
initial.temperature = 300.0
time.end = 1.0
""")
    x = derived.grid.axes[0]
    through = power * x.borders / (2.0 if axial else 1.0)  # of the whole cells below
    T = 900.0 - np.append(0.0, np.cumsum(through[1:-1] * (x.halves[:-1, 1] + x.halves[1:, 0]) / k))
    q = heat_flux(derived, 0, 0, lambda first, end: T.reshape(1, 1, -1)[first:end], 1)[0, 0, :, 0]
    exact = power * x.centres / (2.0 if axial else 1.0)
    assert q[:-1] == pytest.approx(exact[:-1], rel=1e-9)


# A room in an edge of a body of two materials.
CORNER = """
domain = { size = [0.24, 0.24, 0.24], cells = [12, 12, 12], material = "outer", CELLS }
materials.outer = { conductivity = "K", density = 50.0, specific_heat = 1000.0 }
materials.inner = { conductivity = 0.3, density = 50.0, specific_heat = 1000.0 }
regions = [{ name = "inner", material = "inner", box = { min = [0.08, 0.08, 0.08], max = [0.24, 0.24, 0.24] } },
           { name = "room", material = "void", box = { min = [0.12, 0.12, 0.0], max = [0.24, 0.24, 0.24] } }]
initial.temperature = "285 + 30*x - 20*y"
boundaries.x_min = { type = "convection", coefficient = "20 + 50*y", ambient = 268.0 }
boundaries.void = { type = "convection", coefficient = 8.0, ambient = "288 + 20*z" }
boundaries.z_max = { type = "convection", coefficient = 3.0, ambient = 260.0 }
time.end = 1.0
"""


@pytest.mark.parametrize("conductivity", ["0.6", "0.6 + 0.001*(T - 280)"])
def test_nearly_equal_cells_are_read_as_equal_cells(conductivity: str) -> None:
    """The path of graded grids, with widths that differ by a billionth."""
    widths = 0.02 * (1.0 + 1e-9 * np.where(np.arange(12) % 2, 1.0, -1.0))
    cells = ", ".join(f"{name} = {{ widths = {widths.tolist()} }}" for name in AXES)
    found = []
    for text in ("", cells):
        derived = problem(CORNER.replace(", CELLS", f", {text}" if text else "").replace('"K"', f'"{conductivity}"'))
        T = field_of(derived, lambda x, y, z: 280.0 + 30.0 * x - 90.0 * x * y + 60.0 * z**2)
        readings = [probed(derived, np.random.default_rng(3).uniform(0.0, 0.119, (50, 3)).tolist(), T)]
        readings.append(heat_flux(derived, 0, 0, lambda first, end, T=T: T[first:end], 12).reshape(-1))
        surface = SurfaceCells(derived, "void", None)
        x, y, z = surface.own_places
        readings += [surface.of(T[z, y, x], 0), surface.own_areas * 1e4]
        edges = SurfaceEdges(derived, surface)
        x, y, z = edges.own_places
        readings += [edges.mean(edges.of(T[z, y, x], 0)), edges.points.reshape(-1)]
        found.append(np.concatenate(readings))
    assert not derived.grid.uniform
    assert found[1] == pytest.approx(found[0], rel=1e-8, abs=1e-6)


def test_edges_of_strongly_graded_cells_are_exact_for_products_of_linear_fields() -> None:
    """Films on the planes of a room in a body of one material, as T = T∞ + 100·Π (1 − κ·(x − 0.1)) has them."""
    widths = [*[0.02] * 4, 0.01, 0.004, 0.004, 0.002, 0.005, 0.015, 0.02, 0.02, *[0.01] * 4]
    cells = ", ".join(
        f"{name} = {{ widths = {of} }}" for name, of in zip(AXES, (widths, widths[::-1], widths), strict=True)
    )
    derived = problem(f"""
domain = {{ size = [0.2, 0.2, 0.2], cells = [16, 16, 16], material = "stone", {cells} }}
materials.stone = {{ conductivity = 2.0, density = 1000.0, specific_heat = 1000.0 }}
initial.temperature = 300.0
boundaries.default = {{ type = "convection", coefficient = 20.0, ambient = 280.0 }}
boundaries.void = {{ type = "convection", coefficient = 20.0, ambient = 280.0 }}
regions = [{{ name = "room", material = "void", box = {{ min = [0.1, 0.1, 0.1], max = [0.2, 0.2, 0.2] }} }}]
time.end = 1.0
""")

    def linear(x: Array, y: Array, z: Array) -> Array:
        return 280.0 + 100.0 * np.prod(
            np.broadcast_arrays(*(1.0 - 10.0 * (of_axis - 0.1) for of_axis in (x, y, z))), axis=0
        )

    edges = SurfaceEdges(derived, SurfaceCells(derived, "void", None))
    x, y, z = edges.own_places
    found = edges.mean(edges.of(field_of(derived, linear)[z, y, x], 0))
    inner = (edges.points < 0.199).all(axis=1) & (np.isclose(edges.points, 0.1).sum(axis=1) == 2)
    assert inner.sum() == 21
    assert found[inner] == pytest.approx(linear(*edges.points[inner].T), abs=0.02)


def test_an_annulus_is_read_exactly() -> None:
    """The logarithm of the radius within cells too; flux times radius is constant."""
    derived = problem(f"""
domain = {{ symmetry = "axial", size = [1], cells = [1], origin = [0.02, 0], x = {{ widths = {list(WIDTHS)} }} }}
material = {{ conductivity = 2.0, density = 1.0, specific_heat = 1.0 }}
initial.temperature = 300.0
boundaries.x_min = {{ type = "flux", value = 1000.0 }}
boundaries.x_max = {{ type = "temperature", value = {400.0 - 10.0 * float(np.log((0.02 + sum(WIDTHS)) / 0.02))!r} }}
time.end = 1.0
""")
    T = field_of(derived, lambda x, y, z: 400.0 - 10.0 * np.log(x / 0.02))
    radii = np.linspace(0.02, 0.02 + sum(WIDTHS), 97)
    points = [[radius, 0.0, 0.3] for radius in radii]
    assert probed(derived, points, T) == pytest.approx(400.0 - 10.0 * np.log(radii / 0.02), rel=1e-10)
    q = heat_flux(derived, 0, 0, lambda first, end: T[first:end], 1)[0, 0, :, 0]
    assert q * derived.grid.centres(0) == pytest.approx(np.full(len(WIDTHS), 20.0), rel=1e-9)


def test_an_extent_ends_between_cells_of_several_widths(tmp_path: Path) -> None:
    """Where a straight line has the threshold, and behind the last hot cell; the mean is that of volumes."""
    path = tmp_path / "case.toml"
    path.write_text(
        f"""
domain = {{ size = [1, 1], cells = [1, 1], x = {{ widths = {list(WIDTHS)} }} }}
material = {{ conductivity = 1.0, density = 1.0, specific_heat = 1.0 }}
initial.temperature = "300 + 1000*x"
time = {{ end = 1e-9, method = "euler" }}
solver = {{ device = "cpu", precision = "float64" }}
output = {{ figures = false, fields = false, error = "none" }}
probes = [{{ name = "hot", statistic = "extent_x", threshold = 340.0 }}, {{ name = "mean", statistic = "mean" }}]
""",
        encoding="utf-8",
    )
    Simulation.from_scenario(path, output=tmp_path / "out").run()
    table = run_tables.read_probes(tmp_path / "out")
    assert table is not None
    assert table.columns["hot", "m"][0] == pytest.approx(sum(WIDTHS) - 0.04, rel=1e-9)
    assert table.columns["mean", "K"][0] == pytest.approx(300.0 + 500.0 * sum(WIDTHS), rel=1e-12)


OTHER_GRIDS = """
domain.material = "m0"
domain.size = [0.02, 0.02]
domain.cells = [1, 1]
domain.x.intervals = [{ to = 0.1, cells = 12, growth = 0.85 }, { to = 0.16, cells = 12 },
                      { to = 0.5, cells = 24, growth = 1.08 }]
materials.m0 = { conductivity = 0.4, density = 500.0, specific_heat = 1000.0 }
materials.m1 = { conductivity = 5.0, density = 500.0, specific_heat = 1000.0 }
regions = [{ name = "r", material = "m1", box = { min = [0.1, 0, 0], max = [0.16, 0.02, 0.02] } }]
initial.temperature = 300.0
boundaries.x_min = { type = "temperature", value = 280.0 }
time.end = 1.0
"""


def test_other_grids_keep_the_planes_of_parts_and_the_growth() -> None:
    """Twelve cells that shrink, twelve equal ones between planes of a region, and 24 that grow."""
    derived = problem(OTHER_GRIDS)
    choice, given = GridChoice.of(derived.scenario), derived.grid.axes[0]
    assert choice.near(2.0) == (24, 1, 1)
    halved = plan_on(derived.scenario, (24, 1, 1), "auto").problem.grid.axes[0]
    assert halved.borders == pytest.approx(given.borders[::2], abs=1e-12)
    finer = np.cumsum([0.0, *choice.widths((96, 1, 1))["x"]])
    assert finer[::2] == pytest.approx(given.borders, rel=1e-6)
    growth = np.diff(np.log(np.diff(finer)))
    assert growth[:23] == pytest.approx(np.full(23, np.log(0.85) / 2.0), rel=1e-6)
    assert growth[48:] == pytest.approx(np.full(47, np.log(1.08) / 2.0), rel=1e-6)
    third = np.cumsum([0.0, *choice.widths((32, 1, 1))["x"]])
    assert third[[8, 16, 32]] == pytest.approx([0.1, 0.16, 0.5], rel=1e-12)


def test_runs_that_show_errors_have_tables_of_their_cells(tmp_path: Path) -> None:
    """The given run keeps the table of the scenario; others have widths."""
    path = tmp_path / "case.toml"
    path.write_text(OTHER_GRIDS, encoding="utf-8")
    factors = Factors.read(path, [])
    points = [factors.given, factors.on_grid((24, 1, 1)), factors.on_grid((96, 1, 1))]
    assert "intervals" in points[0]["domain.x"]
    _, problems = derive(factors.definition(points), elsewhere=False)
    grids = [each.grid for each in problems.values()]
    assert [grid.cells for grid in grids] == [(48, 1, 1), (24, 1, 1), (96, 1, 1)]
    assert grids[0].borders == problem(OTHER_GRIDS).grid.borders
    assert grids[1].borders[0] == pytest.approx(grids[0].borders[0][::2], abs=1e-12)
