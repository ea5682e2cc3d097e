"""Contacts at interfaces across the grid have the jump of the smooth surface, and void its film.

Steady states are solved with the program's own step: T = M T + b by conjugate gradients.
"""

from collections.abc import Callable
from itertools import product
from math import pi
from pathlib import Path

import numpy as np
import pytest
from conftest import Simulate
from covering import mostly_slow
from numpy.typing import NDArray
from painted import body, cylinder, region, sphere, write_turned_box

from heatsim import device
from heatsim.kernels.composite.arrays import CompositeArrays, make_tables
from heatsim.kernels.cpu.composite_body import CompositeCall
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
from heatsim.physics.operator.heat_sums import no_sums
from heatsim.physics.problem import HeatProblem

Array = NDArray[np.float64]
AMBIENT, FILM = 300.0, 2.0
COOLED = f'void = {{ type = "convection", coefficient = {FILM}, ambient = {AMBIENT} }}'


def stepping(of: HeatProblem, kernel: str = "numba") -> tuple[Callable[[Array], Array], float]:
    """One step of deviations from the ambient temperature, and its length in s."""
    materials, dt = of.materials, 0.9 * of.limit.dt
    arrays = CompositeArrays(device.choose("cpu"), materials, of.boundary.maps, AMBIENT, "float64", of.open_faces)
    tables = make_tables(materials, (0.0,) * 7, dt, "float64")
    steps = arrays.steps(of.rows(np.zeros(1), dt, AMBIENT), 1)
    call = CompositeCall(of.periodic, arrays.body, tables, steps, no_sums(), "increments")

    def step(T: Array) -> Array:
        T_new = np.empty_like(T)
        COMPOSITE_KERNELS[kernel](T, T_new, call)
        return T_new

    return step, dt


def steady(of: HeatProblem, power: Array) -> Array:
    """The deviation from the ambient temperature in K for sources in W/m³; ρ·cp is 1 everywhere."""
    step, dt = stepping(of)
    T, left = np.zeros(of.materials.grid.shape), power * dt
    direction, squared = left.copy(), float((left**2).sum())
    target = 1e-20 * squared
    while squared > target:
        image = direction - step(direction)
        length = squared / float((direction * image).sum())
        T += length * direction
        left -= length * image
        before, squared = squared, float((left**2).sum())
        direction = left + squared / before * direction
    return T


def core_and_shell(of: HeatProblem, centre: tuple[float, ...], round_in: int) -> tuple[Array, Array, Array]:
    """Which cells are of "one", which of "two", and their distances from the centre in m."""
    materials = of.materials
    assert of.parts is not None
    names = np.array([substance.name for substance in materials.palette])[of.parts.material]
    x, y, z = (materials.grid.centres(axis) - centre[axis] for axis in range(3))
    squared = x**2 + (y**2)[:, None] + ((z**2)[:, None, None] if round_in == 3 else 0.0)
    return names == "one", names == "two", np.broadcast_to(np.sqrt(squared), materials.grid.shape)


# Of the core, and of the shell around it.
INNER, OUTER = 0.3, 0.45


def errors(round_in: int, cells: int, resistance: float, ratio: float, centre: tuple[float, ...]) -> tuple[float, ...]:
    """Relative errors of the jump at the contact and of the film's drop.

    Args:
        round_in: 2 for a cylinder, 3 for a sphere.
        cells: of the radius of the core.
        resistance: of the contact in m² K/W.
        ratio: of the shell's conductivity to the core's.
        centre: of both.
    """
    n = round(cells / INNER)
    if round_in == 3:
        shapes, numbers, size = [sphere(radius, centre) for radius in (OUTER, INNER)], [n, n, n], (1.0, 1.0, 1.0)
    else:
        ends = (*centre[:2], -1.0), (*centre[:2], 2.0)
        shapes, numbers, size = [cylinder(radius, *ends) for radius in (OUTER, INNER)], [n, n, 1], (1.0, 1.0, 1.0 / n)
    of = body(
        region(shapes[0], "two", "shell") + region(shapes[1], "one", "core"),
        numbers,
        size=size,
        conductivities=(1.0, ratio),
        resistance=resistance,
        boundaries=COOLED,
    )
    core, shell, r = core_and_shell(of, centre, round_in)
    thickness = 1.0 if round_in == 3 else size[2]
    surface = [4.0 * pi * radius**2 if round_in == 3 else 2.0 * pi * radius * thickness for radius in (INNER, OUTER)]
    volume = surface[0] * INNER / round_in
    T = steady(of, core / (core.sum() * of.materials.grid.cell_volume))  # 1 W

    def between(a: Array | float, b: float) -> Array:
        return np.asarray(
            (1.0 / a - 1.0 / b) / (4.0 * pi) if round_in == 3 else -np.log(a / b) / (2.0 * pi * thickness)
        )

    jump, film = resistance / surface[0], 1.0 / (FILM * surface[1])
    outer = film + between(np.maximum(r, INNER / 2.0), OUTER) / ratio
    inner = film + float(between(INNER, OUTER)) / ratio + jump + (INNER**2 - r**2) / (2.0 * round_in * volume)
    off_shell, off_core = float((T - outer)[shell].mean()), float((T - inner)[core].mean())
    return (off_core - off_shell) / jump, off_shell / film


CENTRE, OFF = (0.5, 0.5, 0.5), (0.4931, 0.5047, 0.4977)


@pytest.mark.quick("2-1.0-centre0", "2-1.0-centre1", "2-10.0-centre2")
@pytest.mark.parametrize(
    ("round_in", "ratio", "centre"), [(2, 1.0, CENTRE), (2, 1.0, OFF), (2, 10.0, OFF), (3, 1.0, OFF)]
)
def test_round_contacts_have_their_jump(round_in: int, ratio: float, centre: tuple[float, ...]) -> None:
    coarse, fine = (errors(round_in, cells, 0.3, ratio, centre) for cells in ((9, 18) if round_in == 2 else (6, 12)))
    assert abs(coarse[0]) < 0.01
    assert abs(fine[0]) < 0.005
    assert abs(coarse[1]) < 0.02
    assert abs(fine[1]) < 0.01


@pytest.mark.parametrize("degrees", [(30.0, 0.0), (30.0, 45.0), (12.0, 30.0)])
def test_a_field_that_is_linear_but_for_its_jumps_stays_as_it_is(degrees: tuple[float, float], tmp_path: Path) -> None:
    """What flows normal to a plate in one material crosses both contacts exactly, whatever the plate's direction."""
    write_turned_box(tmp_path / "part.stl", (6.0, 6.0, 0.25), degrees)
    of = body(region('stl = "part.stl"', "two"), 32, outside="one", resistance=0.7, boundaries="", folder=tmp_path)
    a, b = np.radians(degrees)
    normal = np.array([np.sin(a) * np.sin(b), -np.sin(a) * np.cos(b), np.cos(a)])
    x, y, z = (of.materials.grid.centres(axis) - 0.5 for axis in range(3))
    along = x * normal[0] + (y * normal[1])[:, None] + (z * normal[2])[:, None, None]
    T = -along - 0.7 * (along > -0.125) - 0.7 * (along > 0.125)
    change = stepping(of, "numpy")[0](T) - T
    inside = (slice(6, -6),) * 3
    assert np.abs(change[inside]).max() < 1e-5 * np.abs(change).max()
    surfaces = of.materials.weighted_surfaces
    assert surfaces.contacts
    assert not of.materials.exposed_cells


def test_a_flat_contact_on_the_grid_has_no_weights() -> None:
    of = body(
        region("box = { min = [0.25, 0.0, 0.0], max = [0.75, 1.0, 1.0] }", "two"),
        8,
        outside="one",
        resistance=0.7,
        boundaries="",
    )
    assert not of.materials.weighted_surfaces.cells.size


def test_a_contact_between_slabs_keeps_its_bits_where_a_sphere_has_one_too() -> None:
    """Links of faces that are not weighted are those of the table."""
    slabs = region("box = { min = [0.0, 0.0, 0.0], max = [1.0, 1.0, 0.25] }", "two")
    both = slabs + region(sphere(0.2, (0.5, 0.5, 0.65)), "two", "ball")
    T = 10.0 * np.random.default_rng(0).random((16, 16, 16))
    fields = []
    for regions in (slabs, both):
        of = body(regions, 16, outside="one", resistance=0.7, boundaries="")
        step, dt = stepping(of)
        assert dt == pytest.approx(0.9 / 6 / 16**2, rel=1e-12)
        fields.append(step(T))
    assert fields[0][:5].tobytes() == fields[1][:5].tobytes()
    assert (fields[0] != fields[1]).any()


def test_the_step_is_limited_where_weights_are_largest() -> None:
    """Cells whose faces stand for more than their own area lose more, which the limit knows."""
    of = body(
        region(sphere(0.11, (0.52, 0.47, 0.5))),
        10,
        boundaries='void = { type = "convection", coefficient = 500.0, ambient = 0.0 }',
    )
    surfaces = of.materials.weighted_surfaces
    limit = of.limit.dt
    step, dt = stepping(of)
    own = []
    for cell in surfaces.cells.tolist():
        T = np.full(of.materials.grid.shape, -AMBIENT)
        still = step(T).reshape(-1)[cell]
        T.reshape(-1)[cell] += 1.0
        own.append(step(T).reshape(-1)[cell] - still)
    assert 1.0 - (1.0 - min(own)) * limit / dt == pytest.approx(0.0, abs=1e-9)


# Two walls, the upper half of which ends before the other one begins. Cells touch everywhere.
GAP = """
domain = { size = [1.0, 1.0, 1.0], cells = [4, 2, 1], material = "m" }
initial = { temperature = 350.0 }
contacts = [{ between = ["left", "right"], resistance = 0.5 }]
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false }
boundaries = { x_min = { type = "temperature", value = 400.0 }, x_max = { type = "temperature", value = 300.0 } }
[materials]
m = { conductivity = 1.0, density = 1.0, specific_heat = 1.0 }
left = { conductivity = 1.0, density = 1.0, specific_heat = 1.0 }
right = { conductivity = 1.0, density = 1.0, specific_heat = 1.0 }
"""
VARYING = GAP.replace(
    "left = { conductivity = 1.0,",
    'left = { temperature_range = [250.0, 450.0], conductivity = "1 + 1e-12*(T - 300)",',
)
LOWER = """
[[regions]]
name = "lower"
material = "left"
box = { min = [0.0, 0.0, 0.0], max = [0.5, 0.5, 1.0] }
"""
UPPER = """
[[regions]]
name = "upper"
material = "left"
box = { min = [0.0, FIRST, 0.0], max = [0.45, 1.0, 1.0] }
[[regions]]
name = "right"
material = "right"
box = { min = [0.5, 0.0, 0.0], max = [1.0, 1.0, 1.0] }
"""
TIMES = {
    "steady": 'method = "steady"\ntolerance = 1e-5',
    "implicit": 'method = "implicit"\nend = 10.0\ntolerance = 1e-3',
    "euler": 'method = "euler"\nend = 10.0',
}


@pytest.mark.quick("False-implicit", "False-euler", "True-euler", "True-steady")
@pytest.mark.parametrize("method", TIMES)
@pytest.mark.parametrize("varies", [False, True])
def test_a_contact_blocks_heat_where_its_shapes_are_apart(method: str, varies: bool, simulate: Simulate) -> None:
    """Below, 100 K lie over 0.25 + 0.5 + 0.5 + 0.25 m² K/W; above, heat has to go around."""
    text = VARYING if varies else GAP
    text += LOWER + UPPER.replace("FIRST", "0.5") + "[time]\n" + TIMES[method]
    T = simulate(text).temperature[0]
    assert T[1, 1] - T[0, 1] == pytest.approx(T[0, 2] - T[1, 2], abs=1e-3)
    conductance = 1.0 / (0.125 + 0.5 + 0.125)
    through = conductance * (T[0, 1] - T[0, 2])
    assert (400.0 - T[:, 0]).sum() * 8.0 == pytest.approx(through, abs=1e-2)
    assert (T[:, 3] - 300.0).sum() * 8.0 == pytest.approx(through, abs=1e-2)


@pytest.mark.parametrize(
    ("method", "varies"),
    mostly_slow(product(TIMES, (False, True)), *product(TIMES, (False,)), ("steady", True)),
)
def test_parts_that_touch_nowhere_have_no_contact(method: str, varies: bool, simulate: Simulate) -> None:
    text = VARYING if varies else GAP
    T = simulate(text + UPPER.replace("FIRST", "0.0") + "[time]\n" + TIMES[method]).temperature[0]
    np.testing.assert_allclose(T, [[387.5, 362.5, 337.5, 312.5]] * 2, atol=1e-2)
